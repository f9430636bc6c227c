"""The names of the former validation system, over what replaced it.

    async with ValidationSandbox("dotnet", on_event=stream_writer) as box:
        await box.create_snapshot()
        await create_validation_sandbox(box)
        done = await execute_in_sandbox(box, "dotnet run", thread_id="thread-7", files={"Program.cs": source})
        result = await download_file_from_sandbox(box, thread_id="thread-7", path=done.result_path)

Their behaviour is the documented one: five attempts with waits of 1, 2, 4 and 8 s, for transient faults; a sandbox in
``error`` or ``build_failed`` is deleted and, after at least 5 s and not before it is gone, made again; a stopped one is
started within 180 s; a session's id is ``<sandbox name>-<uuid4>``; results are JSON below
``/sandbox/<thread_id>/…/results/``. New code uses ``validation.Validation``, which does all of it in one call.
"""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from pydantic import JsonValue, SecretStr

from sandbox.attempt import Attempt
from sandbox.budget import RunDeadline
from sandbox.connection import Credentials, client, platform_credentials
from sandbox.errors import ConfigurationError, SandboxError
from sandbox.events import EventStream, Sink
from sandbox.faults import is_missing, translated
from sandbox.json_text import parse_json
from sandbox.leases import renew
from sandbox.lifecycle import Lifecycle, Wanted
from sandbox.models import (
    IDENTIFIER,
    Isolation,
    PhaseResult,
    SandboxIdentity,
    SnapshotIdentity,
    ValidationRequest,
)
from sandbox.naming import default_owner, sandbox_labels
from sandbox.platform_api import REQUEST_SECONDS
from sandbox.profiles import Framework, Phase, Profile, builtin_profile
from sandbox.retry import with_retries
from sandbox.snapshots import ensure_snapshot
from sandbox.streaming import SecretMask
from sandbox.task import Task
from sandbox.workspace import RESULTS, ROOT

if TYPE_CHECKING:
    from daytona import AsyncDaytona, AsyncSandbox

COMMAND_SECONDS: Final = 300.0
"""Limit of a command that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """How a command in a sandbox went.

    Attributes:
        phase: Exit code, output, duration, outcome.
        session_id: The session it ran in, deleted by now.
        workspace: Directory it ran in.
        result_path: Where it was told to leave its result.
        warnings: What the reader should know.
    """

    phase: PhaseResult
    session_id: str
    workspace: str
    result_path: str
    warnings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int | None:
        """The command's exit code; ``None`` when nobody knows, which is no success."""
        return self.phase.exit_code


class ValidationSandbox:
    """The shared sandbox of one language environment; an async context manager.

    Args:
        profile: The environment, or the name of a built-in one.
        credentials: The platform; by default what ``platform_credentials`` finds.
        on_event: Given every event: build log, states, output.
    """

    def __init__(
        self, profile: Profile | str, *, credentials: Credentials | None = None, on_event: Sink | None = None
    ) -> None:
        self.profile = builtin_profile(profile) if isinstance(profile, str) else profile
        self.recoveries: list[str] = []
        self._credentials = credentials
        self._events = EventStream(
            run_id=uuid.uuid4().hex, thread_id="validation-sandbox", sinks=() if on_event is None else (on_event,)
        )
        self._stack = AsyncExitStack()
        self._client: AsyncDaytona | None = None
        self._snapshot: SnapshotIdentity | None = None
        self._sandbox: AsyncSandbox | None = None

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._client = await stack.enter_async_context(client(self._credentials or await platform_credentials()))
            await stack.enter_async_context(self._events)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client = self._sandbox = None
        await self._stack.aclose()

    async def create_snapshot(self) -> SnapshotIdentity:
        """Ends with the profile's snapshot, active; builds it when needed, in up to five attempts.

        Raises:
            SandboxError: See ``snapshots.ensure_snapshot``.
        """
        self._snapshot = await with_retries(
            lambda: ensure_snapshot(self._opened(), self.profile, events=self._events), on_retry=self._note
        )
        return self._snapshot

    async def create_validation_sandbox(self) -> SandboxIdentity:
        """Ends with the profile's sandbox, started: made, woken up or replaced as its state demands.

        Raises:
            SandboxError: See ``lifecycle.Lifecycle.reconcile``.
        """
        snapshot = self._snapshot or await self.create_snapshot()
        labels = sandbox_labels(
            self.profile,
            isolation=Isolation.SHARED,
            snapshot=snapshot,
            owner=default_owner(),
            thread_id="",
            run_id="",
        )
        wanted = Wanted(
            name=self.profile.sandbox_name,
            profile=self.profile,
            isolation=Isolation.SHARED,
            snapshot=snapshot,
            labels=labels,
        )
        lifecycle = Lifecycle(self._opened(), wanted, events=self._events, recoveries=self.recoveries)
        self._sandbox = await with_retries(lifecycle.reconcile, on_retry=self._note)
        with translated("create_validation_sandbox", sandbox=self._sandbox.name):
            await renew(self._sandbox)
        return SandboxIdentity(
            sandbox_id=self._sandbox.id,
            sandbox_name=self.profile.sandbox_name,
            snapshot=snapshot.snapshot_name,
            isolation=Isolation.SHARED,
        )

    async def execute_in_sandbox(
        self,
        command: str,
        *,
        thread_id: str,
        files: Mapping[str, str | bytes] | None = None,
        environment: Mapping[str, str] | None = None,
        secrets: Mapping[str, SecretStr] | None = None,
        stdin: str | bytes | None = None,
        timeout: float = COMMAND_SECONDS,
    ) -> CommandOutcome:
        """Runs one shell command in a session of its own, in a fresh directory of the thread.

        Args:
            command: Shell text.
            thread_id: The conversation.
            files: Uploaded first, relative path → content.
            environment: Variables of the command.
            secrets: Further variables, whose values show nowhere.
            stdin: Its standard input, empty by default.
            timeout: Seconds until it is ended.

        Raises:
            SandboxError: The sandbox does not answer.
        """
        if self._sandbox is None:
            await self.create_validation_sandbox()
        assert self._sandbox is not None
        framework = Framework(
            entry_point="command", phases=(Phase(name="run", command=command, timeout_seconds=timeout),)
        )
        request = ValidationRequest(
            profile=self.profile.name,
            files=dict(files or {"command": command}),
            thread_id=thread_id,
            environment=dict(environment or {}),
            secrets=dict(secrets or {}),
            stdin=stdin,
        ).identified()
        hidden = {name: value.get_secret_value() for name, value in request.secrets.items()}
        task = Task(
            request=request,
            profile=self.profile,
            framework=framework,
            program=next(iter(request.files)),
            isolation=Isolation.SHARED,
            secrets=hidden,
            hidden=frozenset(hidden.values()),
            mask=SecretMask(hidden.values()),
        )
        attempt = Attempt(task, self._sandbox, events=self._events, deadline=RunDeadline(request.limits))
        try:
            await attempt.open()
            await attempt.start(framework.phases[0])
            await attempt.stream()
            phase = await attempt.finish()
        finally:
            await attempt.end(tidy=True)
        return CommandOutcome(
            phase=phase,
            session_id=attempt.session_id,
            workspace=attempt.workspace.directory,
            result_path=attempt.workspace.result,
            warnings=tuple(attempt.warnings),
        )

    async def download_file_from_sandbox(self, path: str, *, thread_id: str) -> JsonValue:
        """Downloads and parses a JSON file from a results directory of a thread.

        Args:
            path: Absolute, or relative to ``/sandbox/<thread_id>``.
            thread_id: The conversation.

        Raises:
            ConfigurationError: The path does not lie in a results directory of the thread.
            FileNotFoundError: There is no such file.
            ValueError: It is too large, or no JSON; the text says why and where.
            SandboxError: The sandbox does not answer.
        """
        if not IDENTIFIER.fullmatch(thread_id):
            raise ConfigurationError(f"{thread_id!r} is no thread id", field="thread_id")
        base = f"{ROOT}/{thread_id}"
        whole = posixpath.normpath(posixpath.join(base, path))
        inside = whole.removeprefix(f"{base}/").split("/")
        if not whole.startswith(f"{base}/") or RESULTS not in inside[:-1]:
            raise ConfigurationError(
                f"{path!r} does not lie in a results directory", field="path", remedy=f"Use {base}/…/{RESULTS}/<file>."
            )
        if self._sandbox is None:
            await self.create_validation_sandbox()
        assert self._sandbox is not None
        sandbox = self._sandbox
        try:
            with translated("download_file_from_sandbox", sandbox=sandbox.name):
                info = await sandbox.fs.get_file_info(whole, request_timeout=REQUEST_SECONDS)
                if info.is_dir:
                    raise ValueError(f"{whole} is a directory")
                if info.size > self.profile.result_bytes:
                    raise ValueError(f"{whole} has {info.size} bytes; the limit is {self.profile.result_bytes}")
                data = await sandbox.fs.download_file(whole)
        except SandboxError as error:
            if is_missing(error):
                raise FileNotFoundError(f"there is no file {whole} in the sandbox {sandbox.name}") from error
            raise
        return parse_json(data)

    def _opened(self) -> AsyncDaytona:
        if self._client is None:
            raise RuntimeError("use ValidationSandbox as an async context manager")
        return self._client

    def _note(self, error: SandboxError, attempt: int, _delay: float) -> None:
        self.recoveries.append(f"Attempt {attempt} failed ({error.message}); it was repeated.")


async def create_validation_sandbox(box: ValidationSandbox) -> SandboxIdentity:
    """See ``ValidationSandbox.create_validation_sandbox``."""
    return await box.create_validation_sandbox()


async def execute_in_sandbox(
    box: ValidationSandbox,
    command: str,
    *,
    thread_id: str,
    files: Mapping[str, str | bytes] | None = None,
    environment: Mapping[str, str] | None = None,
    secrets: Mapping[str, SecretStr] | None = None,
    stdin: str | bytes | None = None,
    timeout: float = COMMAND_SECONDS,
) -> CommandOutcome:
    """See ``ValidationSandbox.execute_in_sandbox``."""
    return await box.execute_in_sandbox(
        command,
        thread_id=thread_id,
        files=files,
        environment=environment,
        secrets=secrets,
        stdin=stdin,
        timeout=timeout,
    )


async def download_file_from_sandbox(box: ValidationSandbox, path: str, *, thread_id: str) -> JsonValue:
    """See ``ValidationSandbox.download_file_from_sandbox``."""
    return await box.download_file_from_sandbox(path, thread_id=thread_id)
