"""Servers that speak the first words of a database, each on a free port of this machine."""

from __future__ import annotations

import asyncio
import datetime
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Fake:
    """A server.

    Attributes:
        port: Where it listens.
        heard: What clients said first.
    """

    port: int
    heard: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def fake_server(answer: Answer, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Fake]:
    """Runs ``answer`` for each client of a free port."""
    fake = Fake(0)
    busy: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        busy.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await answer(reader, writer)
        finally:
            busy.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    fake.port = server.sockets[0].getsockname()[1]
    try:
        yield fake
    finally:
        server.close()
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
        await server.wait_closed()


def self_signed(directory: Path) -> ssl.SSLContext:
    """A server's context with a certificate that nobody trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = directory / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


async def postgresql(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    assert await reader.readexactly(8) == bytes.fromhex("0000000804d2162f")
    writer.write(b"N")
    await reader.read()


async def sqlserver(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    kind, status, size, _, number, window = struct.unpack("!BBHHBB", await reader.readexactly(8))
    assert (kind, status, number, window) == (0x12, 1, 1, 0)
    options = await reader.readexactly(size - 8)
    token, place, length = struct.unpack("!BHH", options[:5])
    assert (token, options[place : place + length]) == (0, bytes(6))
    writer.write(struct.pack("!BBHHBB", 4, 1, size, 0, 1, 0) + options)
    await reader.read()


async def mongodb(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    size, request, _, operation = struct.unpack("<iiii", await reader.readexactly(16))
    body = await reader.readexactly(size - 16)
    assert operation == 2013
    assert struct.unpack("<i", body[5:9])[0] == len(body) - 5
    assert b"\x10hello\x00\x01\x00\x00\x00" in body
    answer = b"\x00" * 5 + b"\x11\x00\x00\x00\x01ok\x00" + struct.pack("<d", 1.0) + b"\x00"
    writer.write(struct.pack("<iiii", 16 + len(answer), 7, request, 2013) + answer)
    await reader.read()


async def neo4j(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    assert await reader.readexactly(4) == bytes.fromhex("6060b017")
    await reader.readexactly(16)
    writer.write(bytes.fromhex("00000405"))
    await reader.read()


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


async def website(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    await reader.read()


async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(64 * 1024)
    writer.close()


SPEAKERS = {"postgresql": postgresql, "sqlserver": sqlserver, "mongodb": mongodb, "neo4j": neo4j}


def address(kind: str, port: int) -> str:
    """The address of a server of this machine, for a program."""
    return {
        "postgresql": f"Host=localhost;Port={port}",
        "sqlserver": f"Server=localhost,{port}",
        "mongodb": f"mongodb://localhost:{port}",
        "neo4j": f"bolt://localhost:{port}",
    }[kind]
