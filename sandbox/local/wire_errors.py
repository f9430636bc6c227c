"""The error envelope that every answer of the platform outside 2xx carries.

The ``daytona`` SDK picks its exception class from the status alone, or, for its domain errors, from the pair of
``source`` and ``code`` (``daytona.common.errors``). An answer without ``source`` therefore loses the class; the
middleware here makes sure that whatever a handler raises leaves with the whole envelope.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Literal

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

ErrorSource = Literal["DAYTONA_API", "DAYTONA_DAEMON", "DAYTONA_PROXY"]
"""Which part of the platform speaks: the control plane, the toolbox in a sandbox, or the way between the two."""

_CODES: Mapping[int, str] = {
    400: "BAD_REQUEST",
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    408: "REQUEST_TIMEOUT",
    409: "CONFLICT",
    410: "GONE",
    413: "PAYLOAD_TOO_LARGE",
    422: "UNPROCESSABLE_ENTITY",
    429: "TOO_MANY_REQUESTS",
    500: "INTERNAL_SERVER_ERROR",
    501: "NOT_IMPLEMENTED",
    502: "BAD_GATEWAY",
    503: "SERVICE_UNAVAILABLE",
    504: "GATEWAY_TIMEOUT",
}

_log = logging.getLogger(__name__)


class WireError(Exception):
    """An error that the client is meant to see.

    Attributes:
        status: HTTP status, 400 to 599.
        message: What went wrong and what to do about it; becomes the text of the SDK's exception.
        code: Upper-case word that the SDK shows as ``exc.code``; by default the generic word of the status.
        source: See ``ErrorSource``; together with ``code`` it selects the SDK's exception class.
        headers: Additional headers of the answer.
        extra: Additional members of the body, for the few answers whose shape is more than the envelope.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        source: ErrorSource = "DAYTONA_API",
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        if not 400 <= status <= 599:
            raise ValueError(f"status of a wire error must be 400 to 599, not {status}")
        self.status = status
        self.message = message
        self.code = code or default_code(status)
        self.source: ErrorSource = source
        self.headers: dict[str, str] = dict(headers or {})
        self.extra: dict[str, object] = dict(extra or {})

    def envelope(self, *, method: str, path: str) -> dict[str, object]:
        """Returns the body of the answer.

        Args:
            method: HTTP method of the request.
            path: Path of the request as the speaking part sees it, without the query (which may hold secrets).
        """
        return {
            **self.extra,
            "statusCode": self.status,
            "error": _reason(self.status),
            "message": self.message,
            "code": self.code,
            "source": self.source,
            "path": path,
            "method": method,
            "timestamp": wire_timestamp(),
        }


def default_code(status: int) -> str:
    """Returns the generic code of an HTTP status."""
    return _CODES.get(status, "INTERNAL_SERVER_ERROR" if status >= 500 else "BAD_REQUEST")


def wire_timestamp(moment: datetime | None = None) -> str:
    """Returns ``moment`` (default: now) as the wire writes it: ISO 8601, UTC, milliseconds, ``Z``."""
    moment = moment or datetime.now(UTC)
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def error_middleware(*, toolbox_prefix: str = "/toolbox/") -> Middleware:
    """Returns a middleware that turns every exception of a handler into an answer with the envelope.

    Put it first in the application's list, so that it also sees what other middlewares raise.

    Args:
        toolbox_prefix: Path below which the toolbox answers, as ``{toolbox_prefix}{sandboxId}/…``. Errors that do not
            name their source (unknown routes, wrong methods, unforeseen faults) get ``DAYTONA_DAEMON`` there and
            ``DAYTONA_API`` elsewhere.
    """

    @web.middleware
    async def render_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            if error.status < 400:
                raise
            failure: Exception = error
        except Exception as error:
            failure = error
        if request.writer.output_size or request.transport is None or request.transport.is_closing():
            # Half an answer is out, or nobody listens any more: a second head would be taken for content.
            if not isinstance(failure, ConnectionError):
                _log.error("%s %s failed after its answer had begun", request.method, request.path, exc_info=failure)
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)  # never sent; aiohttp would log the exception as one of the server's
        in_toolbox = request.path.startswith(toolbox_prefix)
        answer = _wire_error(failure, request=request, source="DAYTONA_DAEMON" if in_toolbox else "DAYTONA_API")
        path = "/" + request.path.removeprefix(toolbox_prefix).partition("/")[2] if in_toolbox else request.path
        return web.Response(
            status=answer.status,
            body=orjson.dumps(answer.envelope(method=request.method, path=path)),
            content_type="application/json",
            charset="utf-8",
            headers=answer.headers,
        )

    return render_errors


def _wire_error(failure: Exception, *, request: web.Request, source: ErrorSource) -> WireError:
    if isinstance(failure, WireError):
        return failure
    if isinstance(failure, web.HTTPException):
        return _from_http(failure, request=request, source=source)
    if isinstance(failure, json.JSONDecodeError):  # orjson's error is one of these
        message = f"the body must be JSON: {failure.msg} (line {failure.lineno}, column {failure.colno})"
        return WireError(400, message, code="INVALID_REQUEST_BODY", source=source)
    # The text of an unforeseen exception may hold anything, also secrets: the log keeps it, the client gets the kind.
    _log.error("%s %s failed", request.method, request.path, exc_info=failure)
    return WireError(
        500, f"unexpected {type(failure).__name__} in the platform; its log has the details", source=source
    )


def _from_http(error: web.HTTPException, *, request: web.Request, source: ErrorSource) -> WireError:
    headers = {
        name: value for name, value in error.headers.items() if name.lower() not in {"content-type", "content-length"}
    }
    if error.status == 404:
        message = f"{request.method} {request.path}: this platform has no such route"
    elif error.status == 405:
        message = f"{request.method} {request.path}: use {error.headers.get('Allow', 'another method')}"
    else:
        message = error.text or error.reason
    return WireError(error.status, message, source=source, headers=headers)


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
