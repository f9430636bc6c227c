"""The one aiohttp application: control plane, toolboxes and live events behind the same door."""

from __future__ import annotations

from typing import cast

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from ..control.plane import ControlPlane
from ..faults import Faults
from ..toolbox.routes import toolbox_routes
from ..toolbox.toolbox import Toolbox
from ..wire_errors import WireError, error_middleware
from .access import access_middleware, collapse_slashes
from .platform_routes import PlatformRoutes
from .sandbox_routes import SandboxRoutes
from .snapshot_routes import SnapshotRoutes
from .socket_io import SocketIo

API_PREFIX = "/api"
TOOLBOX_PREFIX = "/toolbox"
SOCKET_IO_PATH = f"{API_PREFIX}/socket.io/"


def build_application(
    plane: ControlPlane, *, key: str, base_url: str, version: str, faults: Faults | None
) -> web.Application:
    """Returns the application.

    Args:
        plane: What it acts on.
        key: The key that clients need.
        base_url: Address of the server, without a slash at its end.
        version: Of the platform.
        faults: What tests let go wrong; ``None`` leaves nothing of it in the way of a request.
    """
    app = web.Application(
        middlewares=[
            error_middleware(toolbox_prefix=f"{TOOLBOX_PREFIX}/"),
            access_middleware(key=key, api_prefix=API_PREFIX, socket_io_path=SOCKET_IO_PATH),
            *([] if faults is None else [faults.middleware()]),
            _refuse_while_stopping(plane),
            collapse_slashes,
        ]
    )
    api_url = base_url + API_PREFIX
    tables = (
        PlatformRoutes(plane, api_url=api_url, version=version).table(),
        SnapshotRoutes(plane, api_url=api_url).table(),
        SandboxRoutes(plane, api_url=api_url).table(),
    )
    app.add_routes(_below(API_PREFIX, [route for table in tables for route in table]))
    app.add_routes([web.get(SOCKET_IO_PATH, SocketIo(plane.events, key=key).handle)])

    async def resolve(request: web.Request) -> Toolbox:
        return cast("Toolbox", plane.sandboxes.toolbox(request.match_info["sandboxId"]))

    app.add_routes(_below(TOOLBOX_PREFIX, toolbox_routes(resolve)))
    return app


def _refuse_while_stopping(plane: ControlPlane) -> Middleware:
    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if plane.closing:
            raise WireError(503, "the platform is stopping")
        return await handler(request)

    return check


def _below(prefix: str, routes: list[web.RouteDef]) -> list[web.RouteDef]:
    return [web.route(route.method, prefix + route.path, route.handler, **route.kwargs) for route in routes]
