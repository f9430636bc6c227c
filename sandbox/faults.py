"""Whose failure was it: maps what the SDK raises to our tree of errors.

The SDK (daytona 0.226.1) has a class per HTTP status, but four of its habits hide the status:

- An upload that fails is a plain ``DaytonaError`` with a status and no code; the answer's body is in its text.
- A download or a log stream that is refused is a plain ``DaytonaError`` with no status at all. The status survives in
  the exception it was raised from (aiohttp's ``ClientResponseError``), so the chain of causes is searched.
- ``snapshot.activate`` and the generated clients raise ``ApiException``, which is no ``DaytonaError``.
- Use after close says so in its text only; the ``RuntimeError`` it came from is searched for likewise.

Quota and capacity have no class, status or code of their own on the hosted platform; they are the one place where the
text of an answer decides, and only between errors that end the call anyway. Left unrecognised on purpose: anything that
is neither the SDK's nor a transport's (a ``TypeError`` is a fault of this program and stays one).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, Final

import aiohttp
from daytona import DaytonaError, DaytonaTimeoutError
from daytona.common.errors import (
    SOURCE_DAEMON,
    SOURCE_PROXY,
    DaytonaConnectionError,
    DaytonaQueueTimeoutError,
    DaytonaSpotEvictedError,
)
from daytona_api_client_async.exceptions import OpenApiException
from daytona_toolbox_api_client_async.exceptions import OpenApiException as ToolboxOpenApiException

from sandbox.errors import (
    AccessDeniedError,
    AuthenticationError,
    BadRequestError,
    CapacityError,
    ClientClosedError,
    PlatformUnavailableError,
    QuotaExceededError,
    RateLimitedError,
    SandboxError,
    SandboxLostError,
    WaitTimeoutError,
)

_QUOTA: Final = re.compile(
    r"quota|total (cpu|memory|disk|gpu|concurrent)[^.]*exceeded"
    r"|(sandbox|snapshot|volume)s?[^.]* limit (exceeded|reached)",
    re.IGNORECASE,
)
_CAPACITY: Final = re.compile(r"no (available )?(runner|capacity|room)|out of capacity|at capacity", re.IGNORECASE)
_KNOWN: Final = (DaytonaError, OpenApiException, ToolboxOpenApiException, aiohttp.ClientError, TimeoutError, OSError)


def status_of(error: BaseException) -> int | None:
    """Returns the HTTP status behind an exception of the SDK, also where the SDK hides it; else ``None``."""
    for link in _chain(error):
        for name in ("status_code", "status"):
            status = getattr(link, name, None)
            if isinstance(status, int) and 400 <= status <= 599:
                return status
    return None


def code_of(error: BaseException) -> str | None:
    """Returns the machine-readable code of the platform's answer, such as ``SESSION_ENDED``."""
    code = getattr(error, "code", None)
    return code if isinstance(code, str) else None


def is_missing(error: BaseException) -> bool:
    """True only for a real 404."""
    return status_of(error) == 404


def is_conflict(error: BaseException) -> bool:
    """True only for a real 409: somebody else has the name, or a transition is under way."""
    return status_of(error) == 409


def fault(
    error: BaseException, *, step: str, sandbox: str | None = None, state: str | None = None, toolbox: bool = False
) -> SandboxError | None:
    """Returns the error of ours that an exception means.

    Args:
        error: What was raised.
        step: The step of the validation, for the text.
        sandbox: Name of the sandbox or snapshot, for the text.
        state: Its last known state, for the text.
        toolbox: True for calls into a running sandbox, where "not found" and "bad gateway" mean that it is lost.

    Returns:
        The error to raise, ``error`` itself if it is one of ours, or ``None`` if it is not a fault of the platform.
    """
    for link in _chain(error):
        if isinstance(link, SandboxError):
            return link
        if isinstance(link, RuntimeError) and "Session is closed" in str(link):
            return ClientClosedError("the client of the platform is closed", step=step, sandbox=sandbox)
    if not isinstance(error, _KNOWN):
        return None
    facts: dict[str, Any] = {"step": step, "sandbox": sandbox, "state": state}
    text = _text(error)
    if isinstance(error, DaytonaQueueTimeoutError):
        return CapacityError(f"no runner became free: {text}", **facts)
    if isinstance(error, DaytonaSpotEvictedError):
        return SandboxLostError(f"the platform took the machine away: {text}", **facts)
    status = status_of(error)
    if status is None:
        if isinstance(error, DaytonaTimeoutError) and not isinstance(error, DaytonaConnectionError):
            return WaitTimeoutError(text, **facts)
        return PlatformUnavailableError(
            f"the platform did not answer as it should: {text}",
            **facts,
            remedy="Check DAYTONA_API_URL and the network, or try again later.",
        )
    return _by_status(status, error, text, facts, toolbox=toolbox)


def _by_status(status: int, error: BaseException, text: str, facts: dict[str, Any], *, toolbox: bool) -> SandboxError:
    if status == 401:
        return AuthenticationError(f"the platform refused the API key: {text}", **facts)
    if status == 429:
        return RateLimitedError(text, retry_after=retry_after(getattr(error, "headers", None)), **facts)
    if status in (400, 402, 403, 409, 422):
        if _CAPACITY.search(text):
            return CapacityError(text, **facts)
        if _QUOTA.search(text):
            return QuotaExceededError(text, **facts)
    if toolbox and _means_lost(status, error, text):
        return SandboxLostError(f"the sandbox does not answer: {text}", **facts)
    if status == 403:
        return AccessDeniedError(f"the API key may not do this: {text}", **facts)
    if status == 404:
        return SandboxLostError(
            f"not found: {text}",
            **facts,
            remedy="Run the validation again; if nothing is ever found, check DAYTONA_API_URL.",
        )
    if status in (408, 409, 410) or (status >= 500 and status != 501):
        return PlatformUnavailableError(text, **facts)
    return BadRequestError(text, **facts)


def _means_lost(status: int, error: BaseException, text: str) -> bool:
    if status in (404, 410, 502):
        return True
    # A stopped sandbox answers 400 through the proxy in front of its toolbox; the toolbox itself also answers 400 when
    # a request is malformed. The source tells them apart; without one (older platforms) a 400 means "not running".
    source = getattr(error, "source", None)
    if status == 400 and source is None:
        return SOURCE_DAEMON not in text and ('"source"' not in text or SOURCE_PROXY in text)
    return status == 400 and source == SOURCE_PROXY


def retry_after(headers: Mapping[str, Any] | None) -> float | None:
    """Returns how many seconds a 429 asks to wait: the longest of ``Retry-After`` and ``Retry-After-<throttler>``.

    The hosted platform sends the suffixed form (Daytona's documentation on rate limits); the SDK keeps the headers with
    the letter case of the wire.

    Returns:
        Seconds, finite and not negative, or ``None`` when no header says anything that makes sense.
    """
    told = (_seconds(str(value)) for name, value in (headers or {}).items() if name.lower().startswith("retry-after"))
    return max((seconds for seconds in told if seconds is not None), default=None)


def _seconds(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        # RFC 9110: always in universal time, whether or not the zone is said.
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - time())
    # Neither "nan" nor "inf" nor "-5" is an answer to "how long": better our own wait than none, or one without end.
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


@contextmanager
def translated(
    step: str, *, sandbox: str | None = None, state: str | None = None, toolbox: bool = False
) -> Iterator[None]:
    """Turns what the SDK raises inside the block into our errors; arguments as for ``fault``."""
    try:
        yield
    except Exception as error:
        meant = fault(error, step=step, sandbox=sandbox, state=state, toolbox=toolbox)
        if meant is None or meant is error:
            raise
        # A fault of ours that the SDK had wrapped is already in the chain; naming its wrapper as cause makes a circle.
        raise meant from (None if meant in _chain(error) else error)


def _text(error: BaseException) -> str:
    text = getattr(error, "message", None) or _said(error) or str(error) or type(error).__name__
    return text if len(text) <= 2000 else f"{text[:2000]}…"


def _said(error: BaseException) -> str | None:
    """The platform's own words in an error of the generated clients, whose text is the whole answer with its head."""
    try:
        said = json.loads(getattr(error, "body", None) or "null")
    except (TypeError, ValueError):
        return None
    message = said.get("message") if isinstance(said, dict) else None
    return message if isinstance(message, str) else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        yield link
        seen.add(id(link))
        # Causes only: the context may be an unrelated error that a caller was handling at the time.
        link = link.__cause__
