"""What boxes connect to and with: servers and names of our own, and programs that talk to them."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from sandbox.local.runtime.policy import IPAddress
from sandbox.local.runtime.resolver import Resolver

from .driving import run

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
