"""Intervals kept: idle sandboxes stop, stopped ones are archived or deleted, lifetimes end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from ..wire_errors import WireError
from .clock import Clock
from .records import SandboxRecord
from .sandboxes import Sandboxes
from .states import AT_REST, DesiredState, SandboxState

_log = logging.getLogger(__name__)

MINUTE = 60.0


class Janitor:
    """Goes round at intervals.

    Args:
        sandboxes: Whom it looks after.
        clock: The time that intervals are counted by.
        seconds: Pause between two rounds.
    """

    def __init__(self, *, sandboxes: Sandboxes, clock: Clock, seconds: float) -> None:
        self._sandboxes = sandboxes
        self._clock = clock
        self._seconds = seconds
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins the rounds."""
        self._task = asyncio.create_task(self._rounds(), name="janitor")

    async def close(self) -> None:
        """Ends the rounds. May be called twice."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None

    async def sweep(self) -> None:
        """Goes round once."""
        await self._sandboxes.save_activity()
        for record in list(self._sandboxes.all()):
            action = self._due(record)
            if action is None:
                continue
            try:
                await action
            except WireError as error:
                _log.info("sandbox %s: %s; trying again in the next round", record.name, error)

    def _due(self, record: SandboxRecord) -> Awaitable[None] | None:
        now = self._clock.now()
        idle = now - record.last_activity_at
        if record.state not in AT_REST:
            return None
        if not record.visible or (record.destroy_at is not None and record.destroy_at <= now):
            return self._sandboxes.delete(record)
        if record.state is SandboxState.STARTED and record.desired_state is DesiredState.STARTED:
            if record.auto_stop > 0 and idle >= record.auto_stop * MINUTE:
                _log.info("sandbox %s has been idle for %d minutes: stopping it", record.name, record.auto_stop)
                return self._sandboxes.stop(record)
        elif record.state in (SandboxState.STOPPED, SandboxState.ARCHIVED):
            if record.auto_delete >= 0 and idle >= record.auto_delete * MINUTE:
                _log.info("sandbox %s has been stopped for %d minutes: deleting it", record.name, record.auto_delete)
                return self._sandboxes.delete(record)
            if record.state is SandboxState.STOPPED and idle >= record.auto_archive * MINUTE:
                return self._sandboxes.archive(record)
        return None

    async def _rounds(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            try:
                await self.sweep()
            except Exception:
                _log.exception("a round of the janitor failed")
