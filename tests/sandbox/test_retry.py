from __future__ import annotations

import pytest

from sandbox.errors import (
    AccessDeniedError,
    AuthenticationError,
    BadRequestError,
    CapacityError,
    ConfigurationError,
    PlatformUnavailableError,
    QuotaExceededError,
    RateLimitedError,
    SandboxError,
    SandboxLostError,
    SnapshotBuildError,
    WaitTimeoutError,
)
from sandbox.retry import Deadline, Pace, delay_before_retry, read_patiently, with_retries

WAITS: list[tuple[SandboxError, list[float | None]]] = [
    (PlatformUnavailableError("x"), [1, 2, 4, 8, 8]),
    (SandboxLostError("x"), [1, 2, 4, 8, 8]),
    (RateLimitedError("x", retry_after=7), [7, 7, 7, 7, 7]),
    (RateLimitedError("x"), [1, 2, 4, 8, 8]),
    (RateLimitedError("x", retry_after=299), [299] * 5),
    (RateLimitedError("x", retry_after=1e300), [300] * 5),
    (CapacityError("x"), [15, 30, 60, 60, 60]),
    (WaitTimeoutError("x"), [None] * 5),
    (ConfigurationError("x"), [None] * 5),
    (BadRequestError("x"), [None] * 5),
    (AuthenticationError("x"), [None] * 5),
    (AccessDeniedError("x"), [None] * 5),
    (QuotaExceededError("x"), [None] * 5),
    (SnapshotBuildError("x"), [None] * 5),
]


@pytest.mark.parametrize(("error", "waits"), WAITS, ids=lambda value: type(value).__name__)
def test_waits_follow_the_class_of_the_fault(error: SandboxError, waits: list[float | None]) -> None:
    assert [delay_before_retry(error, attempt=attempt) for attempt in range(1, 6)] == waits


def test_only_our_faults_are_retried() -> None:
    assert delay_before_retry(TypeError("a fault of this program"), attempt=1) is None


@pytest.mark.parametrize(
    ("error", "attempts"), [(RateLimitedError("busy", retry_after=0), 5), (BadRequestError("no"), 1)]
)
async def test_a_step_is_tried_as_often_as_its_fault_allows(error: SandboxError, attempts: int) -> None:
    calls = 0
    told: list[int] = []

    async def step() -> None:
        nonlocal calls
        calls += 1
        raise error

    with pytest.raises(type(error)) as caught:
        await with_retries(step, on_retry=lambda _error, attempt, _delay: told.append(attempt))
    assert caught.value is error
    assert calls == attempts
    assert told == list(range(1, attempts))


async def test_a_step_that_succeeds_in_the_end_returns() -> None:
    faults = [RateLimitedError("busy", retry_after=0), RateLimitedError("busy", retry_after=0)]

    async def step() -> str:
        if faults:
            raise faults.pop()
        return "done"

    assert await with_retries(step) == "done"


@pytest.mark.parametrize("told", [0.2, 1e9])
async def test_a_wait_that_was_told_is_kept_and_ends_with_the_deadline(told: float) -> None:
    deadline = Deadline(0.3)
    readings: list[float] = []

    async def read() -> None:
        readings.append(deadline.elapsed)
        raise RateLimitedError("busy", retry_after=told)

    with pytest.raises(RateLimitedError, match="asks to wait"):
        await read_patiently(read, deadline=deadline)
    assert deadline.expired
    assert len(readings) == (3 if told < 1 else 2)
    assert readings[1] >= min(told, 0.3)


async def test_a_reading_that_another_would_not_change_ends_the_wait() -> None:
    faults: list[SandboxError] = [PlatformUnavailableError("a moment"), AuthenticationError("wrong")]

    async def read() -> None:
        raise faults.pop(0)

    with pytest.raises(AuthenticationError):
        await read_patiently(read, deadline=Deadline(60))


def test_deadlines_never_go_below_zero_and_shrink_each_other() -> None:
    past = Deadline(0)
    assert past.expired
    assert past.remaining == 0
    assert past.capped(5) == 0.001
    assert past.sooner(10).expired
    endless = Deadline(None)
    assert not endless.expired
    assert endless.remaining == float("inf")
    assert endless.capped(5) == 5
    assert endless.sooner(None).remaining == float("inf")
    assert Deadline(1000).sooner(10).remaining <= 10


def test_pauses_grow_to_a_limit_and_begin_again() -> None:
    pace = Pace(1, longest=5, factor=2)
    assert [pace.next() for _ in range(5)] == [1, 2, 4, 5, 5]
    pace.reset()
    assert pace.next() == 1
