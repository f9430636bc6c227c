"""The background service, as separate processes use it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from daytona import AsyncDaytona, DaytonaConfig

from sandbox.local import service
from sandbox.local.diagnosis import diagnose
from sandbox.local.process_identity import network_namespace, start_time
from sandbox.local.settings import Settings
from tests.local.platforms import running_platform, scratch_home

ROOT = Path(__file__).parents[3]


@pytest_asyncio.fixture
async def settings() -> AsyncIterator[Settings]:
    async with scratch_home() as home:
        made = Settings(home=home)
        yield made
        await asyncio.to_thread(service.stop, made)


def descendants(pid: int) -> dict[int, int]:
    """Every process below one, with its start time."""
    found: dict[int, int] = {}
    todo = [pid]
    while todo:
        for task in Path(f"/proc/{todo.pop()}/task").iterdir():
            for child in (task / "children").read_text().split():
                started = start_time(int(child))
                if started is not None:
                    found[int(child)] = started
                    todo.append(int(child))
    return found


def wait_until_gone(processes: dict[int, int]) -> None:
    deadline = time.monotonic() + 10
    while left := {pid for pid, started in processes.items() if start_time(pid) == started}:
        assert time.monotonic() < deadline, f"still there: {left}"


def of_process(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


def run(settings: Settings, code: str) -> subprocess.Popen[str]:
    environment = os.environ | settings.to_environment()
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


async def test_started_used_found_stopped(settings: Settings) -> None:
    assert service.status(settings).running is False
    assert service.stop(settings) is False
    first = await asyncio.to_thread(service.start, settings)
    assert (first.reused, first.differs) == (False, ())
    assert first.api_key not in repr(first)
    second = await asyncio.to_thread(service.start, settings)
    assert (second.pid, second.api_url, second.reused) == (first.pid, first.api_url, True)
    state = service.status(settings)
    assert (state.running, state.answers) == (True, True)
    async with AsyncDaytona(DaytonaConfig(api_url=first.api_url, api_key=first.api_key)) as daytona:
        sandbox = await daytona.create()
        assert (await sandbox.process.exec("echo hello")).result == "hello\n"
    directory = settings.platform_directory
    for name in ("connection.json", "api-key", "platform.log", "state.sqlite"):
        assert stat.S_IMODE((directory / name).stat().st_mode) == 0o600, name
    assert first.api_key not in (directory / "connection.json").read_text()
    assert first.api_key not in of_process(first.pid, "cmdline")
    assert os.getsid(first.pid) != os.getsid(0)
    assert "serving http://127.0.0.1" in service.logs(settings)

    below = descendants(first.pid)
    assert await asyncio.to_thread(service.stop, settings) is True
    assert start_time(first.pid) is None
    wait_until_gone(below)
    assert service.status(settings).running is False
    third = await asyncio.to_thread(service.start, settings)
    assert third.api_url == first.api_url, "clients that know the address find the new process there"
    assert third.pid != first.pid


async def test_killed_outright_it_leaves_no_process_and_starts_again(settings: Settings) -> None:
    connection = await asyncio.to_thread(service.start, settings)
    async with AsyncDaytona(DaytonaConfig(api_url=connection.api_url, api_key=connection.api_key)) as daytona:
        sandbox = await daytona.create()
        await sandbox.process.create_session("s")
        await sandbox.process.exec("echo kept > ~/file")
        from daytona import SessionExecuteRequest

        command = "setsid sh -c 'trap \"\" TERM; sleep 600' & sleep 600"
        await sandbox.process.execute_session_command("s", SessionExecuteRequest(command=command, run_async=True))
        await sandbox.process.exec("until pgrep -f 'sleep 600' > /dev/null; do :; done")
        below = descendants(connection.pid)
        assert len(below) >= 3
        os.kill(connection.pid, signal.SIGKILL)
        wait_until_gone(below)
    again = await asyncio.to_thread(service.start, settings)
    assert again.api_url == connection.api_url
    async with AsyncDaytona(DaytonaConfig(api_url=again.api_url, api_key=again.api_key)) as daytona:
        found = await daytona.get(sandbox.id)
        assert found.state == "stopped"
        await found.start()
        assert (await found.process.exec("cat ~/file")).result == "kept\n"


async def test_many_starters_one_service(settings: Settings) -> None:
    code = (
        "import sandbox.local.service as s, json; c = s.start();"
        "print(json.dumps([c.pid, c.api_url, c.reused]), flush=True)"
    )
    starters = [run(settings, code) for _ in range(4)]
    answers = [json.loads((await asyncio.to_thread(starter.communicate))[0]) for starter in starters]
    assert all(starter.returncode == 0 for starter in starters)
    assert len({(pid, url) for pid, url, _ in answers}) == 1
    assert [reused for _, _, reused in answers].count(False) == 1


async def test_one_in_another_network_namespace_gives_way(settings: Settings) -> None:
    first = await asyncio.to_thread(service.start, settings)
    file = settings.platform_directory / "connection.json"
    document = json.loads(file.read_text())
    assert document["network"] == network_namespace()
    file.write_text(json.dumps(document | {"network": 1}))
    state = service.status(settings)
    assert (state.running, state.answers) == (True, False)
    assert "another network namespace" in state.detail

    second = await asyncio.to_thread(service.start, settings)
    assert (second.reused, second.reachable) == (False, True)
    assert start_time(first.pid) is None
    assert service.status(settings).answers


async def test_reset_removes_everything(settings: Settings) -> None:
    connection = await asyncio.to_thread(service.start, settings)
    async with AsyncDaytona(DaytonaConfig(api_url=connection.api_url, api_key=connection.api_key)) as daytona:
        sandbox = await daytona.create()
        await sandbox.process.exec("mkdir -p ~/a/b; echo x > ~/a/b/c; chmod 000 ~/a/b; chmod 000 ~/a")
    await asyncio.to_thread(service.reset, settings)
    assert {entry.name for entry in settings.platform_directory.iterdir()} == {"platform.lock"}
    new = await asyncio.to_thread(service.start, settings)
    assert new.api_key != connection.api_key


async def test_a_platform_of_another_program_is_left_alone(settings: Settings) -> None:
    async with running_platform() as other:
        taken = other.settings
        state = service.status(taken)
        assert (state.running, state.answers) == (True, False)
        with pytest.raises(service.ServiceError, match="platform of its own"):
            await asyncio.to_thread(service.start, taken)
        with pytest.raises(service.ServiceError, match="another platform uses"):
            await asyncio.to_thread(service.reset, taken)
        assert await asyncio.to_thread(service.stop, taken) is False


async def test_a_start_that_fails_says_why(settings: Settings) -> None:
    settings.platform_directory.mkdir()
    (settings.platform_directory / "state.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(service.ServiceError, match=r"state\.sqlite"):
        await asyncio.to_thread(service.start, settings)
    assert service.status(settings).running is False


async def test_other_settings_than_it_was_started_with_are_told(settings: Settings) -> None:
    await asyncio.to_thread(service.start, settings)
    other = Settings(home=settings.home, max_sandboxes=3)
    assert "UOM_MAX_SANDBOXES" in service.status(other).detail
    assert (await asyncio.to_thread(service.start, other)).differs == ("UOM_MAX_SANDBOXES",)


async def test_secrets_of_the_starter_do_not_live_on(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYTONA_API_KEY", "a secret of the terminal")
    connection = await asyncio.to_thread(service.start, settings)
    assert "a secret of the terminal" not in of_process(connection.pid, "environ")


async def test_a_connection_file_of_a_dead_process_is_not_believed(settings: Settings) -> None:
    settings.platform_directory.mkdir()
    document = {"api_url": "http://127.0.0.1:1/api", "pid": os.getpid(), "started": 1, "version": "0", "settings": {}}
    for text in (json.dumps(document), "{", "[]", "{}"):
        (settings.platform_directory / "connection.json").write_text(text)
        assert service.status(settings).running is False
        assert service.stop(settings) is False


async def test_what_the_doctor_finds(settings: Settings) -> None:
    without = {check.name: check for check in await asyncio.to_thread(diagnose, settings)}
    assert without["sandbox"].ok, without["sandbox"]
    assert without["bubblewrap"].ok
    assert without["data directory"].ok
    assert without["service"].detail == "not running"
    assert without["python3"].ok
    assert not any(entry.name.startswith("doctor-") for entry in settings.home.iterdir())
    await asyncio.to_thread(service.start, settings)
    (settings.platform_directory / "api-key").chmod(0o644)
    running = {check.name: check for check in await asyncio.to_thread(diagnose, settings)}
    assert running["key"].remedy.startswith("chmod 600")
    assert "running service" in running["sandbox"].detail
    assert "running at" in running["service"].detail
