"""Where the time of a run went."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from sandbox.models import Timings


class Stopwatch:
    """Sums up seconds by step; starts with its making."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._steps = {"snapshot": 0.0, "sandbox": 0.0, "queue": 0.0, "results": 0.0}
        self._phases: dict[str, float] = {}

    @contextmanager
    def step(self, name: Literal["snapshot", "sandbox", "queue", "results"]) -> Iterator[None]:
        """Counts the time of the block, also when it raises."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._steps[name] += time.monotonic() - began

    def phase(self, name: str, seconds: float) -> None:
        """Counts the time of a program; a repeated phase adds to the former."""
        self._phases[name] = self._phases.get(name, 0.0) + seconds

    def timings(self) -> Timings:
        """Returns the sums so far."""
        total = time.monotonic() - self._began
        known = sum(self._steps.values()) + sum(self._phases.values())
        return Timings(**self._steps, phases=dict(self._phases), overhead=max(0.0, total - known), total=total)
