"""The log of a command, live: over a WebSocket with markers, or as a plain chunked body without an upgrade.

A follower reads from the log at its own pace: its socket's backpressure stops only itself, never the program and never
another follower. It starts at the first byte, and the socket closes with 1000 as soon as the exit code is stored.
"""

from __future__ import annotations

import asyncio
import logging

from aiohttp import WSCloseCode, WSMsgType, web

from .command_log import CommandLog, LogReader
from .framing import frames

_log = logging.getLogger(__name__)

_INBOUND_LIMIT = 64 * 1024
_CLOSE_SECONDS = 10.0
_FLUSH_SECONDS = 10.0


async def follow(request: web.Request, log: CommandLog) -> web.StreamResponse:
    """Sends the whole log, then what is added, until it is complete.

    After the log has been discarded (session deleted, sandbox stopped) a follower has ten seconds to take the rest; one
    that does not is closed with 1011, so that it cannot mistake a part for the whole.
    """
    socket = web.WebSocketResponse(compress=False, max_msg_size=_INBOUND_LIMIT, timeout=_CLOSE_SECONDS)
    if not socket.can_prepare(request):
        return await _follow_plain(request, log)
    reader = log.reader()
    try:
        await socket.prepare(request)
        sender = asyncio.create_task(_send(socket, reader))
        # Reading is what answers pings and notices a client that has left.
        receiver = asyncio.create_task(_receive(socket))
        expiry = asyncio.create_task(_expire(log))
        try:
            await asyncio.wait({sender, receiver, expiry}, return_when=asyncio.FIRST_COMPLETED)
            complete = sender.done() and not _failed(sender, request)
        finally:
            for task in (sender, receiver, expiry):
                task.cancel()
            await asyncio.gather(sender, receiver, expiry, return_exceptions=True)
    finally:
        await reader.close()
    if complete:
        await socket.close(code=WSCloseCode.OK)
    else:
        await socket.close(code=WSCloseCode.INTERNAL_ERROR, message=b"the log could not be sent to its end")
    return socket


async def _follow_plain(request: web.Request, log: CommandLog) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
    reader = log.reader()
    try:
        await response.prepare(request)
        while await reader.wait():
            for _, payload in await reader.read():
                await response.write(payload)
        await response.write_eof()
    finally:
        await reader.close()
    return response


async def _send(socket: web.WebSocketResponse, reader: LogReader) -> None:
    while await reader.wait():
        for frame in frames(await reader.read()):
            await socket.send_bytes(frame)


async def _receive(socket: web.WebSocketResponse) -> None:
    while (await socket.receive()).type not in (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR):
        pass


def _failed(sender: asyncio.Task[None], request: web.Request) -> bool:
    error = sender.exception()
    if error is not None and not isinstance(error, ConnectionResetError):
        _log.error("%s could not be followed", request.path, exc_info=error)
    return error is not None


async def _expire(log: CommandLog) -> None:
    await log.wait_discarded()
    await asyncio.sleep(_FLUSH_SECONDS)
