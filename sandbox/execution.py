"""A session in a sandbox and the phases that run in it.

Each phase is started asynchronously, in its own child shell, by the phase script. Its deadline is kept twice: by the
script, which measures inside the sandbox and so charges the program nothing for a slow network; and by us, a little
later, for a program that has got the better of the script. Environment and secrets go in through the command's standard
input, which the platform is told not to echo, so they are in no command text, file or argument list.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from daytona import FileUpload, SessionExecuteRequest

from sandbox.errors import PlatformUnavailableError, SandboxError
from sandbox.events import EventStream, stderr_event, stdout_event
from sandbox.faults import code_of, fault, status_of, translated
from sandbox.following import ANSWER_SECONDS, Exit, Follower
from sandbox.platform_api import REQUEST_SECONDS, bounded
from sandbox.retry import Deadline, Pace
from sandbox.streaming import OutputCollector, SecretMask
from sandbox.workspace import Workspace, assignments

if TYPE_CHECKING:
    from daytona import AsyncSandbox

    from sandbox.profiles import Phase

logger = logging.getLogger(__name__)

STEP: Final = "execute_session"
GRACE_SECONDS: Final = 1.0
"""Between SIGTERM and SIGKILL for a program that has used up its time."""

OUTER_SECONDS: Final = 1.5
"""How much longer than script and grace we wait before we end the program from outside."""

UPLOAD_SECONDS: Final = 300.0
KILL_SECONDS: Final = 20.0
"""Longest wait for the end of a session; the real toolbox takes up to 5 s before it kills."""


CLOSE_TRIES: Final = 3
CLOSE_PAUSE: Final = 0.3
"""Seconds between two tries to delete a session or tidy up, when the platform did not answer."""


class Stop(StrEnum):
    """Why we ended a program from outside."""

    TIMEOUT = "timeout"
    STALLED = "stalled"
    OUTPUT = "output"


class Session:
    """One session of a sandbox, for one execution of a run.

    Args:
        sandbox: Where.
        workspace: The run's directory; its mark is part of the session's id.
        prefix: First part of the id: the sandbox's name.
    """

    def __init__(self, sandbox: AsyncSandbox, workspace: Workspace, *, prefix: str) -> None:
        self.sandbox = sandbox
        self.workspace = workspace
        self.id = f"{prefix}-{uuid.UUID(workspace.mark)}"
        self._open_ids: list[str] = []
        self._prefix = prefix

    async def open(self, files: Mapping[str, bytes]) -> None:
        """Opens the session and uploads the workspace, at the same time.

        Raises:
            SandboxError: The sandbox does not answer, or refused an upload.
        """
        both = (asyncio.create_task(self._create()), asyncio.create_task(self._upload(files)))
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
            for task in both:
                if task.done():
                    task.result()
        finally:
            await _end(*both)

    async def start(self, command: str) -> str:
        """Starts a command asynchronously and returns its id.

        A session that was lost is opened anew, once. So is one that did not answer: the command may run in it unseen,
        and ends with it.
        """
        try:
            return await self._start(command)
        except SandboxError as error:
            if status_of(error) not in (404, 410) and not isinstance(error, PlatformUnavailableError):
                raise
            logger.info("the session %s is gone (%s); opening another", self.id, error)
        await self.close()
        self.id = f"{self._prefix}-{uuid.uuid4()}"
        await self._create()
        return await self._start(command)

    async def send(self, command_id: str, text: str) -> None:
        """Writes to the standard input of a command; one that has ended meanwhile needs none."""
        pace = Pace(0.1, longest=1.0)
        limit = Deadline(REQUEST_SECONDS)
        while True:
            try:
                await self.sandbox.process.send_session_command_input(
                    self.id, command_id, text, request_timeout=ANSWER_SECONDS
                )
            except Exception as error:
                if code_of(error) == "COMMAND_ALREADY_COMPLETED" or status_of(error) == 410:
                    return
                # Sent twice it does no harm: the script reads up to its end mark only.
                meant = fault(error, step=STEP, sandbox=self.sandbox.name, toolbox=True)
                if meant is None or not isinstance(meant, PlatformUnavailableError) or limit.expired:
                    raise (meant or error) from error
                await asyncio.sleep(pace.next())
            else:
                return

    async def kill(self) -> int:
        """Ends everything that runs in the session and confirms it; returns how many processes could not be ended."""
        await self.close()
        try:
            answer = await bounded(
                self.sandbox.process.exec(self.workspace.sweep_command(), timeout=int(KILL_SECONDS)), KILL_SECONDS + 5
            )
            return int(answer.result.strip() or 0)
        except ValueError:
            return 0
        except Exception as error:
            if fault(error, step=STEP, toolbox=True) is None:
                raise
            logger.warning("cannot confirm that the program of %s has ended: %s", self.id, error)
            return 0

    async def close(self, *, tidy: bool = False) -> None:
        """Deletes the session with all it runs; faults are logged, since the sandbox's own limits end it anyway.

        Args:
            tidy: Also remove what nobody reads after the run.
        """
        calls = [self._delete(session_id) for session_id in self._open_ids]
        if tidy:
            calls.append(self._tidy())
        self._open_ids = []
        await asyncio.gather(*calls)

    async def _create(self) -> None:
        # Noted before the call: when its answer is lost, the session may be there all the same.
        self._open_ids.append(self.id)
        with translated(STEP, sandbox=self.sandbox.name, toolbox=True):
            await self.sandbox.process.create_session(self.id, request_timeout=REQUEST_SECONDS)

    async def _upload(self, files: Mapping[str, bytes]) -> None:
        uploads = [FileUpload(source=content, destination=path) for path, content in files.items()]
        with translated(STEP, sandbox=self.sandbox.name, toolbox=True):
            await bounded(self.sandbox.fs.upload_files(uploads), UPLOAD_SECONDS)

    async def _start(self, command: str) -> str:
        request = SessionExecuteRequest(command=command, run_async=True, suppress_input_echo=True)
        with translated(STEP, sandbox=self.sandbox.name, toolbox=True):
            answer = await self.sandbox.process.execute_session_command(self.id, request, timeout=int(REQUEST_SECONDS))
        return answer.cmd_id

    async def _delete(self, session_id: str) -> None:
        for left in reversed(range(CLOSE_TRIES)):
            try:
                await self.sandbox.process.delete_session(session_id, request_timeout=KILL_SECONDS)
            except Exception as error:
                meant = fault(error, step="close", toolbox=True)
                if meant is None:
                    raise
                if status_of(error) in (404, 410):
                    return
                if left and isinstance(meant, PlatformUnavailableError):
                    await asyncio.sleep(CLOSE_PAUSE)
                    continue
                logger.warning("the session %s could not be deleted: %s", session_id, error)
            return

    async def _tidy(self) -> None:
        for left in reversed(range(CLOSE_TRIES)):
            try:
                await bounded(self.sandbox.process.exec(self.workspace.tidy_command(), timeout=30), 35)
            except Exception as error:
                meant = fault(error, step="close", toolbox=True)
                if meant is None:
                    raise
                if left and isinstance(meant, PlatformUnavailableError):
                    await asyncio.sleep(CLOSE_PAUSE)
                    continue
                logger.debug("the workspace of %s could not be tidied: %s", self.id, error)
            return


class PhaseRun:
    """One phase that runs or has run.

    Args:
        phase: What runs.
        session: Where.
        events: Told of every piece of output.
        language: First word of the events' types.
        limit: Seconds the program may take.
        silence: Seconds it may be silent, ``None`` for any.
        output_limit: Bytes it may print on both streams together.
        secrets: Values that are masked in its output.
        shown: Whether its output is the program's, and so goes to ``events``.
    """

    def __init__(
        self,
        phase: Phase,
        session: Session,
        *,
        events: EventStream,
        language: str,
        limit: float,
        silence: float | None,
        output_limit: int,
        secrets: Sequence[str] = (),
        shown: bool = True,
    ) -> None:
        self.phase = phase
        self.limit = limit
        self.silence = silence
        self.output_limit = output_limit
        self.stdout = OutputCollector()
        self.stderr = OutputCollector()
        self.exit: Exit | None = None
        self.stop: Stop | None = None
        self.left_over = 0
        self.reconnections = 0
        self.seconds = 0.0
        self._session = session
        self._events = events
        self._types = (stdout_event(language), stderr_event(language))
        self._masks = (SecretMask(secrets), SecretMask(secrets))
        self._shown = shown
        self._follower: Follower | None = None
        self._values: asyncio.Task[None] | None = None
        self._began = 0.0
        self._heard = 0.0
        self._enough = asyncio.Event()
        self._over = asyncio.Event()
        self._failure: SandboxError | None = None

    async def start(self, *, environment: Mapping[str, str], stdin: bool, fresh: bool) -> None:
        """Starts the program.

        Args:
            environment: Variables of this program, secrets among them.
            stdin: Whether the uploaded standard input is for this phase.
            fresh: Whether this is the first phase of the run.
        """
        command = self._session.workspace.start_command(
            self.phase, limit=self.limit, grace=GRACE_SECONDS, values=bool(environment), stdin=stdin, fresh=fresh
        )
        command_id = await self._session.start(command)
        self._began = self._heard = time.monotonic()
        if environment:
            self._values = asyncio.create_task(
                self._session.send(command_id, f"{assignments(environment)}.\n"), name=f"values of {self.phase.name}"
            )
        self._follower = Follower(
            self._session.sandbox,
            session_id=self._session.id,
            command_id=command_id,
            on_stdout=lambda text: self._take(0, text),
            on_stderr=lambda text: self._take(1, text),
        )

    async def stream(self) -> None:
        """Hands on both streams until the command has ended, or ends it when a limit is passed.

        Raises:
            SandboxLostError: The sandbox vanished meanwhile.
            SandboxError: The platform did not answer for too long.
        """
        if self._follower is None:
            raise RuntimeError("the phase has not been started")
        follow = asyncio.create_task(self._follower.run(), name=f"follow {self.phase.name}")
        enough = asyncio.create_task(self._enough.wait(), name=f"output of {self.phase.name}")
        try:
            self.stop = await self._watch(follow, enough)
            if self.stop is None:
                self.exit = follow.result()
        except SandboxError as error:
            self._failure = error
            raise
        finally:
            await _end(follow, enough, *((self._values,) if self._values is not None else ()))
            self.seconds = time.monotonic() - self._began
            self.reconnections = self._follower.reconnections
            for stream, mask in enumerate(self._masks):
                self._show(stream, mask.finish())
            if self.stop is not None:
                self.left_over = await self._session.kill()
            self._over.set()

    def _show(self, stream: int, text: str) -> None:
        if text:
            (self.stderr if stream else self.stdout).add(text)
            if self._shown:
                self._events.emit(self._types[stream], text, phase=self.phase.name)

    async def wait(self) -> None:
        """Returns when ``stream`` has returned; raises the fault of the platform that it raised."""
        await self._over.wait()
        if self._failure is not None:
            raise self._failure

    async def cancel(self) -> None:
        """Ends what ``start`` began and ``stream`` has not ended."""
        if self._values is not None:
            await _end(self._values)

    async def _watch(self, follow: asyncio.Task[Exit], enough: asyncio.Task[bool]) -> Stop | None:
        """Returns when the command has ended, or with the limit that was passed."""
        assert self._follower is not None
        outer = Deadline(self._began + self.limit + GRACE_SECONDS + OUTER_SECONDS - time.monotonic())
        while True:
            silence = float("inf") if self.silence is None else self._heard + self.silence - time.monotonic()
            wait = min(outer.remaining, max(silence, 0.01), 1.0 if self.silence is not None else float("inf"))
            awaited: set[asyncio.Task[Any]] = {follow, enough}
            if self._values is not None and not self._values.done():
                awaited.add(self._values)
            await asyncio.wait(
                awaited, timeout=None if wait == float("inf") else wait, return_when=asyncio.FIRST_COMPLETED
            )
            if self._values is not None and self._values.done() and not follow.done():
                self._values.result()  # raises when the environment did not arrive: the script would wait in vain
            if enough.done():
                return Stop.OUTPUT
            if follow.done():
                return None
            if outer.expired:
                # A network that was down hides the end of a program that kept its time.
                if await self._follower.ended() is None:
                    return Stop.TIMEOUT
                outer = Deadline(None)
            if self.silence is not None and time.monotonic() - self._heard >= self.silence:
                if await self._follower.silent():
                    return Stop.STALLED
                self._heard = time.monotonic()

    def _take(self, stream: int, text: str) -> None:
        self._heard = time.monotonic()
        self._show(stream, self._masks[stream].take(text))
        if self.stdout.total_bytes + self.stderr.total_bytes > self.output_limit:
            self._enough.set()


async def _end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task
