"""Which states a sandbox has, and what each verb does in each of them: one table.

States, answers and statuses follow Daytona's server (release 0.190) and the enumeration of the ``daytona`` SDK 0.226.1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class SandboxState(StrEnum):
    """State of a sandbox, as the SDK enumerates them."""

    CREATING = "creating"
    RESTORING = "restoring"
    DESTROYED = "destroyed"
    DESTROYING = "destroying"
    STARTED = "started"
    STOPPED = "stopped"
    STARTING = "starting"
    STOPPING = "stopping"
    ERROR = "error"
    BUILD_FAILED = "build_failed"
    PENDING_BUILD = "pending_build"
    BUILDING_SNAPSHOT = "building_snapshot"
    UNKNOWN = "unknown"
    PULLING_SNAPSHOT = "pulling_snapshot"
    ARCHIVED = "archived"
    ARCHIVING = "archiving"
    RESIZING = "resizing"
    SNAPSHOTTING = "snapshotting"
    FORKING = "forking"
    PAUSED = "paused"
    PAUSING = "pausing"
    RESUMING = "resuming"


class DesiredState(StrEnum):
    """Where a sandbox is meant to arrive."""

    STARTED = "started"
    STOPPED = "stopped"
    ARCHIVED = "archived"
    DESTROYED = "destroyed"


class SnapshotState(StrEnum):
    """State of a snapshot, as the SDK enumerates them."""

    BUILDING = "building"
    PENDING = "pending"
    PULLING = "pulling"
    ACTIVE = "active"
    INACTIVE = "inactive"
    ERROR = "error"
    BUILD_FAILED = "build_failed"
    REMOVING = "removing"


class Verb(StrEnum):
    """What can be asked of a sandbox."""

    START = "start"
    STOP = "stop"
    DELETE = "delete"
    ARCHIVE = "archive"
    RECOVER = "recover"
    RESIZE = "resize"
    PAUSE = "pause"


S = SandboxState

AT_REST = frozenset({S.STARTED, S.STOPPED, S.ARCHIVED, S.PAUSED, S.DESTROYED, S.ERROR, S.BUILD_FAILED})
"""States in which nothing is under way; every other one is a transition."""

DEADLINES: Mapping[SandboxState, float] = MappingProxyType(
    {
        S.UNKNOWN: 60.0,
        S.PENDING_BUILD: 7200.0,
        S.BUILDING_SNAPSHOT: 7200.0,
        S.PULLING_SNAPSHOT: 7200.0,
        S.CREATING: 120.0,
        S.STARTING: 120.0,
        S.RESTORING: 120.0,
        S.STOPPING: 60.0,
        S.ARCHIVING: 60.0,
        S.DESTROYING: 120.0,
        S.RESIZING: 60.0,
        S.SNAPSHOTTING: 600.0,
        S.FORKING: 120.0,
        S.PAUSING: 60.0,
        S.RESUMING: 60.0,
    }
)
"""Seconds a transition may take before the sandbox ends in ``error``; a build has its own limit inside this one."""


@dataclass(frozen=True, slots=True)
class Move:
    """The verb is carried out: through ``via`` to ``to``."""

    via: SandboxState
    to: SandboxState
    desired: DesiredState


@dataclass(frozen=True, slots=True)
class Already:
    """There is nothing to do; the verb is answered as if it had been done."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The verb is not possible; ``message`` is a template with ``{state}``."""

    status: int
    message: str


Decision = Move | Already | Refusal

BUSY = Refusal(409, "the sandbox is {state}: another operation is in progress, try again when it has ended")
START = Move(S.STARTING, S.STARTED, DesiredState.STARTED)
RESTORE = Move(S.RESTORING, S.STARTED, DesiredState.STARTED)
STOP = Move(S.STOPPING, S.STOPPED, DesiredState.STOPPED)
DESTROY = Move(S.DESTROYING, S.DESTROYED, DesiredState.DESTROYED)
ARCHIVE = Move(S.ARCHIVING, S.ARCHIVED, DesiredState.ARCHIVED)
RECOVER = Move(S.STARTING, S.STARTED, DesiredState.STARTED)
CREATE = Move(S.CREATING, S.STARTED, DesiredState.STARTED)
BUILD = Move(S.PENDING_BUILD, S.STARTED, DesiredState.STARTED)
RESIZE = Move(S.RESIZING, S.STOPPED, DesiredState.STOPPED)


def _row(moves: Mapping[SandboxState, Decision], *, otherwise: str) -> Mapping[SandboxState, Decision]:
    fallback = Refusal(400, otherwise)
    return MappingProxyType({state: moves.get(state, fallback if state in AT_REST else BUSY) for state in SandboxState})


def _same(states: Collection[SandboxState], move: Move) -> dict[SandboxState, Decision]:
    return dict.fromkeys(states, move)


DECISIONS: Mapping[Verb, Mapping[SandboxState, Decision]] = MappingProxyType(
    {
        Verb.START: _row(
            {
                S.STARTED: Already(),
                S.STOPPED: START,
                S.ARCHIVED: RESTORE,
                S.PAUSED: Refusal(422, "sandboxes of the container class cannot be paused or resumed"),
                S.ERROR: Refusal(400, "the sandbox is in state error: recover it, or delete it and create it again"),
                S.BUILD_FAILED: Refusal(400, "the sandbox's image could not be built: delete it and create it again"),
            },
            otherwise="a sandbox that is {state} cannot be started",
        ),
        Verb.STOP: _row(
            {S.STARTED: STOP, S.STOPPED: Refusal(400, "the sandbox is not started: it is stopped already")},
            otherwise="the sandbox is not started: it is {state}",
        ),
        Verb.DELETE: _row(
            _same({S.STARTED, S.STOPPED, S.ARCHIVED, S.PAUSED, S.ERROR, S.BUILD_FAILED, S.PENDING_BUILD}, DESTROY),
            otherwise="a sandbox that is {state} cannot be deleted",
        ),
        Verb.ARCHIVE: _row({S.STOPPED: ARCHIVE}, otherwise="stop the sandbox before archiving it: it is {state}"),
        Verb.RECOVER: _row(
            {S.ERROR: RECOVER}, otherwise="only a sandbox in state error can be recovered: it is {state}"
        ),
        Verb.RESIZE: _row(
            {
                S.STOPPED: RESIZE,
                S.STARTED: Refusal(400, "the local platform changes the size of stopped sandboxes only: stop it first"),
            },
            otherwise="stop the sandbox before resizing it: it is {state}",
        ),
        Verb.PAUSE: _row(
            {S.STARTED: Refusal(422, "sandboxes of the container class cannot be paused: stop it instead")},
            otherwise="only a started sandbox can be paused: it is {state}",
        ),
    }
)
"""For every verb and every state what happens. Transitions answer 409 unless a row says otherwise."""

AFTER_RESTART: Mapping[SandboxState, SandboxState] = MappingProxyType(
    {
        S.UNKNOWN: S.STOPPED,
        S.CREATING: S.STOPPED,
        S.STARTED: S.STOPPED,
        S.STARTING: S.STOPPED,
        S.RESTORING: S.STOPPED,
        S.RESUMING: S.STOPPED,
        S.STOPPING: S.STOPPED,
        S.RESIZING: S.STOPPED,
        S.SNAPSHOTTING: S.STOPPED,
        S.FORKING: S.STOPPED,
        S.PAUSING: S.STOPPED,
        S.PAUSED: S.STOPPED,
        S.ARCHIVING: S.ARCHIVED,
        S.PENDING_BUILD: S.BUILD_FAILED,
        S.BUILDING_SNAPSHOT: S.BUILD_FAILED,
        S.PULLING_SNAPSHOT: S.BUILD_FAILED,
        S.DESTROYING: S.DESTROYED,
        S.DESTROYED: S.DESTROYED,
        S.STOPPED: S.STOPPED,
        S.ARCHIVED: S.ARCHIVED,
        S.ERROR: S.ERROR,
        S.BUILD_FAILED: S.BUILD_FAILED,
    }
)
"""What a state becomes when the platform that knew it has gone: no process of a box outlives the platform."""
