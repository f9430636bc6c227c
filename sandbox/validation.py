"""The whole way of a validation, without Prefect.

A warm run (snapshot active, sandbox started) makes these requests, each a round trip unless it is marked as concurrent
with the one before:

=====================  =======================================================================
ensure_snapshot        GET  /snapshots/<name>
reconcile_sandbox      GET  /sandbox/<name>
open_session           POST …/process/session; concurrent: POST …/files/bulk-upload
start_phase            POST …/process/session/<id>/exec
stream_phase           WS   …/command/<id>/logs; concurrent: POST …/input, only with an environment
                       GET  …/command/<id>
finish_phase           nothing when the phase passed; else POST …/files/bulk-download
collect_results        GET  …/files; POST …/files/bulk-download, twice, concurrent, only for a result
close                  DELETE …/process/session/<id>; concurrent: POST …/process/execute, GET …/process/session
=====================  =======================================================================
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sandbox.attempt import Attempt, check_uploads
from sandbox.budget import RunDeadline
from sandbox.claims import Claim
from sandbox.cleanup import to_the_end
from sandbox.database_access import database_access
from sandbox.databases.environment import endpoints_of
from sandbox.ending import end_run
from sandbox.errors import SandboxError, SandboxLostError
from sandbox.events import OUTCOME, RESULT, EventStream
from sandbox.leases import LeaseKeeper
from sandbox.lifecycle import Lifecycle, Wanted
from sandbox.models import (
    Comparison,
    Isolation,
    Outcome,
    PhaseResult,
    SandboxIdentity,
    SnapshotIdentity,
    ValidationRequest,
    ValidationResult,
)
from sandbox.naming import LIFETIME_MARGIN_SECONDS, default_owner, sandbox_labels, sandbox_name
from sandbox.network_policy import NetworkPolicy
from sandbox.retry import delay_before_retry, with_retries
from sandbox.slots import Slots, slots_of
from sandbox.snapshots import ensure_snapshot
from sandbox.stopwatch import Stopwatch
from sandbox.task import task_of
from sandbox.verdicts import conclude, result_is_read

if TYPE_CHECKING:
    from daytona import AsyncDaytona, AsyncSandbox

    from sandbox.profiles import Phase, Profile

logger = logging.getLogger(__name__)

OPENINGS: Final = 4
"""Attempts to open a session, the first included; between them the sandbox is restarted, then replaced."""


class Validation:
    """One validation: call the steps in order, or ``run`` for all of them.

    ``stream_phase`` and ``finish_phase`` may be awaited at the same time; the second one waits for the first. A step of
    the execution that raises ``SandboxLostError`` may be followed by ``begin_again``, once.

    Args:
        request: What to validate; missing ids are made.
        profile: The language environment.
        client: The platform; stays open.
        events: Where events go; the caller opens and closes it.
        owner: Label of sandboxes that are made; ``user@host`` by default.
        flow_run_id: Id of the Prefect flow run, for the result.

    Raises:
        ConfigurationError: Request and profile do not fit; the text names the field.
    """

    def __init__(
        self,
        request: ValidationRequest,
        *,
        profile: Profile,
        client: AsyncDaytona,
        events: EventStream,
        owner: str | None = None,
        flow_run_id: str | None = None,
    ) -> None:
        self.request = request.identified()
        self._task = task_of(self.request, profile)
        self.profile = self._task.profile
        self.phases: tuple[Phase, ...] = self._task.framework.phases
        self.framework_name = profile.framework_for(request)
        self.isolation = self._task.isolation
        self.recoveries: list[str] = []
        check_uploads(self._task)
        self._client = client
        self._events = events
        self._owner = owner or default_owner()
        self._flow_run_id = flow_run_id
        self._ids = (str(self.request.thread_id), str(self.request.run_id))
        self._endpoints = endpoints_of(request.connections)
        self._name = sandbox_name(
            self.profile,
            isolation=self.isolation,
            thread_id=self._ids[0],
            run_id=self._ids[1],
            endpoints=self._endpoints,
        )
        self._snapshot: SnapshotIdentity | None = None
        self._lifecycle: Lifecycle | None = None
        self._sandbox: AsyncSandbox | None = None
        self._attempt: Attempt | None = None
        self._slots: Slots | None = None
        self._repeated = False
        self._claim = Claim(self._name, *self._ids)
        self._lease = LeaseKeeper(client, self._name)
        self._watch = Stopwatch()
        self._deadline = RunDeadline(self.request.limits)

    def queueing(self) -> AbstractContextManager[None]:
        """Counts the time of the block as spent in a queue: for callers that wait for their turn before the steps."""
        return self._watch.step("queue")

    async def ensure_snapshot(self) -> SnapshotIdentity:
        """Makes one attempt to end with an active snapshot; the caller decides about another.

        Raises:
            SandboxError: See ``snapshots.ensure_snapshot``.
        """
        with self._watch.step("snapshot"):
            self._snapshot = await ensure_snapshot(self._client, self.profile, events=self._events)
        return self._snapshot

    def note_retry(self, error: SandboxError, attempt: int, delay: float) -> None:
        """Notes for the result that an attempt at the snapshot failed and another one follows."""
        self.recoveries.append(f"Attempt {attempt} to prepare the snapshot failed ({error.message}); it was repeated.")
        logger.warning("%s; next attempt in %.0f s", error, delay)

    async def reconcile_sandbox(self) -> SandboxIdentity:
        """Ends with a started sandbox.

        Raises:
            ConfigurationError: It cannot reach a database of the request from where it is, or a run with this run's ids
                is under way.
            SandboxError: See ``lifecycle.Lifecycle.reconcile``.
        """
        self._claim.take()
        if self._lifecycle is None:
            self._lifecycle = self._make_lifecycle(await self._open_databases())
        self._lease.start()
        with self._watch.step("sandbox"):
            self._sandbox = await self._lifecycle.reconcile()
        self._lease.uses(self._sandbox)
        return self._identity(self._sandbox)

    async def open_session(self) -> None:
        """Takes a place in a shared sandbox, opens the session and uploads the workspace.

        This is also the probe of the sandbox: one that does not answer is restarted once, then replaced.

        Raises:
            SandboxError: It does not answer after that either, or refused the upload.
        """
        if self._sandbox is None or self._lifecycle is None:
            raise RuntimeError("reconcile_sandbox comes first")
        if self.isolation is not Isolation.RUN and self._slots is None:
            slots = self._places()
            with self._watch.step("queue"):
                await slots.take(events=self._events, name=self._name)
            self._slots = slots
        for opening in range(1, OPENINGS + 1):
            attempt = Attempt(
                self._task, self._sandbox, events=self._events, deadline=self._deadline, repeated=self._repeated
            )
            self._attempt = attempt  # also one that fails has left files, which `close` removes
            try:
                await attempt.open()
            except SandboxError as error:
                await attempt.end(tidy=False)
                delay = delay_before_retry(error, attempt=opening)
                if opening == OPENINGS or delay is None:
                    raise
                if isinstance(error, SandboxLostError):
                    with self._watch.step("sandbox"):
                        self._sandbox = await self._lifecycle.heal(error)
                else:
                    logger.warning("%s; next attempt in %.0f s", error, delay)
                    await asyncio.sleep(delay)
            else:
                return

    async def start_phase(self, phase: Phase) -> None:
        """Starts a phase; ``stream_phase`` must follow.

        Raises:
            SandboxLostError: The sandbox vanished.
        """
        try:
            await self._opened().start(phase)
        except SandboxError as error:
            raise await self._meaning(error) from error

    async def stream_phase(self) -> None:
        """Hands on both output streams until the phase has ended, or ends it when a limit is passed.

        Raises:
            SandboxLostError: The sandbox vanished.
        """
        try:
            await self._opened().stream()
        except SandboxError as error:
            raise await self._meaning(error) from error

    async def finish_phase(self) -> PhaseResult:
        """Waits until ``stream_phase`` has ended and returns how the phase went.

        Raises:
            SandboxLostError: The sandbox vanished.
        """
        try:
            result = await self._opened().finish()
        except SandboxError as error:
            raise await self._meaning(error) from error
        self._watch.phase(result.name, result.seconds)
        return result

    async def collect_results(self) -> ValidationResult:
        """Reads the result file, compares it, and words the verdict.

        Raises:
            SandboxLostError: The sandbox vanished.
        """
        attempt = self._opened()
        expectation = self.request.result or self._task.framework.result
        reading = None
        if result_is_read(expectation, self.request.expected):
            with self._watch.step("results"):
                try:
                    reading = await attempt.read_result()
                except SandboxError as error:
                    raise await self._meaning(error) from error
        # In a thread: a large result takes long to compare, and other runs must go on.
        verdict = await asyncio.to_thread(
            conclude,
            phases=attempt.verdicts,
            diagnostics=attempt.diagnostics,
            reading=reading,
            expectation=expectation,
            expected=self.request.expected,
        )
        mask = self._task.mask
        message = mask.whole(verdict.message)
        path = None if reading is None or reading.path is None else mask.whole(reading.path)
        unexpected = () if reading is None else tuple(map(mask.whole, reading.unexpected))
        if path is not None:
            self._events.emit(RESULT, {"path": path, "unexpected_files": list(unexpected)})
        self._events.emit(OUTCOME, {"outcome": verdict.outcome.value, "message": message})
        return ValidationResult(
            outcome=verdict.outcome,
            message=message,
            profile=self.profile.name,
            framework=self.framework_name,
            thread_id=self._ids[0],
            run_id=self._ids[1],
            phases=tuple(attempt.results),
            diagnostics=tuple(attempt.diagnostics),
            result=None if reading is None else mask.value(reading.value),
            result_path=path,
            unexpected_files=unexpected,
            comparison=verdict.comparison
            and Comparison.model_validate(mask.value(verdict.comparison.model_dump(mode="json"))),
            timings=self._watch.timings(),
            sandbox=self._identity(attempt.sandbox),
            recoveries=tuple(self.recoveries),
            warnings=tuple(attempt.warnings),
            flow_run_id=self._flow_run_id,
        )

    async def begin_again(self, error: BaseException) -> bool:
        """After a fault in or between phases: prepares a second and last execution on a sandbox that answers.

        Args:
            error: What a step raised.

        Returns:
            True when the phases may be started again from the first; False when the fault is final.
        """
        if self._repeated or not isinstance(error, SandboxLostError) or self._lifecycle is None:
            return False
        phase = None if self._attempt is None else self._attempt.unrepeatable
        if phase is not None:
            error.remedy = (
                f"The phase {phase.name} may have changed something outside, so it was not run a second time; see what "
                "it has done, then run the validation again."
            )
            return False
        self._repeated = True
        self.recoveries.append(f"The sandbox was lost during the run ({error.message}); the run was repeated once.")
        if self._attempt is not None:
            await self._attempt.end(tidy=False)
        with self._watch.step("sandbox"):
            self._sandbox = await self._lifecycle.heal(error)
        self._attempt = None
        await self.open_session()
        return True

    async def close(self) -> None:
        """Ends whatever runs, deletes the session, gives the place back.

        May be called twice. See ``ending.end_run``; callers shield it from cancellation (``cleanup.to_the_end``).
        """
        sandbox, self._sandbox = self._sandbox, None
        attempt, self._attempt = self._attempt, None
        self._claim.give_back()
        try:
            await self._lease.stop()
            await end_run(attempt, sandbox, alone=self.isolation is Isolation.RUN, within=self._deadline.closing())
        finally:
            if self._slots is not None:
                self._slots.give_back()
                self._slots = None

    async def run(self) -> ValidationResult:
        """Does all of it, with retries, one repetition after a lost sandbox, and clean-up whatever happens.

        Raises:
            SandboxError: There is no verdict; the text names step, sandbox and state.
        """
        try:
            await with_retries(self.ensure_snapshot, on_retry=self.note_retry)
            await self.reconcile_sandbox()
            await self.open_session()
            while True:
                try:
                    return await self._execute()
                except SandboxLostError as error:
                    if not await self.begin_again(error):
                        raise
        finally:
            await to_the_end(self.close())

    async def _execute(self) -> ValidationResult:
        for phase in self.phases:
            await self.start_phase(phase)
            await self.stream_phase()
            if (await self.finish_phase()).outcome is not Outcome.PASSED:
                break
        return await self.collect_results()

    async def _open_databases(self) -> NetworkPolicy:
        """Returns the network policy with which the sandbox reaches its databases."""
        access = await database_access(
            self.request.connections, network=self.profile.network, api_url=str(self._client._api_url)
        )
        if self._task.preflight is not None and access.addresses:
            preflight = replace(self._task.preflight, addresses=access.addresses)
            self._task = replace(self._task, preflight=preflight)
        return access.policy

    def _make_lifecycle(self, policy: NetworkPolicy) -> Lifecycle:
        if self._snapshot is None:
            raise RuntimeError("ensure_snapshot comes first")
        single = self.isolation is Isolation.RUN
        limits = self.request.limits
        seconds = sum(limits.phase_seconds.get(phase.name, phase.timeout_seconds) for phase in self.phases)
        labels = sandbox_labels(
            self.profile,
            isolation=self.isolation,
            snapshot=self._snapshot,
            owner=self._owner,
            thread_id=self._ids[0],
            run_id=self._ids[1],
            flow_run_id=self._flow_run_id,
            endpoints=self._endpoints,
        )
        wanted = Wanted(
            name=self._name,
            profile=self.profile,
            isolation=self.isolation,
            snapshot=self._snapshot,
            labels=labels,
            # Whatever becomes of us, the platform ends what belongs to one run.
            lifetime_minutes=int((seconds + LIFETIME_MARGIN_SECONDS) // 60) + 1 if single else None,
            policy=policy,
        )
        places = self._places()
        return Lifecycle(
            self._client, wanted, events=self._events, recoveries=self.recoveries, in_use=lambda: places.taken > 0
        )

    def _places(self) -> Slots:
        return slots_of(str(self._client._api_url), self._name, limit=self.profile.parallel)

    def _identity(self, sandbox: AsyncSandbox) -> SandboxIdentity:
        return SandboxIdentity(
            sandbox_id=sandbox.id,
            sandbox_name=self._name,
            snapshot=self.profile.snapshot_name,
            isolation=self.isolation,
        )

    def _opened(self) -> Attempt:
        if self._attempt is None:
            raise RuntimeError("open_session comes first")
        return self._attempt

    async def _meaning(self, error: SandboxError) -> SandboxError:
        return error if self._lifecycle is None else await self._lifecycle.lost(error)
