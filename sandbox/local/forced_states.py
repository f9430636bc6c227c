"""States that a test asks the platform to show: any word, of a sandbox or a snapshot, from and for so many reads.

The truth stays in the records; only what is shown changes. A platform without fault control does not use this module.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from .control.records import SandboxRecord, SnapshotRecord
from .control.views import Views

READING: ContextVar[bool] = ContextVar("reading", default=False)
"""Whether a client's GET is being answered: only such showings count as reads."""


@dataclass(slots=True, kw_only=True)
class ForcedState:
    """A state to show instead of the true one.

    Attributes:
        kind: What it is about.
        target: Id or name; an id leaves a successor of the same name alone.
        state: Any word; it need not be one that the SDK knows.
        fields: Other members to show with it, such as ``errorReason`` and ``recoverable``.
        after_reads: Reads that still show the truth.
        reads: Reads that show it; ``None`` for all.
        after_seconds: Before it begins.
        seconds: How long it lasts; ``None`` for ever.
        seen: Reads so far.
        since: When it was set, on the monotonic clock.
    """

    kind: Literal["sandbox", "snapshot"]
    target: str
    state: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    after_reads: int = 0
    reads: int | None = None
    after_seconds: float = 0.0
    seconds: float | None = None
    seen: int = 0
    since: float = field(default_factory=time.monotonic)

    def shows(self) -> bool:
        """Counts a showing and tells whether the forced state is shown."""
        if READING.get():
            self.seen += 1
        age = time.monotonic() - self.since - self.after_seconds
        in_time = age >= 0 and (self.seconds is None or age < self.seconds)
        past = self.seen - self.after_reads
        return in_time and past > 0 and (self.reads is None or past <= self.reads)


class ForcedViews(Views):
    """Views that show forced states.

    Args:
        toolbox_url: As of ``Views``.
        version: As of ``Views``.
        forced: Returns the states to show.
    """

    def __init__(self, *, toolbox_url: str, version: str, forced: Callable[[], list[ForcedState]]) -> None:
        super().__init__(toolbox_url=toolbox_url, version=version)
        self._forced = forced

    def sandbox_item(self, record: SandboxRecord) -> dict[str, Any]:
        """Returns the ``SandboxListItem`` object."""
        return self._shown("sandbox", super().sandbox_item(record))

    def snapshot(self, record: SnapshotRecord) -> dict[str, Any]:
        """Returns the ``SnapshotDto`` object."""
        return self._shown("snapshot", super().snapshot(record))

    def _shown(self, kind: str, view: dict[str, Any]) -> dict[str, Any]:
        for forced in self._forced():
            if forced.kind == kind and forced.target in (view["id"], view["name"]) and forced.shows():
                return view | {"state": forced.state} | dict(forced.fields)
        return view
