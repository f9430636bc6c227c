"""Twenty ways to look like Daytona and still break its SDK; each test would fail for a server that fell for one."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from daytona import (
    AsyncDaytona,
    AsyncSandbox,
    CreateSandboxFromSnapshotParams,
    CreateSnapshotParams,
    DaytonaBadRequestError,
    DaytonaConfig,
    DaytonaConflictError,
    DaytonaError,
    DaytonaFileNotFoundError,
    DaytonaNotFoundError,
    DaytonaSessionEndedError,
    Image,
    SessionExecuteRequest,
)
from daytona.common.snapshot import Snapshot

from tests.contract.conftest import BASE_IMAGE, MakeSandbox, Target


class Wire:
    """Requests below the SDK."""

    def __init__(self, session: aiohttp.ClientSession, target: Target) -> None:
        self.session = session
        self.api = target.api_url.rstrip("/")

    async def __call__(self, method: str, url: str, **options: Any) -> tuple[int, Any]:
        url = url if url.startswith("http") else self.api + url
        async with self.session.request(method, url, **options) as answer:
            return (
                answer.status,
                await answer.json() if answer.content_type == "application/json" else await answer.read(),
            )


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def wire(target: Target) -> AsyncIterator[Wire]:
    headers = {"Authorization": f"Bearer {target.api_key}", "X-Daytona-SDK-Version": "0.226.1"}
    async with aiohttp.ClientSession(headers=headers) as session:
        yield Wire(session, target)


def base(sandbox: AsyncSandbox) -> str:
    return f"{sandbox.toolbox_proxy_url}/{sandbox.id}"


async def start(sandbox: AsyncSandbox, command: str) -> tuple[str, str]:
    session = f"s-{uuid.uuid4()}"
    await sandbox.process.create_session(session)
    answer = await sandbox.process.execute_session_command(
        session, SessionExecuteRequest(command=command, run_async=True)
    )
    return session, answer.cmd_id


async def follow(sandbox: AsyncSandbox, session: str, command: str) -> tuple[str, str]:
    out: list[str] = []
    err: list[str] = []
    await sandbox.process.get_session_command_logs_async(session, command, out.append, err.append)
    return "".join(out), "".join(err)


async def socket_of(wire: Wire, sandbox: AsyncSandbox, session: str, command: str) -> tuple[list[bytes], int | None]:
    url = f"{base(sandbox)}/process/session/{session}/command/{command}/logs?follow=true"
    async with wire.session.ws_connect(url) as socket:
        received = [message.data async for message in socket]
        frames = [data if isinstance(data, bytes) else str(data).encode() for data in received]
        return frames, socket.close_code


async def test_01_the_documented_status_of_calls_whose_body_is_used(
    wire: Wire, snapshot: Snapshot, sandbox: AsyncSandbox
) -> None:
    status, made = await wire("POST", "/sandbox", json={"snapshot": snapshot.name})
    assert (status, made["state"]) == (200, "started")
    await wire("DELETE", f"/sandbox/{made['id']}")
    session, _ = await start(sandbox, "true")
    url = f"{base(sandbox)}/process/session/{session}/exec"
    assert (await wire("POST", url, json={"command": "true"}))[0] == 200
    assert (await wire("POST", url, json={"command": "true", "runAsync": True}))[0] == 202


@pytest.mark.usefixtures("local_only")
async def test_02_create_is_held_until_started_and_stop_is_told_by_an_event(
    make_sandbox: MakeSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll of the SDK sleeps a whole second; neither call may need one."""
    polls: list[str] = []
    refresh = AsyncSandbox.refresh_data

    async def counted(sandbox: AsyncSandbox) -> None:
        polls.append(str(sandbox.state))
        await refresh(sandbox)

    monkeypatch.setattr(AsyncSandbox, "refresh_data", counted)
    sandbox = await make_sandbox()
    assert (sandbox.state, polls) == ("started", [])
    await sandbox.stop()
    assert sandbox.state == "stopped"
    assert len(polls) <= 2


async def test_03_types_are_exact(wire: Wire, sandbox: AsyncSandbox) -> None:
    _, body = await wire("GET", f"/sandbox/{sandbox.id}")
    assert body["kvm"] is False
    assert all(type(body[name]) is int for name in ("cpu", "gpu", "memory", "disk", "autoStopInterval"))
    assert all(isinstance(value, str) for value in [*body["labels"].values(), *body["env"].values()])
    for name in ("id", "organizationId", "name", "user", "public", "networkBlockAll", "target", "toolboxProxyUrl"):
        assert body[name] is not None


async def test_04_errors_carry_their_source(sandbox: AsyncSandbox) -> None:
    with pytest.raises(DaytonaFileNotFoundError):
        await sandbox.fs.get_file_info("/no/such/file")
    with pytest.raises(DaytonaFileNotFoundError):
        await sandbox.fs.download_file("/no/such/file")


async def test_05_no_double_slash_anywhere(target: Target, sandbox: AsyncSandbox, local_only: None) -> None:
    assert not sandbox.toolbox_proxy_url.endswith("/")
    async with AsyncDaytona(DaytonaConfig(api_url=target.api_url + "/", api_key=target.api_key)) as kind:
        found = await kind.get(sandbox.id)
        assert (await found.process.exec("echo here")).result == "here\n"
        assert [item.id async for item in kind.list()]


async def test_06_downloads_name_the_path_as_it_was_asked_for(sandbox: AsyncSandbox) -> None:
    path = f'/tmp/{uuid.uuid4()} ü "quoted" 100%/fíle.txt'
    await sandbox.fs.upload_file(b"\x00\xffdata", path)
    assert await sandbox.fs.download_file(path) == b"\x00\xffdata"


async def test_07_uploads_go_where_the_path_field_says(sandbox: AsyncSandbox) -> None:
    folder = f"/tmp/{uuid.uuid4()}/a b%2Fc"
    await sandbox.fs.upload_file(b"here", f"{folder}/file name.txt")
    listed = await sandbox.process.exec(f"cat '{folder}/file name.txt'")
    assert listed.result == "here"


async def test_08_a_build_says_building_and_has_its_log(daytona: AsyncDaytona, wire: Wire) -> None:
    text = f"FROM {BASE_IMAGE}\nRUN echo {uuid.uuid4()}; sleep 1\n"
    body = {"name": f"trap-{uuid.uuid4()}", "buildInfo": {"dockerfileContent": text, "contextHashes": []}}
    status, made = await wire("POST", "/snapshots", json=body)
    assert status == 200
    assert made["state"] in ("building", "pending")
    status, answer = await wire("GET", f"/snapshots/{made['id']}/build-logs-url")
    assert status == 200
    status, log = await wire("GET", answer["url"] + "?follow=true")
    assert (status, b"RUN echo" in log) == (200, True)
    await daytona.snapshot.delete(made["id"])


async def test_09_a_build_log_ends_with_its_build(daytona: AsyncDaytona, wire: Wire, local_only: None) -> None:
    text = f"FROM {BASE_IMAGE}\nRUN echo {uuid.uuid4()}; sleep 0.3\n"
    body = {"name": f"trap-{uuid.uuid4()}", "buildInfo": {"dockerfileContent": text, "contextHashes": []}}
    _, made = await wire("POST", "/snapshots", json=body)
    _, answer = await wire("GET", f"/snapshots/{made['id']}/build-logs-url")
    assert "?" not in answer["url"]
    await wire("GET", answer["url"] + "?follow=true")
    assert (await daytona.snapshot.get(made["id"])).state == "active", "whoever has read the log sees the new state"
    await daytona.snapshot.delete(made["id"])


async def test_10_a_followed_log_closes_with_1000(wire: Wire, sandbox: AsyncSandbox) -> None:
    frames, code = await socket_of(wire, sandbox, *await start(sandbox, "(echo out; echo err >&2; exit 3)"))
    assert code == 1000
    assert b"out" in b"".join(frames)


async def test_11_frames_are_small_and_markers_are_few(wire: Wire, sandbox: AsyncSandbox, local_only: None) -> None:
    frames, _ = await socket_of(wire, sandbox, *await start(sandbox, "seq 1 60000"))
    data = b"".join(frames)
    assert max(map(len, frames)) < 128 * 1024
    assert data.count(b"\x01\x01\x01") <= len(frames)
    assert data.replace(b"\x01\x01\x01", b"").count(b"\n") == 60000


async def test_12_every_byte_follows_a_marker_and_logs_are_json(wire: Wire, sandbox: AsyncSandbox) -> None:
    session, command = await start(sandbox, "echo out; echo err >&2")
    frames, _ = await socket_of(wire, sandbox, session, command)
    assert b"".join(frames)[:3] in (b"\x01\x01\x01", b"\x02\x02\x02")
    _, logs = await wire("GET", f"{base(sandbox)}/process/session/{session}/command/{command}/logs")
    assert (logs["stdout"].strip(), logs["stderr"].strip()) == ("out", "err")
    assert isinstance(logs["output"], str)


async def test_13_pings_are_answered_while_nothing_is_printed(wire: Wire, sandbox: AsyncSandbox) -> None:
    session, command = await start(sandbox, "read line; echo got $line")
    url = f"{base(sandbox)}/process/session/{session}/command/{command}/logs?follow=true"
    async with wire.session.ws_connect(url, autoping=False) as socket:
        await socket.ping(b"there?")
        async with asyncio.timeout(10):
            message = await socket.receive()
        assert (message.type, message.data) == (aiohttp.WSMsgType.PONG, b"there?")
    await sandbox.process.send_session_command_input(session, command, "on\n")
    out, _ = await follow(sandbox, session, command)
    assert "got on" in out


async def test_14_a_session_is_one_shell_and_its_commands_queue(sandbox: AsyncSandbox) -> None:
    session = f"s-{uuid.uuid4()}"
    await sandbox.process.create_session(session)

    async def run(command: str) -> Any:
        return await sandbox.process.execute_session_command(session, SessionExecuteRequest(command=command))

    await run("cd /usr && export KEPT=1 && helper() { echo from a function; }")
    assert (await run('pwd; echo "$KEPT"; helper')).stdout == "/usr\n1\nfrom a function\n"
    await sandbox.process.execute_session_command(
        session, SessionExecuteRequest(command="sleep 0.3; LEFT=behind", run_async=True)
    )
    assert (await run('echo "$LEFT"')).stdout == "behind\n"


async def test_15_a_command_that_ends_the_shell_ends(sandbox: AsyncSandbox, local_only: None) -> None:
    session, command = await start(sandbox, "echo last words; exit 4")
    out, _ = await follow(sandbox, session, command)
    assert out == "last words\n"
    assert (await sandbox.process.get_session_command(session, command)).exit_code == 4
    with pytest.raises(DaytonaSessionEndedError):
        await sandbox.process.execute_session_command(session, SessionExecuteRequest(command="true"))


async def test_16_an_exit_code_means_that_the_output_is_complete(sandbox: AsyncSandbox) -> None:
    session, command = await start(sandbox, "seq 1 20000")
    deadline = time.monotonic() + 60
    while (await sandbox.process.get_session_command(session, command)).exit_code is None:
        assert time.monotonic() < deadline
    logs = await sandbox.process.get_session_command_logs(session, command)
    assert logs.stdout is not None
    assert logs.stdout.split()[-1] == "20000"


async def test_17_the_codes_that_are_not_the_obvious_ones(make_sandbox: MakeSandbox, daytona: AsyncDaytona) -> None:
    sandbox = await make_sandbox()
    await sandbox.start()
    await sandbox.stop()
    with pytest.raises(DaytonaBadRequestError):
        await sandbox.stop()
    with pytest.raises(DaytonaBadRequestError):
        await daytona.create(CreateSandboxFromSnapshotParams(snapshot=f"no-{uuid.uuid4()}"))
    await sandbox.delete()
    with pytest.raises((DaytonaConflictError, DaytonaNotFoundError)):
        await sandbox.delete()


async def test_18_a_deleted_name_is_free_and_not_found(make_sandbox: MakeSandbox, wire: Wire) -> None:
    name = f"freed-{uuid.uuid4()}"
    sandbox = await make_sandbox(name=name)
    status, body = await wire("DELETE", f"/sandbox/{sandbox.id}")
    assert (status, body["state"]) == (200, "destroying")
    assert body["name"].startswith("DESTROYED_")
    assert (await wire("GET", f"/sandbox/{name}"))[0] == 404
    assert (await make_sandbox(name=name)).name == name


async def test_19_idle_connections_stay_open(target: Target, local_only: None) -> None:
    """The SDK keeps idle connections for 30 s; a server that closes them earlier breaks the POST that uses one."""
    from sandbox.local.server import KEEP_ALIVE_SECONDS

    assert KEEP_ALIVE_SECONDS > 30
    async with aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.get(f"{target.api_url}/health") as answer:
                assert answer.headers.get("Connection", "keep-alive").lower() == "keep-alive"
        assert len(session.connector._conns) == 1  # type: ignore[union-attr]


async def test_20_the_language_label_stays_as_it_is(make_sandbox: MakeSandbox, daytona: AsyncDaytona) -> None:
    sandbox = await make_sandbox(language="javascript", labels={"own": "1"})
    assert (await daytona.get(sandbox.id)).labels["code-toolbox-language"] == "javascript"
    assert sandbox.id in {item.id async for item in daytona.list()}


async def test_a_create_that_is_repeated_after_a_timeout_finds_the_first(
    daytona: AsyncDaytona, snapshot: Snapshot
) -> None:
    name = f"again-{uuid.uuid4()}"
    params = CreateSandboxFromSnapshotParams(name=name, snapshot=snapshot.name)
    results = await asyncio.gather(daytona.create(params), daytona.create(params), return_exceptions=True)
    made = [result for result in results if isinstance(result, AsyncSandbox)]
    assert len(made) == 1
    assert sum(isinstance(result, DaytonaConflictError) for result in results) == 1
    found = await daytona.get(name)
    assert found.id == made[0].id
    await found.delete()


async def test_a_snapshot_that_is_deleted_while_it_is_built(daytona: AsyncDaytona) -> None:
    name = f"cut-{uuid.uuid4()}"
    image = Image.base(BASE_IMAGE).run_commands(f"echo {uuid.uuid4()}; sleep 60")
    creating = asyncio.create_task(daytona.snapshot.create(CreateSnapshotParams(name=name, image=image), timeout=120))
    async with asyncio.timeout(60):
        while True:
            try:
                found = await daytona.snapshot.get(name)
                break
            except DaytonaNotFoundError:
                continue
    await daytona.snapshot.delete(found)
    with pytest.raises(DaytonaError):
        await creating
