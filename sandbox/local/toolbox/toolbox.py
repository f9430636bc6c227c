"""The toolbox of one started sandbox: what its routes share, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..runtime.errors import RuntimeFault
from ..runtime.interface import Box
from .execute import Executor
from .sessions import SessionRegistry
from .system import System

ACTIVITY_SECONDS = 50.0
"""How often a request that stays open counts as activity again, as on the hosted platform."""

_log = logging.getLogger(__name__)


class Toolbox:
    """Serves one started sandbox from ``start`` to ``close``.

    Attributes:
        box: The sandbox's machine.
        sessions: Its process sessions.
        executor: Its one-shot processes.
        system: What it says about itself.
    """

    def __init__(
        self,
        box: Box,
        *,
        log_directory: Path,
        entrypoint: Sequence[str] | None,
        on_activity: Callable[[], None],
    ) -> None:
        """Makes a toolbox that does nothing yet.

        Args:
            box: A running box.
            log_directory: Directory outside the box that belongs to this toolbox alone; it is removed at the end.
            entrypoint: The sandbox's own command, run in the reserved session ``entrypoint``; None for none.
            on_activity: Called at the start of every request and every 50 s while it lasts.
        """
        self.box = box
        self.sessions = SessionRegistry(box, log_directory=log_directory)
        self.executor = Executor(box, log_directory=log_directory)
        self.system = System(box)
        self._log_directory = log_directory
        self._entrypoint = entrypoint
        self._on_activity = on_activity
        self._starting: asyncio.Task[bool] | None = None

    async def start(self) -> None:
        """Prepares the log directory and starts the entrypoint, without waiting for either shell or command.

        An entrypoint that cannot be started does not stop the sandbox; the log of the platform says why.
        """
        await asyncio.to_thread(self._prepare_directory)
        if self._entrypoint:
            self._starting = asyncio.create_task(self._start_entrypoint(shlex.join(self._entrypoint)))

    async def close(self) -> None:
        """Ends every session and process, lets followers reach the end of their logs, and removes the logs.

        May be called before or after the box has been stopped.
        """
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        await asyncio.gather(self.executor.close(), self.sessions.close())
        await asyncio.to_thread(shutil.rmtree, self._log_directory, ignore_errors=True)

    async def entrypoint_started(self) -> bool:
        """Waits until the entrypoint's session exists; False if there is no entrypoint or it could not be started."""
        if self._starting is None:
            return False
        await asyncio.wait({self._starting})
        return not self._starting.cancelled() and self._starting.result()

    @contextlib.contextmanager
    def activity(self) -> Iterator[None]:
        """Counts as activity for as long as it is entered."""
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None

        def tick() -> None:
            nonlocal timer
            self._on_activity()
            timer = loop.call_later(ACTIVITY_SECONDS, tick)

        tick()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()

    async def _start_entrypoint(self, command: str) -> bool:
        try:
            await self.sessions.open_entrypoint(command)
        except RuntimeFault:
            _log.exception("the entrypoint could not be started")
            return False
        return True

    def _prepare_directory(self) -> None:
        shutil.rmtree(self._log_directory, ignore_errors=True)
        self._log_directory.mkdir(parents=True, mode=0o700)
