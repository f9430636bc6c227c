"""A run's events on another machine: live over Prefect's websocket, and whatever that lacks from the kept ones.

Prefect drops events for a subscriber that is slow, tells nobody, and writes events down some seconds after it has
handed them out. So both ways are read, numbers decide what comes next, and an event is given up only when it has not
turned up for ``PATIENCE_SECONDS``; that is told in its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import httpx
from prefect.client.orchestration import PrefectClient, get_client
from prefect.events import Event as PrefectEvent
from prefect.events.clients import get_events_subscriber
from prefect.events.filters import EventFilter, EventNameFilter, EventOccurredFilter, EventOrder, EventResourceFilter
from prefect.exceptions import PrefectException

from flows.event_assembly import EventAssembly
from flows.event_relay import BATCH_EVENT, resource_id
from flows.prefect_connection import prefect_api
from flows.runs import AnyRun, find_run, read_run
from sandbox.errors import PlatformUnavailableError
from sandbox.events import Event

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 3.0
"""How often the kept events and the run's state are read while nothing arrives live."""

QUICK_POLL_SECONDS: Final = 0.5
"""The same while something is missing, or without a websocket."""

PATIENCE_SECONDS: Final = 12.0
"""How long a missing event is looked for; Prefect writes them down within five seconds by default."""

RECONNECT_SECONDS: Final = 2.0
LIVE_BATCHES: Final = 200
"""Batches that may wait for a slow reader; what comes beyond is read from the kept ones later."""

_PAGE: Final = 20
_YEAR: Final = timedelta(days=365)


async def watch(run: AnyRun, *, from_seq: int = 1) -> AsyncGenerator[Event, None]:
    """Yields the events of a run as they happen, from its first or from a number on, until the run has ended.

    They are those that ``on_event`` of ``validate`` takes, numbered for watchers: in order, each once, the same for all
    watchers. What is not kept, or has not arrived, is told by an event ``events_left_out``.

    Args:
        run: The run: what ``submit`` returned, or the id or name of a flow run; of several with one name the newest.
        from_seq: The first number to yield: that of the last event one has, and one more.

    Raises:
        ConfigurationError: There is no such run, or ``from_seq`` is below 1.
        PlatformUnavailableError: The Prefect API does not answer.
    """
    async with prefect_api(), get_client() as client:
        flow_run = await find_run(client, run)
        state = flow_run.state
        over = state is not None and state.is_final()
        watcher = _Watcher(
            client=client,
            flow_run_id=flow_run.id,
            assembly=EventAssembly(from_seq=from_seq, attempt=flow_run.run_count),
            # What an old run has not left behind by now does not come.
            over_since=time.monotonic() - _age(flow_run.end_time) if over else None,
        )
        async with contextlib.aclosing(watcher.events()) as events:
            async for event in events:
                yield event


def _age(ended: datetime | None) -> float:
    return max(0.0, (datetime.now(UTC) - ended).total_seconds()) if ended is not None else 0.0


class _Watcher:
    """Reads both ways and hands out what the assembly has put together."""

    def __init__(
        self, *, client: PrefectClient, flow_run_id: UUID, assembly: EventAssembly, over_since: float | None
    ) -> None:
        self._client = client
        self._flow_run_id = flow_run_id
        self._assembly = assembly
        self._over_since = over_since
        self._missing_since: float | None = None
        self._arrived: asyncio.Queue[PrefectEvent] = asyncio.Queue(LIVE_BATCHES)
        self._subscribed = asyncio.Event()
        self._state_changed = False

    async def events(self) -> AsyncGenerator[Event, None]:
        live = asyncio.create_task(self._listen(), name="events of a run") if self._over_since is None else None
        try:
            if live is not None:
                # Listening comes first, so that nothing falls between what is kept and what is live.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._subscribed.wait(), RECONNECT_SECONDS)
            await self._read_kept()
            while True:
                for event in self._assembly.take():
                    yield event
                if self._assembly.ended:
                    return
                if self._given_up():
                    for event in self._assembly.skip("it did not arrive and is not kept", at=_now()):
                        yield event
                    self._missing_since = None
                    if not self._assembly.incomplete and self._over_since is not None:
                        return
                    continue
                await self._more()
        finally:
            if live is not None:
                live.cancel()
                await asyncio.gather(live, return_exceptions=True)

    async def _more(self) -> None:
        """Waits for a batch; when none comes, reads the kept ones and the run's state."""
        quick = self._assembly.incomplete or self._over_since is not None or not self._subscribed.is_set()
        try:
            event = await asyncio.wait_for(self._arrived.get(), QUICK_POLL_SECONDS if quick else POLL_SECONDS)
        except TimeoutError:
            await self._read_kept()
            await self._read_state()
            return
        self._take(event)
        while not self._arrived.empty():
            self._take(self._arrived.get_nowait())
        if self._state_changed:
            self._state_changed = False
            await self._read_state()

    def _given_up(self) -> bool:
        """Whether what is missing has been looked for long enough."""
        now = time.monotonic()
        if not self._assembly.incomplete:
            self._missing_since = None
        elif self._missing_since is None:
            self._missing_since = now
        since = self._missing_since if self._over_since is None else self._over_since
        return since is not None and now - since > PATIENCE_SECONDS

    def _take(self, event: PrefectEvent) -> None:
        if event.event == BATCH_EVENT:
            self._assembly.add(event.payload, occurred=event.occurred)
        else:
            self._state_changed = True

    async def _listen(self) -> None:
        resources = [resource_id(self._flow_run_id), f"prefect.flow-run.{self._flow_run_id}"]
        names = EventNameFilter(prefix=[BATCH_EVENT, "prefect.flow-run."])
        while True:
            try:
                wanted = EventFilter(resource=EventResourceFilter(id=resources), event=names)
                async with get_events_subscriber(filter=wanted, reconnect_on_clean_close=True) as subscriber:
                    self._subscribed.set()
                    async for event in subscriber:
                        with contextlib.suppress(asyncio.QueueFull):
                            self._arrived.put_nowait(event)
            except Exception as error:
                # The kept events are read more often meanwhile, so a watcher without a websocket is only later.
                logger.debug("events do not arrive live: %s: %s", type(error).__name__, error)
            self._subscribed.clear()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _read_kept(self) -> None:
        since = self._assembly.since or datetime.now(UTC) - _YEAR
        while True:
            wanted = EventFilter(
                resource=EventResourceFilter(id=[resource_id(self._flow_run_id)]),
                event=EventNameFilter(name=[BATCH_EVENT]),
                # Far into the future: the clock that counts is the worker's.
                occurred=EventOccurredFilter(since=since, until=datetime.now(UTC) + _YEAR),
                order=EventOrder.ASC,
            )
            try:
                page = (await self._client.read_events(wanted, limit=_PAGE)).events
            except (httpx.HTTPError, PrefectException) as error:
                raise PlatformUnavailableError(f"the events of the run could not be read: {error}") from error
            for event in page:
                self._take(event)
            if len(page) < _PAGE:
                return
            since = page[-1].occurred

    async def _read_state(self) -> None:
        if self._over_since is None:
            state = (await read_run(self._client, self._flow_run_id)).state
            if state is not None and state.is_final():
                self._over_since = time.monotonic()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
