"""A run's events on their way to watchers on other machines: as Prefect events, in batches, in the background.

Each batch is one Prefect event of the resource ``uom-sandbox.run.<flow run id>``; Prefect keeps it, so it is live view
and kept log at once. The relay numbers the events anew, since it joins small pieces of output, cuts large ones, and
tells in the stream itself what it leaves out. The program never waits for it.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid4

import anyio
import orjson
from prefect.client.orchestration import SyncPrefectClient
from pydantic import JsonValue

from flows.background import Job, Sender
from sandbox.events import EVENTS_LEFT_OUT, PHASE_FINISHED, Event

logger = logging.getLogger(__name__)

BATCH_EVENT: Final = "uom-sandbox.run.events"
BATCH_SECONDS: Final = 0.1
"""At most ten batches a second and run: Prefect drops events from about 200 a second for one subscriber."""

BATCH_CHARACTERS: Final = 128 * 1024
"""Well below Prefect's limit of 1.5 MB for an event, also where each character needs six bytes."""

PIECE_CHARACTERS: Final = 32 * 1024
"""Output of one stream is joined up to, and cut at, this length."""

RUN_CHARACTERS: Final = 16 * 1024 * 1024
"""What one run may send, and so also what may wait; from there on only the ends of its streams follow."""

TAIL_CHARACTERS: Final = 32 * 1024
EVENT_BYTES: Final = 64 * 1024
FLUSH_SECONDS: Final = 10.0
"""How long the end of a worker's run waits until the last batch has left."""

FAILED_BATCHES: Final = 3
"""After so many refused batches in a row the relay gives up."""

SENDER: Final = Sender("uom-sandbox event relay", subject="a batch of events")


def resource_id(flow_run_id: UUID) -> str:
    """Returns the Prefect resource whose events are those of a run."""
    return f"uom-sandbox.run.{flow_run_id}"


@dataclass(slots=True)
class _Item:
    seq: int
    type: str
    data: JsonValue
    at: str
    phase: str | None


class _Tail:
    """The end of a stream of which no more is sent."""

    def __init__(self, phase: str | None) -> None:
        self.phase = phase
        self.total = 0
        self._pieces: deque[str] = deque()
        self._size = 0

    def add(self, text: str) -> None:
        self.total += len(text)
        self._pieces.append(text)
        self._size += len(text)
        while self._size - len(self._pieces[0]) >= TAIL_CHARACTERS:
            self._size -= len(self._pieces.popleft())

    def text(self) -> str:
        return "".join(self._pieces)[-TAIL_CHARACTERS:]


class EventRelay:
    """A sink of events that sends them to Prefect; use ``relayed``.

    Args:
        flow_run_id: The run.
        attempt: Which execution of the flow run this is, from 1.
        run_characters: What it may send altogether.
        put: Takes the jobs that send.
    """

    def __init__(
        self,
        *,
        flow_run_id: UUID,
        attempt: int,
        run_characters: int = RUN_CHARACTERS,
        put: Callable[[Job], None] = SENDER.put,
    ) -> None:
        self._resource = resource_id(flow_run_id)
        self._attempt = attempt
        self._left = run_characters
        self._put = put
        self._lock = threading.Lock()
        self._waiting: deque[_Item] = deque()
        self._seq = 0
        self._ids = ("", "")
        self._tails: dict[str, _Tail] = {}
        self._due = False
        self._handed_over = float("-inf")
        self._ended = False
        self._end_sent = False
        self._refused = 0
        self._occurred = datetime.min.replace(tzinfo=UTC)

    def __call__(self, event: Event) -> None:
        """Takes an event; returns at once."""
        with self._lock:
            if self._ended or self._refused >= FAILED_BATCHES:
                return
            self._ids = (event["run_id"], event["thread_id"])
            data = event["data"]
            if isinstance(data, str):
                self._take_text(event["type"], data, event["at"], event["phase"])
            else:
                if event["type"] == PHASE_FINISHED:
                    self._tell_tails()
                self._take_document(event, data)
            due, self._due = self._due, self._due or bool(self._waiting)
            if due or not self._due:
                return
        delay = max(0.0, self._handed_over + BATCH_SECONDS - time.monotonic())
        asyncio.get_running_loop().call_later(delay, self._hand_over)

    def close(self) -> None:
        """Sends what waits, and that this is the end."""
        with self._lock:
            if self._ended:
                return
            self._tell_tails()
            self._ended = True
        self._put(self._send)

    def _hand_over(self) -> None:
        self._handed_over = time.monotonic()
        self._put(self._send)

    def _take_text(self, type_: str, text: str, at: str, phase: str | None) -> None:
        tail = self._tails.get(type_)
        if tail is None and len(text) > self._left:
            tail = self._tails[type_] = _Tail(phase)
        if tail is not None:
            tail.add(text)
            return
        self._left -= len(text)
        self._add_text(type_, text, at, phase)

    def _add_text(self, type_: str, text: str, at: str, phase: str | None) -> None:
        if self._waiting:
            last = self._waiting[-1]
            if last.type == type_ and last.phase == phase and isinstance(last.data, str):
                room = PIECE_CHARACTERS - len(last.data)
                last.data += text[:room]
                text = text[room:]
        for start in range(0, len(text), PIECE_CHARACTERS):
            self._add(type_, text[start : start + PIECE_CHARACTERS], at, phase)

    def _take_document(self, event: Event, data: JsonValue) -> None:
        size = len(orjson.dumps(data))
        if size > EVENT_BYTES:
            left_out: dict[str, JsonValue] = {
                "type": event["type"],
                "bytes": size,
                "reason": "the event is too large to be sent",
            }
            self._add(EVENTS_LEFT_OUT, left_out, event["at"], event["phase"])
        else:
            self._add(event["type"], data, event["at"], event["phase"])

    def _tell_tails(self) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for type_, tail in self._tails.items():
            text = tail.text()
            if missing := tail.total - len(text):
                reason = (
                    f"the run has printed more than is kept for watchers; the end of the {tail.phase} phase follows"
                )
                self._add(EVENTS_LEFT_OUT, {"type": type_, "characters": missing, "reason": reason}, at, tail.phase)
            self._add_text(type_, text, at, tail.phase)
        self._tails.clear()

    def _add(self, type_: str, data: JsonValue, at: str, phase: str | None) -> None:
        self._seq += 1
        self._waiting.append(_Item(self._seq, type_, data, at, phase))

    def _send(self, client: SyncPrefectClient) -> None:
        """Sends one batch; runs in the sender's thread."""
        with self._lock:
            batch: list[_Item] = []
            size = 0
            while self._waiting and (not batch or size < BATCH_CHARACTERS):
                batch.append(self._waiting.popleft())
                data = batch[-1].data
                size += len(data) if isinstance(data, str) else len(orjson.dumps(data))
            more = bool(self._waiting)
            self._due = more
            if not batch and (self._end_sent or not self._ended):
                return
            payload: dict[str, Any] = {
                "attempt": self._attempt,
                "run_id": self._ids[0],
                "thread_id": self._ids[1],
                "first": batch[0].seq if batch else self._seq + 1,
                "events": [_written(item) for item in batch],
            }
            if self._ended and not more:
                payload["last"] = self._seq
                self._end_sent = True
            # Never the same instant twice, so that readers can go on from the last one they have.
            self._occurred = max(datetime.now(UTC), self._occurred + timedelta(microseconds=1))
            occurred = self._occurred.isoformat()
        event = {
            "id": str(uuid4()),
            "occurred": occurred,
            "event": BATCH_EVENT,
            "resource": {"prefect.resource.id": self._resource},
            "payload": payload,
        }
        try:
            client.request("POST", "/events", json=[event])
        except Exception:
            with self._lock:
                self._refused += 1
                if self._refused >= FAILED_BATCHES:
                    self._waiting.clear()
            raise
        else:
            self._refused = 0
        finally:
            if more:
                # Behind what other runs have to send meanwhile.
                self._put(self._send)


def _written(item: _Item) -> dict[str, Any]:
    written: dict[str, Any] = {"type": item.type, "at": item.at}
    if item.phase is not None:
        written["phase"] = item.phase
    raw = orjson.dumps(item.data)
    # PostgreSQL stores no NUL in JSON, and would refuse everybody's events along with this one.
    if rb"\u0000" in raw:
        written["data_base64"] = base64.b64encode(raw).decode("ascii")
    else:
        written["data"] = item.data
    return written


@asynccontextmanager
async def relayed(*, flow_run_id: UUID, attempt: int, wait: bool) -> AsyncIterator[EventRelay]:
    """Yields the relay of a run, and sends its end.

    Args:
        flow_run_id: The run.
        attempt: Which execution of the flow run this is, from 1.
        wait: Whether to wait, bounded, until everything is sent, as a worker must, whose process ends afterwards.
    """
    relay = EventRelay(flow_run_id=flow_run_id, attempt=attempt)
    try:
        yield relay
    finally:
        relay.close()
        if wait:
            with anyio.CancelScope(shield=True):
                sent = await asyncio.to_thread(SENDER.flush, FLUSH_SECONDS)
            if not sent:
                logger.warning("the last events did not reach watchers within %g s", FLUSH_SECONDS)
