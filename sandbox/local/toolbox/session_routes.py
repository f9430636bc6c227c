"""The routes of process sessions: what they take, what they answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from aiohttp import web

from . import bodies
from .commands import Command
from .errors import daemon_error, session_ended
from .follow import follow
from .log_body import log_response
from .sessions import ENTRYPOINT, Session

if TYPE_CHECKING:
    from .toolbox import Toolbox


async def _create(toolbox: Toolbox, request: web.Request) -> web.StreamResponse:
    body = await bodies.read_object(request)
    session = await toolbox.sessions.create(bodies.text(body, "sessionId"))
    return web.json_response(session.describe(), status=201)


async def _list(toolbox: Toolbox, _request: web.Request) -> web.StreamResponse:
    return web.json_response([session.describe() for session in toolbox.sessions.list()])


async def _get(toolbox: Toolbox, request: web.Request) -> web.StreamResponse:
    return web.json_response(_session(toolbox, request).describe())


async def _delete(toolbox: Toolbox, request: web.Request) -> web.StreamResponse:
    await toolbox.sessions.delete(request.match_info["sessionId"])
    return web.Response(status=204)


async def _exec(toolbox: Toolbox, request: web.Request) -> web.StreamResponse:
    session = _session(toolbox, request)
    body = await bodies.read_object(request)
    in_background = bodies.flag(body, "runAsync") or bodies.flag(body, "async")
    command = session.submit(
        bodies.text(body, "command"), interactive=in_background, echo=not bodies.flag(body, "suppressInputEcho")
    )
    if in_background:
        return web.json_response({"cmdId": command.id}, status=202)
    await command.wait()
    if command.refused or session.deleted:
        raise session_ended(session.id)
    return await log_response(
        request,
        command.log,
        fields=("output", "stdout", "stderr"),
        others={"cmdId": command.id, "exitCode": command.exit_code},
    )


async def _get_command(toolbox: Toolbox, request: web.Request) -> web.StreamResponse:
    return web.json_response(_command(toolbox, request).describe())


async def _logs(toolbox: Toolbox, request: web.Request) -> web.StreamResponse:
    return await _answer_logs(request, _command(toolbox, request))


async def _input(toolbox: Toolbox, request: web.Request) -> web.StreamResponse:
    session = _session(toolbox, request)
    command = session.command(request.match_info["commandId"])
    data = bodies.text(await bodies.read_object(request), "data")
    await command.write_input(data)
    return web.Response(status=204)


async def _entrypoint(toolbox: Toolbox, _request: web.Request) -> web.StreamResponse:
    return web.json_response((await _entrypoint_session(toolbox)).describe())


async def _entrypoint_logs(toolbox: Toolbox, request: web.Request) -> web.StreamResponse:
    session = await _entrypoint_session(toolbox)
    return await _answer_logs(request, session.commands[0])


async def _answer_logs(request: web.Request, command: Command) -> web.StreamResponse:
    if bodies.query_flag(request, "follow"):
        return await follow(request, command.log)
    return await log_response(request, command.log, fields=("output", "stdout", "stderr"))


async def _entrypoint_session(toolbox: Toolbox) -> Session:
    if not await toolbox.entrypoint_started():
        raise daemon_error(404, "the sandbox has no entrypoint command")
    return toolbox.sessions.get(ENTRYPOINT)


def _session(toolbox: Toolbox, request: web.Request) -> Session:
    return toolbox.sessions.get(request.match_info["sessionId"])


def _command(toolbox: Toolbox, request: web.Request) -> Command:
    return _session(toolbox, request).command(request.match_info["commandId"])


# A session id may hold any character, the slash too: it arrives as %2F and is decoded after the match.
_ONE = "/process/session/{sessionId:[^/]+}"
_COMMAND = _ONE + "/command/{commandId:[^/]+}"

VIEWS: Mapping[tuple[str, str], Callable[[Toolbox, web.Request], Awaitable[web.StreamResponse]]] = {
    ("POST", "/process/session"): _create,
    ("GET", "/process/session"): _list,
    ("GET", f"/process/session/{ENTRYPOINT}"): _entrypoint,
    ("GET", f"/process/session/{ENTRYPOINT}/logs"): _entrypoint_logs,
    ("GET", _ONE): _get,
    ("DELETE", _ONE): _delete,
    ("POST", _ONE + "/exec"): _exec,
    ("GET", _COMMAND): _get_command,
    ("GET", _COMMAND + "/logs"): _logs,
    ("POST", _COMMAND + "/input"): _input,
}
"""Views by method and path; the first path that fits wins."""
