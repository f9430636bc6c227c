"""File operations other than transfers. All of them run inside the sandbox, as its user."""

from __future__ import annotations

import stat
from datetime import UTC, datetime

from aiohttp import web

from ..runtime.errors import BoxFileError
from ..runtime.interface import BoxFiles, FileStat
from . import bodies
from .errors import daemon_error

_MODE_LIMIT = 0o7777


async def info(request: web.Request, files: BoxFiles) -> web.Response:
    """``GET /files/info?path``: follows symbolic links."""
    return web.json_response(_file_info(await files.stat(_path(request))))


async def list_files(request: web.Request, files: BoxFiles) -> web.Response:
    """``GET /files?path&depth``: a directory's entries, one level unless ``depth`` says more."""
    depth = request.query.get("depth", "") or "1"
    if not depth.isdecimal() or int(depth) < 1:
        raise daemon_error(400, f"depth must be a whole number from 1, not {depth!r}")
    found = await files.list(request.query.get("path", "") or ".", depth=int(depth))
    return web.json_response([_file_info(entry) for entry in found])


async def create_folder(request: web.Request, files: BoxFiles) -> web.Response:
    """``POST /files/folder?path&mode``: with its parents; an existing directory is fine."""
    await files.make_directory(_path(request), mode=_mode(request.query.get("mode", "") or "0755"))
    return web.Response(status=201)


async def delete(request: web.Request, files: BoxFiles) -> web.Response:
    """``DELETE /files?path&recursive``."""
    await files.delete(_path(request), recursive=bodies.query_flag(request, "recursive"))
    return web.Response(status=204)


async def move(request: web.Request, files: BoxFiles) -> web.Response:
    """``POST /files/move?source&destination``: 409 if the destination exists."""
    await files.move(_path(request, "source"), _path(request, "destination"))
    return web.Response()


async def find(request: web.Request, files: BoxFiles) -> web.Response:
    """``GET /files/find?path&pattern``: lines that hold a literal text; nothing where the path does not exist."""
    try:
        matches = await files.find(_path(request), bodies.query(request, "pattern"))
    except BoxFileError as error:
        if error.kind != "not_found":
            raise
        matches = []
    return web.json_response([{"file": file, "line": line, "content": content} for file, line, content in matches])


async def search(request: web.Request, files: BoxFiles) -> web.Response:
    """``GET /files/search?path&pattern``: files and directories whose name matches a glob."""
    return web.json_response({"files": list(await files.search(_path(request), bodies.query(request, "pattern")))})


async def replace(request: web.Request, files: BoxFiles) -> web.Response:
    """``POST /files/replace``: literal replacement; each file succeeds or fails by itself."""
    body = await bodies.read_object(request)
    pattern = bodies.text(body, "pattern")
    replacement = bodies.text(body, "newValue")
    if not pattern:
        raise daemon_error(400, "pattern must not be empty")
    results: list[dict[str, object]] = []
    for path in bodies.texts(body, "files"):
        try:
            await files.replace(path, pattern, replacement)
        except BoxFileError as error:
            results.append({"file": path, "success": False, "error": str(error)})
        else:
            results.append({"file": path, "success": True})
    return web.json_response(results)


async def set_permissions(request: web.Request, files: BoxFiles) -> web.Response:
    """``POST /files/permissions?path&mode&owner&group``: what is left out stays as it is."""
    mode = request.query.get("mode", "")
    path = _path(request)
    try:
        await files.set_permissions(
            path,
            mode=_mode(mode) if mode else None,
            owner=request.query.get("owner") or None,
            group=request.query.get("group") or None,
        )
    except BoxFileError as error:
        if error.kind != "failed":
            raise
        raise daemon_error(400, str(error)) from error  # an unknown owner or group
    return web.Response()


def _path(request: web.Request, name: str = "path") -> str:
    path = request.query.get(name, "")
    if not path:
        raise daemon_error(400, f"{name} must not be empty", code="INVALID_FILE_PATH")
    return path


def _mode(text: str) -> int:
    try:
        mode = int(text, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= _MODE_LIMIT:
        raise daemon_error(400, f"mode must be octal digits such as 0755, not {text!r}")
    return mode


def _file_info(found: FileStat) -> dict[str, object]:
    modified = datetime.fromtimestamp(found.mtime, UTC)
    kind = stat.S_IFMT(found.mode) or (stat.S_IFDIR if found.is_dir else stat.S_IFREG)
    return {
        "name": found.name,
        "path": found.path,
        "isDir": found.is_dir,
        "size": found.size,
        "mode": stat.filemode(kind | stat.S_IMODE(found.mode)),
        "permissions": f"{stat.S_IMODE(found.mode):04o}",
        "modTime": modified.strftime("%Y-%m-%d %H:%M:%S.%f +0000 UTC"),
        "modifiedAt": modified.isoformat().replace("+00:00", "Z"),
        "owner": str(found.uid),
        "group": str(found.gid),
    }
