"""Live events over Socket.IO 5 on Engine.IO 4, WebSocket transport only: what the ``daytona`` SDK's client speaks.

The protocol needed is small: one packet to open each layer, pings, and events from the server. The published
specifications of both protocols number the packets used here.
"""

from __future__ import annotations

import asyncio
import json
import secrets

from aiohttp import WSMsgType, web

from ..control.live_events import LiveEvents, Subscription
from ..wire_errors import WireError
from .access import key_matches

PING_SECONDS = 25.0
PONG_SECONDS = 20.0
HANDSHAKE_SECONDS = 10.0
MAX_MESSAGE_BYTES = 64 * 1024

_OPEN, _PING, _PONG, _MESSAGE = "0", "2", "3", "4"
_CONNECT, _DISCONNECT, _EVENT, _CONNECT_ERROR = "0", "1", "2", "4"


class SocketIo:
    """The route of live events.

    Args:
        events: What is told.
        key: The platform's key, which the client sends in its first message.
    """

    def __init__(self, events: LiveEvents, *, key: str) -> None:
        self._events = events
        self._key = key

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """``GET /socket.io/``."""
        if request.query.get("transport") != "websocket" or request.query.get("EIO") != "4":
            raise WireError(400, "live events need transport=websocket and EIO=4")
        socket = web.WebSocketResponse(max_msg_size=MAX_MESSAGE_BYTES, autoping=True)
        await socket.prepare(request)
        await socket.send_str(_OPEN + _dumps(_opening()))
        if await self._connected(socket):
            subscription = self._events.subscribe()
            try:
                await socket.send_str(_MESSAGE + _CONNECT + _dumps({"sid": secrets.token_urlsafe(15)}))
                await self._serve(socket, subscription)
            finally:
                self._events.unsubscribe(subscription)
        await socket.close()
        return socket

    async def _connected(self, socket: web.WebSocketResponse) -> bool:
        """Waits for the client's CONNECT packet and checks the key in it."""
        try:
            message = await socket.receive(timeout=HANDSHAKE_SECONDS)
        except TimeoutError:
            return False
        if message.type is not WSMsgType.TEXT or not message.data.startswith(_MESSAGE + _CONNECT):
            return False
        if key_matches(_token(message.data[2:]), key=self._key):
            return True
        await socket.send_str(_MESSAGE + _CONNECT_ERROR + _dumps({"message": "the API key is missing or wrong"}))
        return False

    async def _serve(self, socket: web.WebSocketResponse, subscription: Subscription) -> None:
        tasks = {
            asyncio.create_task(_send_events(socket, subscription)),
            asyncio.create_task(_ping(socket)),
            asyncio.create_task(_read(socket)),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _send_events(socket: web.WebSocketResponse, subscription: Subscription) -> None:
    while (text := await subscription.next()) is not None:
        await socket.send_str(_MESSAGE + _EVENT + text)


async def _ping(socket: web.WebSocketResponse) -> None:
    while True:
        await asyncio.sleep(PING_SECONDS)
        await socket.send_str(_PING)


async def _read(socket: web.WebSocketResponse) -> None:
    while True:
        try:
            message = await socket.receive(timeout=PING_SECONDS + PONG_SECONDS)
        except TimeoutError:
            return  # no answer to a ping: the client has gone
        if message.type is not WSMsgType.TEXT:
            return
        if message.data == _MESSAGE + _DISCONNECT:
            return
        if message.data == _PING:
            await socket.send_str(_PONG)


def _opening() -> dict[str, object]:
    return {
        "sid": secrets.token_urlsafe(15),
        "upgrades": [],
        "pingInterval": int(PING_SECONDS * 1000),
        "pingTimeout": int(PONG_SECONDS * 1000),
        "maxPayload": MAX_MESSAGE_BYTES,
    }


def _token(payload: str) -> str:
    try:
        body = json.loads(payload)
    except ValueError:
        return ""
    token = body.get("token") if isinstance(body, dict) else None
    return token if isinstance(token, str) else ""


def _dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
