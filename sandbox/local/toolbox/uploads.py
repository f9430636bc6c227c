"""Uploads: files of any size, streamed from the request into the sandbox.

The body is a multipart form with two parts per file, in this order: a text ``files[i].path`` with the destination and a
file ``files[i].file``. The file part's own name is never a destination: SDK versions encode it in different ways.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from aiohttp import BodyPartReader, web

from ..runtime.errors import BoxFileError
from ..runtime.interface import BoxFiles
from .errors import daemon_error

CHUNK = 256 * 1024
"""Bytes read from the request at once."""

_PATH_LIMIT = 16 * 1024
_PATH_PART = re.compile(r"files\[(.{1,20})\]\.path")
_FILE_PART = re.compile(r"files\[(.{1,20})\]\.file")


async def bulk_upload(request: web.Request, files: BoxFiles) -> web.Response:
    """``POST /files/bulk-upload``: writes every file that can be written.

    Raises:
        WireError: 400 if any could not; ``errors`` says why, ``files`` lists those that were written and stay.
    """
    if request.content_type != "multipart/form-data":
        raise _failed(["the body must be multipart/form-data"], [])
    destinations: dict[str, str] = {}
    errors: list[str] = []
    written: list[dict[str, object]] = []
    try:
        form = await request.multipart()
        while (part := await form.next()) is not None:
            if not isinstance(part, BodyPartReader):
                errors.append("a form inside the form is not supported")
                await part.release()
                continue
            name = part.name or ""
            if match := _PATH_PART.fullmatch(name):
                destinations[match[1]] = await _read_path(part)
            elif match := _FILE_PART.fullmatch(name):
                await _write(part, destinations.pop(match[1], None), files=files, errors=errors, written=written)
            else:
                errors.append(f"part {name!r} is neither files[i].path nor files[i].file")
                await part.release()
    except (ValueError, AssertionError) as error:  # what aiohttp's reader raises for a malformed form
        errors.append(f"the form is malformed: {error}")
    errors += [f"files[{index}]: there is no file for {path!r}" for index, path in destinations.items()]
    if not errors and not written:
        errors.append("the form holds no files")
    if errors:
        raise _failed(errors, written)
    return web.json_response({"files": written})


async def _read_path(part: BodyPartReader) -> str:
    path = bytearray()
    while chunk := await part.read_chunk():
        path += chunk
        if len(path) > _PATH_LIMIT:
            raise ValueError(f"a path is longer than {_PATH_LIMIT} bytes")
    return path.decode("utf-8", "surrogateescape").strip()


async def _write(
    part: BodyPartReader, path: str | None, *, files: BoxFiles, errors: list[str], written: list[dict[str, object]]
) -> None:
    if not path:
        reason = "the path is empty" if path is not None else "the path part must come before the file part"
        errors.append(f"{part.name}: {reason}")
        await part.release()
        return
    try:
        size = await files.write(path, _chunks(part))
    except BoxFileError as error:
        errors.append(str(error) if path in str(error) else f"{path}: {error}")
        await part.release()
    else:
        written.append({"path": path, "bytes": size})


async def _chunks(part: BodyPartReader) -> AsyncIterator[bytes]:
    while chunk := await part.read_chunk(CHUNK):
        yield bytes(chunk)


def _failed(errors: list[str], written: list[dict[str, object]]) -> Exception:
    return daemon_error(400, ", ".join(errors), extra={"errors": errors, "files": written})
