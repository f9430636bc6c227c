"""The table of the toolbox's routes, relative to the prefix under which the control plane serves sandboxes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from ..runtime.errors import RuntimeFault
from . import downloads, files, session_routes, uploads
from .errors import daemon_error, from_runtime
from .toolbox import Toolbox

Resolve = Callable[[web.Request], Awaitable[Toolbox]]
"""Authenticates a request and returns the toolbox of ``request.match_info["sandboxId"]``, or raises a ``WireError``."""

View = Callable[[Toolbox, web.Request], Awaitable[web.StreamResponse]]

_VIEWS: Mapping[tuple[str, str], View] = {
    ("GET", "/work-dir"): lambda toolbox, request: toolbox.system.work_dir(request),
    ("GET", "/user-home-dir"): lambda toolbox, request: toolbox.system.home_dir(request),
    ("GET", "/project-dir"): lambda toolbox, request: toolbox.system.home_dir(request),
    ("GET", "/version"): lambda toolbox, request: toolbox.system.version(request),
    ("GET", "/port"): lambda toolbox, request: toolbox.system.ports(request),
    ("GET", "/port/{port}/in-use"): lambda toolbox, request: toolbox.system.port_in_use(request),
    ("POST", "/env"): lambda toolbox, request: toolbox.system.update_env(request),
    ("GET", "/system/metrics"): lambda toolbox, request: toolbox.system.metrics(request),
    ("POST", "/process/execute"): lambda toolbox, request: toolbox.executor.execute(request),
    ("POST", "/process/code-run"): lambda toolbox, request: toolbox.executor.run_code(request),
    **session_routes.VIEWS,
    ("POST", "/files/bulk-upload"): lambda toolbox, request: uploads.bulk_upload(request, toolbox.box.files),
    ("POST", "/files/bulk-download"): lambda toolbox, request: downloads.bulk_download(request, toolbox.box.files),
    ("GET", "/files/download"): lambda toolbox, request: downloads.download(request, toolbox.box.files),
    ("POST", "/files/folder"): lambda toolbox, request: files.create_folder(request, toolbox.box.files),
    ("GET", "/files/info"): lambda toolbox, request: files.info(request, toolbox.box.files),
    ("GET", "/files"): lambda toolbox, request: files.list_files(request, toolbox.box.files),
    ("DELETE", "/files"): lambda toolbox, request: files.delete(request, toolbox.box.files),
    ("POST", "/files/move"): lambda toolbox, request: files.move(request, toolbox.box.files),
    ("GET", "/files/find"): lambda toolbox, request: files.find(request, toolbox.box.files),
    ("GET", "/files/search"): lambda toolbox, request: files.search(request, toolbox.box.files),
    ("POST", "/files/replace"): lambda toolbox, request: files.replace(request, toolbox.box.files),
    ("POST", "/files/permissions"): lambda toolbox, request: files.set_permissions(request, toolbox.box.files),
}

_ABSENT = {
    "/process/pty": "pseudo-terminals",
    "/process/interpreter": "the stateful code interpreter",
    "/git": "git operations",
    "/lsp": "language servers",
    "/computeruse": "computer use",
    "/files/upload-v2": "single uploads and signed file addresses",
}
"""Parts of Daytona's toolbox that this platform does not have."""


def toolbox_routes(resolve: Resolve) -> list[web.RouteDef]:
    """Returns every route of the toolbox, each beginning with ``/{sandboxId}``.

    Args:
        resolve: See ``Resolve``; called once per request, before anything is read of its body.
    """
    table = [
        web.route(method, "/{sandboxId}" + path, _handler(resolve, view)) for (method, path), view in _VIEWS.items()
    ]
    for prefix, what in _ABSENT.items():
        handler = _handler(resolve, _absent(what))
        table += [web.route("*", "/{sandboxId}" + prefix + rest, handler) for rest in ("", "/{rest:.*}")]
    return table


def _handler(resolve: Resolve, view: View) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        toolbox = await resolve(request)
        with toolbox.activity():
            try:
                return await view(toolbox, request)
            except RuntimeFault as fault:
                raise from_runtime(fault) from fault

    return handle


def _absent(what: str) -> View:
    async def answer(_toolbox: Toolbox, _request: web.Request) -> web.StreamResponse:
        raise daemon_error(501, f"the local platform does not offer {what}; use process sessions or process/execute")

    return answer
