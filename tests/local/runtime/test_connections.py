"""Plain TCP out of a box to the endpoints it was made with, against servers of our own on this machine."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from sandbox.local.runtime.bubblewrap import BubblewrapRuntime
from sandbox.local.runtime.endpoints import plan_routes
from sandbox.local.runtime.errors import RuntimeFault
from sandbox.local.runtime.interface import BoxSpec, Endpoint, NetworkPolicy
from sandbox.local.runtime.policy import IPAddress
from sandbox.local.runtime.resolver import Resolver
from sandbox.local.runtime.tunnels import _MOST_CONNECTIONS

from .conftest import BoxMaker
from .driving import PATIENCE, run, until

# One exchange: sends, ends its direction, reads to the end; how the connection ended is the last word. A reset may come
# at any moment, and only sending and receiving tell of it by its name.
TALK = """
import contextlib, socket, sys
host, port, text = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
try:
    s = socket.create_connection((host, port), timeout=20)
    s.sendall(text)
    with contextlib.suppress(OSError):
        s.shutdown(socket.SHUT_WR)
    data = b""
    while chunk := s.recv(65536):
        data += chunk
    print(data.decode(), "end")
except OSError as error:
    print(type(error).__name__)
"""
# Waits for a server that speaks first, or for what becomes of it.
LISTEN = """
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20)
    print("data" if s.recv(1) else "closed")
except OSError as error:
    print(type(error).__name__)
"""
# Ten megabytes there and back at the same time, checked byte by byte.
BULK = """
import hashlib, socket, sys, threading
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60)
block = bytes(range(256)) * 4096
sent, received = hashlib.sha256(), hashlib.sha256()
def send():
    for number in range(10):
        piece = number.to_bytes(4, "big") + block
        sent.update(piece)
        s.sendall(piece)
    s.shutdown(socket.SHUT_WR)
thread = threading.Thread(target=send)
thread.start()
count = 0
while chunk := s.recv(65536):
    received.update(chunk)
    count += len(chunk)
thread.join()
print(count, sent.digest() == received.digest())
"""
# Holds a connection open; every line on standard input is sent, what comes back is shown.
HOLD = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60)
print("open", flush=True)
try:
    while line := sys.stdin.readline():
        s.sendall(line.encode())
        print(s.recv(100).decode().strip(), flush=True)
    print("end" if s.recv(1) == b"" else "data", flush=True)
except OSError as error:
    print(type(error).__name__, flush=True)
"""


class EchoServer:
    """Sends back what it gets, with a word before it; ends its direction after the other side has."""

    def __init__(self, greeting: bytes = b"") -> None:
        self.greeting = greeting
        self.accepted = 0
        self.live = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.live += 1
        try:
            writer.write(self.greeting)
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()
            self.live -= 1

    async def start(self, *hosts: str, port: int = 0) -> asyncio.Server:
        server = await asyncio.start_server(self.serve, hosts, port)
        self.port = server.sockets[0].getsockname()[1]
        return server


@pytest.fixture
async def echo() -> AsyncIterator[EchoServer]:
    made = EchoServer()
    server = await made.start("127.0.0.1")
    yield made
    server.close()
    await server.wait_closed()


@pytest.fixture
def refused_port() -> Iterator[int]:
    """A port of this machine that nobody listens on and nobody gets meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


class Names(Resolver):
    """A name server of the test's own."""

    def __init__(self, **answers: str) -> None:
        super().__init__()
        self.answers = {name.replace("_", "."): answer for name, answer in answers.items()}
        self.asked: list[str] = []

    async def addresses(self, host: str, port: int) -> list[IPAddress]:
        self.asked.append(host)
        if host not in self.answers:
            raise OSError("no such name")
        return [ipaddress.ip_address(text) for text in self.answers[host].split()]


@pytest.fixture
def names(runtime: BubblewrapRuntime, monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    made = Names(db_example="127.0.0.1", other_example="127.0.0.1")
    monkeypatch.setattr(runtime, "_resolver", made)
    yield made
    made.close()


async def talk(box: object, host: str, port: int, text: str = "hello") -> str:
    outcome = await run(box, "python3", "-c", TALK, host, str(port), text)  # type: ignore[arg-type]
    return outcome.stdout.strip() or outcome.stderr


def own_address() -> str | None:
    """An address of this machine that is not a loopback one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # sends nothing
        except OSError:
            return None
        address = str(probe.getsockname()[0])
    return None if address.startswith("127.") else address


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
