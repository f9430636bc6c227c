"""Answers in the form the SDK reads: JSON, and 200 unless the published specification says otherwise."""

from __future__ import annotations

import orjson
from aiohttp import web


def json_answer(value: object, *, status: int = 200) -> web.Response:
    """Returns an answer with a JSON body."""
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json", charset="utf-8")
