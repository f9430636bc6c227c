"""The label of a sandbox's connections: what it may hold, and that the sandbox gets them at each start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from daytona import AsyncDaytona, AsyncSandbox, CreateSandboxFromSnapshotParams, DaytonaError

from sandbox.local.control.connections import checked_connections, connections
from sandbox.local.runtime.interface import Endpoint
from sandbox.local.server import LocalPlatform
from sandbox.local.settings import Settings
from sandbox.local.wire_errors import WireError
from tests.local.platforms import RawClient, scratch_home, sdk

LABEL = "uom-connections"

ASK = (
    'python3 -c "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20); '
    'print(s.recv(100).decode())" '
)


@pytest.fixture
async def greeter() -> AsyncIterator[int]:
    """The port of a server that says one word."""

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"welcome")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("localhost:5432", (Endpoint("localhost", 5432),)),
        ("LOCALHOST.:5432, 127.0.0.1:5432,[::1]:5432,[::ffff:127.0.0.1]:5432", (Endpoint("localhost", 5432),)),
        ("Db.Example.com:27017,db.example.com.:27017", (Endpoint("db.example.com", 27017),)),
        (
            "localhost:5432,db.example.com:27017,[2001:DB8:0::1]:7687,10.1.2.3:1433,sql_server:1433",
            (
                Endpoint("localhost", 5432),
                Endpoint("db.example.com", 27017),
                Endpoint("2001:db8::1", 7687),
                Endpoint("10.1.2.3", 1433),
                Endpoint("sql_server", 1433),
            ),
        ),
        (
            "127.0.0.2:1,xn--bcher-kva.example:65535",
            (Endpoint("127.0.0.2", 1), Endpoint("xn--bcher-kva.example", 65535)),
        ),
        (",".join(["a:1"] * 11), (Endpoint("a", 1),)),
    ],
)
def test_what_the_label_may_hold(text: str, found: tuple[Endpoint, ...]) -> None:
    assert connections({LABEL: text}) == found


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("localhost", "'localhost'"),
        ("localhost:5432,", "''"),
        ("localhost:", "'localhost:'"),
        (":5432", "':5432'"),
        ("localhost:0", "'localhost:0'"),
        ("localhost:65536", "'localhost:65536'"),
        ("localhost:+5", "'localhost:+5'"),
        ("2001:db8::1:7687", "'2001:db8::1:7687'"),
        ("[db.example.com]:5432", "'[db.example.com]:5432'"),
        ("[fe80::1%eth0]:5432", "zone"),
        ("postgres://db:5432", "'postgres://db:5432'"),
        ("user@db:5432", "'user@db:5432'"),
        ("a b:5432", "'a b:5432'"),
        ("a\n127.0.0.1 evil:5432", "evil"),
        ("*.example.com:5432", "'*.example.com:5432'"),
        ("-db:5432", "'-db:5432'"),
        ("bücher.example:5432", "xn--"),
        (f"{'a' * 64}.example:5432", "host name"),
        (f"{'a.' * 130}a:5432", "host name"),
        ("127.1:5432", "'127.1:5432'"),
        ("2130706433:5432", "'2130706433:5432'"),
        ("0x7f000001:5432", "'0x7f000001:5432'"),
        ("db.0x1:5432", "'db.0x1:5432'"),
        ("256.1.1.1:5432", "'256.1.1.1:5432'"),
        ("0.0.0.0:5432", "no single host"),
        ("[::]:5432", "no single host"),
        ("[::ffff:0.0.0.0]:5432", "no single host"),
        ("224.0.0.1:5432", "no single host"),
        (",".join(f"db{number}:5432" for number in range(11)), "11 connections"),
        ("localhost:3128", "HTTP proxy"),
        *((f"{host}:8642", "the sandbox platform itself") for host in ("localhost", "127.0.0.1", "127.0.0.9", "[::1]")),
    ],
)
def test_what_is_wrong_is_named(text: str, named: str) -> None:
    with pytest.raises(WireError) as caught:
        checked_connections({LABEL: text}, api_port=8642)
    assert caught.value.status == 400
    assert caught.value.message.startswith(f"label {LABEL}: ")
    assert named in caught.value.message


async def test_a_wrong_label_makes_and_changes_nothing(
    platform: LocalPlatform, daytona: AsyncDaytona, raw: RawClient
) -> None:
    port = platform.api_url.rsplit(":")[-1].partition("/")[0]
    for text in ("localhost", f"localhost:{port}"):
        with pytest.raises(DaytonaError, match=LABEL) as caught:
            await daytona.create(CreateSandboxFromSnapshotParams(name="wrong-label", labels={LABEL: text}))
        assert caught.value.status_code == 400
    assert (await raw("GET", "/sandbox/wrong-label")).status == 404
    sandbox = await daytona.create(CreateSandboxFromSnapshotParams(labels={LABEL: "localhost:5432", "a": "b"}))
    answer = await raw("PUT", f"/sandbox/{sandbox.id}/labels", {"labels": {LABEL: "nonsense"}})
    assert answer.status == 400
    assert "'nonsense'" in answer.message
    await sandbox.refresh_data()
    assert sandbox.labels == {LABEL: "localhost:5432", "a": "b"} | {
        name: value for name, value in sandbox.labels.items() if name not in (LABEL, "a")
    }
    await sandbox.delete()


async def ask(sandbox: AsyncSandbox, port: int) -> str:
    answer = await sandbox.process.exec(f"{ASK} localhost {port} 2>&1 | tail -n 1")
    return str(answer.result).strip()


async def test_connections_outlast_stops_and_restarts(greeter: int) -> None:
    async with scratch_home() as home:
        settings = Settings(home=home)
        async with LocalPlatform(settings) as first, sdk(first) as daytona:
            sandbox = await daytona.create(
                CreateSandboxFromSnapshotParams(
                    name="connected", labels={LABEL: f"localhost:{greeter}"}, network_block_all=True
                )
            )
            assert await ask(sandbox, greeter) == "welcome"
            await sandbox.stop()
            await sandbox.start()
            assert await ask(sandbox, greeter) == "welcome"
            other = await daytona.create(CreateSandboxFromSnapshotParams(network_block_all=True))
            assert "ConnectionRefusedError" in await ask(other, greeter)
        async with LocalPlatform(settings) as second, sdk(second) as daytona:
            sandbox = await daytona.get("connected")
            await sandbox.start()
            assert await ask(sandbox, greeter) == "welcome"
            await sandbox.set_labels({})
            assert await ask(sandbox, greeter) == "welcome"
            await sandbox.stop()
            await sandbox.start()
            assert "ConnectionRefusedError" in await ask(sandbox, greeter)


async def test_what_cannot_be_offered_fails_the_creation_in_words(
    daytona: AsyncDaytona, platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine on which nobody may change the network of a sandbox."""
    monkeypatch.setattr("sandbox.local.runtime.privileges.arguments", lambda plan, *, pid: ["1", "0", *plan.literals])
    with pytest.raises(
        DaytonaError, match=r"cannot give a sandbox the address 203\.0\.113\.5 .* name the host instead"
    ):
        await daytona.create(CreateSandboxFromSnapshotParams(name="impossible", labels={LABEL: "203.0.113.5:5432"}))
    await (await daytona.get("impossible")).delete()
