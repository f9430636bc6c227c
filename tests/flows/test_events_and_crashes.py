"""What the server does by itself: starts a run for an event, ends a run whose process died; with a real worker."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterName,
    FlowRunFilter,
    FlowRunFilterId,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.deployments import arun_deployment
from prefect.events import emit_event

from flows import prefect_api, validate
from flows.crash_detection import HEARTBEAT, NAME, automation, ensure_automation
from sandbox.connection import Credentials, client
from sandbox.models import ValidationRequest
from tests.conftest import send_what_waits
from tests.flows.test_deployments import POOL, environment, final, prefect, worker


async def run_of(api: PrefectClient, deployment: str) -> FlowRun:
    """Waits for the first run of a deployment."""
    async with asyncio.timeout(60):
        while True:
            found = await api.read_flow_runs(
                deployment_filter=DeploymentFilter(name=DeploymentFilterName(any_=[deployment]))
            )
            if found:
                return found[0]
            await asyncio.sleep(0.2)


async def until_refused(api: PrefectClient, run_id: uuid.UUID) -> None:
    """Waits until the automation has tried to end a run and the server has refused."""
    body = {"filter": {"event": {"name": ["prefect.automation.action.failed"]}}, "limit": 50}
    async with asyncio.timeout(60):
        while True:
            for event in (await api.request("POST", "/events/filter", json=body)).json()["events"]:
                if str(run_id) in str(event["related"]) and "terminal state" in str(event["payload"]):
                    return
            await asyncio.sleep(0.5)


async def first_heartbeat(api: PrefectClient, run_id: uuid.UUID) -> None:
    """Waits until the server has heard of a run: before that, nothing tells that it has died."""
    about = {"event": {"name": [HEARTBEAT]}, "resource": {"id": [f"prefect.flow-run.{run_id}"]}}
    async with asyncio.timeout(60):
        while True:
            if (await api.request("POST", "/events/filter", json={"filter": about, "limit": 1})).json()["events"]:
                return
            await asyncio.sleep(0.2)


def processes_with(text: str) -> list[int]:
    """Process ids of those whose environment holds a text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if text.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_an_event_starts_a_run_and_one_whose_process_is_killed_ends(
    prefect_server: str, credentials: Credentials
) -> None:
    marker = f"UOM_TEST_MARKER={uuid.uuid4().hex}"
    name, _, value = marker.partition("=")
    env = {**environment(prefect_server, credentials), name: value}
    await prefect("work-pool", "create", POOL, "--type", "process", "--overwrite", env=env)
    await prefect("--no-prompt", "deploy", "--name", "validate-requested", "--name", "validate-python", env=env)
    async with prefect_api(), client(credentials) as daytona, get_client() as api, worker(env):
        files = {"main.py": "print('asked for by an event')"}
        emit_event(
            "uom.validation.requested",
            resource={"prefect.resource.id": "uom.conversation.event-test"},
            payload={"profile": "python", "files": files, "thread_id": "event-test"},
        )
        await asyncio.to_thread(send_what_waits)
        requested = await final(await run_of(api, "validate-requested"))
        assert requested.parameters["files"] == files
        assert requested.parameters["thread_id"] == "event-test"
        assert requested.state is not None
        assert requested.state.name == "Passed", requested.state.message

        await ensure_automation(api, silent_seconds=15)
        try:
            endless = {"main.py": "import time\ntime.sleep(600)"}
            run = await arun_deployment(
                "validate/validate-python", parameters={"files": endless}, timeout=0, as_subflow=False
            )
            async with asyncio.timeout(60):
                while run.state is None or not run.state.is_running():
                    await asyncio.sleep(0.2)
                    run = await api.read_flow_run(run.id)
            await first_heartbeat(api, run.id)
            for pid in processes_with(marker):
                os.kill(pid, signal.SIGKILL)
            async with asyncio.timeout(90):
                ended = await final(run)
        finally:
            await ensure_automation(api)
            # The killed run's program still runs in it.
            await (await daytona.get("validation-sandbox-python-3-sandbox")).delete(timeout=60)
    assert ended.state is not None
    assert ended.state.type is StateType.CRASHED
    assert "no heartbeat" in (ended.state.message or "")


@pytest.mark.slow
async def test_a_late_heartbeat_does_not_harm_a_run_that_has_ended(
    prefect_server: str, credentials: Credentials
) -> None:
    async with prefect_api(), client(credentials), get_client() as api:
        await ensure_automation(api, silent_seconds=10)
        try:
            request = ValidationRequest(profile="python", files={"main.py": ""})
            result = await validate(request, credentials=credentials)
            assert result.flow_run_id is not None
            run = await api.read_flow_run(uuid.UUID(result.flow_run_id))
            emit_event(
                "prefect.flow-run.heartbeat",
                resource={"prefect.resource.id": f"prefect.flow-run.{run.id}"},
                related=[
                    {
                        "prefect.resource.id": f"prefect.flow.{run.flow_id}",
                        "prefect.resource.role": "flow",
                        "prefect.resource.name": "validate",
                    }
                ],
                occurred=datetime.now(UTC),
            )
            await asyncio.to_thread(send_what_waits)
            await until_refused(api, run.id)
            (after,) = await api.read_flow_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run.id])))
        finally:
            await ensure_automation(api)
    assert after.state is not None
    assert (after.state.type, after.state.name) == (StateType.COMPLETED, "Passed")


async def test_the_background_server_has_the_automation_once(prefect_server: str) -> None:
    async with prefect_api(), get_client() as api:
        first = await ensure_automation(api)
        assert await ensure_automation(api) == first
        found = await api.read_automations_by_name(NAME)
    assert [str(one.id) for one in found] == [first]
    assert found[0].trigger.model_dump(mode="json")["within"] == automation()["trigger"]["within"]
