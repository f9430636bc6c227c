"""Whatever state the sandbox is in, a validation ends with a started one."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

import daytona_api_client_async
import pytest
import pytest_asyncio
from daytona import AsyncDaytona, SandboxState

import sandbox.heartbeat as heartbeat
import sandbox.lifecycle as lifecycle
import sandbox.sandbox_states as sandbox_states
from sandbox.errors import (
    AuthenticationError,
    CapacityError,
    QuotaExceededError,
    SandboxLostError,
    WaitTimeoutError,
)
from sandbox.leases import LEASE_SECONDS
from sandbox.local.control.states import SandboxState as LocalState
from sandbox.models import ValidationResult
from sandbox.profiles import Network, Profile
from sandbox.sandbox_states import STATES, Action, Row, sandbox_state
from tests.sandbox.conftest import Faulty
from tests.sandbox.fault_proxy import Harm
from tests.sandbox.shell_profile import Recorded, shell_profile, validate

GET = r"GET /api/sandbox/[^/]+$"
CREATE = r"POST /api/sandbox$"


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "ZOMBIE_PAUSE_SECONDS", 0.05)


@pytest_asyncio.fixture(loop_scope="session")
async def profile(daytona: AsyncDaytona) -> AsyncIterator[Profile]:
    """A profile whose sandbox is nobody else's and does not exist yet; it is removed in the end."""
    made = shell_profile("true", type=f"life-{uuid.uuid4().hex[:8]}")
    yield made
    async for sandbox in daytona.list():
        if sandbox.name.startswith(made.sandbox_name):
            await daytona.delete(sandbox)
    await daytona.snapshot.delete(made.snapshot_name)


def force(faulty: Faulty, profile: Profile, state: LocalState, **fields: Any) -> str:
    """Puts the sandbox's record into a state; returns its id."""
    record = faulty.platform.plane.sandboxes.get(profile.sandbox_name)
    record.state = state
    for name, value in fields.items():
        setattr(record, name, value)
    return record.id


def sandbox_id(result: ValidationResult) -> str:
    assert result.sandbox is not None
    return result.sandbox.sandbox_id


def test_every_state_has_a_row() -> None:
    assert set(STATES) == set(SandboxState)
    assert {row.action for row in STATES.values()} | {sandbox_states.ABSENT.action} == set(Action)


@pytest.mark.parametrize("state", list(SandboxState))
def test_words_and_members_mean_the_same(state: SandboxState) -> None:
    other = daytona_api_client_async.SandboxState(state.value)
    assert sandbox_state(state.value) is sandbox_state(other) is sandbox_state(state) is state
    assert sandbox_state("a state of tomorrow") is SandboxState.UNKNOWN_DEFAULT_OPEN_API
    assert sandbox_state(None) is SandboxState.UNKNOWN


async def test_a_warm_run_asks_for_nothing_it_does_not_need(faulty: Faulty, profile: Profile) -> None:
    first = await validate(faulty.daytona, profile)
    faulty.proxy.seen.clear()
    second = await validate(faulty.daytona, profile)
    assert sandbox_id(first) == sandbox_id(second)
    assert second.recoveries == ()
    lines = [line.split("?")[0] for line in faulty.proxy.seen if "socket.io" not in line]
    shapes = sorted(line.replace(sandbox_id(second), "<id>") for line in lines)
    assert len(shapes) == 12, shapes
    assert faulty.proxy.count("bulk-download") == 1, "the note about the result, beside the list of files"
    assert shapes.count("GET /toolbox/<id>/process/session") == 1, "the search for abandoned sessions"
    assert faulty.proxy.count(GET) == 1
    assert faulty.proxy.count("GET /api/snapshots/") == 1
    assert faulty.proxy.count("bulk-upload") == 1


async def test_a_new_sandbox_carries_labels_and_limits_from_the_create_call(faulty: Faulty, profile: Profile) -> None:
    result = await validate(faulty.daytona, profile)
    sandbox = await faulty.daytona.get(sandbox_id(result))
    labels = sandbox.labels
    assert labels["managed-by"] == "uom-sandbox"
    assert labels["uom-profile"] == "shell"
    assert labels["uom-isolation"] == "shared"
    kept = int(labels["uom-lease-end"]) - time.time()
    assert 25 * 3600 - 60 < kept <= 25 * 3600, "an hour idle, a day stopped"
    assert "@" in labels["uom-owner"]
    assert labels["code-toolbox-language"] == "python"
    assert sandbox.network_block_all
    assert sandbox.auto_stop_interval == 60
    assert sandbox.auto_delete_interval == 24 * 60
    assert (sandbox.cpu, sandbox.memory, sandbox.disk) == (1, 1, 1)


async def test_a_sandbox_of_one_run_is_ephemeral_leased_and_labelled(faulty: Faulty, profile: Profile) -> None:
    bodies: list[dict[str, Any]] = []
    sink = Recorded()

    def keep(body: dict[str, Any]) -> object:
        bodies.append(body)
        return body

    faulty.proxy.harms = [Harm(CREATE, body=keep)]
    result = await validate(faulty.daytona, profile, isolation="run", sink=sink)
    labels = bodies[0]["labels"]
    assert bodies[0]["name"] == f"{profile.sandbox_name}-{result.run_id}"
    assert bodies[0]["autoDeleteInterval"] == 0
    assert bodies[0]["autoDestroyAt"]
    assert labels["uom-run"] == result.run_id
    assert labels["uom-thread"] == result.thread_id
    assert 0 < int(labels["uom-lease-end"]) - time.time() <= LEASE_SECONDS


async def test_a_stopped_one_is_started_with_its_files(faulty: Faulty, profile: Profile) -> None:
    first = await validate(faulty.daytona, profile)
    sandbox = await faulty.daytona.get(sandbox_id(first))
    await sandbox.fs.upload_file(b"kept", "/sandbox/kept")
    await sandbox.stop()
    second = await validate(faulty.daytona, profile)
    assert second.passed
    assert sandbox_id(first) == sandbox_id(second)
    assert any("was stopped; it was started again" in line for line in second.recoveries)
    assert await sandbox.fs.download_file("/sandbox/kept") == b"kept"


async def test_an_archived_one_is_started(faulty: Faulty, profile: Profile) -> None:
    first = await validate(faulty.daytona, profile)
    sandbox = await faulty.daytona.get(sandbox_id(first))
    await sandbox.stop()
    await sandbox.archive()
    second = await validate(faulty.daytona, profile)
    assert second.passed
    assert sandbox_id(first) == sandbox_id(second)


async def test_a_stop_under_way_is_waited_for(faulty: Faulty, profile: Profile) -> None:
    first = await validate(faulty.daytona, profile)
    sandbox = await faulty.daytona.get(sandbox_id(first))
    stopping = asyncio.create_task(sandbox.stop())
    await asyncio.sleep(0)
    second = await validate(faulty.daytona, profile)
    await stopping
    assert second.passed


@pytest.mark.parametrize("state", [LocalState.ERROR, LocalState.BUILD_FAILED])
async def test_a_failed_one_is_replaced_and_its_reason_told(
    faulty: Faulty, profile: Profile, state: LocalState
) -> None:
    await validate(faulty.daytona, profile)
    old = force(faulty, profile, state, error_reason="disk on fire", recoverable=False)
    result = await validate(faulty.daytona, profile)
    assert result.passed
    assert sandbox_id(result) != old
    assert any("disk on fire" in line for line in result.recoveries)
    assert old not in [sandbox.id async for sandbox in faulty.daytona.list()]


async def test_a_recoverable_one_is_recovered(faulty: Faulty, profile: Profile) -> None:
    first = await validate(faulty.daytona, profile)
    await (await faulty.daytona.get(sandbox_id(first))).stop()
    force(faulty, profile, LocalState.ERROR, error_reason="lost its socket", recoverable=True)
    second = await validate(faulty.daytona, profile)
    assert second.passed
    assert sandbox_id(first) == sandbox_id(second)
    assert any("it was recovered" in line for line in second.recoveries)


async def test_one_that_recovers_badly_is_replaced(faulty: Faulty, profile: Profile) -> None:
    await validate(faulty.daytona, profile)
    old = force(faulty, profile, LocalState.ERROR, error_reason="crashed", recoverable=True)
    faulty.proxy.harms = [Harm("/recover", status=500, times=9)]
    result = await validate(faulty.daytona, profile)
    assert result.passed
    assert sandbox_id(result) != old


async def test_one_being_destroyed_is_waited_for(faulty: Faulty, profile: Profile) -> None:
    await validate(faulty.daytona, profile)

    def destroying(body: dict[str, object]) -> object:
        return body | {"state": "destroying"}

    sandbox = await faulty.daytona.get(profile.sandbox_name)
    faulty.proxy.harms = [Harm(GET, times=3, body=destroying)]
    deletion = asyncio.create_task(_delete_after(faulty, GET, 4, sandbox.id))
    result = await validate(faulty.daytona, profile)
    await deletion
    assert result.passed


async def _delete_after(faulty: Faulty, pattern: str, count: int, id_: str) -> None:
    while faulty.proxy.count(pattern) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await faulty.daytona.delete(await faulty.daytona.get(id_))


@pytest.mark.parametrize("word", ["starting", "creating", "restoring", "resizing", "unknown", "a state of tomorrow"])
async def test_a_passing_state_is_waited_for_with_its_name_in_the_events(
    faulty: Faulty, profile: Profile, word: str
) -> None:
    await validate(faulty.daytona, profile)

    def passing(body: dict[str, object]) -> object:
        return body | {"state": word}

    faulty.proxy.harms = [Harm(GET, times=4, body=passing)]
    sink = Recorded()
    assert (await validate(faulty.daytona, profile, sink=sink)).passed
    expected = word if " " not in word else "unknown_default_open_api"
    told = [event["data"] for event in sink.events if event["type"] == "sandbox_state"]
    assert any(isinstance(data, dict) and data["state"] == expected for data in told), told


async def test_a_wait_says_so_again_and_again(
    faulty: Faulty, profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    await validate(faulty.daytona, profile)
    monkeypatch.setattr(heartbeat, "INTERVAL_SECONDS", 0.05)

    def starting(body: dict[str, object]) -> object:
        return body | {"state": "starting"}

    faulty.proxy.harms = [Harm(GET, times=9, body=starting)]
    sink = Recorded()
    assert (await validate(faulty.daytona, profile, sink=sink)).passed
    beats = [event["data"] for event in sink.events if event["type"] == "sandbox_state"]
    assert sum(isinstance(data, dict) and data["state"] == "starting" for data in beats) >= 3


async def test_one_that_is_stuck_is_replaced(faulty: Faulty, profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await validate(faulty.daytona, profile)
    rows = {**STATES, SandboxState.STARTING: Row(Action.WAIT, 0.2)}
    monkeypatch.setattr(lifecycle, "STATES", rows)
    old = sandbox_id(first)

    def stuck(body: dict[str, object]) -> object:
        return body | {"state": "starting"} if body.get("id") == old else body

    faulty.proxy.harms = [Harm(GET, times=1000, body=stuck)]
    second = await validate(faulty.daytona, profile)
    assert second.passed
    assert sandbox_id(second) != old
    assert any("stuck in state starting" in line for line in second.recoveries)


async def test_one_that_is_never_gone_tells_the_story_of_the_wait(
    faulty: Faulty, profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    await validate(faulty.daytona, profile)
    monkeypatch.setattr(lifecycle, "STATES", {**STATES, SandboxState.DESTROYING: Row(Action.WAIT_GONE, 0.2)})

    def destroying(body: dict[str, object]) -> object:
        return body | {"state": "destroying"}

    faulty.proxy.harms = [Harm(GET, times=1000, body=destroying)]
    with pytest.raises(WaitTimeoutError, match=r"is not gone after .* \d+ reads.*state destroying"):
        await validate(faulty.daytona, profile)


async def test_no_runner_is_no_capacity(faulty: Faulty, profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    await validate(faulty.daytona, profile)
    monkeypatch.setattr(lifecycle, "STATES", {**STATES, SandboxState.PENDING_BUILD: Row(Action.WAIT, 0.1)})

    def pending(body: dict[str, object]) -> object:
        return body | {"state": "pending_build"}

    faulty.proxy.harms = [Harm(GET, times=1000, body=pending)]
    with pytest.raises(CapacityError):
        await validate(faulty.daytona, profile)


@pytest.mark.parametrize(
    "harm",
    [{"drop": True}, {"drop": True, "after": True}, {"status": 500}, {"status": 503}, {"status": 429}],
)
async def test_a_create_that_goes_wrong_ends_with_one_sandbox(
    faulty: Faulty, profile: Profile, harm: dict[str, Any]
) -> None:
    faulty.proxy.harms = [Harm(CREATE, **harm, headers={"Retry-After-sandbox-create": "0"})]
    result = await validate(faulty.daytona, profile)
    assert result.passed
    names = [sandbox.name async for sandbox in faulty.daytona.list()]
    assert names.count(profile.sandbox_name) == 1


async def test_polls_that_fail_do_not_end_a_wait(faulty: Faulty, profile: Profile) -> None:
    faulty.proxy.harms = [Harm(GET, times=3, status=500)]
    assert (await validate(faulty.daytona, profile)).passed


async def test_racing_callers_end_with_the_same_sandbox(faulty: Faulty, profile: Profile) -> None:
    results = await asyncio.gather(*(validate(faulty.daytona, profile) for _ in range(8)))
    assert len({sandbox_id(result) for result in results}) == 1
    assert faulty.proxy.count(CREATE) == 1


async def test_the_loser_of_a_race_adopts_the_winners_sandbox(faulty: Faulty, profile: Profile) -> None:
    first = await validate(faulty.daytona, profile)
    faulty.proxy.harms = [Harm(GET, status=404)]
    second = await validate(faulty.daytona, profile)
    assert sandbox_id(first) == sandbox_id(second)
    assert faulty.proxy.count(CREATE) == 2  # the second one was told 409


async def test_a_refused_key_is_asked_for_once(faulty: Faulty, profile: Profile) -> None:
    await validate(faulty.daytona, profile)
    faulty.proxy.seen.clear()
    faulty.proxy.harms = [Harm("/api/sandbox", status=401, times=100)]
    with pytest.raises(AuthenticationError):
        await validate(faulty.daytona, profile)
    assert faulty.proxy.count("/api/sandbox/") == 1


async def test_a_quota_is_no_capacity_problem(faulty: Faulty, profile: Profile) -> None:
    faulty.proxy.harms = [
        Harm(CREATE, times=100, status=400, message="Total disk limit exceeded. Maximum allowed: 30.")
    ]
    with pytest.raises(QuotaExceededError):
        await validate(faulty.daytona, profile)


@pytest.mark.parametrize("status", [502, 404, 410])
async def test_one_whose_toolbox_is_silent_is_restarted_then_replaced(
    faulty: Faulty, profile: Profile, status: int
) -> None:
    first = await validate(faulty.daytona, profile)
    faulty.proxy.harms = [Harm("POST .*/process/session$", status=status)]
    second = await validate(faulty.daytona, profile)
    assert second.passed
    assert sandbox_id(second) == sandbox_id(first)
    assert any("it was restarted" in line for line in second.recoveries)
    faulty.proxy.harms = [Harm("POST .*/process/session$", status=status, times=2)]
    third = await validate(faulty.daytona, profile)
    assert third.passed
    assert sandbox_id(third) != sandbox_id(first)
    faulty.proxy.harms = [Harm("POST .*/process/session$", status=status, times=100)]
    with pytest.raises(SandboxLostError):
        await validate(faulty.daytona, profile)


async def test_another_network_policy_is_applied(faulty: Faulty, profile: Profile) -> None:
    first = await validate(faulty.daytona, profile)
    opened = profile.model_copy(update={"network": Network(mode="allow", cidrs=("10.0.0.0/8",))})
    second = await validate(faulty.daytona, opened)
    assert sandbox_id(first) == sandbox_id(second)
    sandbox = await faulty.daytona.get(profile.sandbox_name)
    assert sandbox.network_allow_list == "10.0.0.0/8"
    assert not sandbox.network_block_all
    third = await validate(faulty.daytona, profile)
    assert any("network policy" in line for line in third.recoveries)
    assert (await faulty.daytona.get(profile.sandbox_name)).network_block_all
