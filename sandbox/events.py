"""The event stream of a run: typed, numbered, delivered to sinks that can neither block nor break it.

An event is a plain mapping, so a LangGraph stream writer takes it as it is:
``validate(request, on_event=stream_writer)``.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Self, TypedDict

from pydantic import JsonValue

logger = logging.getLogger(__name__)

SANDBOX_STATE: Final = "sandbox_state"
PHASE_STARTED: Final = "phase_started"
PHASE_FINISHED: Final = "phase_finished"
DIAGNOSTIC: Final = "diagnostic"
RESULT: Final = "result"
OUTCOME: Final = "outcome"
EVENTS_LEFT_OUT: Final = "events_left_out"
"""Told to watchers in place of what does not reach them: ``reason``, and what is missing as far as it is known."""

DOTNET_SANDBOX_COMMAND_EXECUTION_STDOUT: Final = "dotnet_sandbox_command_execution_stdout"
DOTNET_SANDBOX_COMMAND_EXECUTION_STDERR: Final = "dotnet_sandbox_command_execution_stderr"
DOTNET_SANDBOX_SNAPSHOT_CREATION: Final = "dotnet_sandbox_snapshot_creation"
JAVA_SANDBOX_COMMAND_EXECUTION_STDOUT: Final = "java_sandbox_command_execution_stdout"
JAVA_SANDBOX_COMMAND_EXECUTION_STDERR: Final = "java_sandbox_command_execution_stderr"
JAVA_SANDBOX_SNAPSHOT_CREATION: Final = "java_sandbox_snapshot_creation"

SINK_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""Output a slow sink may have waiting; beyond it the live view leaves data out and says how much."""

MERGE_BYTES: Final = 64 * 1024
"""Waiting chunks of one stream are joined up to this size."""

SINK_BUFFER_EVENTS: Final = 10_000
"""Events a slow sink may have waiting before further output is only counted."""

FLUSH_SECONDS: Final = 5.0
"""How long the end of a run waits for a slow sink."""


class Event(TypedDict):
    """One thing that happened in a run.

    Attributes:
        type: One of the constants above, or ``<language>_sandbox_…`` of another profile.
        data: The text of an output or log event, else a JSON object.
        seq: 1, 2, 3 … without gaps, as this sink sees them.
        at: ISO-8601 time in UTC.
        run_id: The run.
        thread_id: The conversation.
        phase: Name of the phase, ``None`` outside a phase.
    """

    type: str
    data: JsonValue
    seq: int
    at: str
    run_id: str
    thread_id: str
    phase: str | None


Sink = Callable[[Event], Awaitable[object] | object]
"""Takes events; sync or async. A sync sink is called in the event loop and should return at once."""


def stdout_event(language: str) -> str:
    """The type of a chunk of standard output, ``java_sandbox_command_execution_stdout`` for ``java``."""
    return f"{language}_sandbox_command_execution_stdout"


def stderr_event(language: str) -> str:
    """The type of a chunk of standard error."""
    return f"{language}_sandbox_command_execution_stderr"


def snapshot_event(language: str) -> str:
    """The type of a line of the snapshot's build log."""
    return f"{language}_sandbox_snapshot_creation"


class _Waiting:
    """An event in a sink's queue; its number is given when it is delivered."""

    __slots__ = ("at", "data", "left_out", "phase", "type")

    def __init__(self, type_: str, data: JsonValue, phase: str | None) -> None:
        self.type = type_
        self.data = data
        self.phase = phase
        self.at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.left_out = 0


class _Pump:
    """Delivers to one sink, in order, from a bounded queue."""

    def __init__(self, sink: Sink, run_id: str, thread_id: str) -> None:
        self._sink = sink
        self._run_id = run_id
        self._thread_id = thread_id
        self._queue: deque[_Waiting] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()
        self._closing = False
        self._seq = 0
        self._failed = False

    def put(self, type_: str, data: JsonValue, phase: str | None) -> None:
        if isinstance(data, str) and self._queue:
            last = self._queue[-1]
            if last.type == type_ and last.phase == phase and isinstance(last.data, str):
                if self._bytes + len(data) > SINK_BUFFER_BYTES:
                    last.left_out += len(data)
                    return
                if not last.left_out and len(last.data) + len(data) <= MERGE_BYTES:
                    last.data += data
                    self._bytes += len(data)
                    return
            if len(self._queue) >= SINK_BUFFER_EVENTS and isinstance(last.data, str):
                last.left_out += len(data)
                return
        waiting = _Waiting(type_, data, phase)
        if isinstance(data, str):
            if self._bytes + len(data) > SINK_BUFFER_BYTES:
                waiting.data, waiting.left_out = "", len(data)
            else:
                self._bytes += len(data)
        self._queue.append(waiting)
        self._arrived.set()

    def close(self) -> None:
        self._closing = True
        self._arrived.set()

    async def run(self) -> None:
        while True:
            await self._arrived.wait()
            while self._queue:
                await self._deliver(self._queue.popleft())
            if self._closing:
                return
            self._arrived.clear()

    async def _deliver(self, waiting: _Waiting) -> None:
        data = waiting.data
        if isinstance(data, str):
            self._bytes -= len(data)
            if waiting.left_out:
                data += (
                    f"\n[{waiting.left_out} characters not shown here: the listener is too slow; the result has them]\n"
                )
        self._seq += 1
        event = Event(
            type=waiting.type,
            data=data,
            seq=self._seq,
            at=waiting.at,
            run_id=self._run_id,
            thread_id=self._thread_id,
            phase=waiting.phase,
        )
        try:
            answer = self._sink(event)
            if inspect.isawaitable(answer):
                await answer
            else:
                await asyncio.sleep(0)
        except Exception:
            if not self._failed:
                logger.warning(
                    "an event sink raised; the run goes on and later events are still offered", exc_info=True
                )
            self._failed = True


class EventStream:
    """Numbers the events of one run and hands them to its sinks.

    Use as an async context manager: leaving it delivers what waits, for at most ``FLUSH_SECONDS``.

    Args:
        run_id: The run.
        thread_id: The conversation.
        sinks: Where events go. Each has its own queue, so a slow one delays nobody else.
    """

    def __init__(self, *, run_id: str, thread_id: str, sinks: Sequence[Sink] = ()) -> None:
        self._pumps = [_Pump(sink, run_id, thread_id) for sink in sinks]
        self._tasks: list[asyncio.Task[None]] = []

    def emit(self, type: str, data: JsonValue, *, phase: str | None = None) -> None:
        """Queues an event for every sink; never blocks and never raises for a sink's sake."""
        for pump in self._pumps:
            pump.put(type, data, phase)

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(pump.run(), name="event sink") for pump in self._pumps]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pump in self._pumps:
            pump.close()
        if not self._tasks:
            return
        try:
            _, late = await asyncio.wait(self._tasks, timeout=FLUSH_SECONDS)
        except asyncio.CancelledError:
            late = set(self._tasks)
            raise
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if late:
            logger.warning("%d event sink(s) did not take the last events within %g s", len(late), FLUSH_SECONDS)
