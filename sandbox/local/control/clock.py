"""The time by which intervals in minutes are counted; tests replace it."""

from __future__ import annotations

import time
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
