"""When to try again, and until when: retry waits by class of fault, and deadlines on the monotonic clock.

The classes are those of ``errors.RetryClass``:

========  ==========================================================================================
never     bad request, authentication, permission, quota, failed build, a wait that ran out: one attempt
soon      connection, 5xx, a lost sandbox: 1, 2, 4, 8 s
as_told   rate limit: what the ``Retry-After`` headers said, at most 300 s; else as ``soon``
slowly    no capacity: 15, 30, 60, 60 s
========  ==========================================================================================
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from sandbox.errors import RateLimitedError, RetryClass, SandboxError

ATTEMPTS: Final = 5
"""Attempts of a step, the first included."""

SOON: Final = (1.0, 2.0, 4.0, 8.0)
SLOWLY: Final = (15.0, 30.0, 60.0, 60.0)
LONGEST_TOLD: Final = 300.0
"""Longest wait that a platform can ask for; a header may hold anything."""

T = TypeVar("T")
OnRetry = Callable[[SandboxError, int, float], None]
"""Told before a wait: the fault, the number of the attempt that failed, the seconds until the next."""


def delay_before_retry(error: BaseException, *, attempt: int) -> float | None:
    """Returns how long to wait before trying again.

    Args:
        error: What the attempt raised.
        attempt: Number of the attempt that failed, from 1.

    Returns:
        Seconds, or ``None`` when another attempt cannot help.
    """
    if not isinstance(error, SandboxError) or error.retry is RetryClass.NEVER:
        return None
    waits = SLOWLY if error.retry is RetryClass.SLOWLY else SOON
    delay = waits[min(attempt, len(waits)) - 1]
    if isinstance(error, RateLimitedError) and error.retry_after is not None:
        delay = told_wait(error)
    return delay


def told_wait(error: BaseException) -> float:
    """Returns the seconds that the platform asked to wait, at most ``LONGEST_TOLD``; 0 when it did not ask.

    For waits with a pace of their own; callers cap it by the time they have left.
    """
    told = error.retry_after if isinstance(error, RateLimitedError) else None
    return 0.0 if told is None else min(told, LONGEST_TOLD)


async def with_retries(
    step: Callable[[], Awaitable[T]], *, attempts: int = ATTEMPTS, on_retry: OnRetry | None = None
) -> T:
    """Calls ``step`` until it succeeds, its fault is not worth another attempt, or the attempts are used up.

    Args:
        step: One attempt.
        attempts: At most so many, the first included.
        on_retry: Told before each wait.

    Raises:
        SandboxError: The last attempt's.
    """

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        return (delay_before_retry(error, attempt=state.attempt_number) if error else None) or 0.0

    def tell(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if on_retry is not None and isinstance(error, SandboxError):
            on_retry(error, state.attempt_number, wait(state))

    async for attempt in AsyncRetrying(
        stop=stop_after_attempt(attempts),
        retry=retry_if_exception(lambda error: delay_before_retry(error, attempt=1) is not None),
        wait=wait,
        before_sleep=tell,
        reraise=True,
    ):
        with attempt:
            return await step()
    raise AssertionError("unreachable: tenacity returns or raises")


async def read_patiently(read: Callable[[], Awaitable[T]], *, deadline: Deadline) -> T:
    """Reads a state during a wait; a few readings in a row may fail without ending it.

    Args:
        read: One reading.
        deadline: Of the wait.

    Raises:
        SandboxError: The last reading's, or the first that another one would not change.
    """
    pace = Pace(0.2, longest=2.0)
    for reading in range(1, ATTEMPTS + 1):
        try:
            return await read()
        except SandboxError as error:
            if error.retry is RetryClass.NEVER or reading == ATTEMPTS or deadline.expired:
                raise
            await asyncio.sleep(deadline.capped(max(pace.next(), told_wait(error))))
    raise AssertionError("unreachable")


class Deadline:
    """A moment on the monotonic clock.

    Args:
        seconds: From now; ``None`` never comes.
    """

    __slots__ = ("_at", "_began", "seconds")

    def __init__(self, seconds: float | None) -> None:
        self._began = time.monotonic()
        self.seconds = seconds
        self._at = None if seconds is None else self._began + seconds

    @property
    def remaining(self) -> float:
        """Seconds left, never negative; infinite for a deadline that never comes."""
        return float("inf") if self._at is None else max(0.0, self._at - time.monotonic())

    @property
    def expired(self) -> bool:
        """True from the moment on."""
        return self._at is not None and time.monotonic() >= self._at

    @property
    def elapsed(self) -> float:
        """Seconds since it was made."""
        return time.monotonic() - self._began

    def capped(self, seconds: float) -> float:
        """Returns ``seconds`` or what is left, whichever is less; at least 1 ms, so that a wait is a wait."""
        return max(0.001, min(seconds, self.remaining))

    def sooner(self, seconds: float | None) -> Deadline:
        """Returns a deadline ``seconds`` from now, or what is left of this one if that is less."""
        limit = self.remaining if seconds is None else min(seconds, self.remaining)
        return Deadline(None if limit == float("inf") else limit)

    def held_up(self, since: float) -> AbstractContextManager[None]:
        """Marks a time in which nothing moved, from ``since`` to the end of the block: no matter to a moment."""
        return nullcontext()


class Pace:
    """Growing pauses between reads of a state: quick at first, never slower than ``longest``.

    Args:
        first: Seconds of the first pause.
        longest: Seconds of the longest.
        factor: Growth from one to the next.
    """

    __slots__ = ("_factor", "_longest", "_next", "first")

    def __init__(self, first: float = 0.02, *, longest: float = 1.0, factor: float = 1.5) -> None:
        self.first = first
        self._next = first
        self._longest = longest
        self._factor = factor

    def next(self) -> float:
        """Returns the next pause in seconds."""
        pause = self._next
        self._next = min(self._longest, pause * self._factor)
        return pause

    def reset(self) -> None:
        """Begins with the first pause again, after something has moved."""
        self._next = self.first
