"""Lists: filters, order and pages."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import Any

from ..control.records import SandboxRecord, SnapshotRecord
from ..control.states import SandboxState
from ..control.views import SANDBOX_CLASS, TARGET
from ..wire_errors import WireError
from .bodies import SandboxQuery, SnapshotQuery

_SANDBOX_KEYS: Mapping[str, Callable[[SandboxRecord], Any]] = {
    "name": lambda record: record.name,
    "cpu": lambda record: record.cpu,
    "memoryGib": lambda record: record.memory,
    "diskGib": lambda record: record.disk,
    "lastActivityAt": lambda record: record.last_activity_at,
    "createdAt": lambda record: record.created_at,
}

_SNAPSHOT_KEYS: Mapping[str, Callable[[SnapshotRecord], Any]] = {
    "name": lambda record: record.name,
    "state": lambda record: record.state.value,
    "lastUsedAt": lambda record: record.last_used_at or 0.0,
    "createdAt": lambda record: record.created_at,
}


def sandbox_page(records: Iterable[SandboxRecord], query: SandboxQuery) -> tuple[Sequence[SandboxRecord], str | None]:
    """Returns one page of the sandboxes that match and the cursor of the next, ``None`` at the end.

    The cursor holds the place of the last item in the order, so that what appears or goes between two pages neither
    repeats nor hides others.

    Raises:
        WireError: 400, a filter or the cursor cannot be used.
    """
    if query.states is not None and SandboxState.DESTROYED in query.states:
        raise WireError(400, "states: destroyed sandboxes are not listed")
    labels = _labels(query.labels)
    key = _SANDBOX_KEYS[query.sort]
    descending = query.order == "desc"
    matching = sorted(
        (record for record in records if _matches(record, query, labels)),
        key=lambda record: (key(record), record.id),
        reverse=descending,
    )
    if query.cursor:
        place = _place(query.cursor, query)
        matching = [
            record
            for record in matching
            if ((key(record), record.id) < place if descending else (key(record), record.id) > place)
        ]
    page = matching[: query.limit]
    if len(matching) <= query.limit:
        return page, None
    return page, _cursor((key(page[-1]), page[-1].id), query)


def snapshot_page(records: Iterable[SnapshotRecord], query: SnapshotQuery) -> tuple[Sequence[SnapshotRecord], int, int]:
    """Returns one page of the snapshots that match, how many match in all, and how many pages that makes."""
    matching = [
        record
        for record in records
        if (query.name or "").lower() in record.name.lower() and not query.source_sandbox_id
    ]
    key = _SNAPSHOT_KEYS[query.sort]
    matching.sort(key=lambda record: (key(record), record.created_at, record.id), reverse=query.order == "desc")
    first = (query.page - 1) * query.limit
    return matching[first : first + query.limit], len(matching), ceil(len(matching) / query.limit)


def _matches(record: SandboxRecord, query: SandboxQuery, labels: Mapping[str, str]) -> bool:
    destroy_at = record.destroy_at
    return (
        record.state is not SandboxState.DESTROYED
        and (record.visible or query.include_errored_deleted)
        and _prefix(record.id, query.id)
        and _prefix(record.name, query.name)
        and labels.items() <= record.labels.items()
        and (query.states is None or record.state in query.states)
        and (query.snapshots is None or record.snapshot in query.snapshots)
        and (query.region_ids is None or TARGET in query.region_ids)
        and (query.sandbox_classes is None or SANDBOX_CLASS in query.sandbox_classes)
        and _between(record.cpu, query.min_cpu, query.max_cpu)
        and _between(record.memory, query.min_memory, query.max_memory)
        and _between(record.disk, query.min_disk, query.max_disk)
        and query.is_public in (None, record.public)
        and query.is_recoverable in (None, record.recoverable)
        and _between(record.created_at, query.created_at_after, query.created_at_before)
        and _between(record.last_activity_at, query.last_event_after, query.last_event_before)
        and _between_or_absent(destroy_at, query.auto_destroy_at_after, query.auto_destroy_at_before)
    )


def _prefix(text: str, prefix: str | None) -> bool:
    return prefix is None or text.lower().startswith(prefix.lower())


def _between(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _between_or_absent(value: float | None, low: float | None, high: float | None) -> bool:
    return (low is None and high is None) or (value is not None and _between(value, low, high))


def _labels(text: str | None) -> Mapping[str, str]:
    if not text:
        return {}
    try:
        labels = json.loads(text)
    except ValueError:
        labels = None
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise WireError(400, "labels must be a JSON object of strings")
    return labels


def _cursor(place: tuple[Any, str], query: SandboxQuery) -> str:
    return base64.urlsafe_b64encode(json.dumps([query.sort, query.order, *place]).encode()).decode()


def _place(cursor: str, query: SandboxQuery) -> tuple[Any, str]:
    try:
        sort, order, value, last_id = json.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, binascii.Error):
        raise WireError(400, "cursor is not one that this platform has given out") from None
    expected = str if query.sort == "name" else (int, float)
    if (sort, order) != (query.sort, query.order) or not isinstance(value, expected) or not isinstance(last_id, str):
        raise WireError(400, "cursor belongs to a list with another order")
    return value, last_id
