"""One-shot processes in a box."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from .channel import Channel
from .interface import ExitStatus, InputPipe, OutputPipe
from .units import Unit, UnitHost, status_of


class BoxProcess(Unit):
    """A program started by ``Box.run``; see ``Process``."""

    def __init__(
        self,
        box: UnitHost,
        *,
        name: str,
        channel: Channel,
        stdin: InputPipe | None,
        stdout: OutputPipe,
        stderr: OutputPipe,
    ) -> None:
        super().__init__(box, name=name, channel=channel)
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._since = box.kills()
        self._status: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()

    async def wait(self) -> ExitStatus:
        """Waits for the main process."""
        status = await asyncio.shield(self._status)
        return await self.explain(status, since=self._since)

    async def kill(self) -> None:
        """Kills the process with everything that descends from it."""
        await self.end()

    def close_pipes(self) -> None:
        """Closes what the caller has not closed."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()

    def report(self, message: Mapping[str, Any]) -> None:
        """The main process has ended."""
        status = status_of(message.get("exit"), message.get("signal"))
        if status is not None and not self._status.done():
            self._status.set_result(status)

    async def lost(self) -> None:
        """Nobody will report the end of the main process any more."""
        if not self._status.done():
            self._status.set_result(await self.unreported())
