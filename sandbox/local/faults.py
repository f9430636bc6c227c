"""Faults on demand, so that tests can see what a client does when the platform is slow, wrong or gone.

Faults are set on a platform in the same process (``LocalPlatform.faults``); no request can set one.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from .wire_errors import WireError

FaultKind = Literal["delay", "fail", "cut", "lose_answer", "hang", "hold_answer"]


@dataclass(slots=True, kw_only=True)
class Fault:
    """One fault and the requests it befalls.

    Attributes:
        kind: ``delay`` waits and goes on; ``fail`` answers an error instead; ``cut`` drops the connection before
            anything happens; ``lose_answer`` does what was asked, then drops the connection; ``hang`` never does it nor
            answers; ``hold_answer`` does it and never answers.
        method: HTTP method, or ``*``.
        path: Regular expression that the whole path must match, such as ``/api/sandbox/[^/]+/start``.
        times: How many requests it befalls; ``None`` for all until it is removed.
        after: How many requests pass before the first.
        seconds: Of ``delay``.
        status: Of ``fail``.
        message: Of ``fail``.
        headers: Of ``fail``, such as ``retry-after-sandbox-create``.
        seen: Requests that matched, whether or not they were befallen.
        struck: Set once the fault has befallen a request; for ``hold_answer``, once the request was done.
    """

    kind: FaultKind
    path: str
    method: str = "*"
    times: int | None = 1
    after: int = 0
    seconds: float = 0.0
    status: int = 500
    message: str = "a fault was asked for"
    headers: Mapping[str, str] = field(default_factory=dict)
    seen: int = 0
    struck: asyncio.Event = field(default_factory=asyncio.Event)

    def strikes(self, method: str, path: str) -> bool:
        """Counts a request and tells whether the fault befalls it."""
        if self.method not in ("*", method) or re.fullmatch(self.path, path) is None:
            return False
        self.seen += 1
        past = self.seen - self.after
        return past > 0 and (self.times is None or past <= self.times)


class Faults:
    """The faults of one platform."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._released = asyncio.Event()

    def add(self, fault: Fault) -> Fault:
        """Sets a fault; of several that match a request, the first strikes."""
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        """Removes every fault; what hangs is dropped."""
        self._faults.clear()
        self._released.set()
        self._released = asyncio.Event()

    def middleware(self) -> Middleware:
        """Returns the middleware that lets the faults strike."""

        @web.middleware
        async def strike(request: web.Request, handler: Handler) -> web.StreamResponse:
            fault = next((fault for fault in self._faults if fault.strikes(request.method, request.path)), None)
            return await handler(request) if fault is None else await self._strike(fault, request, handler)

        return strike

    async def _strike(self, fault: Fault, request: web.Request, handler: Handler) -> web.StreamResponse:
        if fault.kind in ("hold_answer", "lose_answer"):
            with contextlib.suppress(WireError, web.HTTPException):  # an answer like any other
                await handler(request)
        fault.struck.set()
        match fault.kind:
            case "delay":
                await asyncio.sleep(fault.seconds)
                return await handler(request)
            case "fail":
                raise WireError(fault.status, fault.message, headers=fault.headers)
            case "hang" | "hold_answer":
                await self._released.wait()
            case "lose_answer" | "cut":
                pass
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)  # nobody is there to read it
