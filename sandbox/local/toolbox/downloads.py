"""Downloads: several files in one multipart answer, each streamed from the sandbox, errors in the place of their file.

The SDK matches parts to requests by comparing the decoded ``filename*`` with the path it asked for, byte for byte, and
takes a missing closing boundary for a broken transfer; that is how a file that fails in the middle is reported.
"""

from __future__ import annotations

import logging
import mimetypes
import secrets
import stat
from collections.abc import AsyncGenerator, AsyncIterator
from urllib.parse import quote

import orjson
from aiohttp import web

from ..runtime.errors import BoxFileError, BoxLostError, RuntimeFault
from ..runtime.interface import BoxFiles
from ..wire_errors import WireError
from . import bodies
from .errors import daemon_error, from_runtime

_log = logging.getLogger(__name__)


async def bulk_download(request: web.Request, files: BoxFiles) -> web.StreamResponse:
    """``POST /files/bulk-download``: one part per path, in the order asked for."""
    paths = bodies.texts(await bodies.read_object(request), "paths")
    if not paths:
        raise daemon_error(400, "paths must name at least one file")
    boundary = f"uom-{secrets.token_hex(16)}"  # new for each answer, so no file can hold it
    response = web.StreamResponse(headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})
    await response.prepare(request)
    for path in paths:
        try:
            await _send_part(response, path, files=files, boundary=boundary, request=request)
        except (BoxFileError, BoxLostError, _FileChangedError) as error:
            _log.warning("download of %r broke off: %s", path, error)
            await response.write_eof()
            return response
    await response.write(f"--{boundary}--\r\n".encode())
    await response.write_eof()
    return response


async def download(request: web.Request, files: BoxFiles) -> web.StreamResponse:
    """``GET /files/download?path=``: one file as the whole body."""
    path = bodies.query(request, "path")
    size, content = await _open(path, files=files)
    headers = {"Content-Type": _content_type(path), "Content-Disposition": _disposition("attachment", path)}
    response = web.StreamResponse(headers=headers)
    response.content_length = size
    try:
        await response.prepare(request)
        async for chunk in content:
            await response.write(chunk)
        await response.write_eof()
    finally:
        await content.aclose()
    return response


class _FileChangedError(Exception):
    """The file became shorter while it was sent."""


async def _send_part(
    response: web.StreamResponse, path: str, *, files: BoxFiles, boundary: str, request: web.Request
) -> None:
    try:
        size, content = await _open(path, files=files)
    except (WireError, RuntimeFault) as error:
        fault = error if isinstance(error, WireError) else from_runtime(error)
        body = orjson.dumps(fault.envelope(method=request.method, path="/files/bulk-download"))
        head = _head(boundary, "error", path, content_type="application/json; charset=utf-8", size=len(body))
        await response.write(head + body + b"\r\n")
        return
    try:
        await response.write(_head(boundary, "file", path, content_type=_content_type(path), size=size))
        async for chunk in content:
            await response.write(chunk)
        await response.write(b"\r\n")
    finally:
        await content.aclose()


async def _open(path: str, *, files: BoxFiles) -> tuple[int | None, AsyncGenerator[bytes, None]]:
    """Returns a file's size, None where it is not known before the end, and its content.

    Raises:
        WireError: The path is empty or a directory.
        BoxFileError: It cannot be read.
    """
    if not path:
        raise daemon_error(400, "the path must not be empty", code="INVALID_FILE_PATH")
    found = await files.stat(path)
    if found.is_dir:
        raise daemon_error(400, f"{path} is a directory; download files one by one", code="INVALID_FILE_PATH")
    if not (stat.S_ISREG(found.mode) or stat.S_IFMT(found.mode) == 0):
        raise daemon_error(400, f"{path} is not a regular file", code="INVALID_FILE_PATH")
    content = files.read(path)
    first = await anext(content, b"")  # what cannot be read fails here, before anything is sent
    # Files of /proc have a size of 0 and content nevertheless.
    size = found.size if found.size or not first else None
    return size, _exactly(first, content, path=path, size=size)


async def _exactly(
    first: bytes, content: AsyncIterator[bytes], *, path: str, size: int | None
) -> AsyncGenerator[bytes, None]:
    """Yields ``size`` bytes although the file may grow meanwhile; one that shrinks is an error."""
    sent = 0
    chunk = first
    try:
        while chunk:
            if size is not None and sent + len(chunk) >= size:
                yield chunk[: size - sent]
                return
            sent += len(chunk)
            yield chunk
            chunk = await anext(content, b"")
        if size is not None and sent < size:
            raise _FileChangedError(f"{path} became shorter while it was sent")
    finally:
        if isinstance(content, AsyncGenerator):
            await content.aclose()


def _head(boundary: str, name: str, path: str, *, content_type: str, size: int | None) -> bytes:
    disposition = _disposition(f'form-data; name="{name}"', path)
    lines = [f"--{boundary}", f"Content-Disposition: {disposition}", f"Content-Type: {content_type}"]
    if size is not None:
        lines.append(f"Content-Length: {size}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _disposition(kind: str, path: str) -> str:
    encoded = quote(path.encode("utf-8", "surrogateescape"), safe="")
    plain = "".join(character if 32 <= ord(character) < 127 and character not in '"\\' else "_" for character in path)
    return f"{kind}; filename=\"{plain}\"; filename*=utf-8''{encoded}"


def _content_type(path: str) -> str:
    return mimetypes.guess_type(path, strict=False)[0] or "application/octet-stream"
