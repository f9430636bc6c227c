"""Every state of a snapshot, shown by a real platform: for a while, and for ever."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from daytona import AsyncDaytona
from daytona.common.snapshot import Snapshot
from daytona_api_client_async import SnapshotState
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sandbox.heartbeat as heartbeat
import sandbox.retry as retry
import sandbox.snapshots as snapshots
from sandbox.errors import BadRequestError, CapacityError, SandboxError, SnapshotBuildError, WaitTimeoutError
from sandbox.events import EventStream
from sandbox.local.forced_states import ForcedState
from sandbox.models import SnapshotIdentity
from sandbox.snapshots import ACTIONS, Action, ensure_snapshot, snapshot_state
from tests.sandbox.conftest import Faulty
from tests.sandbox.shell_profile import shell_profile

PROFILE = shell_profile("true", type="snapshot-rows", setup=["echo step one"])
NAME = PROFILE.snapshot_name
UNKNOWN_WORDS = ("a state of tomorrow", "Active", "")
CREATE = "POST /api/snapshots$"


def words(*actions: Action) -> list[str]:
    """The words of the states with one of these actions; words nobody knows are read again."""
    known = [state.value for state, action in ACTIONS.items() if action in actions]
    return [*known, *(UNKNOWN_WORDS if Action.READ_AGAIN in actions else ())]


async def ensure(faulty: Faulty, *, seconds: float = 60.0) -> SnapshotIdentity:
    profile = PROFILE.model_copy(update={"snapshot_timeout_seconds": seconds})
    async with EventStream(run_id="r", thread_id="t", sinks=()) as events:
        return await ensure_snapshot(faulty.daytona, profile, events=events, environment={})


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def _left_as_found(daytona: AsyncDaytona) -> AsyncIterator[None]:
    yield
    await daytona.snapshot.delete(NAME)


@pytest_asyncio.fixture(loop_scope="session")
async def built(faulty: Faulty) -> AsyncIterator[Snapshot]:
    """The profile's snapshot, active; no state is forced before and after."""
    faulty.platform.faults.clear()
    await ensure(faulty)
    faulty.proxy.seen.clear()
    yield await faulty.daytona.snapshot.get(NAME)
    faulty.platform.faults.clear()


def show(faulty: Faulty, target: str, word: str, **fields: Any) -> None:
    faulty.platform.faults.force(ForcedState(kind="snapshot", target=target, state=word, **fields))


@pytest.mark.parametrize("word", words(Action.WAIT, Action.WAIT_GONE, Action.ACTIVATE, Action.READ_AGAIN, Action.USE))
async def test_a_state_that_passes_is_waited_for_and_nothing_is_built(
    faulty: Faulty, built: Snapshot, word: str
) -> None:
    show(faulty, built.id, word, reads=2)
    identity = await ensure(faulty)
    assert identity.snapshot_id == built.id
    assert not identity.built
    assert faulty.proxy.count(f"{CREATE}|DELETE") == 0
    assert faulty.proxy.count("/activate") == (word == "inactive")


@pytest.mark.parametrize("word", words(Action.WAIT, Action.WAIT_GONE, Action.READ_AGAIN, Action.ACTIVATE))
async def test_a_state_that_stays_for_ever_is_told(
    faulty: Faulty, built: Snapshot, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "PENDING_SECONDS", 0.2)
    show(faulty, built.id, word)
    meant = {"pending": CapacityError, "inactive": BadRequestError}.get(word, WaitTimeoutError)
    with pytest.raises(meant) as caught:
        await ensure(faulty, seconds=1.0)
    assert caught.value.state == snapshot_state(word).value
    assert caught.value.sandbox == NAME
    assert faulty.proxy.count(f"{CREATE}|DELETE") == 0
    assert "HTTP response" not in str(caught.value)


async def test_a_wait_says_what_it_waits_for_and_how_long(
    faulty: Faulty, built: Snapshot, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(heartbeat, "INTERVAL_SECONDS", 0.02)
    show(faulty, built.id, "pulling", reads=6)
    with caplog.at_level(logging.INFO, logger=heartbeat.__name__):
        await ensure(faulty)
    lines = [record.getMessage() for record in caplog.records if record.name == heartbeat.__name__]
    assert len([line for line in lines if re.fullmatch(rf"snapshot {NAME}: pulling \(\d+ s of 60 s\)", line)]) >= 3


@pytest.mark.parametrize("word", words(Action.REMOVE))
async def test_one_that_is_found_failed_is_built_anew(faulty: Faulty, built: Snapshot, word: str) -> None:
    show(faulty, built.id, word)
    identity = await ensure(faulty)
    assert identity.built
    assert identity.snapshot_id != built.id
    assert faulty.proxy.count(CREATE) == 1


@pytest.mark.parametrize("word", words(Action.REMOVE))
async def test_a_build_of_somebody_else_that_fails_says_why(faulty: Faulty, built: Snapshot, word: str) -> None:
    show(faulty, built.id, "building", reads=3)
    show(faulty, built.id, word, fields={"errorReason": "disk on fire"})
    with pytest.raises(SnapshotBuildError, match="disk on fire") as caught:
        await ensure(faulty)
    assert "step one" in caught.value.log_tail
    assert "step one" in str(caught.value)
    assert caught.value.state == word
    assert faulty.proxy.count(CREATE) == 0


def test_every_row_is_driven() -> None:
    assert set(ACTIONS.values()) == set(Action)
    assert {snapshot_state(word) for word in words(*Action)} == set(SnapshotState)


@given(word=st.text())
def test_whatever_the_platform_says_has_a_row(word: str) -> None:
    known = word in {state.value for state in SnapshotState}
    assert known or ACTIONS[snapshot_state(word)] is Action.READ_AGAIN


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    history=st.lists(
        st.tuples(st.sampled_from([*(state.value for state in SnapshotState), *UNKNOWN_WORDS]), st.integers(1, 3)),
        min_size=1,
        max_size=5,
    )
)
async def test_any_history_of_states_ends_with_the_snapshot_or_a_fault_with_a_name(
    faulty: Faulty, history: list[tuple[str, int]]
) -> None:
    faulty.platform.faults.clear()
    await ensure(faulty)
    faulty.proxy.seen.clear()
    for word, reads in history:
        show(faulty, NAME, word, reads=reads)
    identity: SnapshotIdentity | None = None
    failed: SandboxError | None = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "SOON", (0.01,) * 4)
        try:
            identity = await ensure(faulty, seconds=2.0)
        except SandboxError as error:
            failed = error
        finally:
            faulty.platform.faults.clear()
    if failed is not None or identity is None:
        assert failed is not None
        assert failed.sandbox == NAME
        assert failed.state
        assert failed.remedy
    else:
        now = await faulty.daytona.snapshot.get(NAME)
        assert (now.id, now.state) == (identity.snapshot_id, "active")
    if faulty.proxy.count("DELETE /api/snapshots"):
        assert {word for word, _ in history} & set(words(Action.REMOVE))
    assert faulty.proxy.count(CREATE) <= faulty.proxy.count("DELETE /api/snapshots")
