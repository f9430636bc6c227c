"""Waits that tell what they wait for: at once when the state changes, and at least every ten seconds."""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Final, Self

from sandbox.errors import WaitTimeoutError
from sandbox.events import SANDBOX_STATE, EventStream
from sandbox.retry import Deadline

logger = logging.getLogger(__name__)

INTERVAL_SECONDS: Final = 10.0
"""Longest silence of a wait."""


class Heartbeat:
    """Tells of one wait; use as an async context manager around it.

    Args:
        events: Where ``SANDBOX_STATE`` events go.
        subject: ``sandbox`` or ``snapshot``.
        name: Its name.
        limit: Seconds the wait may take.
    """

    def __init__(self, events: EventStream, *, subject: str, name: str, limit: float) -> None:
        self._events = events
        self._subject = subject
        self._name = name
        self.deadline = Deadline(limit)
        self.state: str | None = None
        self.reads = 0
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        self._schedule()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def saw(self, state: str) -> None:
        """Notes the state just read; a new one is told at once."""
        self.reads += 1
        if state != self.state:
            self.state = state
            self._tell()

    def timed_out(self, *, step: str, wanted: str, remedy: str | None = None) -> WaitTimeoutError:
        """Returns the error for a wait that ran out, with its story."""
        return WaitTimeoutError(
            f"{self._subject} {self._name} is not {wanted} after {self.deadline.elapsed:.1f} s "
            f"(limit {self.deadline.seconds:g} s, {self.reads} reads)",
            step=step,
            sandbox=self._name,
            state=self.state,
            remedy=remedy,
        )

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(INTERVAL_SECONDS, self._beat)

    def _beat(self) -> None:
        self._tell()
        self._schedule()

    def _tell(self) -> None:
        elapsed = self.deadline.elapsed
        logger.info(
            "%s %s: %s (%.0f s of %g s)",
            self._subject,
            self._name,
            self.state or "waiting",
            elapsed,
            self.deadline.seconds,
        )
        self._events.emit(
            SANDBOX_STATE,
            {
                "subject": self._subject,
                "name": self._name,
                "state": self.state,
                "elapsed": round(elapsed, 3),
                "limit": self.deadline.seconds,
            },
        )
