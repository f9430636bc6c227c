"""The background Prefect server: started once, shared, found again, ended cleanly."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from prefect import flow, task
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.prefect_connection import prefect_api
from flows.prefect_process import ServerProcess
from flows.prefect_server import PrefectServer, server_settings
from sandbox.errors import ConfigurationError, PlatformUnavailableError
from tests.scratch import scratch_directory


@pytest_asyncio.fixture
async def server() -> AsyncIterator[PrefectServer]:
    home = scratch_directory()
    server = PrefectServer(home)
    yield server
    await server.stop()
    shutil.rmtree(home)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_callers_that_race_get_one_server_and_it_ends(server: PrefectServer) -> None:
    said: list[str] = []
    first, second = await asyncio.gather(server.start(progress=said.append), server.start(progress=said.append))
    assert first == second
    assert "starting the Prefect server, once, about 30 s" in said
    status = await server.status()
    assert status.healthy
    assert status.process == first
    assert await PrefectServer(server.directory.parent).start() == first
    assert (server.directory.stat().st_mode & 0o777) == 0o700

    file = server.directory / "server.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"network": 1}))
    assert not (await server.status()).healthy
    here = await server.start(progress=said.append)
    assert not first.alive
    assert here.reachable
    assert "the Prefect server runs in another network namespace: stopping it there" in said

    os.killpg(here.pid, signal.SIGKILL)
    async with asyncio.timeout(10):
        while here.alive:  # noqa: ASYNC110 - it is another process
            await asyncio.sleep(0.05)
    assert not (await server.status()).healthy
    again = await server.start()
    assert again.pid != here.pid

    assert await server.stop()
    assert not again.alive
    assert not await server.stop()
    assert (await server.status()).process is None


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_servers_of_two_homes_that_start_at_once_are_not_mixed_up(server: PrefectServer) -> None:
    other_home = scratch_directory()
    other = PrefectServer(other_home)
    try:
        first, second = await asyncio.gather(server.start(), other.start())
        assert first.port != second.port
        assert first.listening
        assert second.listening
    finally:
        await other.stop()
        shutil.rmtree(other_home)


@task
async def step(number: int) -> int:
    return number + 1


@flow
async def five_steps() -> int:
    number = 0
    for _ in range(5):
        number = await step(number)
    return number


@pytest.mark.slow
async def test_back_to_back_flows_never_meet_a_locked_database(prefect_server: str, home: Path) -> None:
    async with prefect_api():
        for _ in range(20):
            assert await five_steps() == 5
    log = (home / "prefect" / "server.log").read_text()
    assert "database is locked" not in log
    assert "503" not in log


def test_the_server_writes_the_database_of_its_home(prefect_server: str, home: Path) -> None:
    assert (home / "prefect" / "prefect.db").stat().st_size > 0
    assert ":memory:" in server_settings(home, port=1)["PREFECT_SERVER_DATABASE_CONNECTION_URL"]


async def test_the_ui_is_at_its_root_and_the_settings_against_stalls_are_in_force(prefect_server: str) -> None:
    root = prefect_server.removesuffix("/api")
    async with httpx.AsyncClient(base_url=root, follow_redirects=True) as browser:
        page = await browser.get("/")
        assert page.status_code == 200
        assert "<title>" in page.text
        assert (await browser.get("/ui-settings")).json()["api_url"] == prefect_server
        settings = (await browser.get("/api/admin/settings")).json()
    recorder = settings["server"]["services"]["task_run_recorder"]
    assert (recorder["batch_size"], recorder["read_batch_size"], recorder["flush_interval"]) == (100, 50, 1)
    assert settings["server"]["concurrency"]["maximum_concurrency_slot_wait_seconds"] == 1
    assert settings["server"]["analytics_enabled"] is False


async def test_a_server_that_cannot_start_is_an_error_with_its_log(server: PrefectServer) -> None:
    broken = PrefectServer(
        server.directory.parent, extra_settings={"PREFECT_SERVER_DATABASE_CONNECTION_URL": "sqlite+nothing:///x"}
    )
    with pytest.raises(PlatformUnavailableError, match="ended while it was starting") as caught:
        await broken.start()
    assert "sqlite+nothing" in str(caught.value) or "sqlite.nothing" in str(caught.value)
    assert (await broken.status()).process is None


async def test_a_reused_process_id_is_not_the_server(server: PrefectServer) -> None:
    server.directory.mkdir(parents=True)
    stranger = ServerProcess(pid=os.getpid(), started="1", boot="other", port=1, prefect="3.9.1")
    (server.directory / "server.json").write_text(
        json.dumps({name: getattr(stranger, name) for name in ("pid", "started", "boot", "port", "prefect")})
    )
    assert server.read() is None
    assert not await server.stop()


def test_it_keeps_to_the_directory_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UOM_SANDBOX_HOME", "/srv/uom")
    assert PrefectServer().directory == Path("/srv/uom/prefect")
    monkeypatch.setenv("UOM_SANDBOX_HOME", "relative/place")
    with pytest.raises(ConfigurationError, match="UOM_SANDBOX_HOME must be an absolute path"):
        PrefectServer()


async def test_a_configured_api_is_used_and_its_silence_told() -> None:
    nowhere = temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"})
    with nowhere, pytest.raises(PlatformUnavailableError, match=r"http://127\.0\.0\.1:9/api"):
        async with prefect_api():
            pytest.fail("nothing listens there")
