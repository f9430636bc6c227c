"""Connections of a box lead nowhere else, are its own, and stay few."""

from __future__ import annotations

import asyncio
import logging

import pytest

from sandbox.local.runtime.bubblewrap import BubblewrapRuntime
from sandbox.local.runtime.endpoints import plan_routes
from sandbox.local.runtime.errors import RuntimeFault
from sandbox.local.runtime.interface import BoxSpec, Endpoint, NetworkPolicy
from sandbox.local.runtime.tunnels import _MOST_CONNECTIONS

from .conftest import BoxMaker
from .driving import run, until
from .far_side import EchoServer, Names, talk


async def test_nothing_else_is_reachable(make_box: BoxMaker, echo: EchoServer, names: Names, refused_port: int) -> None:
    """The tunnel has no words that a program could use to choose where it leads."""
    other = EchoServer()
    async with await other.start("127.0.0.1"):
        box = await make_box(connections=(Endpoint("db.example", echo.port), Endpoint("localhost", refused_port)))
        for host in ("localhost", "127.0.0.1", "db.example"):
            assert await talk(box, host, other.port) == "ConnectionRefusedError"
        assert await talk(box, "localhost", echo.port) == "ConnectionRefusedError"
        assert await talk(box, "db.example", refused_port) == "ConnectionRefusedError"
        assert await talk(box, "other.example", echo.port) == "gaierror"
        assert await talk(box, "198.51.100.1", echo.port) == "OSError"
        for words in (f"CONNECT 127.0.0.1:{other.port} HTTP/1.1", "\x05\x01\x02x"):
            assert await talk(box, "db.example", echo.port, words) == f"{words} end"
        rebind = "printf '127.0.0.1 db.example\\n' > /etc/hosts || echo refused"
        assert (await run(box, "/bin/sh", "-c", rebind)).stdout == "refused\n"
        assert other.accepted == 0


async def test_the_port_of_the_platform_is_never_reached(
    runtime: BubblewrapRuntime,
    make_box: BoxMaker,
    echo: EchoServer,
    names: Names,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(runtime, "_own_port", echo.port)
    names.answers |= {"zero.example": "0.0.0.0", "mapped.example": "::ffff:127.0.0.1"}
    hosts = ("db.example", "zero.example", "mapped.example", "localhost", "127.0.0.2")
    box = await make_box(connections=tuple(Endpoint(host, echo.port) for host in hosts))
    for host in hosts:
        assert await talk(box, host, echo.port) == "ConnectionResetError"
    assert echo.accepted == 0
    assert "is the platform itself" in caplog.text


async def test_two_boxes_have_their_own(make_box: BoxMaker, echo: EchoServer, names: Names) -> None:
    other = EchoServer(b"other ")
    async with await other.start("127.0.0.1"):
        first = await make_box(connections=(Endpoint("db.example", echo.port),))
        second = await make_box(connections=(Endpoint("db.example", other.port),))
        third = await make_box()
        answers = await asyncio.gather(
            talk(first, "db.example", echo.port),
            talk(second, "db.example", other.port),
            talk(first, "db.example", other.port),
            talk(third, "db.example", echo.port),
        )
    assert list(answers) == ["hello end", "other hello end", "ConnectionRefusedError", "gaierror"]


async def test_a_flood_of_connections_is_bounded(make_box: BoxMaker, echo: EchoServer) -> None:
    box = await make_box(connections=(Endpoint("localhost", echo.port),))
    script = (
        "import socket, sys\nopened = []\nclosed = 0\n"
        "for _ in range(300):\n"
        " try:\n  opened.append(socket.create_connection(('127.0.0.1', int(sys.argv[1])), timeout=20))\n"
        " except ConnectionResetError:\n  closed += 1\n"
        "for s in opened:\n"
        " try:\n  s.sendall(b'x')\n  closed += s.recv(1) != b'x'\n"
        " except OSError:\n  closed += 1\n"
        "print(closed)"
    )
    outcome = await run(box, "python3", "-c", script, str(echo.port))
    assert outcome.stdout == f"{300 - _MOST_CONNECTIONS}\n"
    await until(lambda: echo.live == 0)
    assert await talk(box, "localhost", echo.port) == "hello end"


async def test_beside_a_network_policy(make_box: BoxMaker, echo: EchoServer, names: Names) -> None:
    box = await make_box(connections=(Endpoint("db.example", echo.port),), network=NetworkPolicy(mode="public"))
    lines = (await run(box, "env")).stdout.splitlines()
    assert "NO_PROXY=localhost,127.0.0.1,::1,db.example" in lines
    assert any("-Dhttp.nonProxyHosts=localhost|127.*|[::1]|db.example" in line for line in lines)
    assert await talk(box, "db.example", echo.port) == "hello end"


async def test_listening_ports_are_those_of_programs(make_box: BoxMaker, echo: EchoServer, names: Names) -> None:
    box = await make_box(connections=(Endpoint("db.example", echo.port), Endpoint("localhost", 5432)))
    await box.set_network(NetworkPolicy(mode="public"))
    assert await box.listening_ports() == []
    script = (
        "import socket, sys\ns = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
        "print('open', flush=True)\nsys.stdin.read()"
    )
    process = await box.run(["python3", "-c", script, str(echo.port)], stdin=True)
    assert await process.stdout.read() == b"open\n"
    assert await box.listening_ports() == [echo.port]
    await process.kill()
    process.close_pipes()


async def test_the_port_of_the_proxy_is_refused_in_words(runtime: BubblewrapRuntime) -> None:
    with pytest.raises(RuntimeFault, match=r"localhost:3128 cannot be reached .* HTTP proxy"):
        await runtime.start(BoxSpec(box_id="proxy-port", connections=(Endpoint("localhost", 3128),)))
    assert plan_routes((Endpoint("db.example", 3128),)).routes[0].listens == ("127.83.0.1",)
