"""The server's end of the sockets into a box; everything that arrives there may have been written by an enemy."""

from __future__ import annotations

import array
import asyncio
import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import BoxLostError

LONGEST_FRAME = 1024 * 1024
_MOST_DESCRIPTORS = 4


async def wait_writable(descriptor: int) -> None:
    """Waits until ``descriptor`` can be written or has nobody who reads. One waiter at a time."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_writer(descriptor, tell)
    try:
        await ready
    finally:
        loop.remove_writer(descriptor)


class Channel:
    """Frames (four bytes of length, then a JSON object) over one end of a socket pair.

    Args:
        end: The server's end; owned by the channel from now on.
        takes_descriptors: True only for the control channel, whose other end is the agent. Elsewhere the kernel drops
            what a program of the box may attach.
    """

    def __init__(self, end: socket.socket, *, takes_descriptors: bool = False) -> None:
        end.setblocking(False)
        self._socket = end
        self._takes_descriptors = takes_descriptors
        self._buffer = bytearray()
        self._descriptors: list[int] = []
        self._sending = asyncio.Lock()
        self._waiter: asyncio.Future[None] | None = None

    @property
    def closed(self) -> bool:
        """True once ``close`` has been called."""
        return self._socket.fileno() < 0

    async def send(self, message: Mapping[str, Any], *, descriptors: Sequence[int] = ()) -> None:
        """Sends one frame; ``descriptors`` stay open here.

        Raises:
            BoxLostError: The other end has gone.
        """
        payload = json.dumps({**message, "descriptors": len(descriptors)}, separators=(",", ":")).encode("ascii")
        frame = memoryview(len(payload).to_bytes(4, "big") + payload)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        async with self._sending:
            while frame:
                if self.closed:
                    raise BoxLostError("the box has gone")
                try:
                    sent = self._socket.sendmsg([frame], rights, socket.MSG_NOSIGNAL)
                except BlockingIOError:
                    await wait_writable(self._socket.fileno())
                    continue
                except OSError as error:
                    raise BoxLostError(f"the box does not listen: {error.strerror}") from error
                frame = frame[sent:]
                rights = []

    async def receive(self) -> dict[str, Any] | None:
        """Returns the next message, ``None`` when the other end or this one has been closed.

        Raises:
            BoxLostError: What arrived is no message; the box is not to be trusted any more.
        """
        while True:
            message = self._next()
            if message is not None:
                return message
            if self.closed:
                return None
            try:
                data = self._read()
            except BlockingIOError:
                await self._readable()
                continue
            except ConnectionError:
                return None
            if not data:
                return None
            self._buffer += data

    def take_descriptor(self) -> int | None:
        """Returns the oldest descriptor that came along and was not taken yet."""
        return self._descriptors.pop(0) if self._descriptors else None

    def close(self) -> None:
        """Closes this end; a ``receive`` that waits returns ``None``. May be called twice."""
        if self.closed:
            return
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        asyncio.get_running_loop().remove_writer(self._socket.fileno())
        self._socket.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _read(self) -> bytes:
        if not self._takes_descriptors:
            return self._socket.recv(65536)
        data, ancillary, _, _ = self._socket.recvmsg(
            65536, socket.CMSG_SPACE(4 * _MOST_DESCRIPTORS), socket.MSG_CMSG_CLOEXEC
        )
        for level, kind, rights in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(rights[: len(rights) - len(rights) % numbers.itemsize])
                self._descriptors.extend(numbers)
        while len(self._descriptors) > _MOST_DESCRIPTORS:
            os.close(self._descriptors.pop())
        return data

    def _next(self) -> dict[str, Any] | None:
        if len(self._buffer) < 4:
            return None
        length = int.from_bytes(self._buffer[:4], "big")
        if length > LONGEST_FRAME:
            raise BoxLostError(f"the box announced a message of {length} bytes")
        if len(self._buffer) < 4 + length:
            return None
        payload = bytes(self._buffer[4 : 4 + length])
        del self._buffer[: 4 + length]
        try:
            message = json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise BoxLostError("the box sent something that is no JSON") from error
        if not isinstance(message, dict):
            raise BoxLostError("the box sent JSON that is no object")
        return message

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        descriptor = self._socket.fileno()
        loop.add_reader(descriptor, lambda: None if waiter.done() else waiter.set_result(None))
        try:
            await waiter
        finally:
            self._waiter = None
            if not self.closed:
                loop.remove_reader(descriptor)


def whole_number(value: object, *, low: int, high: int) -> int | None:
    """Returns ``value`` if it is a whole number within the bounds (both included), else ``None``."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    return None


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Returns (server's end, box's end) of a stream socket pair."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
