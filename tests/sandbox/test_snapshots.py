"""Every state a snapshot can be found in, and who builds when many want it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from daytona import AsyncDaytona
from daytona_api_client_async import SnapshotState

import sandbox.snapshots as snapshots
from sandbox.errors import AccessDeniedError, CapacityError, ConfigurationError, SnapshotBuildError, WaitTimeoutError
from sandbox.events import EventStream
from sandbox.local.control.states import SnapshotState as LocalState
from sandbox.models import SnapshotIdentity
from sandbox.profiles import Profile
from sandbox.snapshots import ACTIONS, ensure_snapshot, snapshot_state
from tests.sandbox.conftest import Faulty
from tests.sandbox.fault_proxy import Harm
from tests.sandbox.shell_profile import Recorded, shell_profile, validate

GET = r"GET /api/snapshots/[^/]+$"


@pytest_asyncio.fixture(loop_scope="session")
async def profile(daytona: AsyncDaytona) -> AsyncIterator[Profile]:
    """A profile whose snapshot is nobody else's; whatever a test leaves of it is removed."""
    made = shell_profile("true", type=f"snap-{uuid.uuid4().hex[:8]}", setup=["echo step one && echo step two >&2"])
    yield made
    async with asyncio.timeout(10):
        page = await daytona.snapshot.list()
        for snapshot in page.items:
            if snapshot.name == made.snapshot_name:
                await daytona.snapshot.delete(snapshot.id)


async def ensure(daytona: AsyncDaytona, profile: Profile, sink: Recorded | None = None) -> SnapshotIdentity:
    async with EventStream(run_id="r", thread_id="t", sinks=() if sink is None else (sink,)) as events:
        return await ensure_snapshot(daytona, profile, events=events, environment={})


def changed(profile: Profile, **fields: Any) -> Profile:
    return profile.model_copy(update=fields)


def test_every_state_has_a_row() -> None:
    assert set(ACTIONS) == set(SnapshotState)


@pytest.mark.parametrize("state", list(SnapshotState))
def test_words_and_members_mean_the_same(state: SnapshotState) -> None:
    import daytona_api_client

    assert snapshot_state(state.value) is snapshot_state(daytona_api_client.SnapshotState(state.value)) is state
    assert snapshot_state("a state of tomorrow") is SnapshotState.UNKNOWN_DEFAULT_OPEN_API


async def test_a_missing_one_is_built_with_its_log_line_by_line(daytona: AsyncDaytona, profile: Profile) -> None:
    sink = Recorded()
    identity = await ensure(daytona, profile, sink)
    assert identity.built
    assert identity.definition == profile.definition_hash({})
    lines = sink.text("shell_sandbox_snapshot_creation").splitlines()
    assert "step one" in lines
    assert "step two" in lines


async def test_an_active_one_costs_one_request(faulty: Faulty, profile: Profile) -> None:
    first = await ensure(faulty.daytona, profile)
    faulty.proxy.seen.clear()
    second = await ensure(faulty.daytona, profile)
    assert [line for line in faulty.proxy.seen if "socket.io" not in line] == [
        f"GET /api/snapshots/{profile.snapshot_name}"
    ]
    assert second == first.model_copy(update={"built": False})


async def test_a_build_that_failed_says_why_and_the_next_attempt_builds_anew(
    daytona: AsyncDaytona, profile: Profile
) -> None:
    broken = changed(profile, setup=("echo before; nosuchtool-xyz --install",))
    with pytest.raises(SnapshotBuildError) as caught:
        await ensure(daytona, broken)
    assert "nosuchtool-xyz" in "\n".join(caught.value.log_tail)
    assert "before" in caught.value.log_tail
    assert len(caught.value.log_tail) <= 50
    assert "nosuchtool-xyz" in str(caught.value)
    identity = await ensure(daytona, profile)
    assert identity.built


async def test_those_who_waited_for_a_failing_build_share_its_error(faulty: Faulty, profile: Profile) -> None:
    broken = changed(profile, setup=("sleep 0.3; exit 5",))
    results = await asyncio.gather(*(ensure(faulty.daytona, broken) for _ in range(6)), return_exceptions=True)
    assert all(isinstance(result, SnapshotBuildError) for result in results), results
    assert faulty.proxy.count(r"POST /api/snapshots$") == 1


async def test_one_build_for_all_who_ask_at_once(faulty: Faulty, profile: Profile) -> None:
    results = await asyncio.gather(*(ensure(faulty.daytona, profile) for _ in range(10)))
    assert sum(result.built for result in results) == 1
    assert len({result.snapshot_id for result in results}) == 1
    assert faulty.proxy.count(r"POST /api/snapshots$") == 1


async def test_whoever_is_told_409_waits_for_the_others_build(
    faulty: Faulty, profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Recorded()
    slow = changed(profile, setup=("echo slow-line; sleep 0.5",))
    other = asyncio.create_task(ensure(faulty.daytona, slow))
    # The second caller sees no snapshot yet and asks for a build, as a process on another machine would.
    while not faulty.proxy.count("POST /api/snapshots$"):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "build_turn", _no_turn)
        faulty.proxy.harms = [Harm(GET, status=404, times=2)]
        identity = await ensure(faulty.daytona, slow, sink)
    assert identity.snapshot_id == (await other).snapshot_id
    assert not identity.built
    assert "slow-line\n" in sink.text("shell_sandbox_snapshot_creation")


class _no_turn:  # noqa: N801
    def __init__(self, *_: object) -> None: ...

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None: ...


async def test_a_cancelled_caller_leaves_a_build_that_the_next_one_picks_up(faulty: Faulty, profile: Profile) -> None:
    slow = changed(profile, setup=("echo begun; sleep 0.5",))
    sink = Recorded()
    first = asyncio.create_task(ensure(faulty.daytona, slow, sink))
    await sink.until("begun")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not (await ensure(faulty.daytona, slow)).built
    assert faulty.proxy.count(r"POST /api/snapshots$") == 1


@pytest.mark.parametrize("harm", [{"status": 404}, {"drop": True, "after": True}, {"status": 500}])
async def test_losing_the_build_log_does_not_change_the_build(
    faulty: Faulty, profile: Profile, harm: dict[str, Any]
) -> None:
    faulty.proxy.harms = [Harm("build-logs", times=1, **harm)]
    sink = Recorded()
    assert (await ensure(faulty.daytona, profile, sink)).built
    assert sink.text("shell_sandbox_snapshot_creation").splitlines().count("step one") == 1


async def test_a_poll_that_fails_does_not_end_the_wait(faulty: Faulty, profile: Profile) -> None:
    faulty.proxy.harms = [Harm(GET, skip=2, times=3, status=500)]
    slow = changed(profile, setup=("sleep 0.3",))
    assert (await ensure(faulty.daytona, slow)).built


async def test_an_answer_that_was_lost_is_asked_for_again(faulty: Faulty, profile: Profile) -> None:
    faulty.proxy.harms = [Harm(r"POST /api/snapshots$", drop=True, after=True)]
    result = await validate(faulty.daytona, changed(profile, setup=("true",)))
    assert result.passed
    assert any("repeated" in line for line in result.recoveries)


async def test_a_missing_permission_is_asked_for_once(faulty: Faulty, profile: Profile) -> None:
    faulty.proxy.harms = [Harm("/api/snapshots", status=403, times=100)]
    with pytest.raises(AccessDeniedError):
        await validate(faulty.daytona, profile)
    assert faulty.proxy.count("/api/snapshots") == 1


@pytest.mark.parametrize("state", [LocalState.ERROR, LocalState.BUILD_FAILED, LocalState.INACTIVE])
async def test_a_failed_or_inactive_one_is_brought_back(faulty: Faulty, profile: Profile, state: LocalState) -> None:
    await ensure(faulty.daytona, profile)
    faulty.platform.plane.snapshots.get(profile.snapshot_name).state = state
    identity = await ensure(faulty.daytona, profile)
    assert identity.built == (state is not LocalState.INACTIVE)
    assert (await faulty.daytona.snapshot.get(profile.snapshot_name)).state == "active"


async def test_a_removal_under_way_is_waited_for(faulty: Faulty, profile: Profile) -> None:
    await ensure(faulty.daytona, profile)
    record = faulty.platform.plane.snapshots.get(profile.snapshot_name)
    record.state = LocalState.REMOVING

    async def finish_removal() -> None:
        while faulty.proxy.count(GET) < 6:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        faulty.platform.plane.snapshots._remove(record)

    removal = asyncio.create_task(finish_removal())
    assert (await ensure(faulty.daytona, profile)).built
    await removal


async def test_an_unknown_state_is_read_again(faulty: Faulty, profile: Profile) -> None:
    await ensure(faulty.daytona, profile)

    def odd(body: dict[str, object]) -> object:
        return body | {"state": "a state of tomorrow"}

    faulty.proxy.harms = [Harm(GET, times=2, body=odd)]
    assert not (await ensure(faulty.daytona, profile)).built


@pytest.mark.parametrize("fields", [{"setup": ("echo other",)}, {"resources": {"cpu": 1, "memory": 2, "disk": 1}}])
async def test_another_definition_is_rebuilt_used_or_refused(
    daytona: AsyncDaytona, profile: Profile, fields: dict[str, Any]
) -> None:
    first = await ensure(daytona, profile)
    document = profile.model_dump() | fields
    used = await ensure(daytona, Profile.model_validate(document | {"on_definition_change": "use"}))
    assert used.snapshot_id == first.snapshot_id
    with pytest.raises(ConfigurationError) as caught:
        await ensure(daytona, Profile.model_validate(document | {"on_definition_change": "refuse"}))
    assert caught.value.field == "on_definition_change"
    rebuilt = await ensure(daytona, Profile.model_validate(document))
    assert rebuilt.built
    assert rebuilt.snapshot_id != first.snapshot_id


async def test_a_rebuild_does_not_break_a_run_on_the_former_snapshot(daytona: AsyncDaytona, profile: Profile) -> None:
    sink = Recorded()
    slow = Profile.model_validate(
        profile.model_dump() | shell_profile("echo begun; sleep 1; ls /; echo ended").model_dump(include={"frameworks"})
    )
    running = asyncio.create_task(validate(daytona, slow, sink=sink))
    await sink.until("begun\n")
    assert (await ensure(daytona, changed(profile, setup=("echo other",)))).built
    result = await running
    assert result.passed, result
    assert result.phases[0].stdout.text.endswith("ended\n")
    after = await validate(daytona, changed(profile, setup=("echo other",)))
    assert after.passed
    assert after.sandbox is not None
    assert result.sandbox is not None
    assert after.sandbox.sandbox_id != result.sandbox.sandbox_id
    assert any("former snapshot" in line for line in after.recoveries)


async def test_a_build_that_takes_too_long_tells_its_story(daytona: AsyncDaytona, profile: Profile) -> None:
    slow = changed(profile, setup=("sleep 2",), snapshot_timeout_seconds=0.3)
    with pytest.raises(WaitTimeoutError, match=r"limit 0\.3 s, \d+ reads.*state building"):
        await ensure(daytona, slow)
    await ensure(daytona, changed(slow, snapshot_timeout_seconds=20.0))


async def test_no_builder_is_no_capacity(faulty: Faulty, profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "PENDING_SECONDS", 0.2)

    def pending(body: dict[str, object]) -> object:
        return body | {"state": "pending"}

    faulty.proxy.harms = [Harm("/api/snapshots(/[^/]+)?$", skip=2, times=1000, body=pending)]
    with pytest.raises(CapacityError):
        await ensure(faulty.daytona, profile)


async def test_a_lock_held_by_another_process_is_waited_for(daytona: AsyncDaytona, profile: Profile) -> None:
    import fcntl
    import os

    from sandbox.build_turn import _open

    held = _open(f"{daytona._api_url}\n{profile.snapshot_name}")
    fcntl.flock(held, fcntl.LOCK_EX)
    sink = Recorded()
    waiting = asyncio.create_task(ensure(daytona, profile, sink))
    await sink.until("another process")
    assert not waiting.done()
    os.close(held)
    assert (await waiting).built
