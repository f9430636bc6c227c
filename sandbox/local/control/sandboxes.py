"""Sandboxes: what is asked of them, carried out by the table in ``states``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from ..runtime.errors import RuntimeFault
from ..wire_errors import WireError
from .boxes import Boxes, RunningToolbox
from .builds import Builds
from .clock import Clock
from .live_events import LiveEvents
from .network import network_policy
from .records import BuildRecord, BuildState, NetworkSettings, SandboxRecord
from .states import (
    AFTER_RESTART,
    AT_REST,
    BUILD,
    CREATE,
    DECISIONS,
    DESTROY,
    Already,
    DesiredState,
    Move,
    Refusal,
    SandboxState,
    Verb,
)
from .store import Store
from .transitions import BuildOfSandboxFailedError, Transitions

_log = logging.getLogger(__name__)

OCCUPYING = frozenset(
    {SandboxState.CREATING, SandboxState.STARTING, SandboxState.RESTORING, SandboxState.STARTED, SandboxState.STOPPING}
)
"""States in which a sandbox uses memory, or is about to."""


class Sandboxes:
    """All sandboxes of one platform.

    Args:
        store: Where they are remembered.
        boxes: Their running halves.
        builds: Images made for a single sandbox.
        events: Told of every change, after it is visible.
        clock: The time.
        view: Renders a sandbox for an event.
        hold_seconds: How long create and start wait for the sandbox.
        max_sandboxes: How many may exist.
        total_memory_gib: Memory of all running ones together; ``None`` for no limit.
    """

    def __init__(
        self,
        *,
        store: Store,
        boxes: Boxes,
        builds: Builds,
        events: LiveEvents,
        clock: Clock,
        view: Callable[[SandboxRecord], dict[str, Any]],
        hold_seconds: float,
        max_sandboxes: int,
        total_memory_gib: int | None,
    ) -> None:
        self._store = store
        self._boxes = boxes
        self._builds = builds
        self._clock = clock
        self._view = view
        self._hold_seconds = hold_seconds
        self._max_sandboxes = max_sandboxes
        self._total_memory_gib = total_memory_gib
        self._records: dict[str, SandboxRecord] = {}
        self._active: set[str] = set()
        self._transitions = Transitions(
            store=store, boxes=boxes, events=events, clock=clock, view=view, on_destroyed=self._forget
        )

    # --- what there is -------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Reads the sandboxes on file. Nothing of them runs any more; files without a record are deleted."""
        for record in await self._store.sandboxes():
            old, record.state = record.state, AFTER_RESTART[record.state]
            if old is SandboxState.STARTED and record.ephemeral:
                record.state = SandboxState.DESTROYED
            if record.state is SandboxState.DESTROYED:
                await self._store.remove(record)
                continue
            if record.state is SandboxState.BUILD_FAILED and old is not record.state:
                record.error_reason = "interrupted: the platform ended while the image was being built"
            if record.state is not old:
                _log.info("sandbox %s was %s and is now %s", record.name, old, record.state)
                if record.state in (SandboxState.STOPPED, SandboxState.ARCHIVED):
                    record.desired_state = DesiredState(record.state.value)
                record.updated_at = record.last_activity_at = self._clock.now()
                await self._store.save(record)
            self._records[record.id] = record
        for sandbox_id in set(self._boxes.on_disk()) - self._records.keys():
            _log.info("deleting files that belong to no sandbox: %s", sandbox_id)
            await self._boxes.remove(sandbox_id)

    def all(self) -> Iterable[SandboxRecord]:
        """Returns every sandbox."""
        return self._records.values()

    def get(self, id_or_name: str) -> SandboxRecord:
        """Returns a sandbox by id or name.

        Raises:
            WireError: 404, there is none.
        """
        found = self._records.get(id_or_name)
        if found is None:
            found = next((record for record in self._records.values() if record.name == id_or_name), None)
        if found is None or not found.visible:
            raise WireError(404, f"there is no sandbox {id_or_name!r}")
        return found

    def uses_build(self, build_id: str) -> bool:
        """True if a sandbox stands on the build."""
        return any(record.build_id == build_id or build_id in record.recipe.layers for record in self._records.values())

    def toolbox(self, sandbox_id: str) -> RunningToolbox:
        """Returns the toolbox of a sandbox and counts the call as activity.

        Raises:
            WireError: 404, there is no such sandbox; 400, it does not run.
        """
        record = self._records.get(sandbox_id)
        if record is None or not record.visible:
            raise WireError(404, f"there is no sandbox {sandbox_id!r}", source="DAYTONA_PROXY")
        toolbox = self._boxes.toolbox(record.id)
        if toolbox is None or record.state is not SandboxState.STARTED:
            raise WireError(
                400,
                f"the sandbox is {record.state}: is it started?",
                code="SANDBOX_NOT_STARTED",
                source="DAYTONA_PROXY",
            )
        self.active(record.id)
        return toolbox

    def active(self, sandbox_id: str) -> None:
        """Notes activity; written to the file by the janitor's next round."""
        record = self._records.get(sandbox_id)
        if record is not None:
            record.last_activity_at = self._clock.now()
            self._active.add(sandbox_id)

    async def save_activity(self) -> None:
        """Writes the activity noted since the last call."""
        ids, self._active = self._active, set()
        records = [self._records[sandbox_id] for sandbox_id in ids if sandbox_id in self._records]
        if records:
            await self._store.save(*records)

    # --- creating ------------------------------------------------------------------------------------------------

    async def create(self, record: SandboxRecord, *, build: BuildRecord | None = None) -> dict[str, Any]:
        """Adds a new sandbox and waits until it runs, but not longer than the holding time.

        Args:
            record: The sandbox, complete but for its state and what the build gives it.
            build: The image it is made from, if not from a snapshot; while it is being built the call does not wait.

        Returns:
            The answer. For one whose image is being built it says ``pending_build`` even if the build has begun: only
            then does the SDK show the log of the build.

        Raises:
            WireError: 409, the name is taken; 400, no room, or the start failed within the holding time.
        """
        if any(other.name == record.name for other in self._records.values()):
            raise WireError(409, f"a sandbox named {record.name!r} exists already")
        if len(self._records) >= self._max_sandboxes:
            raise WireError(400, f"there are {self._max_sandboxes} sandboxes already (UOM_MAX_SANDBOXES): delete some")
        self._check_room(record)
        record.build_id = build.id if build is not None else None
        self._records[record.id] = record
        if build is not None and build.state is BuildState.BUILDING:
            record.state = BUILD.via
            answer = self._view(record)
            operation = self._transitions.begin(record, BUILD, lambda: self._build_then_start(record, build))
            await operation.announced.wait()
            return answer
        if build is not None:
            record.recipe = build.recipe
        record.state = CREATE.via
        await self._run(record, CREATE)
        return self._view(record)

    async def _build_then_start(self, record: SandboxRecord, build: BuildRecord) -> None:
        await self._transitions.move_on(record, SandboxState.BUILDING_SNAPSHOT)
        await self._builds.wait(build)
        if build.state is not BuildState.ACTIVE:
            raise BuildOfSandboxFailedError(build.reason or "the build failed")
        record.recipe = build.recipe
        await self._transitions.move_on(record, SandboxState.CREATING)
        await self._boxes.start(record)

    # --- verbs ---------------------------------------------------------------------------------------------------

    async def start(self, record: SandboxRecord) -> None:
        """Starts a sandbox and waits for it, but not longer than the holding time.

        Raises:
            WireError: As the table says; 400 if the start failed within the holding time.
        """
        move = self._decide(Verb.START, record)
        if move is not None:
            self._check_room(record)
            await self._run(record, move)

    async def stop(self, record: SandboxRecord, *, force: bool = False) -> None:
        """Begins to stop a sandbox; an ephemeral one is destroyed.

        Raises:
            WireError: As the table says.
        """
        move = self._decide(Verb.STOP, record)
        if move is None:
            return
        if record.ephemeral:
            await self._destroy(record, DESTROY, force=force)
            return
        operation = self._transitions.begin(record, move, lambda: self._boxes.stop(record.id, force=force))
        await operation.announced.wait()

    async def delete(self, record: SandboxRecord) -> None:
        """Begins to destroy a sandbox; its name is free when this returns.

        Raises:
            WireError: As the table says.
        """
        move = self._decide(Verb.DELETE, record)
        if move is not None:
            await self._destroy(record, move, force=True)

    async def archive(self, record: SandboxRecord) -> None:
        """Archives a stopped sandbox; its files stay where they are.

        Raises:
            WireError: As the table says; 400 for an ephemeral one.
        """
        move = self._decide(Verb.ARCHIVE, record)
        if record.ephemeral:
            raise WireError(400, "an ephemeral sandbox cannot be archived")
        if move is not None:
            await self._transitions.begin(record, move, _nothing).announced.wait()

    async def recover(self, record: SandboxRecord, *, skip_start: bool = False) -> None:
        """Brings a sandbox back from ``error``.

        Args:
            record: The sandbox.
            skip_start: True leaves it stopped.

        Raises:
            WireError: As the table says; 400 if it is not recoverable or does not start within the holding time.
        """
        move = self._decide(Verb.RECOVER, record)
        if move is None:
            return
        if not record.recoverable:
            raise WireError(
                400, f"the sandbox cannot be recovered: {record.error_reason}; delete it and create it again"
            )
        if not skip_start:
            self._check_room(record)
        record.error_reason, record.recoverable = None, False
        if skip_start:
            record.desired_state = DesiredState.STOPPED
            await self._transitions.move_on(record, SandboxState.STOPPED)
        else:
            await self._run(record, move)

    async def resize(self, record: SandboxRecord, *, cpu: int, memory: int, disk: int) -> None:
        """Changes the size of a stopped sandbox, valid from its next start; memory and disk in GiB.

        Raises:
            WireError: As the table says; 400 if the disk would shrink or nothing changes.
        """
        move = self._decide(Verb.RESIZE, record)
        if disk < record.disk:
            raise WireError(400, f"disk: it can only grow, from {record.disk} GiB")
        if (cpu, memory, disk) == (record.cpu, record.memory, record.disk):
            raise WireError(400, "the sandbox has that size already")
        if move is not None:
            record.cpu, record.memory, record.disk = cpu, memory, disk
            await self.changed(record)

    def refuse(self, verb: Verb, record: SandboxRecord) -> None:
        """Answers a verb that this platform never carries out.

        Raises:
            WireError: As the table says.
        """
        self._decide(verb, record)

    async def set_network(self, record: SandboxRecord, settings: NetworkSettings) -> None:
        """Changes what a sandbox may reach, at once if it runs.

        Raises:
            WireError: 502, the running box could not be told; the old settings stay.
        """
        try:
            await self._boxes.set_network(record.id, network_policy(settings))
        except RuntimeFault as error:
            raise WireError(502, f"the network of the running sandbox could not be changed: {error}") from error
        record.network = settings
        await self.changed(record)

    async def changed(self, record: SandboxRecord) -> None:
        """Writes a change of anything but the state."""
        record.updated_at = record.last_activity_at = self._clock.now()
        await self._store.save(record)

    # --- what happens unasked ------------------------------------------------------------------------------------

    def box_lost(self, sandbox_id: str, reason: str) -> None:
        """Takes note that the box of a started sandbox has ended by itself."""
        record = self._records.get(sandbox_id)
        if record is None or record.state is not SandboxState.STARTED:
            return
        _log.warning("sandbox %s lost its box: %s", record.name, reason)
        record.error_reason, record.recoverable = f"the sandbox ended unexpectedly: {reason}", True
        self._transitions.notice(record, SandboxState.ERROR)

    async def close(self) -> None:
        """Ends everything under way and stops what runs; the files stay, but those of ephemeral sandboxes."""
        await self._transitions.close()
        await self._boxes.close(force=False)
        for record in list(self._records.values()):
            if record.state is not SandboxState.STARTED:
                continue
            if record.ephemeral:
                await self._boxes.remove(record.id)
                await self._store.remove(record)
            else:
                record.state, record.desired_state = SandboxState.STOPPED, DesiredState.STOPPED
                await self._store.save(record)
        await self.save_activity()

    # --- inside --------------------------------------------------------------------------------------------------

    def _decide(self, verb: Verb, record: SandboxRecord) -> Move | None:
        match DECISIONS[verb][record.state]:
            case Move() as move:
                return move
            case Already():
                return None
            case Refusal(status, message):
                raise WireError(status, message.format(state=record.state.value))

    def _check_room(self, record: SandboxRecord) -> None:
        limit = self._total_memory_gib
        if limit is None:
            return
        used = sum(other.memory for other in self._records.values() if other.state in OCCUPYING and other is not record)
        if used + record.memory > limit:
            raise WireError(
                400,
                f"memory: {record.memory} GiB more would exceed the {limit} GiB for all running sandboxes "
                f"(UOM_TOTAL_MEMORY_GIB), of which {used} are taken: stop or delete another one first",
            )

    async def _run(self, record: SandboxRecord, move: Move) -> None:
        operation = self._transitions.begin(record, move, lambda: self._boxes.start(record))
        await operation.wait(self._hold_seconds)
        if record.state is SandboxState.ERROR:
            raise WireError(400, f"the sandbox did not start: {record.error_reason}", code="SANDBOX_START_FAILED")

    async def _destroy(self, record: SandboxRecord, move: Move, *, force: bool) -> None:
        if record.desired_state is not DesiredState.DESTROYED:
            record.name = f"DESTROYED_{record.name}_{int(self._clock.now() * 1000)}"
        pending = record.state not in AT_REST
        record.state, record.desired_state = move.via, move.desired
        if pending:
            await self._transitions.cancel(record.id)
        operation = self._transitions.begin(record, move, lambda: self._remove(record, force=force))
        await operation.announced.wait()

    async def _remove(self, record: SandboxRecord, *, force: bool) -> None:
        await self._boxes.stop(record.id, force=force)
        await self._boxes.remove(record.id)

    async def _forget(self, record: SandboxRecord) -> None:
        await self._store.remove(record)
        self._records.pop(record.id, None)
        for build_id in {*record.recipe.layers, *([record.build_id] if record.build_id else [])}:
            await self._builds.release(build_id)


async def _nothing() -> None:
    return
