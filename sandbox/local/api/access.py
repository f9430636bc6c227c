"""Who may speak to the platform: the holder of its key, through a loopback address, and no web page.

A page in a browser on the same machine can send requests to 127.0.0.1, also under a host name that its owner points
there (DNS rebinding). It cannot hide the ``Host`` and ``Origin`` it uses, so both must be loopback.
"""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from ..wire_errors import WireError
from .platform_routes import OPEN_PATHS

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


def access_middleware(*, key: str, api_prefix: str, socket_io_path: str) -> Middleware:
    """Returns the middleware that lets only the key's holder in.

    Args:
        key: The platform's key.
        api_prefix: Path below which the control plane answers.
        socket_io_path: Its Socket.IO route, which gets the key in its first message instead of a header.
    """
    open_paths = {api_prefix + path for path in OPEN_PATHS} | {socket_io_path.rstrip("/"), socket_io_path}

    @web.middleware
    async def check_access(request: web.Request, handler: Handler) -> web.StreamResponse:
        refuse_strangers(request)
        if collapsed(request.path) not in open_paths and not _authorized(request, key):
            raise WireError(401, "the API key is missing or wrong: send it as Authorization: Bearer <key>")
        return await handler(request)

    return check_access


def refuse_strangers(request: web.Request) -> None:
    """Refuses what does not come from a program on this machine.

    Raises:
        WireError: 403, ``Host`` or ``Origin`` is not a loopback address.
    """
    if _host(f"//{request.headers.get('Host', '')}") not in LOOPBACK_HOSTS:
        raise WireError(403, "the Host header must be a loopback address: the platform serves this machine only")
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("Host"):
        raise WireError(403, "requests from web pages of another origin are refused")
    if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        raise WireError(403, "requests from web pages of another origin are refused")


def key_matches(given: str, *, key: str) -> bool:
    """Compares keys in a time that tells nothing about where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), key.encode())


def collapsed(path: str) -> str:
    """Returns a path with every run of slashes made one."""
    while "//" in path:
        path = path.replace("//", "/")
    return path


@web.middleware
async def collapse_slashes(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers ``//sandbox`` like ``/sandbox``: the SDK joins its base address and the path as plain text."""
    if "//" not in request.rel_url.raw_path:
        return await handler(request)
    url = request.rel_url.with_path(collapsed(request.rel_url.raw_path), encoded=True, keep_query=True)
    match = await request.app.router.resolve(request.clone(rel_url=url))
    if match.http_exception is not None:
        raise match.http_exception
    request.match_info.update(match)
    return await match.handler(request)


def _authorized(request: web.Request, key: str) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and key_matches(given.strip(), key=key)


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
