"""The only way out of a box: an HTTP proxy that listens inside the box's network namespace and runs in the server.

The agent makes the listening socket inside and hands it out; connections leave from the server's own namespace, after
the gate has agreed to the very address that is connected to. CONNECT and absolute-form requests are served; everything
else of the network (UDP, DNS, other TCP) does not exist in a box.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from .interface import NetworkPolicy
from .listening import adopted
from .policy import Gate, IPAddress, IPNetwork
from .resolver import Resolver

PROXY_PORT = 3128
_LONGEST_HEAD = 32 * 1024
_MOST_CONNECTIONS = 256
_CHUNK = 256 * 1024
_HEAD_SECONDS = 30.0
_CONNECT_SECONDS = 15.0
_IDLE_SECONDS = 300.0

_log = logging.getLogger(__name__)


class _DeniedError(Exception):
    """The answer to a request that is not served: status and text."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(slots=True, eq=False)
class _Connection:
    """One connection out of the box; ``writers`` are its near and, once connected, its far end."""

    reader: asyncio.StreamReader
    writers: list[asyncio.StreamWriter]
    task: asyncio.Task[None] | None = None
    host: str = ""
    port: int = 0
    address: IPAddress | None = None
    received: int = 0
    sent: int = 0
    verdict: str = "allowed"
    last_moved: float = field(default_factory=time.monotonic)

    def abort(self) -> None:
        """Cuts both ends at once."""
        for writer in self.writers:
            writer.transport.abort()


class BoxProxy:
    """The proxy of one box.

    Args:
        box_id: For the log.
        policy: See ``NetworkPolicy``.
        resolver: Looks up names.
        extra_public: See ``Gate``.

    Raises:
        PolicyError: The policy cannot be enforced.
    """

    def __init__(
        self, box_id: str, *, policy: NetworkPolicy, resolver: Resolver, extra_public: Sequence[IPNetwork] = ()
    ) -> None:
        self._box_id = box_id
        self._resolver = resolver
        self._extra_public = extra_public
        self._gate = Gate(policy, extra_public=extra_public)
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()

    @property
    def policy(self) -> NetworkPolicy:
        """The policy in force."""
        return self._gate.policy

    @property
    def listening(self) -> bool:
        """True once the proxy accepts connections."""
        return self._server is not None

    async def serve(self, descriptor: int) -> None:
        """Accepts on a listening socket that came out of the box; owns the descriptor from now on.

        Raises:
            BoxLostError: It is no listening TCP socket.
        """
        listening = adopted(descriptor)
        try:
            self._server = await asyncio.start_server(self._accepted, sock=listening, limit=_LONGEST_HEAD)
        except BaseException:
            listening.close()
            raise

    async def set_policy(self, policy: NetworkPolicy) -> None:
        """Takes a new policy and cuts the connections it does not allow.

        Raises:
            PolicyError: The policy cannot be enforced; the old one stays.
        """
        gate = Gate(policy, extra_public=self._extra_public)
        self._gate = gate
        await self._cut(
            [
                connection
                for connection in self._connections
                if connection.address is None or not gate.allows(connection.host, connection.address, connection.port)
            ]
        )

    async def close(self) -> None:
        """Stops listening and cuts every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._cut(list(self._connections))

    async def _cut(self, connections: Sequence[_Connection]) -> None:
        tasks = [connection.task for connection in connections if connection.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= _MOST_CONNECTIONS:
            writer.transport.abort()
            return
        connection = _Connection(reader, [writer])
        self._connections.add(connection)
        connection.task = asyncio.create_task(self._handle(connection), name=f"box {self._box_id}: connection")

    async def _handle(self, connection: _Connection) -> None:
        try:
            await self._serve_one(connection)
            for writer in connection.writers:
                writer.close()
        except _DeniedError as denied:
            connection.verdict = f"{denied.status}: {denied}"
            await _answer(connection.writers[0], denied)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            connection.verdict = f"broken: {type(error).__name__}"
            connection.abort()
        except asyncio.CancelledError:
            connection.verdict = "cut"
            connection.abort()
            raise
        finally:
            self._connections.discard(connection)
            _log.info(
                "box %s: %s:%d %s, %d bytes in, %d bytes out",
                self._box_id,
                connection.host,
                connection.port,
                connection.verdict,
                connection.received,
                connection.sent,
            )

    async def _serve_one(self, connection: _Connection) -> None:
        async with asyncio.timeout(_HEAD_SECONDS):
            head = await connection.reader.readuntil(b"\r\n\r\n")
        line, _, fields = head.partition(b"\r\n")
        parts = line.decode("latin-1").split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            raise _DeniedError("400 Bad Request", "this is a proxy for HTTP/1.1")
        method, target, _ = parts
        tunnel = method == "CONNECT"
        connection.host, connection.port = _host_and_port(
            f"//{target}" if tunnel else target, default=443 if tunnel else 80
        )
        far_reader = await self._connect(connection)
        near, far = connection.writers
        if tunnel:
            near.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            far.write(_origin_request(method, target, fields))
        await _relay(connection, far_reader)

    async def _connect(self, connection: _Connection) -> asyncio.StreamReader:
        """Connects to an address that the gate has checked; resolves once, so that a name cannot change in between."""
        host, port = connection.host, connection.port
        refusal = _DeniedError("403 Forbidden", self._gate.refusal(host, port))
        for address in await self._addresses(host, port, refusal):
            if not self._gate.allows(host, address, port):
                refusal = _DeniedError("403 Forbidden", self._gate.refusal(host, port, address=address))
                continue
            connection.address = address
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    reader, writer = await asyncio.open_connection(str(address), port, limit=_LONGEST_HEAD)
            except (OSError, TimeoutError) as error:
                refusal = _DeniedError("502 Bad Gateway", f"{host}:{port} cannot be reached: {error or 'timeout'}")
                continue
            connection.writers.append(writer)
            if not self._gate.allows(host, address, port):
                # The policy has changed while the connection was made.
                break
            return reader
        raise refusal

    async def _addresses(self, host: str, port: int, refusal: _DeniedError) -> list[IPAddress]:
        try:
            return [ipaddress.ip_address(host)]
        except ValueError:
            pass
        if not self._gate.looks_up(host, port):
            raise refusal
        try:
            return await self._resolver.addresses(host, port)
        except (OSError, TimeoutError) as error:
            raise _DeniedError("502 Bad Gateway", f"{host} cannot be resolved: {error or 'timeout'}") from error


async def _answer(writer: asyncio.StreamWriter, denied: _DeniedError) -> None:
    body = f"{denied}\n".encode("utf-8", "replace")
    fields = f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\nConnection: close"
    writer.write(f"HTTP/1.1 {denied.status}\r\n{fields}\r\n\r\n".encode("latin-1") + body)
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_HEAD_SECONDS):
            await writer.drain()
    writer.close()


def _end(writer: asyncio.StreamWriter) -> None:
    """Passes the end of a direction on; the other side may have closed both already."""
    with contextlib.suppress(OSError):
        writer.write_eof()


async def _relay(connection: _Connection, far_reader: asyncio.StreamReader) -> None:
    """Copies both ways until both have ended, or nothing has moved for a long time."""
    near, far = connection.writers

    async def outward() -> None:
        while chunk := await connection.reader.read(_CHUNK):
            connection.sent += len(chunk)
            connection.last_moved = time.monotonic()
            far.write(chunk)
            await far.drain()
        _end(far)

    async def inward() -> None:
        while chunk := await far_reader.read(_CHUNK):
            connection.received += len(chunk)
            connection.last_moved = time.monotonic()
            near.write(chunk)
            await near.drain()
        _end(near)

    tasks = {asyncio.create_task(outward()), asyncio.create_task(inward())}
    try:
        pending = tasks
        while pending:
            idle = time.monotonic() - connection.last_moved
            if idle >= _IDLE_SECONDS:
                raise TimeoutError
            done, pending = await asyncio.wait(
                pending, timeout=_IDLE_SECONDS - idle, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _host_and_port(target: str, *, default: int) -> tuple[str, int]:
    try:
        parts = urlsplit(target)
        port = parts.port or default
    except ValueError as error:
        raise _DeniedError("400 Bad Request", f"cannot read the address: {error}") from error
    if parts.scheme not in {"", "http"} or not parts.hostname:
        raise _DeniedError("400 Bad Request", "send an absolute http:// address, or CONNECT for anything else")
    return parts.hostname, port


def _origin_request(method: str, target: str, fields: bytes) -> bytes:
    """Returns the head as the origin server wants it; one request a connection, so nothing can slip behind the gate."""
    parts = urlsplit(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [
        line
        for line in fields.split(b"\r\n")
        if line
        and line.split(b":", 1)[0].strip().lower() not in {b"connection", b"proxy-connection", b"host"}
        and not line.lower().startswith(b"proxy-")
    ]
    host = parts.netloc.rpartition("@")[2]
    lines = [
        f"{method} {path} HTTP/1.1".encode("latin-1"),
        b"Host: " + host.encode("latin-1"),
        *kept,
        b"Connection: close",
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n"
