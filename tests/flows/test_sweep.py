"""The flow ``sweep-sandboxes``, and what is left after a SIGKILL of a flow's process and of a worker: nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from daytona import AsyncDaytona, AsyncSandbox, CreateSandboxFromSnapshotParams, ListSandboxesQuery, SandboxState
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import State, StateType
from prefect.deployments import arun_deployment
from prefect.states import Crashed

from flows import prefect_api, validate
from flows.publisher import PUBLISHER
from flows.sweep import sweep_sandboxes
from sandbox.connection import Credentials, client
from sandbox.leases import LEASE_SECONDS, lease_end
from sandbox.models import Isolation, ValidationRequest
from sandbox.naming import FLOW_RUN, ISOLATION, LEASE_END, MANAGED_BY, MANAGER
from sandbox.sandbox_states import sandbox_state
from sandbox.sweep import Action, RunLife, Swept
from tests.endurance.processes import command_lines, until
from tests.flows.test_deployments import POOL, ROOT, environment, prefect
from tests.flows.test_events_and_crashes import processes_with

ENDLESS = "import subprocess\nsubprocess.run(['sh', '-c', 'setsid sleep {marker} & exec sleep {marker}'])"
CHILD = """
import asyncio, os
import sandbox.leases as leases
from flows import validate
leases.LEASE_SECONDS, leases.RENEW_SECONDS = 12.0, 1.0
request = {"profile": "python", "files": {"main.py": os.environ["SOURCE"]}, "isolation": "run"}
asyncio.run(validate(request))
"""


def marked() -> str:
    """A number of seconds that no other process sleeps for."""
    return f"9{uuid.uuid4().int % 10**9:09d}"


@pytest.fixture
def configured(credentials: Credentials, monkeypatch: pytest.MonkeyPatch) -> Credentials:
    """The platform of the environment, as a worker has it."""
    monkeypatch.setenv("DAYTONA_API_URL", credentials.api_url)
    monkeypatch.setenv("DAYTONA_API_KEY", credentials.api_key.get_secret_value())
    return credentials


async def own_sandboxes(daytona: AsyncDaytona) -> list[AsyncSandbox]:
    """Sandboxes of one run that are not being deleted."""
    query = ListSandboxesQuery(labels={MANAGED_BY: MANAGER, ISOLATION: Isolation.RUN.value})
    found = [box async for box in daytona.list(query)]
    return [box for box in found if sandbox_state(box.state) is not SandboxState.DESTROYING]


async def swept(**parameters: Any) -> tuple[State[Any], dict[str, Swept]]:
    state = await sweep_sandboxes(**parameters, return_state=True)
    found: Any = await state.aresult()
    return state, {one.sandbox_id: one for one in found}


@contextlib.asynccontextmanager
async def own_process(source: str, prefect_url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that validates a program in a sandbox of its own, with short leases."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CHILD),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_API_URL": prefect_url, "SOURCE": source},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def running_in_its_own(daytona: AsyncDaytona, marker: str) -> AsyncSandbox:
    assert await until(lambda: bool(command_lines(marker)), seconds=90)
    (box,) = await own_sandboxes(daytona)
    return box


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_nothing_is_left_of_a_killed_process_after_its_lease_and_one_sweep(
    prefect_server: str, configured: Credentials
) -> None:
    marker = marked()
    async with (
        prefect_api(),
        client(configured) as daytona,
        own_process(ENDLESS.format(marker=marker), prefect_server) as process,
    ):
        box = await running_in_its_own(daytona, marker)
        renewed = lease_end(box.labels)
        assert renewed is not None
        async with asyncio.timeout(30):
            while (lease_end(box.labels) or 0) <= renewed:
                await asyncio.sleep(0.2)
                await box.refresh_data()
        _, before = await swept()
        assert before[box.id].action is Action.KEEP
        assert before[box.id].run is RunLife.LIVE

        process.kill()
        await process.wait()
        killed = time.time()
        await box.refresh_data()
        end = lease_end(box.labels)
        assert end is not None
        assert end - killed <= 12
        await asyncio.sleep(max(0.0, end - time.time()) + 1.1)
        state, after = await swept(silent_seconds=1)

        assert (after[box.id].action, after[box.id].run, after[box.id].error) == (Action.DELETE, RunLife.SILENT, None)
        assert (state.type, state.name) == (StateType.COMPLETED, "Swept")
        assert await own_sandboxes(daytona) == []
        assert await until(lambda: not command_lines(marker), seconds=10)
        await end_run(box)


async def end_run(box: AsyncSandbox) -> None:
    """What the automation of ``flows.crash_detection`` does after a while."""
    async with get_client() as api:
        await api.set_flow_run_state(UUID(box.labels[FLOW_RUN]), Crashed(message="killed by a test"), force=True)


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_nothing_is_left_of_a_killed_worker_after_the_lease_and_one_sweep(
    prefect_server: str, configured: Credentials
) -> None:
    name, value, marker = "UOM_TEST_MARKER", uuid.uuid4().hex, marked()
    env = {**environment(prefect_server, configured), name: value}
    await prefect("work-pool", "create", POOL, "--type", "process", "--overwrite", env=env)
    await prefect("--no-prompt", "deploy", "--name", "validate-python", "--name", "sweep-sandboxes", env=env)
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=env,
        cwd=ROOT,
    )
    async with prefect_api(), client(configured) as daytona, get_client() as api:
        try:
            await pause_schedule(api)
            run = await arun_deployment(
                "validate/validate-python",
                parameters={"files": {"main.py": ENDLESS.format(marker=marker)}, "isolation": "run"},
                timeout=0,
                as_subflow=False,
            )
            box = await running_in_its_own(daytona, marker)
        finally:
            for pid in processes_with(f"{name}={value}"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await worker.wait()
        assert box.labels[FLOW_RUN] == str(run.id)
        left = lease_end(box.labels)
        assert left is not None
        assert left - time.time() <= LEASE_SECONDS
        state = (await api.read_flow_run(run.id)).state
        assert state is not None
        assert state.is_running(), "nobody tells Prefect"
        _, early = await swept(silent_seconds=1)
        assert early[box.id].action is Action.KEEP, "its lease is not over"

        # Six minutes later:
        await box.set_labels({**box.labels, LEASE_END: str(int(time.time()) - 1)})
        _, after = await swept(silent_seconds=1)

        assert (after[box.id].action, after[box.id].error) == (Action.DELETE, None)
        assert await own_sandboxes(daytona) == []
        assert await until(lambda: not command_lines(marker), seconds=10)
        await end_run(box)


async def pause_schedule(api: PrefectClient) -> None:
    """The deployed sweep must not begin by itself while a test counts sandboxes."""
    found = await api.read_deployment_by_name("sweep-sandboxes/sweep-sandboxes")
    await api.pause_deployment(found.id)


async def test_a_run_that_prefect_has_as_ended_frees_its_sandbox_before_its_lease_is_over(
    prefect_server: str, configured: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with prefect_api(), client(configured) as daytona:
        request = ValidationRequest(profile="python", files={"main.py": "print(1)"})
        result = await validate(request)
        assert result.sandbox is not None
        shared = await daytona.get(result.sandbox.sandbox_name)
        lease = str(int(time.time()) + 300)
        labels = {**shared.labels, ISOLATION: "run", FLOW_RUN: str(result.flow_run_id), LEASE_END: lease}
        left = await daytona.create(
            CreateSandboxFromSnapshotParams(
                name=f"left-{uuid.uuid4().hex[:8]}", snapshot=shared.snapshot, labels=labels, network_block_all=True
            )
        )
        _, first = await swept()
        assert first[left.id].action is Action.KEEP, "it may still be cleaning up"
        assert first[shared.id].action is Action.KEEP
        monkeypatch.setattr("flows.sweep.OWN_CLEANUP_SECONDS", 0.0)
        state, second = await swept()
        assert (second[left.id].action, second[left.id].run) == (Action.DELETE, RunLife.ENDED)
        assert second[shared.id].action is Action.KEEP
        assert await own_sandboxes(daytona) == []
        assert (await daytona.get(shared.name)).id == shared.id

        assert "1 deleted" in (state.message or "")
        assert PUBLISHER.flush(30)
        own = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[state.state_details.flow_run_id]))
        async with get_client() as api:
            (artifact,) = await api.read_artifacts(artifact_filter=own)
        assert artifact.key == "validation-sweep-sandboxes"
        assert left.name in str(artifact.data)
        assert "its run has ended" in str(artifact.data)


async def test_the_command_tells_what_became_of_each_sandbox(prefect_server: str, configured: Credentials) -> None:
    async with prefect_api(), client(configured):
        request = ValidationRequest(profile="python", files={"main.py": "print(1)"})
        result = await validate(request)
    assert result.sandbox is not None
    for options, told in (
        ((), f"{result.sandbox.sandbox_name}  kept (it is shared and kept warm)"),
        (("--owner", "nobody@nowhere", "--dry-run"), "there are no sandboxes of ours"),
    ):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "flows.cli", "sweep", *options),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env=environment(prefect_server, configured),
            cwd=ROOT,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0
        assert told in output.decode().splitlines()
