"""Logs of builds over HTTP, for snapshots and for sandboxes made from an image."""

from __future__ import annotations

from aiohttp import web

from ..control.build_log import BuildLog
from ..control.plane import ControlPlane
from ..wire_errors import WireError
from .answers import json_answer
from .bodies import query_flag


def log_url(plane: ControlPlane, build_id: str | None, *, url: str) -> web.Response:
    """Answers with the address of a log.

    Raises:
        WireError: 404, there was no build.
    """
    _log(plane, build_id)
    return json_answer({"url": url})


async def stream_log(plane: ControlPlane, request: web.Request, *, build_id: str | None) -> web.StreamResponse:
    """Sends a log from its start; with ``follow=true`` until the build has ended.

    Raises:
        WireError: 404, there was no build.
    """
    log = _log(plane, build_id)
    follow = query_flag(request, "follow")
    response = web.StreamResponse(headers={"Content-Type": "application/octet-stream", "Cache-Control": "no-store"})
    await response.prepare(request)
    try:
        async for chunk in log.read(follow=follow):
            await response.write(chunk)
        await response.write_eof()
    except ConnectionResetError:
        pass  # the reader has gone; the build and its log go on
    return response


def _log(plane: ControlPlane, build_id: str | None) -> BuildLog:
    log = plane.builds.log(build_id) if build_id is not None else None
    if log is None:
        raise WireError(404, "there is no build, hence no log of one")
    return log
