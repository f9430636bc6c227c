"""Places in a shared sandbox: so many runs at a time, the others queue in the order they came.

The places are those of one process. That is the fence that decides within it; between processes the sandbox's own
limits do.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import Final

from sandbox.errors import CapacityError
from sandbox.events import EventStream
from sandbox.heartbeat import Heartbeat

QUEUE_SECONDS: Final = 3600.0
"""Longest wait for a place."""


class Slots:
    """The places of one sandbox.

    Args:
        limit: How many runs it takes at a time.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self._free = asyncio.Semaphore(limit)

    async def take(self, *, events: EventStream, name: str) -> None:
        """Takes a place, waiting for one in the order of arrival.

        Args:
            events: Told that we wait.
            name: Name of the sandbox.

        Raises:
            CapacityError: None became free within ``QUEUE_SECONDS``.
        """
        if self._free.locked():
            async with Heartbeat(events, subject="sandbox", name=name, limit=QUEUE_SECONDS) as beat:
                beat.saw("waiting for a free place")
                try:
                    async with asyncio.timeout(QUEUE_SECONDS):
                        await self._free.acquire()
                except TimeoutError:
                    raise CapacityError(
                        f"no place became free within {QUEUE_SECONDS:g} s ({self.limit} runs at a time)", sandbox=name
                    ) from None
        else:
            await self._free.acquire()
        self.taken += 1

    def give_back(self) -> None:
        """Gives a place back; the first in the queue gets it."""
        self.taken -= 1
        self._free.release()


_Known = weakref.WeakValueDictionary[tuple[str, str], Slots]
_slots: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Known] = weakref.WeakKeyDictionary()


def slots_of(platform: str, name: str, *, limit: int) -> Slots:
    """Returns the places of a sandbox in the running event loop.

    Args:
        platform: Address of the platform.
        name: Name of the sandbox.
        limit: Places; a change takes effect when the sandbox is next idle.
    """
    known = _slots.setdefault(asyncio.get_running_loop(), weakref.WeakValueDictionary())
    found = known.get((platform, name))
    if found is None or (found.limit != limit and not found.taken):
        found = known[(platform, name)] = Slots(limit)
    return found
