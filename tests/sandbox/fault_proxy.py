"""A proxy in front of a platform that does harm on demand: the doubles of these tests, and the only ones.

It rewrites the platform's address in JSON answers, so the SDK's toolbox calls and log streams come through it too.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import orjson
from aiohttp import web

_HOP_BY_HOP = {"connection", "content-length", "transfer-encoding", "host", "content-encoding", "keep-alive"}


@dataclass
class Harm:
    """One kind of harm to requests whose ``METHOD path`` matches.

    Attributes:
        pattern: Searched for in ``METHOD path``.
        times: How many requests it befalls.
        skip: How many it spares first.
        status: Answered instead of asking the platform.
        message: Text of that answer.
        headers: Of that answer.
        drop: The connection is closed; ``after`` lets the platform do the work first.
        after: See ``drop``.
        freeze: No answer until the proxy closes.
        cut_bytes: A log stream is closed abruptly after so many bytes.
        close_code: A log stream is closed properly with this code after ``cut_bytes``.
        body: Replaces the JSON body of the answer.
    """

    pattern: str
    times: int = 1
    skip: int = 0
    status: int | None = None
    message: str = "made to fail"
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    after: bool = False
    freeze: bool = False
    cut_bytes: int | None = None
    close_code: int | None = None
    body: Callable[[dict[str, object]], object] | None = None


class FaultProxy:
    """The proxy; ``harms`` may be changed at any time, ``seen`` holds every ``METHOD path`` that came."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.harms: list[Harm] = []
        self.seen: list[str] = []
        self.url = ""
        self.before: Callable[[str], Awaitable[None]] | None = None
        self._session: aiohttp.ClientSession | None = None
        self._closing = asyncio.Event()

    def count(self, pattern: str) -> int:
        """How many requests matched."""
        return sum(bool(re.search(pattern, line)) for line in self.seen)

    def _harm(self, line: str) -> Harm | None:
        for harm in self.harms:
            if re.search(harm.pattern, line) and harm.times > 0:
                if harm.skip > 0:
                    harm.skip -= 1
                    continue
                harm.times -= 1
                return harm
        return None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        line = f"{request.method} {request.path_qs}"
        self.seen.append(line)
        if self.before is not None:
            await self.before(line)
        harm = self._harm(line) or Harm("", times=0)
        if harm.freeze:
            await self._closing.wait()
        if harm.drop and not harm.after:
            return self._drop(request)
        if harm.status is not None:
            return web.json_response(
                {"message": harm.message, "statusCode": harm.status, "source": "DAYTONA_API"},
                status=harm.status,
                headers=harm.headers,
            )
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._websocket(request, harm)
        return await self._forward(request, harm)

    def _drop(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response(status=500)

    async def _forward(self, request: web.Request, harm: Harm) -> web.StreamResponse:
        assert self._session is not None
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        async with self._session.request(
            request.method, self.target + request.path_qs, headers=headers, data=await request.read()
        ) as answer:
            body = await answer.read()
            if harm.drop:
                return self._drop(request)
            if answer.content_type == "application/json":
                body = body.replace(self.target.encode(), self.url.encode())
                if harm.body is not None:
                    body = orjson.dumps(harm.body(orjson.loads(body)))
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
            return web.Response(status=answer.status, body=body, headers=kept)

    async def _websocket(self, request: web.Request, harm: Harm) -> web.StreamResponse:
        assert self._session is not None
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in _HOP_BY_HOP and not name.lower().startswith(("sec-websocket", "upgrade"))
        }
        async with self._session.ws_connect(self.target + request.path_qs, headers=headers) as upstream:
            downstream = web.WebSocketResponse()
            await downstream.prepare(request)
            back = asyncio.create_task(_pump_up(downstream, upstream))
            try:
                await self._pump_down(request, downstream, upstream, harm)
            finally:
                back.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await back
            return downstream

    async def _pump_down(
        self,
        request: web.Request,
        downstream: web.WebSocketResponse,
        upstream: aiohttp.ClientWebSocketResponse,
        harm: Harm,
    ) -> None:
        left = harm.cut_bytes
        async for message in upstream:
            data = message.data if isinstance(message.data, bytes) else str(message.data).encode()
            if left is not None and len(data) >= left:
                await downstream.send_bytes(data[:left])
                if harm.close_code is not None:
                    await downstream.close(code=harm.close_code)
                elif request.transport is not None:
                    request.transport.abort()
                return
            if left is not None:
                left -= len(data)
            if message.type is aiohttp.WSMsgType.TEXT:
                await downstream.send_str(message.data)
            else:
                await downstream.send_bytes(data)
        await downstream.close(code=upstream.close_code or 1000)


async def _pump_up(downstream: web.WebSocketResponse, upstream: aiohttp.ClientWebSocketResponse) -> None:
    async for message in downstream:
        if message.type is aiohttp.WSMsgType.TEXT:
            await upstream.send_str(message.data)
        elif message.type is aiohttp.WSMsgType.BINARY:
            await upstream.send_bytes(message.data)
    await upstream.close()


@asynccontextmanager
async def fault_proxy(target: str) -> AsyncIterator[FaultProxy]:
    """Runs a proxy in front of ``target``, an address without path."""
    proxy = FaultProxy(target)
    app = web.Application(client_max_size=2**30)
    app.router.add_route("*", "/{path:.*}", proxy.handle)
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=75, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with aiohttp.ClientSession() as session:
        proxy._session = session
        try:
            yield proxy
        finally:
            proxy._closing.set()
            await runner.cleanup()
