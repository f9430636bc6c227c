"""Logs inside a JSON answer, of any length in bounded memory.

The answer holds the log three times (``output`` with markers, ``stdout``, ``stderr``), each encoded block by block on
the way to the client.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Literal

import orjson
from aiohttp import web

from .command_log import CommandLog
from .framing import Stream, marked

LogField = Literal["output", "stdout", "stderr", "result"]
"""Members that hold the log: ``output`` both streams with markers, ``result`` both without, the others one stream."""

_ONLY: Mapping[LogField, Stream] = {"stdout": Stream.STDOUT, "stderr": Stream.STDERR}
_AT_ONCE = 256 * 1024


async def log_response(
    request: web.Request,
    log: CommandLog,
    *,
    fields: Sequence[LogField],
    others: Mapping[str, object] | None = None,
) -> web.StreamResponse:
    """Answers 200 with a JSON object that holds what the log has now.

    Bytes that are not UTF-8 become U+FFFD.

    Args:
        request: The request to answer.
        log: The log, complete or growing.
        fields: Members that hold the log.
        others: Further members.
    """
    parts = _object(log, fields=fields, others=others or {})
    body = bytearray()
    async for part in parts:
        body += part
        if len(body) > _AT_ONCE:
            break
    else:
        return web.Response(body=bytes(body), content_type="application/json", charset="utf-8")
    response = web.StreamResponse(headers={"Content-Type": "application/json; charset=utf-8"})
    try:
        await response.prepare(request)
        await response.write(bytes(body))
        async for part in parts:
            await response.write(part)
        await response.write_eof()
    finally:
        await parts.aclose()
    return response


async def _object(
    log: CommandLog, *, fields: Sequence[LogField], others: Mapping[str, object]
) -> AsyncGenerator[bytes, None]:
    end = log.size  # the same for every member, however much is added meanwhile
    head = orjson.dumps(dict(others))[:-1]
    for field in fields:
        yield head + (b"" if head == b"{" else b",") + b'"' + field.encode() + b'":"'
        head = b'"'
        async for text in _texts(log, field=field, end=end):
            yield orjson.dumps(text)[1:-1]
    yield head + b"}"


async def _texts(log: CommandLog, *, field: LogField, end: int) -> AsyncGenerator[str, None]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    wanted = _ONLY.get(field)
    reader = log.reader()
    try:
        while runs := await reader.read(end=end):
            for run in runs:
                if wanted is None or run[0] is wanted:
                    yield decoder.decode(marked(run) if field == "output" else run[1])
        yield decoder.decode(b"", final=True)
    finally:
        await reader.close()
