from __future__ import annotations

import math
import time
from email.utils import format_datetime
from typing import Any

import pytest
from daytona import DaytonaError, DaytonaTimeoutError
from daytona.common.errors import (
    DaytonaConnectionError,
    DaytonaConnectionTimeoutError,
    DaytonaQueueTimeoutError,
    create_daytona_error,
)
from hypothesis import given
from hypothesis import strategies as st

import sandbox.errors as errors
from sandbox.faults import fault, is_conflict, is_missing, retry_after, status_of, translated
from sandbox.retry import LONGEST_TOLD, delay_before_retry


def from_status(status: int, message: str = "no", **fields: Any) -> DaytonaError:
    return create_daytona_error(message, status_code=status, **fields)


@pytest.mark.parametrize(
    ("error", "toolbox", "meant"),
    [
        (from_status(400), False, errors.BadRequestError),
        (from_status(422), False, errors.BadRequestError),
        (from_status(401), False, errors.AuthenticationError),
        (from_status(403), False, errors.AccessDeniedError),
        (from_status(404), False, errors.SandboxLostError),
        (from_status(404), True, errors.SandboxLostError),
        (from_status(408), False, errors.PlatformUnavailableError),
        (from_status(409), False, errors.PlatformUnavailableError),
        (from_status(410), True, errors.SandboxLostError),
        (from_status(429), False, errors.RateLimitedError),
        (from_status(500), False, errors.PlatformUnavailableError),
        (from_status(501), False, errors.BadRequestError),
        (from_status(502), False, errors.PlatformUnavailableError),
        (from_status(502), True, errors.SandboxLostError),
        (from_status(503), True, errors.PlatformUnavailableError),
        (from_status(504), False, errors.PlatformUnavailableError),
        (from_status(400, source="DAYTONA_PROXY"), True, errors.SandboxLostError),
        (from_status(400, source="DAYTONA_DAEMON"), True, errors.BadRequestError),
        (from_status(400, "is the sandbox started?"), True, errors.SandboxLostError),
        (from_status(400, "Total disk limit exceeded. Maximum allowed: 30."), False, errors.QuotaExceededError),
        (from_status(403, "Snapshot quota exceeded"), False, errors.QuotaExceededError),
        (from_status(400, "No available runners"), False, errors.CapacityError),
        (DaytonaConnectionError("refused"), False, errors.PlatformUnavailableError),
        (DaytonaConnectionTimeoutError("slow"), False, errors.PlatformUnavailableError),
        (DaytonaTimeoutError("waited"), False, errors.WaitTimeoutError),
        (DaytonaQueueTimeoutError("queued"), False, errors.CapacityError),
        (DaytonaError("no model fits"), False, errors.PlatformUnavailableError),
        (TimeoutError(), False, errors.PlatformUnavailableError),
        (ConnectionResetError(), False, errors.PlatformUnavailableError),
    ],
)
def test_exceptions_of_the_sdk_mean_one_of_ours(
    error: Exception, toolbox: bool, meant: type[errors.SandboxError]
) -> None:
    found = fault(error, step="a step", sandbox="box", state="started", toolbox=toolbox)
    assert type(found) is meant
    assert found.step == "a step"


def test_what_is_not_the_platforms_stays_what_it_is() -> None:
    assert fault(TypeError("ours"), step="x") is None
    with pytest.raises(TypeError), translated("x"):
        raise TypeError("ours")


@pytest.mark.parametrize("status", [404, 409, 502])
def test_a_hidden_status_is_found_in_the_cause(status: int) -> None:
    error = DaytonaError("no status here")
    cause = Exception("transport")
    cause.status = status  # type: ignore[attr-defined]
    error.__cause__ = cause
    assert status_of(error) == status
    assert is_missing(error) == (status == 404)
    assert is_conflict(error) == (status == 409)


def test_an_error_that_was_being_handled_meanwhile_is_no_cause() -> None:
    try:
        raise errors.AuthenticationError("an older story")
    except errors.AuthenticationError as older:
        error = DaytonaError("a new one")
        error.__context__ = older
    assert isinstance(fault(error, step="x"), errors.PlatformUnavailableError)


def test_a_fault_of_ours_inside_the_sdks_wrapper_comes_out_again() -> None:
    inner = errors.ClientClosedError("closed")
    wrapper = DaytonaError("Failed to get sandbox: closed")
    wrapper.__cause__ = inner
    with pytest.raises(errors.ClientClosedError) as caught, translated("x"):
        raise wrapper
    assert caught.value is inner


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after-sandbox-create": "12", "Retry-After": "3"}, 12.0),
        ({"Retry-After-Authenticated": "0.5"}, 0.5),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT", "Retry-After-x": "nan"}, pytest.approx(2.5e11, rel=0.1)),
        ({"Retry-After": "99999999999"}, 99999999999.0),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "-inf", "Retry-After-sandbox-create": "3"}, 3.0),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "Mon, 99 Foo 2026 00:00:00 +99999999"}, None),
        ({"Retry-After": "soon"}, None),
        ({"X-RateLimit-Reset-authenticated": "9"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_what_a_429_asks_for_is_read_in_any_spelling(headers: dict[str, str] | None, seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize("zone", ["GMT", "-0000", "+0200"])
def test_a_date_is_read_in_its_own_zone(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        ahead = 30 + (7200 if zone == "+0200" else 0)
        text = time.strftime("%a, %d %b %Y %H:%M:%S ", time.gmtime(time.time() + ahead)) + zone
        assert 25 < (retry_after({"Retry-After": text}) or 0) <= 30
    finally:
        monkeypatch.undo()
        time.tzset()


@given(value=st.one_of(st.text(), st.floats().map(str), st.integers().map(str), st.datetimes().map(format_datetime)))
def test_whatever_a_header_holds_the_wait_is_finite_or_our_own(value: str) -> None:
    told = retry_after({"Retry-After": value})
    assert told is None or (math.isfinite(told) and told >= 0)
    delay = delay_before_retry(errors.RateLimitedError("busy", retry_after=told), attempt=1)
    assert delay is not None
    assert 0 <= delay <= LONGEST_TOLD


def test_the_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    lines = [line for line in (errors.__doc__ or "").splitlines() if line.startswith(("├──", "└──"))]
    told = {line.split()[1]: line.split()[2].strip("()") if "(" in line.split()[2] else None for line in lines}
    classes = {cls.__name__: cls for cls in errors.SandboxError.__subclasses__()}
    assert set(told) == set(classes)
    for name, second in told.items():
        parents = [base.__name__ for base in classes[name].__bases__]
        assert parents == (["SandboxError", second] if second else ["SandboxError"]), name


def test_codes_are_unique() -> None:
    codes = [cls.code for cls in errors.SandboxError.__subclasses__()]
    assert len(set(codes)) == len(codes)
