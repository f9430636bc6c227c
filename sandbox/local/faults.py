"""Faults on demand, so that tests can see what a client does when the platform is slow, wrong or gone.

Faults are set in the same process (``LocalPlatform.faults``) or through the control API (``fault_control``), on a
platform whose settings ask for it; on any other there is nothing of this in the way of a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast, get_args

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from .forced_states import READING, ForcedState
from .stream_faults import tap_stream
from .wire_errors import ErrorSource, WireError

FaultKind = Literal["delay", "fail", "cut", "lose_answer", "hang", "hold_answer", "cut_stream", "freeze_stream"]

_KINDS: Final = get_args(FaultKind)


@dataclass(slots=True, kw_only=True)
class Fault:
    """One fault and the requests it befalls.

    Attributes:
        kind: ``delay`` waits and goes on; ``fail`` answers an error instead; ``cut`` drops the connection before
            anything happens; ``lose_answer`` does what was asked, then drops the connection; ``hang`` never does it nor
            answers; ``hold_answer`` does it and never answers; ``cut_stream`` and ``freeze_stream`` drop or silence
            the connection once ``size`` bytes of the answer are out.
        method: HTTP method, or ``*``.
        path: Regular expression that the whole path must match, such as ``/api/sandbox/[^/]+/start``.
        times: How many requests it befalls; ``None`` for all until it is removed.
        after: How many requests pass before the first.
        seconds: Of ``delay``.
        status: Of ``fail``: 200 to 599; the envelope of errors is sent from 400 on.
        message: Of ``fail``.
        origin: Of ``fail``: which part of the platform seems to speak.
        headers: Of ``fail``, such as ``retry-after-sandbox-create``.
        size: Of the faults of streams: bytes of the answer that are still sent, its head included.
        websocket: Befalls only requests that open a WebSocket (``True``) or only others (``False``).
        until: Regular expression for ``METHOD path``: a request that matches it passes and ends the fault.
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
    origin: ErrorSource = "DAYTONA_API"
    size: int = 0
    websocket: bool | None = None
    until: str | None = None
    seen: int = 0
    struck: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"kind must be one of {', '.join(_KINDS)}, not {self.kind!r}")
        if not 200 <= self.status <= 599:
            raise ValueError(f"status must be 200 to 599, not {self.status}")

    def strikes(self, method: str, path: str, *, websocket: bool = False) -> bool:
        """Counts a request and tells whether the fault befalls it."""
        if self.websocket is not None and self.websocket is not websocket:
            return False
        if self.method not in ("*", method) or re.fullmatch(self.path, path) is None:
            return False
        self.seen += 1
        past = self.seen - self.after
        return past > 0 and (self.times is None or past <= self.times)


def dead_toolbox(sandbox_id: str) -> Fault:
    """Returns the fault of a toolbox that answers no more until its sandbox is started again."""
    one = re.escape(sandbox_id)
    return Fault(
        kind="fail",
        path=f"/+toolbox/+{one}/.*",
        times=None,
        status=502,
        message="the toolbox does not answer",
        origin="DAYTONA_PROXY",
        until=f"POST /+api/+sandbox/+{one}/start",
    )


class Faults:
    """The faults of one platform.

    Attributes:
        states: States that are shown instead of the true ones.
        clock_lead: Seconds by which the clock of idle intervals is ahead.
    """

    def __init__(self) -> None:
        self.states: list[ForcedState] = []
        self.clock_lead = 0.0
        self._faults: list[Fault] = []
        self._tapped: list[asyncio.BaseTransport] = []
        self._released = asyncio.Event()

    def add(self, fault: Fault) -> Fault:
        """Sets a fault; of several that match a request, the first strikes."""
        self._faults.append(fault)
        return fault

    def all(self) -> list[Fault]:
        """Returns the faults that are set."""
        return list(self._faults)

    def force(self, state: ForcedState) -> ForcedState:
        """Shows a state instead of the true one; of several for one target, the first that is due is shown."""
        self.states.append(state)
        return state

    def clear(self) -> None:
        """Removes every fault and forced state and sets the clock right; what hangs is dropped."""
        self._faults.clear()
        self.states.clear()
        self.clock_lead = 0.0
        for transport in self._tapped:
            cast("asyncio.Transport", transport).abort()
        self._tapped.clear()
        self._released.set()
        self._released = asyncio.Event()

    def middleware(self) -> Middleware:
        """Returns the middleware that lets the faults strike."""

        @web.middleware
        async def strike(request: web.Request, handler: Handler) -> web.StreamResponse:
            READING.set(request.method == "GET")
            method, path = request.method, request.path
            line = f"{method} {path}"
            self._faults = [fault for fault in self._faults if not (fault.until and re.fullmatch(fault.until, line))]
            websocket = request.headers.get("Upgrade", "").lower() == "websocket"
            fault = next((one for one in self._faults if one.strikes(method, path, websocket=websocket)), None)
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
                if fault.status < 400:
                    return web.Response(status=fault.status, text=fault.message, headers=fault.headers)
                raise WireError(fault.status, fault.message, headers=fault.headers, source=fault.origin)
            case "cut_stream" | "freeze_stream":
                freeze = fault.kind == "freeze_stream"
                return await tap_stream(request, handler, size=fault.size, freeze=freeze, tapped=self._tapped)
            case "hang" | "hold_answer":
                await self._released.wait()
            case "lose_answer" | "cut":
                pass
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)  # nobody is there to read it
