"""The phases of a run, each in its own child shell of the session.

Each phase is started asynchronously by the phase script. Its deadline is kept twice: by the
script, which measures inside the sandbox and so charges the program nothing for a slow network; and by us, a little
later, for a program that has got the better of the script. Environment and secrets go in through the command's standard
input, which the platform is told not to echo, so they are in no command text, file or argument list.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from sandbox.errors import EndUnconfirmedError, SandboxError
from sandbox.events import EventStream, stderr_event, stdout_event
from sandbox.following import Exit, Follower
from sandbox.retry import Deadline
from sandbox.session import Session, end_tasks
from sandbox.streaming import OutputCollector, SecretMask
from sandbox.workspace import assignments

if TYPE_CHECKING:
    from sandbox.profiles import Phase

GRACE_SECONDS: Final = 1.0
"""Between SIGTERM and SIGKILL for a program that has used up its time."""

OUTER_SECONDS: Final = 1.5
"""How much longer than script and grace we wait before we end the program from outside."""


class Stop(StrEnum):
    """Why we ended a program from outside."""

    TIMEOUT = "timeout"
    STALLED = "stalled"
    OUTPUT = "output"


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
        self.unended: EndUnconfirmedError | None = None
        """Why it is not certain that nothing of the phase is left."""
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
            platform=self._session.platform,
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
            await end_tasks(follow, enough, *((self._values,) if self._values is not None else ()))
            self.seconds = time.monotonic() - self._began
            self.reconnections = self._follower.reconnections
            for stream, mask in enumerate(self._masks):
                self._show(stream, mask.finish())
            if self.stop is not None:
                await self.confirm_end()
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

    async def confirm_end(self) -> None:
        """Ends whatever the phase has left behind, so that nothing of it runs when its verdict is told."""
        try:
            await self._session.kill()
        except EndUnconfirmedError as error:
            self.unended = error

    async def cancel(self) -> None:
        """Ends what ``start`` began and ``stream`` has not ended."""
        if self._values is not None:
            await end_tasks(self._values)

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
