"""One supervised unit in a box (a process or a session) as the server sees it: its channel, its end, its death."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .channel import Channel, whole_number
from .control import AgentControl
from .errors import BoxLostError, BoxSpawnError
from .interface import EndReason, ExitStatus
from .pipes import PipeEnd

KILLED = 128 + 9
_SPAWN_SECONDS = 30.0
_KILL_SECONDS = 2.0
_LEAVE_SECONDS = 2.0
_ENOENT = 2


@dataclass(frozen=True, slots=True)
class Kills:
    """How many processes of a box have been killed for memory and for disk so far."""

    memory: int
    disk: int


class UnitHost(Protocol):
    """What units need of their box."""

    control: AgentControl
    pipes: set[PipeEnd]
    ended: bool

    def kills(self) -> Kills:
        """Returns how many processes have been killed for memory and disk so far."""
        ...

    async def settled_kills(self) -> Kills:
        """As ``kills``, sure to contain what has been told before a process was seen to end."""
        ...

    async def stop(self, *, force: bool = False) -> None:
        """Ends every process and the box."""
        ...


class Unit:
    """A supervisor in the box and the server's end of its channel.

    What comes through the channel is a report about the unit's own program. That its tree is gone is told by the agent,
    which no program of the box can touch.

    Args:
        box: The box.
        name: The unit's name towards the agent.
        channel: The server's end.
    """

    def __init__(self, box: UnitHost, *, name: str, channel: Channel) -> None:
        self.box = box
        self.name = name
        self.channel = channel
        self.killed = False
        self._buried = asyncio.Event()
        self._gone = asyncio.Event()
        self._started: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def started(self, *, argv0: str, directory: str) -> None:
        """Waits for the supervisor's report that the program runs.

        Raises:
            BoxSpawnError: It does not.
            BoxLostError: The box has gone.
        """
        try:
            async with asyncio.timeout(_SPAWN_SECONDS):
                report = await asyncio.shield(self._started)
        except TimeoutError:
            await self.end()
            raise BoxSpawnError(f"{argv0!r} did not start within {_SPAWN_SECONDS:g} s", exit_code=126) from None
        except asyncio.CancelledError:
            # Hanging up makes the supervisor end its tree.
            self.channel.close()
            raise
        if "started" not in report:
            raise _spawn_error(report, argv0=argv0, directory=directory)

    async def watch(self) -> None:
        """Reads the supervisor's reports until nothing of its tree is left; run as a task by the box."""
        try:
            while (message := await self.channel.receive()) is not None:
                if not self._started.done():
                    self._started.set_result(message)
                else:
                    self.report(message)
        except BoxLostError:
            # Nonsense on the channel of a unit: its supervisor has been tampered with. Hanging up ends its tree.
            self.killed = True
        finally:
            self.channel.close()
            if not self._started.done():
                self._started.set_exception(BoxLostError("the box has gone"))
                self._started.exception()
        try:
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._buried.wait()
        except TimeoutError:
            await self._sweep()
        await self.lost()
        self._gone.set()

    def bury(self) -> None:
        """The agent says that nothing of the tree is left, or the box has gone."""
        self._buried.set()

    def report(self, message: Mapping[str, Any]) -> None:
        """Takes a report other than that of the start."""
        raise NotImplementedError

    async def lost(self) -> None:
        """Nothing more will be reported."""
        raise NotImplementedError

    def close_pipes(self) -> None:
        """Closes the pipes that the caller has not closed."""
        raise NotImplementedError

    async def end(self) -> None:
        """Kills the whole tree and returns when it is gone. May be called twice."""
        self.killed = True
        try:
            if not self._buried.is_set():
                await self.channel.send({"do": "kill"})
            async with asyncio.timeout(_KILL_SECONDS):
                await self._gone.wait()
        except (TimeoutError, BoxLostError):
            # The supervisor has been stopped or killed by a program of the box: the agent does it.
            await self._sweep()
            self.channel.close()
            await self._gone.wait()

    async def unreported(self) -> ExitStatus:
        """Returns the status of something that ended without a report of its supervisor."""
        if self.box.ended:
            return ExitStatus(exit_code=None, reason=EndReason.BOX_LOST)
        # Its supervisor has been killed, and then it by the agent.
        return ExitStatus(exit_code=KILLED, signal=KILLED - 128, reason=EndReason.KILLED)

    async def explain(self, status: ExitStatus, *, since: Kills) -> ExitStatus:
        """Returns ``status`` with the reason the platform knows.

        Args:
            status: As it was reported.
            since: The kills of the box before it started.
        """
        if status.exit_code != KILLED or self.killed:
            return status
        now = await self.box.settled_kills()
        reason = status.reason
        if now.disk > since.disk:
            reason = EndReason.DISK
        elif now.memory > since.memory:
            reason = EndReason.MEMORY
        return ExitStatus(exit_code=status.exit_code, signal=status.signal, reason=reason)

    async def _sweep(self) -> None:
        try:
            await self.box.control.ask("sweep", unit=self.name)
        except (BoxLostError, TimeoutError):
            if not self.box.ended:
                # An agent that cannot end a tree is no use; only the end of the box is certain then.
                await self.box.stop(force=True)
        self._buried.set()


def status_of(code: object, signal: object) -> ExitStatus | None:
    """Returns the exit status for a report from the box, ``None`` if it is no valid report."""
    number = whole_number(signal, low=1, high=64)
    if number is not None:
        return ExitStatus(exit_code=128 + number, signal=number, reason=EndReason.KILLED)
    exit_code = whole_number(code, low=0, high=255)
    return None if exit_code is None else ExitStatus(exit_code=exit_code)


def _spawn_error(message: Mapping[str, Any], *, argv0: str, directory: str) -> BoxSpawnError:
    number = whole_number(message.get("errno"), low=0, high=4095) or 0
    reason = os.strerror(number) if number else "unknown reason"
    step = message.get("failed")
    if step == "directory":
        text = f"cannot start in directory {directory!r}: {reason}"
    elif step == "fork":
        text = f"cannot start another process: {reason}; the sandbox has reached its limit of processes"
    else:
        text = f"cannot run {argv0!r}: {reason}"
    return BoxSpawnError(text, exit_code=127 if number == _ENOENT else 126)
