"""Every row of the state tables, driven on a real platform that shows the state: for a while, and for ever."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from daytona import AsyncDaytona, AsyncSandbox, SandboxState
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sandbox.heartbeat as heartbeat
import sandbox.lifecycle as lifecycle
import sandbox.retry as retry
from sandbox.errors import CapacityError, SandboxError, WaitTimeoutError
from sandbox.events import SANDBOX_STATE, EventStream
from sandbox.local.faults import Fault
from sandbox.local.forced_states import ForcedState
from sandbox.models import SandboxIdentity, ValidationRequest
from sandbox.sandbox_states import STATES, Action, Row, sandbox_state
from sandbox.validation import Validation
from tests.sandbox.conftest import Faulty
from tests.sandbox.shell_profile import Recorded, shell_profile

PROFILE = shell_profile("true", type="state-rows")
NAME = PROFILE.sandbox_name
UNKNOWN_WORDS = ("a state of tomorrow", "Started", "")
WAITING = (Action.WAIT, Action.WAIT_GONE, Action.READ_AGAIN)


def words(*actions: Action) -> list[str]:
    """The words of the states with one of these actions; words nobody knows are read again."""
    known = [state.value for state, row in STATES.items() if row.action in actions]
    return [*known, *(UNKNOWN_WORDS if Action.READ_AGAIN in actions else ())]


@pytest.fixture(scope="module", autouse=True)
def _impatient() -> Iterator[None]:
    """Nobody waits for minutes here: waits are short, but as many as ever."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifecycle, "ZOMBIE_PAUSE_SECONDS", 0.0)
        patch.setattr(retry, "SOON", (0.01,) * 4)
        patch.setattr(retry, "SLOWLY", (0.01,) * 4)
        yield


@pytest.fixture
def stuck_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "STATES", shortened(0.1))


def shortened(seconds: float) -> Mapping[SandboxState, Row]:
    short = {Action.START: 3 * seconds}
    return {
        state: Row(row.action, seconds if row.action in WAITING else short.get(row.action, 1.0))
        for state, row in STATES.items()
    }


@dataclass
class Ended:
    """How a reconciliation ended."""

    identity: SandboxIdentity
    recoveries: list[str]
    states: list[str]


async def reconcile(faulty: Faulty, sink: Recorded | None = None) -> Ended:
    """Whatever state it is in, end with a started sandbox: the first two steps of a validation."""
    sink = sink or Recorded()
    request = ValidationRequest(profile="shell", files={"main.sh": "true"}).identified()
    async with EventStream(run_id="r", thread_id="t", sinks=(sink,)) as events:
        validation = Validation(request, profile=PROFILE, client=faulty.daytona, events=events)
        try:
            await validation.ensure_snapshot()
            identity = await validation.reconcile_sandbox()
        finally:
            await validation.close()
    return Ended(identity, validation.recoveries, states_of(sink))


def states_of(sink: Recorded) -> list[str]:
    found: list[Any] = [event["data"] for event in sink.events if event["type"] == SANDBOX_STATE]
    return [data["state"] for data in found if data["subject"] == "sandbox"]


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def _left_as_found(daytona: AsyncDaytona) -> AsyncIterator[None]:
    yield
    for sandbox in [one async for one in daytona.list() if one.name == NAME]:
        await daytona.delete(sandbox)
    await daytona.snapshot.delete(PROFILE.snapshot_name)


@pytest_asyncio.fixture(loop_scope="session")
async def box(faulty: Faulty) -> AsyncIterator[AsyncSandbox]:
    """A started sandbox of the profile; no state is forced before and after."""
    faulty.platform.faults.clear()
    await reconcile(faulty)
    faulty.proxy.seen.clear()
    yield await faulty.daytona.get(NAME)
    faulty.platform.faults.clear()


def show(faulty: Faulty, target: str, word: str, **fields: Any) -> None:
    faulty.platform.faults.force(ForcedState(kind="sandbox", target=target, state=word, **fields))


@pytest.mark.parametrize("word", words(*WAITING, Action.CREATE))
async def test_a_state_that_passes_is_waited_for_and_nothing_is_done(
    faulty: Faulty, box: AsyncSandbox, word: str
) -> None:
    show(faulty, box.id, word, reads=3)
    ended = await reconcile(faulty)
    assert ended.identity.sandbox_id == box.id
    assert ended.states[0] == sandbox_state(word).value
    assert ended.states[-1] == "started"
    assert faulty.proxy.count("DELETE|/start|/stop|/recover") == 0
    # One that is said to be destroyed is made again; the platform knows better, and nothing is doubled.
    assert (faulty.proxy.count(r"POST /api/sandbox$") > 0) == (word == "destroyed")
    assert [sandbox.name async for sandbox in faulty.daytona.list()].count(NAME) == 1


@pytest.mark.usefixtures("stuck_soon")
@pytest.mark.parametrize("word", words(Action.WAIT, Action.READ_AGAIN))
async def test_a_state_that_stays_for_ever_ends_with_another_sandbox(
    faulty: Faulty, box: AsyncSandbox, word: str
) -> None:
    show(faulty, box.id, word)
    if word == "pending_build":
        with pytest.raises(CapacityError, match="no runner became free"):
            await reconcile(faulty)
        return
    ended = await reconcile(faulty)
    assert ended.identity.sandbox_id != box.id
    assert any(f"stuck in state {sandbox_state(word).value}" in line for line in ended.recoveries)
    assert [sandbox.name async for sandbox in faulty.daytona.list()].count(NAME) == 1


@pytest.mark.usefixtures("stuck_soon")
async def test_a_removal_without_end_is_told(faulty: Faulty, box: AsyncSandbox) -> None:
    show(faulty, box.id, "destroying")
    with pytest.raises(WaitTimeoutError, match=r"not gone after .* reads.*state destroying"):
        await reconcile(faulty)
    assert faulty.proxy.count("POST /api/sandbox$|DELETE") == 0


async def test_a_wait_says_what_it_waits_for_and_how_long(
    faulty: Faulty, box: AsyncSandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(heartbeat, "INTERVAL_SECONDS", 0.02)
    show(faulty, box.id, "restoring", reads=6)
    with caplog.at_level(logging.INFO, logger=heartbeat.__name__):
        await reconcile(faulty)
    lines = [record.getMessage() for record in caplog.records if record.name == heartbeat.__name__]
    assert len([line for line in lines if re.fullmatch(rf"sandbox {NAME}: restoring \(\d+ s of 3600 s\)", line)]) >= 3


async def test_a_wait_reads_no_sooner_than_the_platform_asks(faulty: Faulty, box: AsyncSandbox) -> None:
    show(faulty, box.id, "starting", reads=3)
    busy = Fault(kind="fail", path="/api/sandbox/[^/]+", status=429, after=2, headers={"retry-after-x": "0.4"})
    faulty.platform.faults.add(busy)
    begun = time.monotonic()
    assert (await reconcile(faulty)).identity.sandbox_id == box.id
    assert time.monotonic() - begun >= 0.4
    assert busy.struck.is_set()


@pytest.mark.parametrize("word", words(Action.START))
async def test_one_at_rest_is_started(faulty: Faulty, box: AsyncSandbox, word: str) -> None:
    await box.stop()
    if word == "archived":
        await box.archive()
    show(faulty, box.id, word, reads=1)
    ended = await reconcile(faulty)
    assert ended.identity.sandbox_id == box.id
    assert any(f"was {word}; it was started again" in line for line in ended.recoveries)


@pytest.mark.usefixtures("stuck_soon")
@pytest.mark.parametrize("word", words(Action.START))
async def test_one_that_is_never_started_is_an_error_after_so_many_attempts(
    faulty: Faulty, box: AsyncSandbox, word: str
) -> None:
    show(faulty, box.id, word)
    with pytest.raises(WaitTimeoutError, match=f"start.*state {word}"):
        await reconcile(faulty)
    assert faulty.proxy.count(f"{box.id}/start") == retry.ATTEMPTS


@pytest.mark.parametrize("recoverable", [True, False])
@pytest.mark.parametrize("word", words(Action.REVIVE))
async def test_a_failed_one_is_recovered_or_replaced_with_its_reason(
    faulty: Faulty, box: AsyncSandbox, word: str, recoverable: bool
) -> None:
    fields = {"errorReason": "disk on fire", "recoverable": recoverable}
    show(faulty, box.id, word, fields=fields)
    ended = await reconcile(faulty)
    assert faulty.proxy.count("/recover") == recoverable
    assert ended.identity.sandbox_id != box.id
    assert any(f"was in state {word} (disk on fire); it was replaced" in line for line in ended.recoveries)


@pytest.mark.usefixtures("stuck_soon")
async def test_one_that_fails_again_and_again_is_given_up(faulty: Faulty, box: AsyncSandbox) -> None:
    show(faulty, NAME, "error", fields={"errorReason": "disk on fire", "recoverable": False})
    with pytest.raises(SandboxError, match=r"disk on fire\) again after 3 replacements"):
        await reconcile(faulty)


def test_every_row_is_driven() -> None:
    driven = {*words(*WAITING), *words(Action.START), *words(Action.REVIVE), *words(Action.CREATE)}
    assert {sandbox_state(word) for word in driven} | {SandboxState.STARTED} == set(SandboxState)


@given(word=st.one_of(st.text(), st.none(), st.sampled_from([state.value for state in SandboxState])))
def test_whatever_the_platform_says_has_a_row(word: str | None) -> None:
    row = STATES[sandbox_state(word)]
    assert row.seconds > 0 or row.action is Action.USE
    if word not in {state.value for state in SandboxState}:
        assert row.action is Action.READ_AGAIN


_histories = st.lists(
    st.tuples(st.sampled_from([*(state.value for state in SandboxState), *UNKNOWN_WORDS]), st.integers(1, 4)),
    min_size=1,
    max_size=6,
)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=_histories, recoverable=st.booleans(), by_name=st.booleans())
async def test_any_history_of_states_ends_with_one_started_sandbox_or_a_fault_with_a_name(
    faulty: Faulty, history: list[tuple[str, int]], recoverable: bool, by_name: bool
) -> None:
    faulty.platform.faults.clear()
    old = (await reconcile(faulty)).identity.sandbox_id
    faulty.proxy.seen.clear()
    for word, reads in history:
        show(faulty, NAME if by_name else old, word, reads=reads, fields={"recoverable": recoverable})
    sink = Recorded()
    ended: Ended | None = None
    failed: SandboxError | None = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifecycle, "STATES", shortened(0.1))
        try:
            ended = await reconcile(faulty, sink)
        except SandboxError as error:
            failed = error
        finally:
            faulty.platform.faults.clear()
    boxes = [sandbox async for sandbox in faulty.daytona.list() if sandbox.name == NAME]
    if failed is not None or ended is None:
        assert failed is not None
        assert failed.sandbox == NAME
        assert failed.state
        assert failed.remedy
        assert len(boxes) <= 1
    else:
        assert [(one.id, one.state) for one in boxes] == [(ended.identity.sandbox_id, "started")]
    seen = set(states_of(sink))
    if faulty.proxy.count("POST /api/sandbox$"):
        assert seen & {"absent", "destroyed"}
    if faulty.proxy.count("DELETE /api/sandbox"):
        assert seen & {sandbox_state(word).value for word in words(Action.WAIT, Action.REVIVE, Action.READ_AGAIN)}
