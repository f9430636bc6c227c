"""Runs in this process that are cancelled through Prefect's API, as its UI does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from uuid import UUID

import pytest
import pytest_asyncio
from daytona import AsyncDaytona, ListSandboxesQuery
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterParentFlowRunId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.states import Cancelled, Cancelling

from flows import prefect_api, validate, validate_translation
from sandbox.connection import Credentials, client
from sandbox.errors import SandboxError
from sandbox.events import Event
from sandbox.models import Isolation, Outcome, ValidationRequest
from sandbox.naming import MANAGED_BY, MANAGER

pytestmark = pytest.mark.usefixtures("prefect_server")

ENDLESS = "import time\nprint('on', flush=True)\ntime.sleep(600)"


@pytest_asyncio.fixture
async def daytona(credentials: Credentials) -> AsyncIterator[AsyncDaytona]:
    """Connections that the runs use, too."""
    async with prefect_api(), client(credentials) as opened:
        yield opened


def endless(thread: str, isolation: Isolation) -> ValidationRequest:
    return ValidationRequest(profile="python", files={"main.py": ENDLESS}, thread_id=thread, isolation=isolation)


async def newest_parentless_run() -> FlowRun:
    async with get_client() as api:
        # Deployments with a schedule have runs that lie ahead, too.
        begun = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(not_any_=[StateType.SCHEDULED])))
        runs = await api.read_flow_runs(flow_run_filter=begun, sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=10)
    return next(run for run in runs if run.parent_task_run_id is None)


async def left_in_sandboxes(daytona: AsyncDaytona) -> tuple[set[str], set[str]]:
    """Ids of our sandboxes that belong to one run, and of all sessions in the others."""
    own, sessions = set(), set()
    async for sandbox in daytona.list(ListSandboxesQuery(labels={MANAGED_BY: MANAGER})):
        if sandbox.labels.get("uom-isolation") == Isolation.RUN.value:
            own.add(sandbox.id)
        else:
            sessions |= {session.session_id for session in await sandbox.process.list_sessions()}
    return own, sessions


async def nothing_more_than(before: tuple[set[str], set[str]], daytona: AsyncDaytona) -> None:
    """A deletion that was accepted takes its time."""
    until = time.monotonic() + 10
    while (left := await left_in_sandboxes(daytona)) != before and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    assert left == before


@pytest.mark.parametrize("isolation", [Isolation.SHARED, Isolation.RUN])
@pytest.mark.parametrize("asked", [Cancelling, Cancelled])
async def test_a_call_in_this_process_ends_when_its_run_is_cancelled_in_prefect(
    credentials: Credentials, daytona: AsyncDaytona, isolation: Isolation, asked: Callable[[], State]
) -> None:
    assert (await validate({"profile": "python", "files": {"main.py": "1"}}, credentials=credentials)).passed
    before = await left_in_sandboxes(daytona)
    heard = asyncio.Event()

    def listen(event: Event) -> None:
        if event["type"].endswith("_stdout"):
            heard.set()

    running = asyncio.create_task(validate(endless("asked", isolation), on_event=listen, credentials=credentials))
    async with asyncio.timeout(60):
        await heard.wait()
    run = await newest_parentless_run()
    async with get_client() as api:
        await api.set_flow_run_state(run.id, asked(), force=True)
    async with asyncio.timeout(30):
        result = await running

    assert result.outcome is Outcome.CANCELLED
    assert result.flow_run_id == str(run.id)
    await nothing_more_than(before, daytona)
    async with get_client() as api:
        ended = await api.read_flow_run(UUID(result.flow_run_id))
    assert ended.state is not None
    assert ended.state.type is StateType.CANCELLED


async def test_a_run_that_ends_before_it_looks_keeps_its_verdict_and_does_not_stay_cancelling(
    credentials: Credentials, daytona: AsyncDaytona
) -> None:
    async def cancel(event: Event) -> None:
        if event["type"].endswith("_stdout"):
            run = await newest_parentless_run()
            async with get_client() as api:
                await api.set_flow_run_state(run.id, Cancelling(), force=True)

    program = "import time\nprint(1, flush=True)\ntime.sleep(1)"
    request = ValidationRequest(profile="python", files={"main.py": program})
    result = await validate(request, on_event=cancel, credentials=credentials)

    assert result.outcome is Outcome.PASSED
    async with get_client() as api:
        ended = await api.read_flow_run(UUID(str(result.flow_run_id)))
    assert ended.state is not None
    assert ended.state.type is StateType.CANCELLED


async def test_cancelling_a_translation_cancels_both_sides(credentials: Credentials, daytona: AsyncDaytona) -> None:
    before = await left_in_sandboxes(daytona)
    heard: dict[str, asyncio.Event] = {"source": asyncio.Event(), "target": asyncio.Event()}

    def listen(event: Event) -> None:
        if event["type"].endswith("_stdout"):
            heard[str(event.get("side"))].set()

    sides = (endless("both", Isolation.RUN), endless("both", Isolation.RUN))
    running = asyncio.create_task(validate_translation(*sides, on_event=listen, credentials=credentials))
    async with asyncio.timeout(60):
        await heard["source"].wait()
        await heard["target"].wait()
    run = await newest_parentless_run()
    async with get_client() as api:
        await api.set_flow_run_state(run.id, Cancelling(), force=True)
    async with asyncio.timeout(30):
        with pytest.raises(SandboxError, match="cancelled in Prefect"):
            await running

    await nothing_more_than(before, daytona)
    async with get_client() as api:
        ended = await api.read_flow_run(run.id)
        sub_runs = await api.read_flow_runs(
            flow_run_filter=FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run.id]))
        )
    assert ended.state is not None
    assert ended.state.type is StateType.CANCELLED
    assert len(sub_runs) == 2
    assert all(sub.state is not None and sub.state.is_final() for sub in sub_runs)
