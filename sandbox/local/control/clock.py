"""The time by which intervals in minutes are counted; tests replace it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """A source of wall-clock time; it must survive a restart, so it is not the monotonic one."""

    def now(self) -> float:
        """Returns seconds since the epoch."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Returns seconds since the epoch."""
        return time.time()


class LeadingClock:
    """A clock that is ahead of another, as fault control asks.

    Args:
        clock: The other.
        lead: Returns by how many seconds.
    """

    def __init__(self, clock: Clock, *, lead: Callable[[], float]) -> None:
        self._clock = clock
        self._lead = lead

    def now(self) -> float:
        """Returns seconds since the epoch."""
        return self._clock.now() + self._lead()
