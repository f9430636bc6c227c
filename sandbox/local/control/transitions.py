"""Carries a sandbox from one state of rest to the next: with a deadline, and each step on file and told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ..runtime.errors import RuntimeFault
from .boxes import Boxes
from .clock import Clock
from .live_events import LiveEvents
from .records import SandboxRecord
from .shielding import carried_through
from .states import DEADLINES, Move, SandboxState
from .store import Store

_log = logging.getLogger(__name__)

NEW = frozenset({SandboxState.CREATING, SandboxState.PENDING_BUILD})

RECOVERABLE_AFTER = frozenset({SandboxState.STARTING, SandboxState.RESTORING, SandboxState.STOPPING})
"""Transitions after whose failure the files are whole, so that starting again can help."""


class BuildOfSandboxFailedError(Exception):
    """The image a sandbox was to be made from could not be built."""


@dataclass(slots=True)
class Operation:
    """A transition under way; ``announced`` is set when its first state is on file and told."""

    announced: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    async def wait(self, seconds: float) -> None:
        """Waits for the end of the transition, at most ``seconds``."""
        if self.task is not None:
            await asyncio.wait({self.task}, timeout=seconds)


class Transitions:
    """All transitions under way.

    Args:
        store: Where records are kept.
        boxes: What is stopped when a transition fails.
        events: Told of every state, after it is visible.
        clock: The time.
        view: Renders a sandbox for an event.
        on_destroyed: Called when a sandbox has reached ``destroyed``.
    """

    def __init__(
        self,
        *,
        store: Store,
        boxes: Boxes,
        events: LiveEvents,
        clock: Clock,
        view: Callable[[SandboxRecord], dict[str, Any]],
        on_destroyed: Callable[[SandboxRecord], Awaitable[None]],
    ) -> None:
        self._store = store
        self._boxes = boxes
        self._events = events
        self._clock = clock
        self._view = view
        self._on_destroyed = on_destroyed
        self._operations: dict[str, Operation] = {}
        self._notices: set[asyncio.Task[None]] = set()

    def begin(self, record: SandboxRecord, move: Move, work: Callable[[], Awaitable[None]]) -> Operation:
        """Starts a transition; the record has the new state when this returns, so no second verb comes between.

        Args:
            record: The sandbox.
            move: Where it goes.
            work: What has to be done on the way.
        """
        old = record.state
        record.state, record.desired_state = move.via, move.desired
        operation = Operation()
        self._operations[record.id] = operation
        operation.task = asyncio.create_task(
            self._operate(record, old, move, work, operation), name=f"{move.via} {record.id}"
        )
        return operation

    async def cancel(self, sandbox_id: str) -> None:
        """Ends the transition of a sandbox where it stands; fine if there is none."""
        operation = self._operations.get(sandbox_id)
        if operation is not None and operation.task is not None:
            operation.task.cancel()
            await asyncio.wait({operation.task})

    async def move_on(self, record: SandboxRecord, state: SandboxState) -> None:
        """Shows a further state within a transition."""
        old, record.state = record.state, state
        await self._publish(record, old)

    def notice(self, record: SandboxRecord, state: SandboxState) -> None:
        """Shows a change of state that nobody asked for."""
        old, record.state = record.state, state
        task = asyncio.create_task(self._publish(record, old), name=f"notice {record.id}")
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    async def close(self) -> None:
        """Ends every transition where it stands; the next start of the platform resolves it."""
        tasks = {operation.task for operation in self._operations.values() if operation.task is not None}
        for task in tasks:
            task.cancel()
        tasks |= self._notices
        if tasks:
            await asyncio.wait(tasks)

    async def _operate(
        self,
        record: SandboxRecord,
        old: SandboxState,
        move: Move,
        work: Callable[[], Awaitable[None]],
        operation: Operation,
    ) -> None:
        failure: tuple[SandboxState, str] | None = None
        try:
            await self._publish(record, old)
            operation.announced.set()
            async with asyncio.timeout(DEADLINES[move.via]):
                await work()
        except BuildOfSandboxFailedError as error:
            failure = SandboxState.BUILD_FAILED, str(error)
        except TimeoutError:
            failure = SandboxState.ERROR, f"{record.state} took longer than {DEADLINES[move.via]:g} s"
        except RuntimeFault as error:
            failure = SandboxState.ERROR, str(error)
        except Exception as error:
            _log.exception("sandbox %s: %s failed", record.name, move.via)
            failure = SandboxState.ERROR, f"unexpected {type(error).__name__} in the platform; its log has the details"
        finally:
            operation.announced.set()
            if self._operations.get(record.id) is operation:
                del self._operations[record.id]
        if failure is not None:
            await carried_through(self._boxes.stop(record.id, force=True))
        before = record.state
        if failure is None:
            record.state, record.error_reason, record.recoverable = move.to, None, False
        else:
            record.state, record.error_reason = failure
            record.recoverable = move.via in RECOVERABLE_AFTER
            _log.warning("sandbox %s: %s ended in %s: %s", record.name, move.via, *failure)
        await self._publish(record, before)
        if record.state is SandboxState.DESTROYED:
            await self._on_destroyed(record)

    async def _publish(self, record: SandboxRecord, old: SandboxState) -> None:
        record.updated_at = record.last_activity_at = self._clock.now()
        if record.state is not SandboxState.DESTROYED:
            await self._store.save(record)
        if old is record.state and record.state in NEW:
            self._events.emit("sandbox.created", self._view(record))
            return
        self._events.emit(
            "sandbox.state.updated",
            {"sandbox": self._view(record), "oldState": old.value, "newState": record.state.value},
        )
