"""What to do with a sandbox in some state: one table, a row for every member of the SDK's ``SandboxState``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from daytona import SandboxState


class Action(StrEnum):
    """What brings a sandbox nearer to "started, and its toolbox answers"."""

    CREATE = "create it from the snapshot"
    USE = "use it; opening the session is the probe"
    START = "start it"
    WAIT = "wait for what follows"
    REVIVE = "recover it if the platform can, else replace it"
    WAIT_GONE = "wait until it is gone, then create"
    READ_AGAIN = "read again, then replace it"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table.

    Attributes:
        action: What to do.
        seconds: How long the sandbox may stay in the state, or the action may take, before it counts as stuck.
    """

    action: Action
    seconds: float


START_SECONDS: Final = 180.0
CREATE_SECONDS: Final = 300.0

STATES: Final[Mapping[SandboxState, Row]] = {
    SandboxState.DESTROYED: Row(Action.CREATE, CREATE_SECONDS),
    SandboxState.STARTED: Row(Action.USE, 0.0),
    SandboxState.STOPPED: Row(Action.START, START_SECONDS),
    SandboxState.PAUSED: Row(Action.START, START_SECONDS),
    SandboxState.ARCHIVED: Row(Action.START, 1800.0),
    SandboxState.STOPPING: Row(Action.WAIT, 120.0),
    SandboxState.PAUSING: Row(Action.WAIT, 120.0),
    SandboxState.ARCHIVING: Row(Action.WAIT, 900.0),
    SandboxState.CREATING: Row(Action.WAIT, CREATE_SECONDS),
    SandboxState.STARTING: Row(Action.WAIT, START_SECONDS),
    SandboxState.RESUMING: Row(Action.WAIT, START_SECONDS),
    SandboxState.RESTORING: Row(Action.WAIT, 1800.0),
    SandboxState.RESIZING: Row(Action.WAIT, 300.0),
    SandboxState.SNAPSHOTTING: Row(Action.WAIT, 900.0),
    SandboxState.FORKING: Row(Action.WAIT, 300.0),
    SandboxState.PENDING_BUILD: Row(Action.WAIT, 300.0),
    SandboxState.BUILDING_SNAPSHOT: Row(Action.WAIT, 1800.0),
    SandboxState.PULLING_SNAPSHOT: Row(Action.WAIT, 1800.0),
    SandboxState.ERROR: Row(Action.REVIVE, START_SECONDS),
    SandboxState.BUILD_FAILED: Row(Action.REVIVE, START_SECONDS),
    SandboxState.DESTROYING: Row(Action.WAIT_GONE, 300.0),
    SandboxState.UNKNOWN: Row(Action.READ_AGAIN, 30.0),
    SandboxState.UNKNOWN_DEFAULT_OPEN_API: Row(Action.READ_AGAIN, 30.0),
}

ABSENT: Final = Row(Action.CREATE, CREATE_SECONDS)
"""There is no sandbox of the name: a real 404."""


def sandbox_state(raw: object) -> SandboxState:
    """Returns the member for a state as the SDK, the wire or a test gives it; unknown words have their own member.

    The SDK has two enumerations of the same states; comparing or printing their members mixes them up.
    """
    return SandboxState(getattr(raw, "value", raw)) if raw is not None else SandboxState.UNKNOWN
