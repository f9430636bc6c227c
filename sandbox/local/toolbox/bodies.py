"""Reading and checking what a request carries: JSON bodies and query values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import orjson
from aiohttp import web

from .errors import daemon_error

BODY_LIMIT = 32 * 1024 * 1024
"""Most bytes of a JSON body. Longer commands belong in an uploaded file."""

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


async def read_object(request: web.Request) -> Mapping[str, object]:
    """Returns the JSON object in a request's body; an empty body is an empty object.

    Raises:
        WireError: 413 for more than ``BODY_LIMIT`` bytes, 400 ``INVALID_REQUEST_BODY`` for anything but an object.
    """
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise daemon_error(413, f"the body must be at most {BODY_LIMIT} bytes; upload a file instead")
    if not body:
        return {}
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise invalid_body(f"the body must be JSON: {error}") from error
    if not isinstance(value, dict):
        raise invalid_body("the body must be a JSON object")
    return value


def text(body: Mapping[str, object], name: str, *, default: str | None = None) -> str:
    """Returns a string member; 400 if it is of another type, or missing without a default."""
    value = body.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise invalid_body(f"{name} must be a string")
    return value


def flag(body: Mapping[str, object], name: str) -> bool:
    """Returns a boolean member, False if it is missing; 400 if it is of another type."""
    value = body.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise invalid_body(f"{name} must be true or false")
    return value


def texts(body: Mapping[str, object], name: str) -> Sequence[str]:
    """Returns a list of strings, empty if it is missing; 400 if it is of another type."""
    value = body.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise invalid_body(f"{name} must be a list of strings")
    return value


def environment(body: Mapping[str, object], name: str) -> Mapping[str, str]:
    """Returns environment variables, empty if missing; 400 for illegal names or values that are not strings.

    The message names the variable, never its value, which may be a secret.
    """
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid_body(f"{name} must be an object of strings")
    for key, item in value.items():
        if not _ENV_NAME.fullmatch(key):
            raise daemon_error(400, f"{name}: {key!r} is not a name of an environment variable")
        if not isinstance(item, str) or "\0" in item:
            raise invalid_body(f"{name}: the value of {key} must be a string without NUL")
    return value


def seconds(body: Mapping[str, object], name: str) -> float | None:
    """Returns a time limit in seconds, None if it is missing or zero; 400 if it is negative or no number."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise invalid_body(f"{name} must be a number of seconds, 0 or more")
    return float(value) or None


def query(request: web.Request, name: str) -> str:
    """Returns a required query value; 400 if it is missing or empty."""
    value = request.query.get(name, "")
    if not value:
        raise daemon_error(400, f"the query must have a value for {name}")
    return value


def query_flag(request: web.Request, name: str) -> bool:
    """Returns a boolean query value, False if it is missing; 400 if it is neither true nor false."""
    value = request.query.get(name, "").lower()
    if value in ("", "false", "0"):
        return False
    if value in ("true", "1"):
        return True
    raise daemon_error(400, f"{name} must be true or false")


def invalid_body(message: str) -> Exception:
    """Returns the error for a body that is not what the route takes."""
    return daemon_error(400, message, code="INVALID_REQUEST_BODY")
