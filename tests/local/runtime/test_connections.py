"""Plain TCP out of a box to the endpoints it was made with, against servers of our own on this machine."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import uuid

import pytest

from sandbox.local.runtime.interface import Endpoint, NetworkPolicy

from .conftest import BoxMaker
from .driving import PATIENCE, run, until
from .far_side import BULK, HOLD, LISTEN, EchoServer, Names, own_address, talk


async def test_localhost_is_the_host_of_the_platform(make_box: BoxMaker, echo: EchoServer) -> None:
    box = await make_box(connections=(Endpoint("localhost", echo.port),))
    assert await talk(box, "localhost", echo.port) == "hello end"
    assert await talk(box, "127.0.0.1", echo.port) == "hello end"
    if (await run(box, "cat", "/proc/net/if_inet6")).stdout:
        assert await talk(box, "::1", echo.port) == "hello end"
    assert "HTTP_PROXY" not in (await run(box, "env")).stdout


async def test_a_server_that_listens_on_the_sixth_version_only(make_box: BoxMaker) -> None:
    server = EchoServer()
    try:
        serving = await server.start("::1")
    except OSError:
        pytest.skip("this machine has no ::1")
    async with serving:
        box = await make_box(connections=(Endpoint("localhost", server.port),))
        assert await talk(box, "127.0.0.1", server.port) == "hello end"


async def test_a_host_name_is_resolved_outside(make_box: BoxMaker, echo: EchoServer, names: Names) -> None:
    box = await make_box(connections=(Endpoint("db.example", echo.port), Endpoint("other.example", echo.port)))
    assert names.asked == []
    assert await talk(box, "db.example", echo.port) == "hello end"
    assert await talk(box, "other.example", echo.port) == "hello end"
    assert names.asked == ["db.example", "other.example"]
    look_up = "import socket\nprint(*map(socket.gethostbyname, ('db.example', 'other.example')))"
    inside = (await run(box, "python3", "-c", look_up)).stdout.split()
    assert all(address.startswith("127.") and address != "127.0.0.1" for address in inside)
    assert inside[0] != inside[1]
    names.answers["db.example"] = "127.0.0.9 127.0.0.1"
    assert await talk(box, "db.example", echo.port) == "hello end"


async def test_the_own_name_of_this_machine(make_box: BoxMaker) -> None:
    name = socket.gethostname().lower()
    try:
        found = socket.getaddrinfo(name, 0, family=socket.AF_INET, type=socket.SOCK_STREAM)
    except OSError:
        pytest.skip("the name of this machine has no address")
    server = EchoServer()
    async with await server.start(str(found[0][4][0])):
        box = await make_box(connections=(Endpoint(name, server.port),))
        assert await talk(box, name, server.port) == "hello end"


async def test_an_address_of_another_machine_is_reached_as_it_is(make_box: BoxMaker, echo: EchoServer) -> None:
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but loopback ones")
    server = EchoServer()
    async with await server.start(address):
        box = await make_box(connections=(Endpoint(address, server.port), Endpoint("127.0.0.2", echo.port)))
        assert await talk(box, address, server.port) == "hello end"
        assert server.accepted == 1
        # The whole of the other network has not become the box's own.
        neighbour = str(ipaddress.ip_address(address) + 1)
        assert await talk(box, neighbour, server.port) == "OSError"


async def test_a_literal_whose_server_is_not_there_is_local_all_the_same(make_box: BoxMaker) -> None:
    hosts = ["203.0.113.77"]
    if (await run(await make_box(), "cat", "/proc/net/if_inet6")).stdout:
        hosts.append("2001:db8::77")
    box = await make_box(connections=tuple(Endpoint(host, 5432) for host in hosts))
    script = (
        "import socket, sys\nfor host in sys.argv[1:]:\n"
        " try:\n  socket.create_connection((host, 5432), timeout=20)\n except ConnectionResetError:\n  pass\n"
        " print(host)"
    )
    assert (await run(box, "python3", "-c", script, *hosts)).stdout.split() == hosts


async def test_a_port_below_1024(make_box: BoxMaker, names: Names, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    box = await make_box(connections=(Endpoint("db.example", 1), Endpoint("localhost", 1)))
    assert await talk(box, "db.example", 1) == "ConnectionResetError"
    assert await talk(box, "localhost", 1) == "ConnectionResetError"
    assert "connection to db.example:1 failed: 127.0.0.1: Connection refused" in caplog.text


async def test_a_refused_far_side_shows_at_once(
    make_box: BoxMaker, refused_port: int, names: Names, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    box = await make_box(connections=(Endpoint("localhost", refused_port), Endpoint("gone.example", 5432)))
    for host, port in (("localhost", refused_port), ("gone.example", 5432)):
        async with asyncio.timeout(PATIENCE):
            assert (await run(box, "python3", "-c", LISTEN, host, str(port))).stdout == "ConnectionResetError\n"
    assert f"connection to localhost:{refused_port} failed: 127.0.0.1: Connection refused" in caplog.text
    assert "connection to gone.example:5432 failed: no such name" in caplog.text


async def test_ten_megabytes_both_ways(make_box: BoxMaker, echo: EchoServer) -> None:
    box = await make_box(connections=(Endpoint("localhost", echo.port),))
    outcome = await run(box, "python3", "-c", BULK, "localhost", str(echo.port))
    assert outcome.stdout == f"{10 * (4 + 256 * 4096)} True\n"
    await until(lambda: echo.live == 0)


async def test_a_server_that_speaks_first_and_ends_first(make_box: BoxMaker) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"welcome")
        writer.write_eof()
        heard.set_result(await reader.read())
        writer.close()

    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        box = await make_box(connections=(Endpoint("localhost", port),))
        script = (
            "import socket, sys\ns = socket.create_connection(('localhost', int(sys.argv[1])), timeout=20)\n"
            "data = b''\nwhile chunk := s.recv(100):\n data += chunk\ns.sendall(b'after the end')\nprint(data)"
        )
        assert (await run(box, "python3", "-c", script, str(port))).stdout == "b'welcome'\n"
        async with asyncio.timeout(PATIENCE):
            assert await heard == b"after the end"


async def test_a_reset_comes_through_both_ways(make_box: BoxMaker) -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read(1) == b"x"
        writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    async with await asyncio.start_server(reset, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        box = await make_box(connections=(Endpoint("localhost", port),))
        assert await talk(box, "localhost", port, "x") == "ConnectionResetError"
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(b"x")
            ended.set_result(f"end after {len(await reader.read())}")
        except ConnectionResetError:
            ended.set_result("reset")
        writer.close()

    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        box = await make_box(connections=(Endpoint("localhost", port),))
        script = (
            "import os, socket, sys\ns = socket.create_connection(('localhost', int(sys.argv[1])), timeout=20)\n"
            "s.recv(1)\ns.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\\1\\0\\0\\0\\0\\0\\0\\0')\ns.close()"
        )
        assert (await run(box, "python3", "-c", script, str(port))).exit_code == 0
        async with asyncio.timeout(PATIENCE):
            assert await ended == "reset"


async def test_a_reader_that_does_not_read_holds_the_sender_back(make_box: BoxMaker) -> None:
    """Else a program could fill the memory of the platform by not reading."""
    sent = 0
    stuck = asyncio.Event()

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        try:
            while True:
                writer.write(bytes(1 << 20))
                await asyncio.wait_for(writer.drain(), 1.0)
                sent += 1 << 20
        except TimeoutError:
            stuck.set()
            writer.transport.abort()
        except ConnectionError:
            pass

    async with await asyncio.start_server(pour, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        box = await make_box(connections=(Endpoint("localhost", port),))
        process = await box.run(["python3", "-c", HOLD, "localhost", str(port)], stdin=True)
        assert await process.stdout.read() == b"open\n"
        async with asyncio.timeout(PATIENCE):
            await stuck.wait()
        await process.kill()
        process.close_pipes()
    assert sent < 64 << 20


async def test_they_work_again_after_a_stop_and_are_cut_by_it(
    make_box: BoxMaker, echo: EchoServer, names: Names
) -> None:
    box_id = str(uuid.uuid4())
    connections = (Endpoint("db.example", echo.port), Endpoint("203.0.113.77", echo.port), Endpoint("localhost", 80))
    box = await make_box(box_id, connections=connections)
    process = await box.run(["python3", "-c", HOLD, "db.example", str(echo.port)], stdin=True)
    assert await process.stdout.read() == b"open\n"
    await until(lambda: echo.live == 1)
    await box.stop(force=True)
    process.close_pipes()
    await until(lambda: echo.live == 0)
    box = await make_box(box_id, connections=connections)
    assert await talk(box, "db.example", echo.port) == "hello end"


async def test_a_start_without_them_takes_them_away(make_box: BoxMaker, echo: EchoServer, names: Names) -> None:
    box = await make_box(connections=(Endpoint("db.example", echo.port),))
    await box.stop(force=True)
    box = await make_box(box.spec.box_id)
    assert await talk(box, "db.example", echo.port) == "gaierror"


async def test_an_idle_connection_stays(make_box: BoxMaker, echo: EchoServer) -> None:
    box = await make_box(connections=(Endpoint("localhost", echo.port),))
    process = await box.run(["python3", "-c", HOLD, "localhost", str(echo.port)], stdin=True)
    assert await process.stdout.read() == b"open\n"
    assert process.stdin is not None
    for word in (b"one\n", b"two\n"):
        await process.stdin.write(word)
        assert await process.stdout.read() == word
        # A policy is about everything else.
        await box.set_network(NetworkPolicy(mode="public"))
        await box.set_network(NetworkPolicy())
    process.stdin.close()
    await until(lambda: echo.live == 1)
    await process.kill()
    process.close_pipes()
