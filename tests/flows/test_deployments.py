"""``prefect.yaml`` on a real server: deployed by Prefect's own command, run by a real worker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.deployments import arun_deployment

from flows import prefect_api
from sandbox.connection import Credentials, client
from sandbox.profiles import builtin_profile_names

ROOT = Path(__file__).parents[2]
POOL = "uom-sandbox"


def environment(url: str, credentials: Credentials) -> dict[str, str]:
    return {
        **os.environ,
        "PREFECT_API_URL": url,
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "NOTSET",
        "DAYTONA_API_URL": credentials.api_url,
        "DAYTONA_API_KEY": credentials.api_key.get_secret_value(),
    }


async def prefect(*words: str, env: dict[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "prefect", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=env,
        cwd=ROOT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


@contextlib.asynccontextmanager
async def worker(env: dict[str, str]) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=env,
        cwd=ROOT,
    )
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        try:
            await asyncio.wait_for(process.wait(), 30)
        except TimeoutError:
            process.kill()
            await process.wait()


async def final(run: FlowRun) -> FlowRun:
    """Waits for the end of a run."""
    async with asyncio.timeout(200), get_client() as api:
        while run.state is None or not run.state.is_final():
            await asyncio.sleep(0.5)
            run = await api.read_flow_run(run.id)
    return run


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_deployments_are_made_and_a_worker_runs_them(prefect_server: str, credentials: Credentials) -> None:
    env = environment(prefect_server, credentials)
    await prefect("work-pool", "create", POOL, "--type", "process", "--overwrite", env=env)
    for _ in range(2):
        await prefect("--no-prompt", "deploy", "--all", env=env)
    async with prefect_api(), client(credentials) as daytona, get_client() as api:
        deployments = await api.read_deployments()
        names = sorted(deployment.name for deployment in deployments)
        validations = [f"validate-{name}" for name in (*builtin_profile_names(), "requested", "translation")]
        assert names == sorted([*validations, "sweep-sandboxes", "warm-snapshots"])
        for deployment in deployments:
            assert deployment.description
            assert deployment.work_pool_name == POOL
            assert deployment.parameter_openapi_schema is not None
            for name, field in deployment.parameter_openapi_schema["properties"].items():
                assert field.get("description"), f"{deployment.name}: the form does not explain {name}"
            if cron := {"warm-snapshots": "0 3 * * *", "sweep-sandboxes": "*/10 * * * *"}.get(deployment.name):
                assert [one.schedule.model_dump()["cron"] for one in deployment.schedules] == [cron]
                continue
            if deployment.name == "validate-translation":
                assert deployment.parameter_openapi_schema["required"] == ["source", "target"]
                continue
            assert deployment.parameter_openapi_schema["properties"]["files"]["description"]
            assert deployment.parameter_openapi_schema["required"] == ["profile"]

        async with worker(env):
            right, wrong, impossible = await asyncio.gather(
                *(
                    arun_deployment("validate/validate-python", parameters=parameters, timeout=0, as_subflow=False)
                    for parameters in (
                        {"files": {"main.py": "print('from a worker')"}},
                        {"files": {"main.py": "def broken(:"}},
                        {"files": {"../main.py": "print(1)"}},
                    )
                )
            )
            right, wrong, impossible = [await final(run) for run in (right, wrong, impossible)]
        logs = await api.read_logs(log_filter=LogFilter(flow_run_id=LogFilterFlowRunId(any_=[right.id])))
        assert any("[stdout] from a worker" in log.message for log in logs), "the end of a short run was not sent"
        sandbox = await daytona.get("validation-sandbox-python-3-sandbox")
        assert await sandbox.process.list_sessions() == []
    assert right.state is not None
    assert (right.state.type, right.state.name) == (StateType.COMPLETED, "Passed")
    assert right.name.startswith("validate-python-plain-")
    assert wrong.state is not None
    assert (wrong.state.type, wrong.state.name) == (StateType.COMPLETED, "CompileError")
    assert impossible.state is not None
    assert impossible.state.type is StateType.FAILED
    assert "files" in (impossible.state.message or "")
