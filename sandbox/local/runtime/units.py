"""One supervised unit in a box (a process or a session) as the server sees it: its channel, its end, its death."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .channel import Channel, whole_number
from .errors import BoxLostError, BoxSpawnError
from .interface import EndReason, ExitStatus

if TYPE_CHECKING:
    from .box import BubblewrapBox

_SPAWN_SECONDS = 30.0
_KILL_SECONDS = 5.0
_KILLED = 9
# errno → what a shell reports: a program or directory that is missing, or one that cannot be used.
_MISSING = {2}


def spawn_error(message: Mapping[str, Any], *, argv0: str, directory: str) -> BoxSpawnError:
    """Returns the error for a supervisor's report that a program did not start."""
    import os

    number = whole_number(message.get("errno"), low=0, high=4095) or 0
    reason = os.strerror(number) if number else "unknown reason"
    step = message.get("failed")
    if step == "directory":
        text = f"cannot start in directory {directory!r}: {reason}"
    elif step == "fork":
        text = f"cannot start another process: {reason}; the sandbox has reached its limit of processes"
    else:
        text = f"cannot run {argv0!r}: {reason}"
    return BoxSpawnError(text, exit_code=127 if number in _MISSING else 126)


def status_of(code: object, signal: object) -> ExitStatus | None:
    """Returns the exit status for a report from the box, ``None`` if it is no valid report."""
    number = whole_number(signal, low=1, high=64)
    if number is not None:
        return ExitStatus(exit_code=128 + number, signal=number, reason=EndReason.KILLED)
    exit_code = whole_number(code, low=0, high=255)
    return None if exit_code is None else ExitStatus(exit_code=exit_code)


class Unit:
    """A supervisor in the box and the server's end of its channel.

    Subclasses handle the messages; this class knows when the tree is gone.
    """

    def __init__(self, box: BubblewrapBox, *, name: str, channel: Channel) -> None:
        self.box = box
        self.name = name
        self.channel = channel
        self.killed = False
        self.gone = asyncio.Event()
        self._clean = False
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
            self.channel.close()
            raise
        if "failed" in report:
            raise spawn_error(report, argv0=argv0, directory=directory)

    async def watch(self) -> None:
        """Reads the supervisor's reports until its end; run as a task by the box."""
        try:
            while (message := await self.channel.receive()) is not None:
                if not self._started.done():
                    self._started.set_result(message)
                elif message.get("gone") is True:
                    self._clean = True
                else:
                    self.report(message)
        except BoxLostError:
            # Nonsense on the channel of a unit: the supervisor has been tampered with, and hanging up ends its tree.
            self._clean = False
        finally:
            self.channel.close()
            if not self._started.done():
                self._started.set_exception(BoxLostError("the box has gone"))
                self._started.exception()
            await self.lost()
            self.gone.set()

    def report(self, message: Mapping[str, Any]) -> None:
        """A report other than start and end of the tree."""
        raise NotImplementedError

    async def lost(self) -> None:
        """The supervisor has ended; nothing more will be reported."""
        raise NotImplementedError

    async def end(self) -> None:
        """Kills the whole tree and returns when it is gone. May be called twice."""
        self.killed = True
        try:
            if not self.gone.is_set():
                await self.channel.send({"do": "kill"})
            async with asyncio.timeout(_KILL_SECONDS):
                await self.gone.wait()
        except (TimeoutError, BoxLostError):
            # Stopped or killed by a program of the box: pid 1 does it.
            pass
        if self._clean or self.box.ended:
            return
        try:
            await self.box.control.ask("sweep", unit=self.name)
        except BoxLostError:
            return
        self.channel.close()
        await self.gone.wait()

    async def unreported(self) -> ExitStatus:
        """Returns the status of something that ended without a report of its supervisor."""
        if self.box.ended:
            return ExitStatus(exit_code=None, reason=EndReason.BOX_LOST)
        # The supervisor has been killed; the agent kills what it supervised.
        return await self.explain(ExitStatus(exit_code=128 + _KILLED, signal=_KILLED, reason=EndReason.KILLED))

    async def explain(self, status: ExitStatus, *, kills_before: int = 0) -> ExitStatus:
        """Returns ``status`` with the reason the platform knows."""
        return await self.box.explain(status, kills_before=kills_before, killed=self.killed)
