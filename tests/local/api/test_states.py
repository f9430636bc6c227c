"""The table of states is complete and agrees with the SDK's enumerations."""

from __future__ import annotations

import daytona_api_client_async as wire
import pytest

from sandbox.local.control.states import (
    AFTER_RESTART,
    AT_REST,
    DEADLINES,
    DECISIONS,
    Already,
    Move,
    Refusal,
    SandboxState,
    SnapshotState,
    Verb,
)


def known(enumeration: type) -> set[str]:
    return {member.value for member in enumeration} - {"unknown_default_open_api"}  # type: ignore[attr-defined]


def test_every_state_of_the_sdk_has_a_name_here() -> None:
    assert {state.value for state in SandboxState} == known(wire.SandboxState)
    assert {state.value for state in SnapshotState} >= known(wire.SnapshotState) - {"snapshotting"}


@pytest.mark.parametrize("verb", list(Verb))
def test_every_verb_has_an_answer_in_every_state(verb: Verb) -> None:
    assert set(DECISIONS[verb]) == set(SandboxState)
    for state, decision in DECISIONS[verb].items():
        match decision:
            case Move(via, to, _desired):
                assert state in AT_REST or (verb, state) == (Verb.DELETE, SandboxState.PENDING_BUILD)
                assert via in DEADLINES
                assert to in AT_REST
            case Refusal(status, message):
                assert status in (400, 409, 422)
                assert message.format(state=state.value)
            case Already():
                assert (verb, state) == (Verb.START, SandboxState.STARTED)


def test_every_transition_has_a_deadline_and_an_end_after_a_restart() -> None:
    assert set(DEADLINES) == set(SandboxState) - AT_REST
    assert set(AFTER_RESTART) == set(SandboxState)
    assert set(AFTER_RESTART.values()) <= AT_REST


@pytest.mark.parametrize(
    ("verb", "state", "status"),
    [
        (Verb.STOP, SandboxState.STOPPED, 400),
        (Verb.STOP, SandboxState.STOPPING, 409),
        (Verb.START, SandboxState.ERROR, 400),
        (Verb.START, SandboxState.PAUSED, 422),
        (Verb.DELETE, SandboxState.DESTROYING, 409),
        (Verb.DELETE, SandboxState.STARTING, 409),
        (Verb.ARCHIVE, SandboxState.STARTED, 400),
        (Verb.RECOVER, SandboxState.STOPPED, 400),
        (Verb.PAUSE, SandboxState.STARTED, 422),
    ],
)
def test_the_answers_that_surprise(verb: Verb, state: SandboxState, status: int) -> None:
    decision = DECISIONS[verb][state]
    assert isinstance(decision, Refusal)
    assert decision.status == status
