"""Batches of a run's events, as they come by several ways and in any order, put together to one stream."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson
from pydantic import JsonValue

from sandbox.events import EVENTS_LEFT_OUT, Event


class EventAssembly:
    """Hands out events in order, each once, and knows what is missing.

    Args:
        from_seq: The first number that is handed out.
        attempt: Batches of former executions of the flow run are ignored.

    Attributes:
        since: When the newest batch happened before which nothing is missing; ``None`` before the first.
    """

    def __init__(self, *, from_seq: int, attempt: int) -> None:
        self._next = 1
        self._from = from_seq
        self._attempt = attempt
        self._waiting: dict[int, Event] = {}
        self._last: int | None = None
        self._batches: dict[int, datetime] = {}
        self._ids = ("", "")
        self.since: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether everything was handed out, up to the end that the run has told."""
        return self._last is not None and self._next > self._last

    @property
    def incomplete(self) -> bool:
        """Whether an event is missing before others that are known of."""
        return bool(self._waiting) or (self._last is not None and not self.ended)

    def add(self, payload: Mapping[str, Any], *, occurred: datetime) -> None:
        """Takes a batch; one that is known already changes nothing."""
        if payload["attempt"] < self._attempt:
            return
        if payload["attempt"] > self._attempt:
            # The flow run was started again; its numbers begin anew.
            self._attempt, self._next, self._last, self.since = payload["attempt"], 1, None, None
            self._waiting.clear()
            self._batches.clear()
        self._ids = (payload["run_id"], payload["thread_id"])
        if "last" in payload:
            self._last = payload["last"]
        if payload["first"] + len(payload["events"]) > self._next:
            self._batches[payload["first"]] = occurred
        for seq, written in enumerate(payload["events"], start=payload["first"]):
            if seq >= self._next and seq not in self._waiting:
                self._waiting[seq] = self._event(seq, written)

    def take(self) -> list[Event]:
        """Returns what can be handed out now."""
        ready = []
        while (event := self._waiting.pop(self._next, None)) is not None:
            if (occurred := self._batches.pop(self._next, None)) is not None:
                self.since = occurred
            self._next += 1
            if event["seq"] >= self._from:
                ready.append(event)
        return ready

    def skip(self, reason: str, *, at: str) -> list[Event]:
        """Gives up the events that are missing next; returns one that tells it in their place, unless none is."""
        known = min(self._waiting, default=None if self._last is None else self._last + 1)
        if known is None or known <= self._next:
            return []
        first, self._next = self._next, known
        if known <= self._from:
            return []
        data: dict[str, JsonValue] = {"first": first, "last": known - 1, "reason": reason}
        # With the number of the last that is missing, so that a reader who goes on behind it asks for the right one.
        written = {"type": EVENTS_LEFT_OUT, "data": data, "at": at}
        return [self._event(known - 1, written)]

    def _event(self, seq: int, written: Mapping[str, Any]) -> Event:
        encoded = written.get("data_base64")
        return Event(
            type=written["type"],
            data=written["data"] if encoded is None else orjson.loads(base64.b64decode(encoded)),
            seq=seq,
            at=written["at"],
            run_id=self._ids[0],
            thread_id=self._ids[1],
            phase=written.get("phase"),
        )
