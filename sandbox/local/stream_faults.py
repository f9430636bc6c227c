"""Answers that end or fall silent in the middle: a transport that counts what is sent."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from aiohttp import web
from aiohttp.typedefs import Handler


class _Tap:
    """Passes ``size`` bytes on, then drops the connection, or keeps it and everything else to itself."""

    def __init__(self, transport: asyncio.Transport, *, size: int, freeze: bool) -> None:
        self._transport = transport
        self._left = size
        self._freeze = freeze

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        part = bytes(data)[: self._left]
        if part:
            self._transport.write(part)
            self._left -= len(part)
        if len(part) < len(data) and not self._freeze:
            self._transport.close()  # unlike abort, what was let through still arrives

    def close(self) -> None:
        """Ends the connection, unless it is to stay open and silent."""
        if not (self._freeze and self._left == 0):
            self._transport.close()

    def writelines(self, parts: list[bytes]) -> None:
        self.write(b"".join(parts))


async def tap_stream(
    request: web.Request, handler: Handler, *, size: int, freeze: bool, tapped: list[asyncio.BaseTransport]
) -> web.StreamResponse:
    """Answers a request, but for what comes after so many bytes.

    Args:
        request: The request.
        handler: Makes the answer.
        size: Bytes that are sent, the head of the answer included.
        freeze: Keeps the connection open and silent instead of dropping it.
        tapped: Gets the connection, for whoever ends the fault to drop it.
    """
    protocol = request.protocol
    transport = request.transport
    if transport is None:
        return await handler(request)
    tap = cast("asyncio.Transport", _Tap(transport, size=size, freeze=freeze))
    tapped.append(transport)
    protocol.transport = tap
    answer = await handler(request)
    if not answer.prepared:
        answer.force_close()  # it is sent after this; the connection is not used for another request
    elif not freeze and protocol.transport is tap:
        protocol.transport = transport
    return answer
