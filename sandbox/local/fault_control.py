"""The control API: faults set over HTTP, by whoever holds a key of its own, on a port of its own.

It exists only where the settings ask for it (``UOM_FAULT_CONTROL=1``). Address and key are in ``fault-control.json`` in
the platform's directory, readable by its owner only.

=========  =========================  =============================================================================
method     path                       does
=========  =========================  =============================================================================
GET        /control                   lists faults, forced states and the clock's lead
DELETE     /control                   resets everything
POST       /control/faults            sets a fault: the members of ``Fault``
POST       /control/states            forces a state: the members of ``ForcedState``
POST       /control/toolbox/{id}      the sandbox's toolbox answers no more until the sandbox is started again
POST       /control/clock             ``{"seconds": n}``: moves the clock of idle intervals on, and goes round once
=========  =========================  =============================================================================
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from .api.access import key_matches, refuse_strangers
from .control.plane import ControlPlane
from .directory import write_private
from .faults import Fault, Faults, dead_toolbox
from .forced_states import ForcedState
from .settings import LOOPBACK
from .wire_errors import WireError, error_middleware

CONTROL_FILE = "fault-control.json"

_OWN = frozenset({"seen", "since", "struck"})
"""Members that the platform counts itself."""

T = TypeVar("T", Fault, ForcedState)


@asynccontextmanager
async def fault_control(plane: ControlPlane, faults: Faults, directory: Path) -> AsyncIterator[str]:
    """Serves the control API while the context is open.

    Args:
        plane: The platform's control plane.
        faults: What it sets.
        directory: Where address and key are written.

    Yields:
        The address.
    """
    key = f"uom_control_{secrets.token_hex(32)}"
    routes = _Routes(plane, faults)
    app = web.Application(middlewares=[error_middleware(), _only(key)])
    app.add_routes(
        [
            web.get("/control", routes.list),
            web.delete("/control", routes.reset),
            web.post("/control/faults", routes.add_fault),
            web.post("/control/states", routes.force_state),
            web.post("/control/toolbox/{sandboxId}", routes.kill_toolbox),
            web.post("/control/clock", routes.move_clock),
        ]
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    path = directory / CONTROL_FILE
    with socket.create_server((LOOPBACK, 0)) as listener:
        listener.setblocking(False)
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            url = f"http://{LOOPBACK}:{listener.getsockname()[1]}/control"
            await asyncio.to_thread(write_private, path, orjson.dumps({"url": url, "key": key}).decode())
            yield url
        finally:
            path.unlink(missing_ok=True)
            await runner.cleanup()


class _Routes:
    def __init__(self, plane: ControlPlane, faults: Faults) -> None:
        self._plane = plane
        self._faults = faults

    async def list(self, request: web.Request) -> web.Response:
        body = {
            "faults": [_shown(fault) for fault in self._faults.all()],
            "states": [_shown(state) for state in self._faults.states],
            "clock": self._faults.clock_lead,
        }
        return web.json_response(body)

    async def reset(self, request: web.Request) -> web.Response:
        self._faults.clear()
        return web.Response(status=204)

    async def add_fault(self, request: web.Request) -> web.Response:
        fault = await _read(request, Fault)
        for name in ("path", "until"):
            try:
                re.compile(getattr(fault, name) or "")
            except re.error as error:
                raise WireError(400, f"{name} is no regular expression: {error}") from None
        self._faults.add(fault)
        return web.json_response(_shown(fault), status=201)

    async def force_state(self, request: web.Request) -> web.Response:
        state = await _read(request, ForcedState)
        self._faults.states.append(state)
        return web.json_response(_shown(state), status=201)

    async def kill_toolbox(self, request: web.Request) -> web.Response:
        record = self._plane.sandboxes.get(request.match_info["sandboxId"])
        return web.json_response(_shown(self._faults.add(dead_toolbox(record.id))), status=201)

    async def move_clock(self, request: web.Request) -> web.Response:
        body = await _object(request)
        seconds = body.get("seconds")
        if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or seconds < 0:
            raise WireError(400, "seconds must be a number, 0 or more")
        self._faults.clock_lead += seconds
        await self._plane.janitor.sweep()
        return web.json_response({"clock": self._faults.clock_lead})


def _only(key: str) -> Any:
    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        refuse_strangers(request)
        if not key_matches(request.headers.get("Authorization", ""), key=f"Bearer {key}"):
            raise WireError(401, f"the key of the control API is missing or wrong: it is in {CONTROL_FILE}")
        return await handler(request)

    return check


async def _object(request: web.Request) -> dict[str, Any]:
    try:
        body = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise WireError(400, f"the body is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise WireError(400, "the body must be a JSON object")
    return body


async def _read(request: web.Request, kind: type[T]) -> T:
    body = await _object(request)
    known = {field.name for field in dataclasses.fields(kind)} - _OWN
    if unknown := sorted(set(body) - known):
        raise WireError(400, f"{', '.join(unknown)}: there is no such member, only {', '.join(sorted(known))}")
    try:
        return kind(**body)
    except (TypeError, ValueError) as error:
        raise WireError(400, str(error)) from None


def _shown(item: Fault | ForcedState) -> dict[str, Any]:
    fields = (field.name for field in dataclasses.fields(item) if field.name not in ("struck", "since"))
    return {name: getattr(item, name) for name in fields}
