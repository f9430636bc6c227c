"""The way out of a box through its proxy, against a server of our own on the host's loopback."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from sandbox.local.runtime.bubblewrap import BubblewrapRuntime
from sandbox.local.runtime.errors import RuntimeFault
from sandbox.local.runtime.interface import BoxSpec, NetworkPolicy
from sandbox.local.runtime.policy import IPAddress, PolicyError
from sandbox.local.runtime.resolver import Resolver

from .conftest import BoxMaker
from .driving import run

LOOPBACK = NetworkPolicy(mode="allow", cidrs=("127.0.0.0/8",))

GET = """
import sys, urllib.request, urllib.error
try:
    with urllib.request.urlopen(sys.argv[1], timeout=20) as answer:
        data = answer.read()
        print(answer.status, len(data), data[:40].decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode().strip())
except urllib.error.URLError as error:
    print("error", error.reason)
"""
# A tunnel, held open until it is cut.
TUNNEL = """
import socket, sys
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\n\\r\\n".encode())
head = s.recv(1000)
print(head.decode().split("\\r\\n")[0], flush=True)
if b" 200 " in head:
    s.sendall(b"echo")
    print(s.recv(4).decode(), flush=True)
    try:
        print("closed" if s.recv(1) == b"" else "data", flush=True)
    except ConnectionResetError:
        print("reset", flush=True)
"""


@dataclass
class Origin:
    """A server that answers every GET and echoes everything else."""

    port: int
    heads: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first = await reader.readexactly(4)
            if first == b"GET ":
                head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                body = b"x" * 3_000_000 if "/large" in head else b"hello"
                writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
            else:
                writer.write(first)
                while data := await reader.read(65536):
                    writer.write(data)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    made = Origin(0)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    await server.wait_closed()


async def get(box: object, url: str) -> str:
    outcome = await run(box, "python3", "-c", GET, url)  # type: ignore[arg-type]
    return outcome.stdout.strip() or outcome.stderr


async def test_an_allowed_address_answers(make_box: BoxMaker, origin: Origin) -> None:
    box = await make_box(network=LOOPBACK, env={"NO_PROXY": "", "no_proxy": ""})
    assert await get(box, f"http://127.0.0.1:{origin.port}/path?q=1") == "200 5 hello"
    assert origin.heads[0].startswith(f"GET /path?q=1 HTTP/1.1\r\nHost: 127.0.0.1:{origin.port}\r\n")
    assert "proxy" not in origin.heads[0].lower()
    assert (await get(box, f"http://127.0.0.1:{origin.port}/large")).startswith("200 3000000 x")


@pytest.mark.parametrize(
    "policy",
    [
        NetworkPolicy(mode="public"),
        NetworkPolicy(mode="allow", domains=("localhost",)),
        NetworkPolicy(mode="allow", cidrs=("127.0.0.2/32",)),
    ],
)
async def test_what_is_not_allowed_is_refused_in_words(
    make_box: BoxMaker, origin: Origin, policy: NetworkPolicy
) -> None:
    box = await make_box(network=policy, env={"NO_PROXY": "", "no_proxy": ""})
    for host in ("127.0.0.1", "localhost"):
        answer = await get(box, f"http://{host}:{origin.port}/")
        assert answer.startswith("403 the network policy of this sandbox does not allow")
        assert f"{host}:{origin.port}" in answer
    assert origin.heads == []


async def test_tunnels(make_box: BoxMaker, origin: Origin) -> None:
    box = await make_box(network=LOOPBACK)
    refused = await run(box, "python3", "-c", TUNNEL, "169.254.169.254:80")
    assert refused.stdout == "HTTP/1.1 403 Forbidden\n"
    process = await box.run(["python3", "-c", TUNNEL, f"127.0.0.1:{origin.port}"])
    seen = b""
    while seen.count(b"\n") < 2:
        seen += await process.stdout.read()
    assert seen == b"HTTP/1.1 200 Connection established\necho\n"
    await process.kill()
    process.close_pipes()


async def test_a_new_policy_cuts_what_it_does_not_allow(make_box: BoxMaker, origin: Origin) -> None:
    box = await make_box(network=LOOPBACK)
    process = await box.run(["python3", "-c", TUNNEL, f"127.0.0.1:{origin.port}"])
    seen = b""
    while seen.count(b"\n") < 2:
        seen += await process.stdout.read()
    await box.set_network(LOOPBACK)
    await box.set_network(NetworkPolicy(mode="public"))
    assert await process.stdout.read() in {b"closed\n", b"reset\n"}
    assert (await process.wait()).exit_code == 0
    process.close_pipes()
    assert (await run(box, "python3", "-c", TUNNEL, f"127.0.0.1:{origin.port}")).stdout == "HTTP/1.1 403 Forbidden\n"


async def test_a_box_without_network_gets_one_live(make_box: BoxMaker, origin: Origin) -> None:
    box = await make_box(env={"NO_PROXY": "", "no_proxy": ""})
    assert "HTTP_PROXY" not in (await run(box, "env")).stdout
    assert (await get(box, f"http://127.0.0.1:{origin.port}/")).startswith("error")
    await box.set_network(LOOPBACK)
    assert await get(box, f"http://127.0.0.1:{origin.port}/") == "200 5 hello"
    assert await box.listening_ports() == []
    await box.set_network(NetworkPolicy())
    assert (await get(box, f"http://127.0.0.1:{origin.port}/")).startswith("error")
    assert (await run(box, "python3", "-c", TUNNEL, f"127.0.0.1:{origin.port}")).stdout == "HTTP/1.1 403 Forbidden\n"


async def test_what_cannot_be_connected_or_understood(make_box: BoxMaker, origin: Origin) -> None:
    box = await make_box(network=LOOPBACK)
    assert (await run(box, "python3", "-c", TUNNEL, "127.0.0.1:1")).stdout == "HTTP/1.1 502 Bad Gateway\n"
    assert (await run(box, "python3", "-c", TUNNEL, "127.0.0.1:99999")).stdout == "HTTP/1.1 400 Bad Request\n"
    assert (await run(box, "python3", "-c", TUNNEL, "")).stdout == "HTTP/1.1 400 Bad Request\n"


class Liar(Resolver):
    """A name server that gives another answer each time."""

    def __init__(self, *answers: str) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked = 0

    async def addresses(self, host: str, port: int) -> list[IPAddress]:
        self.asked += 1
        return [ipaddress.ip_address(self.answers.pop(0))]


async def test_a_name_is_resolved_once_and_what_was_checked_is_connected_to(
    runtime: BubblewrapRuntime, make_box: BoxMaker, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    liar = Liar("127.0.0.1", "10.9.9.9")
    monkeypatch.setattr(runtime, "_resolver", liar)
    box = await make_box(network=LOOPBACK)
    assert await get(box, f"http://rebind.example:{origin.port}/") == "200 5 hello"
    assert liar.asked == 1
    assert (await get(box, f"http://rebind.example:{origin.port}/")).startswith("403")
    liar.close()


async def test_the_environment_leads_to_the_proxy(make_box: BoxMaker) -> None:
    box = await make_box(network=LOOPBACK)
    lines = (await run(box, "env")).stdout.splitlines()
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        assert f"{name}=http://127.0.0.1:3128" in lines
    assert "NO_PROXY=localhost,127.0.0.1,::1" in lines
    assert any(line.startswith("MAVEN_OPTS=-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128") for line in lines)


async def test_a_flood_of_connections_is_bounded(make_box: BoxMaker, origin: Origin) -> None:
    box = await make_box(network=LOOPBACK)
    script = (
        "import socket\nopened = [socket.create_connection(('127.0.0.1', 3128)) for _ in range(300)]\n"
        "closed = 0\nfor s in opened[256:]:\n s.settimeout(10)\n"
        " try:\n  closed += s.recv(1) == b''\n except ConnectionResetError:\n  closed += 1\nprint(closed)"
    )
    assert (await run(box, "python3", "-c", script)).stdout == "44\n"


async def test_a_policy_that_cannot_be_read_is_refused(runtime: BubblewrapRuntime, make_box: BoxMaker) -> None:
    bad = NetworkPolicy(mode="allow", cidrs=("nonsense",))
    with pytest.raises(RuntimeFault, match="nonsense"):
        await runtime.start(BoxSpec(box_id="unreadable", network=bad))
    box = await make_box(network=LOOPBACK)
    with pytest.raises(PolicyError, match="nonsense"):
        await box.set_network(bad)
