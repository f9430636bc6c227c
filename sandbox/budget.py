"""The deadline of a run: one object with two budgets, one for its program and one for the platform.

The program's budget is spent by its phases, as measured inside the sandbox where that is known: a slow network costs a
program nothing. The platform's is spent while the platform keeps the run waiting: from the beginning of a call that
failed until one is answered, pauses included. Calls that are answered cost nothing, however many there are.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, TypeVar

from sandbox.errors import PlatformUnavailableError, RetryClass, SandboxError, SandboxLostError
from sandbox.faults import fault, status_of
from sandbox.models import RunLimits
from sandbox.platform_api import REQUEST_SECONDS, bounded
from sandbox.retry import Deadline, Pace, told_wait

PLATFORM_SECONDS: Final = 40.0
"""How long the platform may keep one run waiting, altogether, unless the request says otherwise."""

ANSWER_SECONDS: Final = 10.0
"""Longest wait for one answer about a program that runs; a lost one is asked for again."""

TRANSFER_SECONDS: Final = 300.0
"""Longest upload or download; while it is under way nobody is kept waiting."""

CLOSE_SECONDS: Final = 28.0
"""Longest clean-up of a run, whatever the platform answers."""

CLOSE_UNREACHED_SECONDS: Final = 5.0
"""The same when the platform has used up its time already: the leases end what is left."""

GATEWAY_SECONDS: Final = 3.0
"""How long a toolbox may be unreachable behind its proxy before the sandbox counts as lost."""

T = TypeVar("T")


class Allowance(Deadline):
    """Seconds that count only while something is held up.

    Args:
        seconds: How many there are.
    """

    __slots__ = ("_held", "_last", "_limit", "_since", "_spent")

    def __init__(self, seconds: float) -> None:
        super().__init__(None)
        self.seconds = seconds
        self._limit = seconds
        self._spent = 0.0
        self._held = 0
        self._since = self._last = time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds used up so far."""
        return self._spent + (time.monotonic() - self._since if self._held else 0.0)

    @property
    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._limit - self.spent)

    @property
    def expired(self) -> bool:
        """True when they are used up."""
        return self.remaining <= 0

    def capped(self, seconds: float) -> float:
        """Returns ``seconds``, or while something is held up what is left, if that is less."""
        return super().capped(seconds) if self._held else seconds

    @contextmanager
    def held_up(self, since: float) -> Iterator[None]:
        """Counts the time from ``since`` to the end of the block; what overlaps is counted once."""
        if not self._held:
            self._since = max(since, self._last)
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            if not self._held:
                self._last = time.monotonic()
                self._spent += self._last - self._since


class RunDeadline:
    """Everything that limits the time of one run, but for the waits before its first phase.

    Args:
        limits: What the request allows its program and the platform.
    """

    def __init__(self, limits: RunLimits) -> None:
        self.platform = Allowance(limits.platform_seconds or PLATFORM_SECONDS)
        self.counts_phases = limits.total_seconds is not None
        """Whether the time of a phase is taken from what its successors have."""
        self._program_seconds = limits.total_seconds
        self._spent = 0.0

    def closing(self) -> Deadline:
        """Returns the deadline of the clean-up, which begins now."""
        return Deadline(CLOSE_UNREACHED_SECONDS if self.platform.expired else CLOSE_SECONDS)

    def begin(self) -> None:
        """The first phase begins, or begins again in another sandbox: the program has all its time."""
        self._spent = 0.0

    def phase_limit(self, seconds: float) -> float:
        """Returns what a phase may take of the ``seconds`` that are its own limit; more than nothing."""
        if self._program_seconds is None:
            return seconds
        return min(seconds, max(self._program_seconds - self._spent, 0.001))

    def spend(self, seconds: float, *, inside: float | None) -> None:
        """A phase has ended.

        Args:
            seconds: How long it took as seen from here.
            inside: The same as measured in the sandbox; the program may have spoilt it, so it cannot be longer.
        """
        self._spent += seconds if inside is None else min(seconds, inside)


async def insist(
    call: Callable[[], Awaitable[T]],
    *,
    within: Deadline,
    step: str,
    sandbox: str,
    seconds: float = REQUEST_SECONDS,
    tries: int | None = None,
    restart_seconds: float = 0.0,
) -> T:
    """Makes a call into a sandbox, again and again while the platform does not answer it.

    Args:
        call: Makes the call; harmless when made twice, unless ``tries`` is 1.
        within: Until when.
        step: The step of the validation, for the text of errors.
        sandbox: Name of the sandbox, likewise.
        seconds: Longest wait for one answer.
        tries: How often at most; as often as there is time for by default.
        restart_seconds: How long a sandbox may be stopped or starting: another run may be about to restart it.

    Raises:
        SandboxLostError: The sandbox is gone; a proxy that cannot reach it is asked again for ``GATEWAY_SECONDS``.
        SandboxError: The platform refused the call, or the time is up.
    """
    began = time.monotonic()
    pace = Pace(0.01, longest=2.0)
    failed = 0
    told: SandboxError | None = None
    with ExitStack() as held:
        while True:
            try:
                return await bounded(call(), within.capped(seconds))
            except Exception as error:
                meant = fault(error, step=step, sandbox=sandbox, toolbox=True)
                if meant is None:
                    raise
                failed += 1
                if failed == 1 and meant.retry is not RetryClass.NEVER:
                    held.enter_context(within.held_up(began))
                if failed == tries or not _passes(meant, error, time.monotonic() - began, restart_seconds):
                    raise meant from error
                # A last try that was cut short says less than the one before it.
                told = meant if told is None or not (within.expired and isinstance(error, TimeoutError)) else told
                pause = max(pace.next(), told_wait(meant))
                if within.remaining <= pause:
                    raise _worn_out(told, within) from error
            await asyncio.sleep(pause)


def _passes(meant: SandboxError, error: Exception, elapsed: float, restart_seconds: float) -> bool:
    """True for a fault that another try may find over."""
    if isinstance(meant, SandboxLostError):
        # A proxy says 502 for a moment while a connection is renewed; 404 and 410 do not pass.
        status = status_of(error)
        return elapsed <= (GATEWAY_SECONDS if status == 502 else restart_seconds) and status not in (404, 410)
    return meant.retry is not RetryClass.NEVER


def _worn_out(meant: SandboxError, within: Deadline) -> SandboxError:
    if not isinstance(within, Allowance):
        return meant
    return PlatformUnavailableError(
        f"{meant.message}; the platform has kept this run waiting for {within.spent:.0f} s altogether, "
        f"it may for {within.seconds:g} s (limits.platform_seconds)",
        step=meant.step,
        sandbox=meant.sandbox,
        state=meant.state,
    )
