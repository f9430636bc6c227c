"""Snapshots: the prepared environments that sandboxes are cloned from.

``ensure_snapshot`` ends with an active snapshot made from the profile's definition, whatever it finds:

====================================  ==============================================================
nothing                               build, with the build log as events
active                                use, if it was made from this definition; else as the profile says
building, pending, pulling, …         wait for it, with its build log as events
error, build_failed                   remove, wait until gone, build
removing                              wait until gone, build
inactive                              activate
unknown                               read again
====================================  ==============================================================

The usual case costs one GET. Everything else happens in turn (see ``build_turn``): one build of a name at a time.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import weakref
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from daytona_api_client_async import SnapshotState

from sandbox.build_log import BuildLog
from sandbox.build_turn import build_turn
from sandbox.errors import BadRequestError, CapacityError, ConfigurationError, SnapshotBuildError
from sandbox.faults import fault, is_conflict, is_missing, translated
from sandbox.heartbeat import Heartbeat
from sandbox.models import SnapshotIdentity
from sandbox.platform_api import bounded, create_snapshot
from sandbox.retry import ATTEMPTS, Deadline, Pace, read_patiently

if TYPE_CHECKING:
    from daytona import AsyncDaytona
    from daytona.common.snapshot import Snapshot

    from sandbox.events import EventStream
    from sandbox.profiles import Profile

STEP: Final = "ensure_snapshot"
PENDING_SECONDS: Final = 300.0
"""Longest wait for a builder; beyond it the platform has no room."""

GONE_SECONDS: Final = 300.0
"""Longest wait until a removed snapshot is gone and its name free."""

_ROUNDS: Final = 12


class Action(StrEnum):
    """What to do with a snapshot in some state."""

    USE = "use"
    WAIT = "wait"
    REMOVE = "remove"
    WAIT_GONE = "wait until gone"
    ACTIVATE = "activate"
    READ_AGAIN = "read again"


ACTIONS: Final[Mapping[SnapshotState, Action]] = {
    SnapshotState.ACTIVE: Action.USE,
    SnapshotState.PENDING: Action.WAIT,
    SnapshotState.BUILDING: Action.WAIT,
    SnapshotState.PULLING: Action.WAIT,
    SnapshotState.SNAPSHOTTING: Action.WAIT,
    SnapshotState.ERROR: Action.REMOVE,
    SnapshotState.BUILD_FAILED: Action.REMOVE,
    SnapshotState.REMOVING: Action.WAIT_GONE,
    SnapshotState.INACTIVE: Action.ACTIVATE,
    SnapshotState.UNKNOWN_DEFAULT_OPEN_API: Action.READ_AGAIN,
}

_Failures = dict[tuple[str, str, str], tuple[float, SnapshotBuildError]]
_failures: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Failures] = weakref.WeakKeyDictionary()


def snapshot_state(raw: object) -> SnapshotState:
    """Returns the member for a state as the SDK, the wire or a test gives it; unknown words have their own member."""
    return SnapshotState(getattr(raw, "value", raw))


async def ensure_snapshot(
    client: AsyncDaytona, profile: Profile, *, events: EventStream, environment: Mapping[str, str] | None = None
) -> SnapshotIdentity:
    """Makes one attempt to end with an active snapshot of the profile.

    Args:
        client: The platform.
        profile: Whose snapshot.
        events: Told of states and of the lines of the build log.
        environment: Where the definition's variables come from; the process's environment by default.

    Raises:
        SnapshotBuildError: The build failed; carries the end of its log.
        ConfigurationError: The snapshot was made from another definition and the profile refuses it.
        WaitTimeoutError: It took longer than ``profile.snapshot_timeout_seconds``.
        CapacityError: No builder became free in time.
        SandboxError: What the platform answered otherwise.
    """
    work = _Work(client, profile, events, os.environ if environment is None else environment)
    snapshot = await work.read()
    if snapshot is not None and snapshot_state(snapshot.state) is SnapshotState.ACTIVE and work.acceptable(snapshot):
        return work.identity(snapshot)
    return await work.prepare()


class _Work:
    """One attempt."""

    def __init__(
        self, client: AsyncDaytona, profile: Profile, events: EventStream, environment: Mapping[str, str]
    ) -> None:
        self.client = client
        self.profile = profile
        self.events = events
        self.name = profile.snapshot_name
        self.dockerfile = profile.dockerfile(environment)
        self.asked = Deadline(None)
        self.built = False
        self.removed_for_definition = False
        self.refusals = 0
        self.activation = Pace(0.05, longest=2.0, factor=2)

    async def read(self) -> Snapshot | None:
        try:
            return await bounded(self.client.snapshot.get(self.name))
        except Exception as error:
            if is_missing(error):
                return None
            with translated(STEP, sandbox=self.name):
                raise

    def identity(self, snapshot: Snapshot) -> SnapshotIdentity:
        text = _definition(snapshot)
        return SnapshotIdentity(
            snapshot_id=snapshot.id,
            snapshot_name=snapshot.name,
            definition=None if text is None else hashlib.sha256(text.encode()).hexdigest(),
            built=self.built,
        )

    def acceptable(self, snapshot: Snapshot) -> bool:
        """True if the snapshot may be used as it is; raises when the profile refuses it."""
        if self.profile.on_definition_change == "use" or self._matches(snapshot):
            return True
        if self.profile.on_definition_change == "refuse":
            raise ConfigurationError(
                f"the snapshot {self.name} was made from another definition than the profile {self.profile.name!r} has",
                field="on_definition_change",
                remedy="Set it to `rebuild` or `use`, or delete the snapshot.",
            )
        return False

    def _matches(self, snapshot: Snapshot) -> bool:
        text = _definition(snapshot)
        if text is not None and text.strip() != self.dockerfile.strip():
            return False
        # Sandboxes inherit the snapshot's share of the machine, so it is part of the definition.
        wanted = self.profile.resources
        return (snapshot.cpu, snapshot.mem, snapshot.disk) == (wanted.cpu, wanted.memory, wanted.disk)

    async def prepare(self) -> SnapshotIdentity:
        limit = self.profile.snapshot_timeout_seconds
        async with Heartbeat(self.events, subject="snapshot", name=self.name, limit=limit) as beat:
            platform = str(self.client._api_url)
            async with build_turn(platform, self.name, beat):
                self._raise_shared_failure()
                try:
                    return await self._rounds(beat)
                except SnapshotBuildError as error:
                    self._share_failure(error)
                    raise

    async def _rounds(self, beat: Heartbeat) -> SnapshotIdentity:
        for _ in range(_ROUNDS):
            if beat.deadline.expired:
                raise beat.timed_out(step=STEP, wanted="active")
            snapshot = await read_patiently(self.read, deadline=beat.deadline)
            if snapshot is None:
                beat.saw("absent")
                await self._build(beat)
                continue
            state = snapshot_state(snapshot.state)
            beat.saw(state.value)
            match ACTIONS[state]:
                case Action.USE:
                    if self.acceptable(snapshot):
                        return self.identity(snapshot)
                    if self.removed_for_definition:
                        raise ConfigurationError(
                            f"somebody else keeps building {self.name} from another definition",
                            field="type",
                            remedy="Give one of the two profiles another type.",
                        )
                    self.removed_for_definition = True
                    await self._remove(snapshot, beat)
                case Action.WAIT:
                    await self._watch(snapshot, beat)
                case Action.REMOVE:
                    await self._remove(snapshot, beat)
                case Action.WAIT_GONE:
                    await self._wait_gone(beat)
                case Action.ACTIVATE:
                    await self._activate(snapshot, beat)
                case Action.READ_AGAIN:
                    await asyncio.sleep(beat.deadline.capped(1.0))
        raise beat.timed_out(step=STEP, wanted="active")

    async def _build(self, beat: Heartbeat) -> None:
        try:
            created = await create_snapshot(
                self.client,
                name=self.name,
                dockerfile=self.dockerfile,
                resources=self.profile.resources,
                region=self.client._target,
            )
        except Exception as error:
            if is_conflict(error):
                return  # somebody on another machine was faster: the next round waits for that build
            with translated(STEP, sandbox=self.name):
                raise
        self.built = True
        beat.saw(snapshot_state(created.state).value)
        if ACTIONS[snapshot_state(created.state)] is not Action.USE:
            await self._watch(created, beat)

    async def _watch(self, snapshot: Snapshot | object, beat: Heartbeat) -> None:
        """Waits until a build has ended, with its log; raises if it has failed."""
        snapshot_id = str(getattr(snapshot, "id", ""))
        pace = Pace(0.05, longest=1.0)
        pending = Deadline(PENDING_SECONDS)
        async with BuildLog(self.client, snapshot_id, events=self.events, language=self.profile.language) as log:
            while True:
                now = await read_patiently(self.read, deadline=beat.deadline)
                if now is None or now.id != snapshot_id:
                    return  # removed under our feet: the next round decides
                state = snapshot_state(now.state)
                beat.saw(state.value)
                action = ACTIONS[state]
                if action is Action.REMOVE:
                    await log.drain()
                    raise SnapshotBuildError(
                        f"the snapshot could not be built: {now.error_reason or 'the platform gives no reason'}",
                        log_tail=log.tail,
                        sandbox=self.name,
                        state=state.value,
                        remedy=f"Do what the log asks for, or correct the set-up of the profile {self.profile.name!r}.",
                    )
                if action is not Action.WAIT:
                    await log.drain()
                    return
                if state is not SnapshotState.PENDING:
                    pending = Deadline(None)
                elif pending.expired:
                    raise CapacityError(
                        f"no builder became free within {PENDING_SECONDS:g} s",
                        step=STEP,
                        sandbox=self.name,
                        state=state.value,
                    )
                if beat.deadline.expired:
                    raise beat.timed_out(step=STEP, wanted="active", remedy="Raise snapshot_timeout_seconds.")
                await asyncio.sleep(beat.deadline.capped(pace.next()))

    async def _remove(self, snapshot: Snapshot, beat: Heartbeat) -> None:
        try:
            await bounded(self.client.snapshot.delete(snapshot))
        except Exception as error:
            if not is_missing(error) and not is_conflict(error):
                with translated(STEP, sandbox=self.name):
                    raise
        await self._wait_gone(beat, snapshot_id=snapshot.id)

    async def _wait_gone(self, beat: Heartbeat, *, snapshot_id: str | None = None) -> None:
        # Removal is asynchronous on the platform; until it is over, the name is taken and a build of it refused.
        pace = Pace(0.02, longest=1.0)
        limit = beat.deadline.sooner(GONE_SECONDS)
        while True:
            now = await read_patiently(self.read, deadline=beat.deadline)
            if now is None or (snapshot_id is not None and now.id != snapshot_id):
                return
            state = snapshot_state(now.state)
            beat.saw(state.value)
            if snapshot_id is None and state is not SnapshotState.REMOVING:
                return
            if limit.expired:
                raise beat.timed_out(step=STEP, wanted="gone")
            await asyncio.sleep(limit.capped(pace.next()))

    async def _activate(self, snapshot: Snapshot, beat: Heartbeat) -> None:
        try:
            await bounded(self.client.snapshot.activate(snapshot))
        except Exception as error:
            self.refusals += 1
            meant = fault(error, step=STEP, sandbox=self.name, state=beat.state)
            refused = is_conflict(error) or isinstance(meant, BadRequestError)
            if meant is None or not refused or self.refusals == ATTEMPTS:
                raise meant or error from error
            # Another worker may have activated it meanwhile: the next reading tells.
        await asyncio.sleep(beat.deadline.capped(self.activation.next()))

    # Twenty callers may wait in turn for one build. When it fails, the others get its error instead of building the
    # same definition again, one after another.

    def _share_failure(self, error: SnapshotBuildError) -> None:
        loop = asyncio.get_running_loop()
        _failures.setdefault(loop, {})[self._identity] = (loop.time(), _fresh(error))

    def _raise_shared_failure(self) -> None:
        loop = asyncio.get_running_loop()
        at, error = _failures.get(loop, {}).get(self._identity, (0.0, None))
        if error is not None and at > loop.time() - self.asked.elapsed:
            raise _fresh(error)

    @property
    def _identity(self) -> tuple[str, str, str]:
        return (str(self.client._api_url), self.name, self.dockerfile)


def _fresh(error: SnapshotBuildError) -> SnapshotBuildError:
    """The same error without the frames of whoever raised it."""
    return SnapshotBuildError(
        error.message, log_tail=error.log_tail, sandbox=error.sandbox, state=error.state, remedy=error.remedy
    )


def _definition(snapshot: Snapshot) -> str | None:
    """The Dockerfile the platform says it was built from; ``None`` when it does not say."""
    return snapshot.build_info.dockerfile_content if snapshot.build_info is not None else None
