"""One execution of a run: its workspace, its session, and the phases that have run there so far."""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import TYPE_CHECKING, Final

from sandbox.budget import CLOSE_SECONDS, RunDeadline
from sandbox.databases.preflight import PREFLIGHT, SCRIPT
from sandbox.diagnostics import find_diagnostics, with_cause
from sandbox.errors import EndUnconfirmedError, SandboxError, SandboxLostError, SandboxSpoiltError
from sandbox.events import DIAGNOSTIC, PHASE_FINISHED, PHASE_STARTED, EventStream
from sandbox.execution import PhaseRun
from sandbox.models import Diagnostic, Isolation, Outcome, PhaseResult, RunLimits, ValidationRequest
from sandbox.outcomes import TIMEOUT_CODE, Facts, Status, Verdict, phase_verdict
from sandbox.results import Reading, read_result, read_status
from sandbox.retry import Deadline
from sandbox.session import Session
from sandbox.workspace import Share, Workspace, phase_variables, share_of, uploads

if TYPE_CHECKING:
    from daytona import AsyncSandbox

    from sandbox.profiles import Phase
    from sandbox.task import Task

logger = logging.getLogger(__name__)

THREAD_CHARACTERS: Final = 32 * 1024
"""Output beyond this size is searched for diagnostics in a thread, so that other runs go on."""


class Attempt:
    """One execution of a run in one sandbox.

    Args:
        task: What is executed.
        sandbox: Where.
        events: Told of phases, output and findings.
        deadline: Of the run.
        repeated: Whether this is the second execution, whose verdict stands whatever state the sandbox is in.
    """

    def __init__(
        self,
        task: Task,
        sandbox: AsyncSandbox,
        *,
        events: EventStream,
        deadline: RunDeadline,
        repeated: bool = False,
    ) -> None:
        self.sandbox = sandbox
        self.disk_full = False
        """Whether a phase was ended because the disk was full: of no use to anybody afterwards."""
        self.results: list[PhaseResult] = []
        self.verdicts: list[Verdict] = []
        self.diagnostics: list[Diagnostic] = []
        self.warnings: list[str] = []
        self._task = task
        self._events = events
        self._repeated = repeated
        self.workspace = workspace_of(task.request)
        self._share = share_of(
            task.profile, memory_gib=sandbox.memory, cpu=sandbox.cpu, shared=task.isolation is not Isolation.RUN
        )
        self._deadline = deadline
        self._session = Session(sandbox, self.workspace, prefix=sandbox.name, platform=deadline.platform)
        self._run: PhaseRun | None = None
        self._begun: list[Phase] = []

    @property
    def unrepeatable(self) -> Phase | None:
        """The first phase that has begun and may not be run a second time, if there is one."""
        databases = self._task.preflight is not None
        for phase in self._begun:
            reaches = databases and phase is self._task.framework.phases[-1]
            if not (not reaches if phase.repeatable is None else phase.repeatable):
                return phase
        return None

    @property
    def session_id(self) -> str:
        """Id of the session, ``<sandbox name>-<uuid4>``."""
        return self._session.id

    async def open(self) -> None:
        """Opens the session and uploads the workspace."""
        task = self._task
        variables = phase_variables(
            self.workspace, program=task.program, share=self._share, network=task.profile.network.mode
        )
        files = uploads(self.workspace, task.request, task.framework, variables=variables)
        if task.preflight is not None:
            files[f"{self.workspace.ours}/{SCRIPT}"] = task.preflight.script()
        await self._session.open(files)

    async def start(self, phase: Phase) -> None:
        """Starts a phase."""
        request, profile = self._task.request, self._task.profile
        # The preflight is ours: the program's environment and the limits of its output are not for it.
        limits = RunLimits() if phase.name == PREFLIGHT else request.limits
        first = not self.results
        if first:
            self._deadline.begin()
        limit = self._deadline.phase_limit(request.limits.phase_seconds.get(phase.name, phase.timeout_seconds))
        run = PhaseRun(
            phase,
            self._session,
            events=self._events,
            language=profile.language,
            limit=limit,
            silence=limits.no_output_seconds or phase.no_output_seconds,
            output_limit=limits.output_bytes or profile.output_bytes,
            secrets=tuple(self._task.hidden),
            # What the preflight prints is for us; its verdict tells what it found.
            shown=phase.name != PREFLIGHT,
        )
        self._events.emit(
            PHASE_STARTED, {"phase": phase.name, "command": phase.command, "limit": limit}, phase=phase.name
        )
        last = phase is self._task.framework.phases[-1]
        environment = {**request.environment, **self._task.secrets, **(self._task.databases if last else {})}
        self._begun.append(phase)
        await run.start(
            environment={} if phase.name == PREFLIGHT else environment,
            stdin=request.stdin is not None and last,
            fresh=first,
        )
        self._run = run

    async def stream(self) -> None:
        """Hands on both output streams until the phase has ended, or ends it when a limit is passed."""
        await self._started().stream()

    async def finish(self) -> PhaseResult:
        """Waits until ``stream`` has ended and returns how the phase went.

        Raises:
            SandboxLostError: It could not be started, or an earlier program had spoilt the sandbox.
        """
        run = self._started()
        await run.wait()
        status = Status()
        if run.exit is not None:
            self._check_sandbox(run)
        passed = run.exit is not None and run.exit.code == 0
        follows = run.phase is not self._task.framework.phases[-1]
        if run.exit is not None and not self.disk_full and (not passed or (follows and self._deadline.counts_phases)):
            status = await read_status(self.sandbox, self.workspace, run.phase.name, platform=self._deadline.platform)
        self._deadline.spend(run.seconds, inside=status.elapsed)
        if status.unfit and not self._repeated and self._task.isolation is not Isolation.RUN:
            raise SandboxSpoiltError(f"it takes no files: {run.stderr.text.strip()}", sandbox=self.sandbox.name)
        if run.exit is not None and not passed and not self.disk_full and _is_doubtful(run.exit.code, status):
            await run.confirm_end()
        stdout, stderr = run.stdout.output, run.stderr.output
        facts = Facts(
            phase=run.phase,
            limit=run.limit,
            seconds=run.seconds,
            exit_code=run.exit.code if run.exit is not None else None,
            end_reason=run.exit.reason if run.exit is not None else None,
            stop=run.stop,
            silence=run.silence,
            output_limit=run.output_limit,
            status=status,
            stdout=stdout.text,
            stderr=stderr.text,
            memory_mib=self._share.memory_mib,
            sandbox_mib=self.sandbox.memory * 1024,
            snapshot=self._task.profile.snapshot_name,
            unreachable=self._unreachable(run),
            answered=self._task.preflight is not None and run.phase.name != PREFLIGHT,
        )
        verdict = phase_verdict(facts)
        if run.phase.name == PREFLIGHT and verdict.outcome is Outcome.RUNTIME_ERROR:
            # Ours, not the program's: no verdict on that can come of it.
            raise SandboxError(
                f"the databases could not be checked: {verdict.message} {stderr.text.strip()}",
                step=PREFLIGHT,
                sandbox=self.sandbox.name,
            )
        result = PhaseResult(
            name=run.phase.name,
            command=run.phase.command,
            exit_code=facts.exit_code,
            signal=facts.signal,
            seconds=run.seconds,
            outcome=verdict.outcome,
            stdout=stdout,
            stderr=stderr,
        )
        if run.phase.name != PREFLIGHT:
            await self._diagnose(facts, verdict)
        if run.reconnections:
            self.warnings.append(f"The log stream of the phase {run.phase.name} broke and was opened again.")
        if run.unended is not None:
            self.warnings.append(f"{run.unended.code}: the phase {run.phase.name} may not have ended: {run.unended}")
        self.results.append(result)
        self.verdicts.append(verdict)
        self._run = None
        self._events.emit(
            PHASE_FINISHED,
            {
                "phase": result.name,
                "outcome": result.outcome.value,
                "exit_code": result.exit_code,
                "signal": result.signal,
                "seconds": round(result.seconds, 3),
            },
            phase=result.name,
        )
        return result

    async def read_result(self) -> Reading | None:
        """Reads the result after the phases.

        After a failure a result is worth having, not worth failing for: a program that wrote it and then threw has
        both.
        Nothing is read when the last phase did not run.
        """
        profile = self._task.profile
        if not self.results or len(self.results) < len(self._task.framework.phases):
            return None
        last = self.results[-1]
        try:
            return await read_result(
                self.sandbox,
                self.workspace,
                limit=self._task.request.limits.result_bytes or profile.result_bytes,
                phase=last.name,
                exit_code=last.exit_code,
                printed=last.stdout.text,
                platform=self._deadline.platform,
            )
        except SandboxError as error:
            if last.outcome is Outcome.PASSED:
                raise
            self.warnings.append(f"Whether the program left a result is unknown: {error.message}.")
            return None

    async def end(self, *, tidy: bool, within: Deadline | None = None) -> None:
        """Ends whatever runs and deletes the session.

        Args:
            tidy: Also remove what nobody reads after the run.
            within: Until when; ``CLOSE_SECONDS`` by default.
        """
        within = within or Deadline(CLOSE_SECONDS)
        if self._run is not None:
            await self._run.cancel()
            self._run = None
            try:
                await self._session.kill(within=within)
            except EndUnconfirmedError as error:
                logger.warning("the program of %s may not have ended: %s", self.session_id, error)
        await self._session.close(tidy=tidy, within=within)

    async def forget(self) -> None:
        """Ends what runs on our side; the sandbox is about to be deleted with the rest."""
        if self._run is not None:
            await self._run.cancel()
            self._run = None

    def _check_sandbox(self, run: PhaseRun) -> None:
        assert run.exit is not None
        if run.exit.code < 0:
            # No program exits so: the platform's word for a command that its shell did not take.
            raise SandboxLostError(
                f"the phase {run.phase.name} could not be started: {run.stderr.text.strip()}", sandbox=self.sandbox.name
            )
        if run.exit.reason == "disk":
            self.disk_full = True
            if not (self.results or self._repeated or self._task.isolation is Isolation.RUN):
                raise SandboxSpoiltError("its disk was full", sandbox=self.sandbox.name)

    def _unreachable(self, run: PhaseRun) -> tuple[str, ...]:
        """Returns a sentence for each database that did not answer the preflight; empty for other phases."""
        if self._task.preflight is None or run.phase.name != PREFLIGHT:
            return ()
        report = self._task.preflight.report(run.stdout.text)
        self.warnings += report.warnings
        for database in report.unreachable:
            self._tell(database.diagnostic)
        return tuple(map(str, report.unreachable))

    def _tell(self, finding: Diagnostic) -> None:
        self.diagnostics.append(finding)
        self._events.emit(DIAGNOSTIC, finding.model_dump(mode="json"), phase=finding.phase)

    def _started(self) -> PhaseRun:
        if self._run is None:
            raise RuntimeError("start_phase comes first")
        return self._run

    async def _diagnose(self, facts: Facts, verdict: Verdict) -> None:
        phase, failed = facts.phase, verdict.outcome is not Outcome.PASSED

        def find() -> tuple[Diagnostic, ...]:
            found = find_diagnostics(
                phase.diagnostics,
                stdout=facts.stdout,
                stderr=facts.stderr,
                phase=phase.name,
                files=self._task.request.files,
                workspace=self.workspace.directory,
                failed=failed,
                network=self._task.profile.network.mode,
            )
            if not failed:
                return found
            return with_cause(
                found,
                cause=verdict.cause,
                message=verdict.message,
                phase=phase.name,
                stdout=facts.stdout,
                stderr=facts.stderr,
            )

        large = len(facts.stdout) + len(facts.stderr) > THREAD_CHARACTERS
        for finding in await asyncio.to_thread(find) if large else find():
            self._tell(finding)


def _is_doubtful(code: int, status: Status) -> bool:
    """True when the phase script, which ends what a program leaves behind, was ended itself or could not do it all."""
    return code == TIMEOUT_CODE or code > 128 or status.elapsed is None or status.left > 0


def workspace_of(request: ValidationRequest) -> Workspace:
    """Returns a workspace for one execution of a request that has its ids."""
    if request.thread_id is None or request.run_id is None:
        raise RuntimeError("the request has no ids; see ValidationRequest.identified")
    return Workspace(thread_id=request.thread_id, run_id=request.run_id, mark=uuid.uuid4().hex)


def check_uploads(task: Task) -> None:
    """Raises ``ConfigurationError`` for files that cannot be uploaded, before anything is asked of the platform."""
    workspace = workspace_of(task.request)
    variables = phase_variables(workspace, program=task.program, share=Share(memory_mib=0, cpu=1))
    uploads(workspace, task.request, task.framework, variables=variables)
