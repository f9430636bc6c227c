"""The control API of faults: off unless asked for, behind a key of its own, and without effect until it is used."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio
from daytona import AsyncDaytona, DaytonaConnectionError, DaytonaError, SandboxState

from sandbox.local.fault_control import CONTROL_FILE
from sandbox.local.server import LocalPlatform
from sandbox.sandbox_states import sandbox_state
from tests.local.platforms import RawClient, raw_client, running_platform

Control = Callable[..., Awaitable[tuple[int, Any]]]


@pytest_asyncio.fixture(loop_scope="session")
async def control(platform: LocalPlatform) -> AsyncIterator[Control]:
    """One request to the control API; whatever it set is reset in the end."""
    place = json.loads((platform.settings.platform_directory / CONTROL_FILE).read_text())

    async def ask(method: str, path: str = "", body: Any = None, *, key: str = place["key"]) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {key}"}
        async with session.request(method, place["url"] + path, json=body, headers=headers) as response:
            text = await response.text()
            return response.status, json.loads(text) if text else None

    async with aiohttp.ClientSession() as session:
        yield ask
        assert (await ask("DELETE"))[0] == 204


async def test_it_is_not_there_unless_asked_for() -> None:
    async with running_platform(fault_control=False) as plain, raw_client(plain) as raw:
        assert not (plain.settings.platform_directory / CONTROL_FILE).exists()
        with pytest.raises(RuntimeError, match="UOM_FAULT_CONTROL"):
            _ = plain.faults
        assert type(plain.plane.views).__name__ == "Views"
        for path in ("/control", "/control/faults"):
            assert (await raw("POST", path, {})).status == 404
        root = plain.api_url.removesuffix("/api")
        headers = {"Authorization": f"Bearer {plain.api_key}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            for method, path in (("GET", "/control"), ("POST", "/control/faults"), ("DELETE", "/control")):
                async with session.request(method, root + path) as answer:
                    assert answer.status == 404


async def test_its_key_is_its_own_and_private(platform: LocalPlatform, control: Control) -> None:
    path = platform.settings.platform_directory / CONTROL_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert (await control("GET", key=platform.api_key))[0] == 401
    assert (await control("GET"))[1] == {"faults": [], "states": [], "clock": 0.0}


async def test_answers_are_the_same_with_it_and_without(raw: RawClient) -> None:
    async with running_platform(fault_control=False) as plain, raw_client(plain) as other:
        for path in ("/health", "/volumes", "/sandbox", "/sandbox/none", "/nowhere"):
            one, two = await raw("GET", path), await other("GET", path)
            assert one.status == two.status, path
            assert set(one.headers) == set(two.headers), path
            if path == "/volumes":
                assert one.body == two.body


@pytest.mark.parametrize("word", [state.value for state in SandboxState] + ["a state of tomorrow"])
async def test_a_sandbox_shows_any_state_and_leaves_it_on_reset(
    control: Control, daytona: AsyncDaytona, word: str
) -> None:
    sandbox = await daytona.create()
    body = {"kind": "sandbox", "target": sandbox.id, "state": word}
    assert (await control("POST", "/states", body))[0] == 201
    await sandbox.refresh_data()
    assert sandbox_state(sandbox.state) is sandbox_state(word)
    await control("DELETE")
    await sandbox.refresh_data()
    assert sandbox_state(sandbox.state) is SandboxState.STARTED
    await sandbox.delete()


async def test_a_state_from_a_read_on_for_some_reads(control: Control, daytona: AsyncDaytona, raw: RawClient) -> None:
    sandbox = await daytona.create()
    body = {"kind": "sandbox", "target": sandbox.id, "state": "error", "fields": {"errorReason": "on fire"}}
    await control("POST", "/states", body | {"after_reads": 1, "reads": 2})
    answers = [(await raw("GET", f"/sandbox/{sandbox.id}")).body for _ in range(4)]
    assert [answer["state"] for answer in answers] == ["started", "error", "error", "started"]
    assert [answer.get("errorReason") for answer in answers] == [None, "on fire", "on fire", None]
    await sandbox.delete()


async def test_any_status_with_any_headers(control: Control, raw: RawClient) -> None:
    fault = {"kind": "fail", "path": "/api/volumes", "times": 2}
    await control("POST", "/faults", fault | {"status": 429, "headers": {"Retry-After": "7"}})
    answers = [await raw("GET", "/volumes") for _ in range(2)]
    assert [(answer.status, answer.headers["Retry-After"]) for answer in answers] == [(429, "7")] * 2
    await control("POST", "/faults", fault | {"status": 202, "headers": {"X-Word": "yes"}})
    answer = await raw("GET", "/volumes")
    assert (answer.status, answer.headers["X-Word"]) == (202, "yes")


async def test_only_websockets_are_refused(control: Control, raw: RawClient) -> None:
    body = {"kind": "fail", "path": "/api/volumes", "times": None, "status": 503, "websocket": True}
    await control("POST", "/faults", body)
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
    assert (await raw("GET", "/volumes", headers=upgrade)).status == 503
    assert (await raw("GET", "/volumes")).status == 200


async def test_a_snapshot_shows_any_state(control: Control, daytona: AsyncDaytona) -> None:
    snapshots = (await daytona.snapshot.list()).items
    assert snapshots, "the platform brings one along"
    name = snapshots[0].name
    for word in ("building", "error", "build_failed", "removing", "inactive", "pending", "pulling"):
        await control("POST", "/states", {"kind": "snapshot", "target": name, "state": word})
        assert (await daytona.snapshot.get(name)).state.value == word
        await control("DELETE")
    assert (await daytona.snapshot.get(name)).state.value == "active"


async def test_a_frozen_stream_stays_open_and_silent_until_reset(control: Control, platform: LocalPlatform) -> None:
    await control("POST", "/faults", {"kind": "freeze_stream", "path": "/api/health", "method": "POST", "size": 10})
    where = urlsplit(platform.api_url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    head = f"POST /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {platform.api_key}\r\n\r\n"
    writer.write(head.encode())
    assert await reader.readexactly(10) == b"HTTP/1.1 4"  # a POST is not allowed there
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(1), 0.3)
    await control("DELETE")
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()


async def test_a_failed_delete_leaves_the_sandbox(control: Control, daytona: AsyncDaytona) -> None:
    sandbox = await daytona.create()
    await control("POST", "/faults", {"kind": "fail", "method": "DELETE", "path": f"/api/sandbox/{sandbox.id}"})
    with pytest.raises(DaytonaError):
        await sandbox.delete()
    assert sandbox_state((await daytona.get(sandbox.id)).state) is SandboxState.STARTED
    await sandbox.delete()


async def test_a_killed_toolbox_answers_again_after_a_start(control: Control, daytona: AsyncDaytona) -> None:
    sandbox = await daytona.create()
    await control("POST", f"/toolbox/{sandbox.id}")
    with pytest.raises(DaytonaError, match="does not answer"):
        await sandbox.process.exec("true")
    assert sandbox_state((await daytona.get(sandbox.id)).state) is SandboxState.STARTED
    await sandbox.stop()
    await sandbox.start()
    assert (await sandbox.process.exec("echo back")).result.strip() == "back"
    await sandbox.delete()


async def test_a_download_is_cut_in_the_middle(control: Control, daytona: AsyncDaytona) -> None:
    sandbox = await daytona.create()
    await sandbox.fs.upload_file(b"x" * 1_000_000, "/tmp/big")
    path = f"/toolbox/{sandbox.id}/files/.*download"
    await control("POST", "/faults", {"kind": "cut_stream", "method": "*", "path": path, "size": 100_000})
    with pytest.raises((DaytonaConnectionError, DaytonaError)):
        await sandbox.fs.download_file("/tmp/big")
    assert await sandbox.fs.download_file("/tmp/big") == b"x" * 1_000_000
    await sandbox.delete()


async def test_the_clock_of_idle_intervals_moves_on(control: Control, daytona: AsyncDaytona) -> None:
    sandbox = await daytona.create()
    await sandbox.set_autostop_interval(1)
    assert (await control("POST", "/clock", {"seconds": 90})) == (200, {"clock": 90.0})
    await sandbox.wait_for_sandbox_stop()
    assert sandbox_state(sandbox.state) is SandboxState.STOPPED
    await sandbox.delete()


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/faults", {"kind": "explode", "path": ".*"}, "kind must be one of"),
        ("/faults", {"kind": "fail", "path": "("}, "regular expression"),
        ("/faults", {"kind": "fail", "path": "x", "status": 99}, "status must be"),
        ("/faults", {"kind": "fail", "path": "x", "colour": "red"}, "colour"),
        ("/states", {"kind": "sandbox"}, "target"),
        ("/clock", {"seconds": -1}, "seconds"),
    ],
)
async def test_what_makes_no_sense_is_refused(control: Control, path: str, body: Any, said: str) -> None:
    status, answer = await control("POST", path, body)
    assert status == 400
    assert said in answer["message"]
