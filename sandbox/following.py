"""Follows the log of one command until the command has ended, over as many connections as that takes.

Only an exit code ends a command. A log stream that closes, properly or not, means "ask": a stream that broke is opened
again, replays from the beginning, and what was handed on before is skipped (``streaming.ReplayFilter``). After
``TRIES`` connections without progress the log is read by polling. One case cannot be told apart: a stream that
something on the way closes properly in the very moment in which the command ends.

The platform may keep the stream open for a second or more after the command has ended, and a half-open connection
delivers nothing at all. While a stream is silent the command is therefore asked for now and then; once it has ended,
the stream gets ``LINGER_SECONDS`` to deliver the rest, then the rest is read by polling.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sandbox.budget import ANSWER_SECONDS, TRANSFER_SECONDS, insist
from sandbox.errors import SandboxError, SandboxLostError
from sandbox.faults import fault
from sandbox.retry import Deadline, Pace
from sandbox.streaming import UNCERTAIN, ReplayFilter

if TYPE_CHECKING:
    from daytona import AsyncSandbox

logger = logging.getLogger(__name__)

STEP: Final = "stream_logs"
TRIES: Final = 8
"""Connections in a row that bring nothing new before the log is read by polling instead."""

LINGER_SECONDS: Final = 2.0
ASK_SECONDS: Final = 2.0
"""Silence of a stream after which the command's state is asked for."""

YIELD_CHARACTERS: Final = 32 * 1024
"""Characters after which a fast stream lets the rest of the event loop have a turn: about what a sink takes in one."""

Take = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Exit:
    """How a command ended.

    Attributes:
        code: Its exit code.
        reason: What the platform knows beyond it, such as ``memory``; ``None`` when it does not say.
    """

    code: int
    reason: str | None = None


class Follower:
    """Follows one command.

    Args:
        sandbox: Where it runs.
        session_id: Its session.
        command_id: The command.
        platform: How long the platform may keep us waiting.
        on_stdout: Given each new piece of standard output; must not block.
        on_stderr: The same for standard error.
    """

    def __init__(
        self,
        sandbox: AsyncSandbox,
        *,
        session_id: str,
        command_id: str,
        platform: Deadline,
        on_stdout: Take,
        on_stderr: Take,
    ) -> None:
        self._sandbox = sandbox
        self._session_id = session_id
        self._command_id = command_id
        self._platform = platform
        self._takes = (on_stdout, on_stderr)
        self._filters = (ReplayFilter(), ReplayFilter())
        self._activity = asyncio.Event()
        self._unyielded = 0
        self._stream: asyncio.Task[None] | None = None
        self.reconnections = 0
        """Streams that broke and were opened again."""

    async def run(self) -> Exit:
        """Returns when the command has ended and all its output was handed on.

        Raises:
            SandboxLostError: The sandbox or its session no longer knows the command.
            SandboxError: The platform has kept the run waiting for too long.
        """
        pace = Pace(0.05, longest=1.0, factor=2)
        fruitless = 0
        while fruitless < TRIES:
            before = self._delivered
            complete = await self._follow()
            ended = await self._ask(patient=complete)
            if complete and ended is not None:
                self._finish()
                return ended
            self.reconnections += 1
            fruitless = 0 if self._delivered > before else fruitless + 1
            if ended is not None:
                break
            if not fruitless:
                pace.reset()
            await asyncio.sleep(pace.next())
        logger.warning("the log stream of %s does not hold; reading the log instead", self._command_id)
        return await self._poll()

    async def ended(self) -> Exit | None:
        """Asks whether the command has ended, through faults of the infrastructure; ``None`` while it runs."""
        return await self._ask(patient=False)

    async def silent(self) -> bool:
        """Tells a silent program from a stream that brings nothing: true if there is no output but what was handed on.

        Otherwise the stream is given up and another one opened. So it is when the platform does not answer, which says
        nothing about the program.
        """
        try:
            running = await self._read(tries=1) is None
            logs = await self._sandbox.process.get_session_command_logs(
                self._session_id, self._command_id, request_timeout=ANSWER_SECONDS
            )
        except Exception as error:
            if fault(error, step=STEP) is None:
                raise
        else:
            waiting = len(logs.stdout or "") + len(logs.stderr or "") - self._delivered
            if running and waiting <= len(self._filters) * UNCERTAIN:
                return True
        if self._stream is not None:
            self._stream.cancel()
        return False

    @property
    def _delivered(self) -> int:
        return sum(one.delivered for one in self._filters)

    async def _follow(self) -> bool:
        """Follows one stream to its end; True when it was closed properly, so everything there was has come."""
        for one in self._filters:
            one.begin()
        follow = asyncio.create_task(
            self._sandbox.process.get_session_command_logs_async(
                self._session_id, self._command_id, self._taker(0), self._taker(1)
            ),
            name=f"log of {self._command_id}",
        )
        self._stream = follow
        try:
            return await self._attend(follow)
        finally:
            self._stream = None
            if not follow.done():
                follow.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await follow

    async def _attend(self, follow: asyncio.Task[None]) -> bool:
        linger: Deadline | None = None
        while True:
            self._activity.clear()
            await asyncio.wait({follow}, timeout=ASK_SECONDS if linger is None else linger.capped(ASK_SECONDS))
            if follow.cancelled():
                return False
            if follow.done():
                error = follow.exception()
                if error is not None and fault(error, step=STEP) is None:
                    raise error
                if error is not None:
                    logger.debug("the log stream of %s broke: %s", self._command_id, error)
                return error is None
            if self._activity.is_set():
                continue
            if linger is not None and linger.expired:
                return False
            if linger is None:
                try:
                    if await self._read(tries=1) is not None:
                        linger = Deadline(LINGER_SECONDS)
                except SandboxLostError:
                    return False
                except SandboxError:
                    if self._platform.expired:
                        raise

    def _taker(self, stream: int) -> Callable[[str], Awaitable[None]]:
        async def take(text: str) -> None:
            self._activity.set()
            self._hand_on(stream, self._filters[stream].take(text))
            self._unyielded += len(text)
            if self._unyielded >= YIELD_CHARACTERS:
                self._unyielded = 0
                await asyncio.sleep(0)

        return take

    def _hand_on(self, stream: int, text: str) -> None:
        if text:
            self._takes[stream](text)

    def _finish(self) -> None:
        for stream, one in enumerate(self._filters):
            self._hand_on(stream, one.finish())

    async def _read(self, *, tries: int | None = None) -> Exit | None:
        """Reads the command's state; ``None`` while it runs."""
        command = await insist(
            lambda: self._sandbox.process.get_session_command(self._session_id, self._command_id),
            within=self._platform,
            step=STEP,
            sandbox=self._sandbox.name,
            seconds=ANSWER_SECONDS,
            tries=tries,
        )
        if command.exit_code is None:
            return None
        reason = command.additional_properties.get("endReason")
        return Exit(command.exit_code, reason if isinstance(reason, str) else None)

    async def _ask(self, *, patient: bool) -> Exit | None:
        """Reads the command's state, through faults of the platform.

        Args:
            patient: The log has ended properly, so the exit code must be there or about to come: look a few times.
        """
        pace = Pace(0.01)
        for _ in range(4 if patient else 0):
            if (ended := await self._read()) is not None:
                return ended
            await asyncio.sleep(pace.next())
        return await self._read()

    async def _poll(self) -> Exit:
        """Reads the whole log again and again until the command has ended."""
        pace = Pace(0.1, longest=2.0)
        while True:
            # Asked before the log is read: the log of a command that has ended is complete.
            ended = await self._read()
            logs = await insist(
                lambda: self._sandbox.process.get_session_command_logs(self._session_id, self._command_id),
                within=self._platform,
                step=STEP,
                sandbox=self._sandbox.name,
                seconds=TRANSFER_SECONDS,
            )
            before = self._delivered
            for stream, text in enumerate((logs.stdout or "", logs.stderr or "")):
                self._filters[stream].begin()
                self._hand_on(stream, self._filters[stream].take(text))
            if ended is not None:
                self._finish()
                return ended
            if self._delivered > before:
                pace.reset()
            await asyncio.sleep(pace.next())
