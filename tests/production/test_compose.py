"""The compose file: its structure, its variables, and the whole of it as processes with a real PostgreSQL and Redis."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from prefect.blocks.system import Secret
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId
from prefect.deployments import arun_deployment
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from redis.asyncio import Redis

from blocks import DaytonaCredentials
from flows import prefect_api
from sandbox.connection import Credentials
from tests.databases.postgresql import programs, running_postgresql
from tests.databases.server import Server, closed_port
from tests.production.compose import COMPOSE, ROOT, VARIABLE, Services, document, filled_in
from tests.scratch import scratch_directory

AUTH = "operator:s3cret-auth"
SECRET = "gehe1m-0815-4711"
PROGRAM = """\
import json, os
print("the password is", os.environ["PASSWORD"])
with open(os.environ["UOM_RESULT_FILE"], "w") as file:
    json.dump({"password": os.environ["PASSWORD"]}, file)
"""
NEEDED = {"POSTGRES_PASSWORD": "p", "PREFECT_AUTH": AUTH, "DAYTONA_API_KEY": "k"}


def test_every_service_is_whole() -> None:
    compose = document()
    services, networks, volumes = compose["services"], set(compose["networks"]), set(compose["volumes"])
    assert set(services) == {"postgres", "redis", "migrate", "server", "services", "setup", "worker"}
    for name, service in services.items():
        assert re.fullmatch(r"[\w./-]+:[\w.-]*\d[\w.-]*", service["image"]), f"{name}: pin the image"
        assert set(service["networks"]) <= networks
        assert {volume.split(":")[0] for volume in service.get("volumes", ())} <= volumes
        for other, how in service.get("depends_on", {}).items():
            healthy = how["condition"] == "service_healthy"
            assert healthy == ("healthcheck" in services[other]), f"{name} waits for {other}"
    own = [service for service in services.values() if service["image"].startswith("uom-sandbox:")]
    assert all((COMPOSE.parent / service["build"]["context"]).resolve() == ROOT for service in own)
    assert all((ROOT / service["build"]["dockerfile"]).is_file() for service in own)
    assert all(service["cap_drop"] == ["ALL"] for service in own)


def test_databases_are_reached_by_the_server_alone_and_workers_know_no_password_of_theirs() -> None:
    compose = document()
    assert compose["networks"]["data"] == {"internal": True}
    services = compose["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["server"]
    assert services["worker"]["networks"] == ["api"]
    assert not [name for name in services["worker"]["environment"] if "DATABASE" in name or "REDIS" in name]
    assert not [
        name
        for name, service in services.items()
        if "DAYTONA_API_KEY" in service.get("environment", {}) and name != "worker"
    ]


def test_secrets_are_needed_and_every_variable_is_in_the_example() -> None:
    used = {found[0] for found in VARIABLE.findall(COMPOSE.read_text())}
    example = (COMPOSE.parent / "env.example").read_text()
    assert set(re.findall(r"^(\w+)=", example, re.MULTILINE)) == used
    assert filled_in(document(), NEEDED)["services"]["server"]["ports"] == ["127.0.0.1:4200:4200"]
    for name in NEEDED:
        with pytest.raises(KeyError, match=rf"{name}: set it in deploy/\.env"):
            filled_in(document(), {other: value for other, value in NEEDED.items() if other != name})


def test_the_image_has_what_it_copies_and_what_its_ignore_file_lets_in() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE)
    paths = {path for line in copied for path in line.split()}
    assert paths
    assert all((ROOT / path).exists() for path in paths)
    let_in = set(re.findall(r"^!(.+)$", (ROOT / "deploy/Dockerfile.dockerignore").read_text(), re.MULTILINE))
    assert paths == let_in


@pytest.fixture
def directory() -> Iterator[Path]:
    path = scratch_directory()
    yield path
    shutil.rmtree(path)


@pytest_asyncio.fixture
async def postgresql(directory: Path) -> AsyncIterator[Server]:
    found = programs()
    if found is None:
        pytest.skip("no PostgreSQL server on this machine")
    scratch = directory / "postgresql"
    scratch.mkdir()
    scratch.chmod(0o711)
    async with running_postgresql(found, scratch=scratch) as server:
        yield server


@pytest_asyncio.fixture
async def redis_port(directory: Path) -> AsyncIterator[int]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no Redis server on this machine")
    port = closed_port()
    words = [program, "--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory)]
    process = await asyncio.create_subprocess_exec(
        *words, *document()["services"]["redis"]["command"][1:], stdout=asyncio.subprocess.DEVNULL
    )
    try:
        yield port
    finally:
        process.terminate()
        await process.wait()


async def answering(url: str, process: asyncio.subprocess.Process, told: Any) -> None:
    """Waits until an address answers; a process that ends first is a failure with its log."""
    async with asyncio.timeout(150), httpx.AsyncClient() as http:
        while True:
            assert process.returncode is None, told()
            with contextlib.suppress(httpx.HTTPError):
                if (await http.get(url)).status_code == 200:
                    return
            await asyncio.sleep(0.3)


async def everything_in(server: Server) -> str:
    """A dump of the database as text."""
    directory = programs()
    assert directory is not None
    process = await asyncio.create_subprocess_exec(
        *(str(directory / "pg_dump"), "--host=127.0.0.1", f"--port={server.port}", f"--username={server.user}"),
        *("--inserts", server.path.removeprefix("/")),
        stdout=asyncio.subprocess.PIPE,
        env={"PGPASSWORD": server.password},
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


@pytest.mark.slow
@pytest.mark.timeout(500)
async def test_the_services_together_run_a_validation(
    postgresql: Server, redis_port: int, credentials: Credentials, directory: Path
) -> None:
    api, health = closed_port(), closed_port()
    given = {
        "POSTGRES_PASSWORD": postgresql.password,
        "PREFECT_AUTH": AUTH,
        "DAYTONA_API_KEY": credentials.api_key.get_secret_value(),
        "DAYTONA_API_URL": credentials.api_url,
    }
    services = Services(
        filled_in(document(), given)["services"],
        moved={
            "redis://redis:6379": f"redis://127.0.0.1:{redis_port}",
            "http://server:4200": f"http://127.0.0.1:{api}",
        },
        extra={
            "PREFECT_SERVER_DATABASE_HOST": "127.0.0.1",
            "PREFECT_SERVER_DATABASE_PORT": str(postgresql.port),
            "PREFECT_SERVER_DATABASE_USER": postgresql.user,
            "PREFECT_SERVER_DATABASE_NAME": postgresql.path.removeprefix("/"),
            "PREFECT_SERVER_API_HOST": "127.0.0.1",
            "PREFECT_SERVER_API_PORT": str(api),
        },
        directory=directory,
    )
    await services.to_the_end("migrate")
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(services.running("server"))
        await stack.enter_async_context(services.running("services"))
        await answering(f"http://127.0.0.1:{api}/api/health", server, lambda: services.log("server"))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{api}/api") as stranger:
            assert (await stranger.post("/flow_runs/filter", json={})).status_code == 401
        for _ in range(2):
            await services.to_the_end("setup")
        worker = await stack.enter_async_context(
            services.running(
                "worker",
                PREFECT_WORKER_WEBSERVER_HOST="127.0.0.1",
                PREFECT_WORKER_WEBSERVER_PORT=str(health),
                PREFECT_WORKER_QUERY_SECONDS="1",
            )
        )
        await answering(f"http://127.0.0.1:{health}/health", worker, lambda: services.log("worker"))
        settings = {PREFECT_API_URL: f"http://127.0.0.1:{api}/api", PREFECT_API_AUTH_STRING: AUTH}
        stack.enter_context(temporary_settings(settings))
        await stack.enter_async_context(prefect_api())
        await Secret(value=SECRET).asave("shop-password")
        await DaytonaCredentials(api_key=credentials.api_key, api_url=credentials.api_url).asave("daytona")
        run = await arun_deployment(
            "validate/validate-python",
            parameters={
                "files": {"main.py": PROGRAM},
                "secret_blocks": {"PASSWORD": "shop-password"},
                "credentials_block": "daytona",
            },
            timeout=200,
            poll_interval=1,
            as_subflow=False,
        )
        assert run.state is not None, services.log("worker")
        assert (run.state.type.value, run.state.name) == ("COMPLETED", "Passed"), services.log("worker")
        async with get_client() as client:
            assert {pool.name for pool in await client.read_work_pools()} >= {"uom-sandbox"}
            assert await client.read_block_document_by_name("java", "sandbox-profile")
            assert run.parameters["secret_blocks"] == {"PASSWORD": "shop-password"}
            of_run = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run.id]))
            async with asyncio.timeout(30):
                # The worker's process sends them.
                while not any("the password" in log.message for log in await client.read_logs(of_run)):  # noqa: ASYNC110
                    await asyncio.sleep(0.5)
        async with Redis(port=redis_port) as redis:
            events = repr(await redis.xrange("events"))
        assert str(run.id) in events, "events did not go through Redis"
        stored = await everything_in(postgresql)
        assert str(run.id) in stored
        assert "the password is" in stored
        for secret in (SECRET, credentials.api_key.get_secret_value()):
            assert secret not in stored
            assert secret not in events
    logs = "".join(services.log(name) for name in ("server", "services", "setup", "worker"))
    for secret in (SECRET, AUTH.partition(":")[2], postgresql.password, credentials.api_key.get_secret_value()):
        assert secret not in logs
