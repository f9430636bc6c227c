"""Plain TCP out of a box to the endpoints it was started with, and to nothing else.

The agent makes the listening sockets inside and hands them out; each of them stands for one endpoint. The server
accepts and relays both ways. What a driver of a database expects of TCP holds: one side may end its direction and go on
reading, a connection may be idle for days, and a server that cannot be reached shows as a reset at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence

from .endpoints import LOCALHOST, LOOPBACK_ADDRESSES, Route
from .errors import RuntimeFault
from .interface import Endpoint
from .listening import adopted
from .policy import IPAddress, unwrapped
from .resolver import Resolver

_MOST_CONNECTIONS = 256
_CONNECT_SECONDS = 5.0
_REACH_SECONDS = 10.0
_MOST_ADDRESSES = 4
_BUFFERED = 128 * 1024
# A peer that has vanished without a word is noticed within two minutes; one that is only silent is left alone.
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 15), (socket.TCP_KEEPCNT, 4))
_NO_SUCH_ADDRESS = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})

_log = logging.getLogger(__name__)

Listen = Callable[[str, int], Awaitable[int]]


class Tunnels:
    """All plain connections of one box.

    Args:
        box_id: For the log.
        routes: Which endpoints there are and where the box listens for each.
        resolver: Looks up names, at each connection anew.
        own_port: Port of the platform's own API on loopback addresses, which no box may reach.
    """

    def __init__(self, box_id: str, *, routes: Sequence[Route], resolver: Resolver, own_port: int | None) -> None:
        self._box_id = box_id
        self._routes = tuple(routes)
        self._resolver = resolver
        self._own_port = own_port
        self._servers: list[asyncio.Server] = []
        self._links: set[_Link] = set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._closed = False

    async def open(self, listen: Listen) -> None:
        """Listens for every endpoint.

        Args:
            listen: Returns the descriptor of a socket that listens inside the box on an address and a port.

        Raises:
            BoxLostError: The box has gone.
            RuntimeFault: The box cannot listen for an endpoint; the text names it.
        """
        for route in self._routes:
            for number, address in enumerate(route.listens):
                try:
                    descriptor = await listen(address, route.endpoint.port)
                except OSError as error:
                    if number and error.errno in _NO_SUCH_ADDRESS:
                        continue
                    raise RuntimeFault(
                        f"the sandbox cannot listen on {address} for its connection to {route.endpoint}: "
                        f"{error.strerror}"
                    ) from error
                await self._serve(adopted(descriptor), route.endpoint)

    async def close(self) -> None:
        """Stops listening and resets every connection; returns when all are gone. May be called twice."""
        self._closed = True
        for server in self._servers:
            server.close()
        self._servers.clear()
        for link in list(self._links):
            link.reset("cut")
        await self._empty.wait()

    async def _serve(self, listening: socket.socket, endpoint: Endpoint) -> None:
        try:
            server = await asyncio.get_running_loop().create_server(
                lambda: self._accepted(endpoint), sock=listening, backlog=128
            )
        except BaseException:
            listening.close()
            raise
        self._servers.append(server)

    def _accepted(self, endpoint: Endpoint) -> _Side:
        return _Link(endpoint, dial=self._dial, on_start=self._started, on_end=self._ended).near

    def _started(self, link: _Link) -> None:
        self._links.add(link)
        self._empty.clear()
        if self._closed:
            link.reset("cut")
        elif len(self._links) > _MOST_CONNECTIONS:
            link.reset(f"refused: a sandbox has at most {_MOST_CONNECTIONS} connections at once")

    def _ended(self, link: _Link) -> None:
        self._links.discard(link)
        if not self._links:
            self._empty.set()
        _log.info(
            "box %s: connection to %s %s, %d bytes in, %d bytes out",
            self._box_id,
            link.endpoint,
            link.verdict,
            link.far.received,
            link.near.received,
        )

    async def _dial(self, link: _Link) -> None:
        """Connects the far side to the first address that answers.

        Raises:
            OSError: None does, or the name cannot be resolved.
        """
        endpoint = link.endpoint
        problems = []
        for address in (await self._addresses(endpoint))[:_MOST_ADDRESSES]:
            real = unwrapped(address)
            if real.is_unspecified or (real.is_loopback and endpoint.port == self._own_port):
                problems.append(f"{address} is the platform itself")
                continue
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await asyncio.get_running_loop().create_connection(
                        lambda: link.far, host=str(address), port=endpoint.port
                    )
            except TimeoutError:
                problems.append(f"{address} did not answer within {_CONNECT_SECONDS:g} s")
            except OSError as error:
                # The loop's own text repeats the address.
                problems.append(f"{address}: {os.strerror(error.errno) if error.errno else error}")
            else:
                return
        raise OSError("; ".join(problems) or f"{endpoint.host} has no address")

    async def _addresses(self, endpoint: Endpoint) -> list[IPAddress]:
        if endpoint.host == LOCALHOST:
            return [ipaddress.ip_address(address) for address in LOOPBACK_ADDRESSES]
        with contextlib.suppress(ValueError):
            return [ipaddress.ip_address(endpoint.host)]
        return await self._resolver.addresses(endpoint.host, endpoint.port)


class _Link:
    """One connection: its near end in the box, its far end, and the task that makes the latter.

    Args:
        endpoint: Where it leads.
        dial: Connects the far end.
        on_start: Called once, when the near end is there.
        on_end: Called once, when both ends are gone.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        dial: Callable[[_Link], Awaitable[None]],
        on_start: Callable[[_Link], None],
        on_end: Callable[[_Link], None],
    ) -> None:
        self.endpoint = endpoint
        self.near = _Side(self)
        self.far = _Side(self)
        self.near.other, self.far.other = self.far, self.near
        self.verdict = "ended"
        self._dial = dial
        self._on_start = on_start
        self._on_end = on_end
        self._dialling: asyncio.Task[None] | None = None
        self._reset = False

    def connected(self, side: _Side) -> None:
        """A side has its transport."""
        if side is self.near:
            # What the program sends meanwhile waits in the kernel. Not now, because Python 3.11.2 begins to read after
            # this call whatever was said in it.
            asyncio.get_running_loop().call_soon(side.pause)
            self._on_start(self)
            if not self._reset:
                self._dialling = asyncio.create_task(self._reach(), name=f"connection to {self.endpoint}")
        elif self._reset:
            side.reset()
        else:
            self.near.resume()

    def finished(self) -> None:
        """A side has ended its direction; when both have, the rest is written and both are closed."""
        if self.near.finished and self.far.finished:
            for side in (self.near, self.far):
                side.close()

    def lost(self, error: Exception | None) -> None:
        """A side has gone. What was under way to the other one is delivered only if both had ended in order."""
        if not (self.near.finished and self.far.finished):
            self.reset(f"broken: {error or 'closed'}")
        self._end_if_gone()

    def reset(self, verdict: str) -> None:
        """Breaks both sides off so that whoever waits on them knows at once; the first verdict stays."""
        if not self._reset:
            self._reset = True
            self.verdict = verdict
        if self._dialling is not None:
            self._dialling.cancel()
        for side in (self.near, self.far):
            side.reset()

    async def _reach(self) -> None:
        try:
            async with asyncio.timeout(_REACH_SECONDS):
                await self._dial(self)
        except asyncio.CancelledError:
            # By ``reset``, which has said why, or by the end of the loop.
            self.reset("cut")
        except TimeoutError:
            self.reset(f"failed: it did not answer within {_REACH_SECONDS:g} s")
        except OSError as error:
            self.reset(f"failed: {error}")
        finally:
            self._dialling = None
            self._end_if_gone()

    def _end_if_gone(self) -> None:
        if self._dialling is None and self.near.gone and self.far.gone:
            self._on_end(self)


class _Side(asyncio.Protocol):
    """One end of a connection; what it receives leaves through the other one, no faster than that takes it."""

    other: _Side

    def __init__(self, link: _Link) -> None:
        self._link = link
        self._transport: asyncio.Transport | None = None
        self.received = 0
        self.finished = False

    @property
    def gone(self) -> bool:
        """True while there is no transport."""
        return self._transport is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=_BUFFERED)
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
        self._link.connected(self)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        self.other.write(data)

    def eof_received(self) -> bool:
        self.finished = True
        self.other.end()
        self._link.finished()
        return True

    def pause_writing(self) -> None:
        self.other.pause()

    def resume_writing(self) -> None:
        self.other.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._link.lost(exc)

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def end(self) -> None:
        """Ends this direction; the other side may have closed both already."""
        if self._transport is not None and not self._transport.is_closing():
            with contextlib.suppress(OSError):
                self._transport.write_eof()

    def pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def close(self) -> None:
        """Closes when everything is written."""
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """Closes at once, with a reset instead of an orderly end (socket(7), SO_LINGER)."""
        if self._transport is not None:
            connection: socket.socket = self._transport.get_extra_info("socket")
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
