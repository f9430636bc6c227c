"""One box made by bwrap."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess

from .agent_box import AgentBox, BoxParts

_EXIT_SECONDS = 1.0
_DEATH_SECONDS = 30.0


class BubblewrapBox(AgentBox):
    """A live box of the bubblewrap runtime.

    Args:
        parts: See ``BoxParts``.
        process: The outer bwrap.
    """

    def __init__(self, parts: BoxParts, *, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        super().__init__(parts)

    async def await_exit(self) -> None:
        """Reaps bwrap, whose end means that no process of the box is left; kills it if it does not follow its agent."""
        loop = asyncio.get_running_loop()
        exited: asyncio.Future[None] = loop.create_future()
        pidfd = os.pidfd_open(self._process.pid)
        loop.add_reader(pidfd, lambda: None if exited.done() else exited.set_result(None))
        try:
            try:
                async with asyncio.timeout(_EXIT_SECONDS):
                    await asyncio.shield(exited)
            except TimeoutError:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                async with asyncio.timeout(_DEATH_SECONDS):
                    await asyncio.shield(exited)
            self._process.wait()
        finally:
            loop.remove_reader(pidfd)
            os.close(pidfd)
