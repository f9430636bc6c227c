"""The limit of a box's disk: measured from outside, because an ordinary user can give a directory no quota.

Between measurements the drops of the file system's free space tell how much all boxes together can have written, so a
box is measured when it may have passed its limit, and now and then to make up for what others have freed in the same
interval. In the worst case a box exceeds its limit by what it can write within one interval and one measurement.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

_log = logging.getLogger(__name__)

_INTERVAL = 0.1
_REGULAR = 5.0
_NOTICEABLE = 1024 * 1024
# A measurement takes at most a twentieth of the time.
_REST = 20


class WatchedBox(Protocol):
    """What the watch knows of a box."""

    @property
    def disk_limit(self) -> int:
        """Bytes the writable directory may hold."""
        ...

    @property
    def busy(self) -> bool:
        """True while something runs in it."""
        ...

    async def kill_for_disk(self) -> None:
        """Ends everything in it."""
        ...


@dataclass(slots=True)
class _Entry:
    measure: Callable[[], Coroutine[Any, Any, int]]
    used: int = 0
    written: int = 0
    """Bytes it can have written since ``used`` was measured."""
    next_regular: float = 0.0
    not_before: float = 0.0
    tolerated: int = 0


class DiskWatch:
    """Watches the writable directories of all boxes of a runtime; ``run`` is a task of its owner.

    Args:
        root: A directory of the file system that holds them.
    """

    def __init__(self, *, root: Path) -> None:
        self._root = root
        self._boxes: dict[WatchedBox, _Entry] = {}
        self._some = asyncio.Event()
        self._free = 0

    def add(self, box: WatchedBox, *, measure: Callable[[], Coroutine[Any, Any, int]]) -> None:
        """Starts to watch a box; ``measure`` returns the bytes of its writable directory or raises ``OSError``."""
        self._boxes[box] = _Entry(measure)
        self._some.set()

    def remove(self, box: WatchedBox) -> None:
        """Watches a box no more."""
        self._boxes.pop(box, None)
        if not self._boxes:
            self._some.clear()

    async def run(self) -> None:
        """Watches until cancelled."""
        while True:
            await self._some.wait()
            await asyncio.sleep(_INTERVAL)
            try:
                self._note_drop()
                for box, entry in self._due():
                    await self._measure(box, entry)
            except OSError as error:
                # Such as no more processes: the next round may be luckier, and the watch must not end.
                _log.warning("the disks of the sandboxes could not be measured: %s", error)
                await asyncio.sleep(_REGULAR)

    def _note_drop(self) -> None:
        """Counts a drop of the free space for every box; a rise tells nothing, since any program may free anything."""
        status = os.statvfs(self._root)
        free = status.f_bfree * status.f_frsize
        drop = max(0, self._free - free)
        self._free = free
        for entry in self._boxes.values():
            entry.written += drop

    def _due(self) -> Iterable[tuple[WatchedBox, _Entry]]:
        now = time.monotonic()
        for box, entry in list(self._boxes.items()):
            if not box.busy or now < entry.not_before:
                continue
            possible = entry.used + entry.written
            # While nothing has been written anywhere, a box that only waits needs no look.
            late = entry.next_regular + (0 if entry.written > _NOTICEABLE else _REST * _REGULAR)
            if now >= late or possible > max(box.disk_limit, entry.tolerated):
                yield box, entry

    async def _measure(self, box: WatchedBox, entry: _Entry) -> None:
        started = time.monotonic()
        entry.written = 0
        entry.used = await entry.measure()
        now = time.monotonic()
        entry.not_before = now + _REST * (now - started)
        entry.next_regular = max(now + _REGULAR, entry.not_before)
        if entry.used <= box.disk_limit:
            entry.tolerated = 0
        elif entry.used > entry.tolerated and box in self._boxes:
            # From now on only growing further is an offence: what deletes files must be able to run.
            entry.tolerated = entry.used
            await box.kill_for_disk()
