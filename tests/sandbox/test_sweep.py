"""The sweep removes what no live run owns, and nothing else."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Collection, Mapping

import pytest
import pytest_asyncio
from daytona import AsyncDaytona, AsyncSandbox, CreateSandboxFromSnapshotParams, SandboxState, SessionExecuteRequest

from sandbox.leases import new_lease
from sandbox.models import Isolation
from sandbox.naming import FLOW_RUN, ISOLATION, LEASE_END, MANAGED_BY, MANAGER, OWNER
from sandbox.profiles import Profile
from sandbox.sandbox_states import sandbox_state
from sandbox.sweep import Action, Facts, RunLife, Swept, decide, sweep
from tests.sandbox.conftest import Faulty
from tests.sandbox.fault_proxy import Harm
from tests.sandbox.shell_profile import shell_profile, validate

NOW = 1_800_000_000.0
OWNER_NAME = f"tester-{uuid.uuid4().hex[:8]}@here"


def facts(
    isolation: str | None,
    *,
    lease: float | str | None,
    run: RunLife = RunLife.UNKNOWN,
    state: SandboxState = SandboxState.STARTED,
    stop: float = 60,
    delete: float = 1440,
) -> Facts:
    """Facts about a sandbox whose lease ends ``lease`` seconds from now."""
    end = NOW + lease if isinstance(lease, float | int) else None
    return Facts(
        isolation=isolation,
        state=state,
        lease=lease if isinstance(lease, str) else None if end is None else str(int(end)),
        lease_end=end,
        last_use=None if end is None else end - (stop + max(delete, 0)) * 60,
        auto_stop_minutes=stop,
        auto_delete_minutes=delete,
        run=run,
    )


HOUR, DAY = 3600.0, 86_400.0


@pytest.mark.parametrize(
    ("about", "action"),
    [
        (facts("run", lease=10, run=RunLife.LIVE), Action.KEEP),
        (facts("run", lease=10, run=RunLife.SILENT), Action.KEEP),
        (facts("run", lease=10, run=RunLife.UNKNOWN), Action.KEEP),
        (facts("run", lease=10, run=RunLife.ENDED), Action.DELETE),
        (facts("run", lease=-1, run=RunLife.LIVE), Action.KEEP),
        (facts("run", lease=-1, run=RunLife.SILENT), Action.DELETE),
        (facts("run", lease=-1, run=RunLife.UNKNOWN), Action.DELETE),
        (facts("run", lease=-1, state=SandboxState.ERROR), Action.DELETE),
        (facts("run", lease=-1, state=SandboxState.STOPPED), Action.DELETE),
        (facts("run", lease=-1, run=RunLife.ENDED, state=SandboxState.DESTROYING), Action.KEEP),
        (facts("run", lease=None, run=RunLife.SILENT), Action.KEEP),
        (facts("shared", lease=25 * HOUR), Action.KEEP),
        (facts("shared", lease=DAY + 60), Action.KEEP),
        (facts("shared", lease=DAY - 60), Action.STOP),
        (facts("thread", lease=DAY - 60), Action.STOP),
        (facts("shared", lease=DAY - 60, state=SandboxState.STOPPED), Action.KEEP),
        (facts("shared", lease=-1), Action.DELETE),
        (facts("thread", lease=-1, state=SandboxState.STOPPED), Action.DELETE),
        (facts("shared", lease=-1, state=SandboxState.ARCHIVED), Action.DELETE),
        (facts("shared", lease=-1, delete=-1), Action.STOP),
        (facts("shared", lease=-1, delete=-1, state=SandboxState.STOPPED), Action.KEEP),
        (facts("shared", lease="none", stop=0), Action.KEEP),
        (facts("shared", lease=None), Action.KEEP),
        (facts("somehow", lease=-1, run=RunLife.ENDED), Action.KEEP),
        (facts(None, lease=-1, run=RunLife.ENDED), Action.KEEP),
    ],
)
def test_what_is_done_follows_from_lease_run_and_state(about: Facts, action: Action) -> None:
    assert decide(about, now=NOW)[0] is action


async def nobody(flow_run_ids: Collection[str]) -> Mapping[str, RunLife]:
    return {}


@pytest_asyncio.fixture(loop_scope="session")
async def profile(daytona: AsyncDaytona) -> AsyncIterator[Profile]:
    """A profile whose snapshot is ready; its sandboxes are removed in the end."""
    made = shell_profile("true", type=f"sweep-{uuid.uuid4().hex[:8]}")
    assert (await validate(daytona, made)).passed
    await daytona.delete(await daytona.get(made.sandbox_name), wait=True)
    yield made
    async for box in daytona.list():
        if box.name.startswith(made.sandbox_name) and sandbox_state(box.state) is not SandboxState.DESTROYING:
            await daytona.delete(box)


async def make(daytona: AsyncDaytona, profile: Profile, isolation: Isolation, **labels: str) -> AsyncSandbox:
    single = isolation is Isolation.RUN
    lease = new_lease(isolation, auto_stop_minutes=60, auto_delete_minutes=1440)
    base = {MANAGED_BY: MANAGER, OWNER: OWNER_NAME, ISOLATION: isolation.value, LEASE_END: lease}
    return await daytona.create(
        CreateSandboxFromSnapshotParams(
            name=f"{profile.sandbox_name}-{uuid.uuid4().hex[:8]}",
            snapshot=profile.snapshot_name,
            labels={key: value for key, value in {**base, **labels}.items() if value},
            auto_stop_interval=60,
            auto_delete_interval=0 if single else 1440,
            network_block_all=True,
        )
    )


async def states(daytona: AsyncDaytona, profile: Profile) -> dict[str, SandboxState]:
    return {
        box.id: sandbox_state(box.state)
        async for box in daytona.list()
        if box.name.startswith(profile.sandbox_name) and sandbox_state(box.state) is not SandboxState.DESTROYING
    }


def by_id(done: list[Swept]) -> dict[str, Swept]:
    return {one.sandbox_id: one for one in done}


OVER = str(int(time.time()) - 10)


async def test_what_nobody_owns_goes_and_everything_else_stays(daytona: AsyncDaytona, profile: Profile) -> None:
    ended, live, silent = (str(uuid.uuid4()) for _ in range(3))
    asked: list[str] = []

    async def lives(flow_run_ids: Collection[str]) -> Mapping[str, RunLife]:
        asked.extend(flow_run_ids)
        return {ended: RunLife.ENDED, live: RunLife.LIVE, silent: RunLife.SILENT}

    run, shared = Isolation.RUN, Isolation.SHARED
    go = [
        await make(daytona, profile, run, **{FLOW_RUN: ended}),
        await make(daytona, profile, run, **{FLOW_RUN: silent, LEASE_END: OVER}),
        await make(daytona, profile, run, **{LEASE_END: OVER}),
        await make(daytona, profile, shared, **{LEASE_END: OVER}),
    ]
    stay = [
        await make(daytona, profile, run, **{FLOW_RUN: live, LEASE_END: OVER}),
        await make(daytona, profile, run, **{FLOW_RUN: silent}),
        await make(daytona, profile, shared),
        await make(daytona, profile, Isolation.THREAD),
        await make(daytona, profile, run, **{MANAGED_BY: "", LEASE_END: OVER}),
        await make(daytona, profile, run, **{MANAGED_BY: "somebody-else", LEASE_END: OVER, FLOW_RUN: ended}),
        await make(daytona, profile, run, **{OWNER: "colleague@there", LEASE_END: OVER}),
    ]
    before = await states(daytona, profile)

    told = by_id(await sweep(daytona, lives=lives, owners=[OWNER_NAME], dry_run=True))
    assert await states(daytona, profile) == before, "a dry run does nothing"
    assert {box.id for box in go} == {key for key, one in told.items() if one.action is Action.DELETE}

    done = by_id(await sweep(daytona, lives=lives, owners=[OWNER_NAME]))
    assert {key: one.action for key, one in done.items()} == {key: one.action for key, one in told.items()}
    assert all(one.error is None and one.reason for one in done.values())
    assert await states(daytona, profile) == {box.id: SandboxState.STARTED for box in stay}
    assert set(asked) == {ended, live, silent}
    assert set(done) == {box.id for box in (*go, *stay[:4])}, "others are not even looked at"


async def test_an_idle_shared_sandbox_is_stopped_unless_a_program_runs_in_it(
    daytona: AsyncDaytona, profile: Profile
) -> None:
    idle = str(int(time.time()) + 1440 * 60 - 30)
    busy = await make(daytona, profile, Isolation.SHARED, **{LEASE_END: idle})
    quiet = await make(daytona, profile, Isolation.SHARED, **{LEASE_END: idle})
    await busy.process.create_session("in-use")
    command = f": lease={int(time.time()) + 600}"
    await busy.process.execute_session_command("in-use", SessionExecuteRequest(command=command, run_async=True))

    done = by_id(await sweep(daytona, lives=nobody, owners=[OWNER_NAME]))

    assert (done[quiet.id].action, done[busy.id].action) == (Action.STOP, Action.KEEP)
    found = await states(daytona, profile)
    assert (found[quiet.id], found[busy.id]) == (SandboxState.STOPPED, SandboxState.STARTED)


async def test_sessions_of_killed_clients_are_ended_in_a_sandbox_that_stays(
    daytona: AsyncDaytona, profile: Profile
) -> None:
    box = await make(daytona, profile, Isolation.SHARED)
    commands = {"abandoned": f": lease={int(time.time()) - 1}", "in-use": f": lease={int(time.time()) + 60}"}
    for session, command in commands.items():
        await box.process.create_session(session)
        await box.process.execute_session_command(session, SessionExecuteRequest(command=command, run_async=True))

    (done,) = await sweep(daytona, lives=nobody, owners=[OWNER_NAME])

    assert (done.action, done.sessions_ended) == (Action.KEEP, 1)
    assert [session.session_id for session in await box.process.list_sessions()] == ["in-use"]


async def test_a_lease_that_is_renewed_meanwhile_saves_the_sandbox(
    faulty: Faulty, daytona: AsyncDaytona, profile: Profile
) -> None:
    box = await make(daytona, profile, Isolation.RUN, **{LEASE_END: OVER})

    async def renewing(line: str) -> None:
        if line.startswith(f"GET /api/sandbox/{box.id}"):
            faulty.proxy.before = None
            await box.set_labels({**box.labels, LEASE_END: str(int(time.time()) + 60)})

    faulty.proxy.before = renewing
    (done,) = await sweep(faulty.daytona, lives=nobody, owners=[OWNER_NAME])
    assert done.action is Action.KEEP
    assert await states(daytona, profile) == {box.id: SandboxState.STARTED}


async def test_one_that_cannot_be_deleted_is_told_and_stops_no_other(
    faulty: Faulty, daytona: AsyncDaytona, profile: Profile
) -> None:
    stuck = await make(daytona, profile, Isolation.RUN, **{LEASE_END: OVER})
    other = await make(daytona, profile, Isolation.RUN, **{LEASE_END: OVER})
    faulty.proxy.harms = [Harm(f"DELETE /api/sandbox/{stuck.id}", status=503, times=9)]

    done = by_id(await sweep(faulty.daytona, lives=nobody, owners=[OWNER_NAME]))

    assert done[other.id].error is None
    assert "made to fail" in (done[stuck.id].error or "")
    assert await states(daytona, profile) == {stuck.id: SandboxState.STARTED}
    (again,) = [one for one in await sweep(daytona, lives=nobody, owners=[OWNER_NAME]) if one.action is Action.DELETE]
    assert (again.sandbox_id, again.error) == (stuck.id, None)
    assert not await states(daytona, profile)
