"""The tables of the README on what is tried again are what the code does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from daytona import SandboxState

import sandbox.errors as errors
import sandbox.heartbeat as heartbeat
import sandbox.lifecycle as lifecycle
import sandbox.retry as retry
import sandbox.snapshots as snapshots
from sandbox.budget import CLOSE_SECONDS, CLOSE_UNREACHED_SECONDS, PLATFORM_SECONDS
from sandbox.local.faults import Fault
from sandbox.platform_api import REQUEST_SECONDS
from sandbox.profiles import Profile
from sandbox.sandbox_states import STATES
from sandbox.slots import QUEUE_SECONDS
from sandbox.validation import OPENINGS
from tests.sandbox.conftest import Faulty
from tests.sandbox.shell_profile import shell_profile, validate

SECTION = (Path(__file__).parents[2] / "README.md").read_text().split("### What is tried again\n")[1].split("\n## ")[0]
FAULTS, STEPS = (
    [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    for table in re.findall(r"(?:^\|.*\n)+", SECTION, re.MULTILINE)
)
ROWS = {name: row for row in FAULTS for name in re.findall(r"`(\w+Error)`", row[1])}
ALWAYS = 1000


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+", text)]


def family(kind: type[errors.SandboxError]) -> Iterator[type[errors.SandboxError]]:
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield child
            yield from family(child)


def test_every_error_has_a_row_of_its_own_and_no_other_has() -> None:
    named = re.findall(r"`(\w+Error)`", "\n".join(row[1] for row in FAULTS))
    assert sorted(named) == sorted(kind.__name__ for kind in family(errors.SandboxError))


@pytest.mark.parametrize("kind", list(family(errors.SandboxError)), ids=lambda kind: kind.__name__)
def test_attempts_and_pauses(kind: type[errors.SandboxError]) -> None:
    _, _, attempts, pauses = ROWS[kind.__name__]
    waits = [retry.delay_before_retry(kind("x"), attempt=number) for number in range(1, retry.ATTEMPTS)]
    told: list[float | None] = [*numbers(pauses)]
    if kind is errors.RateLimitedError:
        assert told.pop(0) == retry.LONGEST_TOLD
    assert waits == (told if told else [None] * len(waits))
    assert int(attempts) == (retry.ATTEMPTS if told else 1)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (429, "slow down", errors.RateLimitedError),
        (500, "broken", errors.PlatformUnavailableError),
        (503, "broken", errors.PlatformUnavailableError),
        (409, "busy", errors.PlatformUnavailableError),
        (400, "no available runner", errors.CapacityError),
        (400, "wrong", errors.BadRequestError),
        (401, "who are you", errors.AuthenticationError),
        (403, "no", errors.AccessDeniedError),
        (403, "snapshot quota exceeded", errors.QuotaExceededError),
    ],
)
async def test_the_platform_is_asked_so_many_times(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch, status: int, message: str, kind: type[errors.SandboxError]
) -> None:
    monkeypatch.setattr(retry, "SOON", (0.0,) * 4)
    monkeypatch.setattr(retry, "SLOWLY", (0.0,) * 4)
    faults = faulty.platform.faults
    fault = faults.add(Fault(kind="fail", path="/api/snapshots/.*", status=status, message=message, times=ALWAYS))
    try:
        with pytest.raises(kind):
            await validate(faulty.daytona, shell_profile("true", type="retry-table"))
    finally:
        faults.clear()
    assert fault.seen == int(ROWS[kind.__name__][2])


def test_how_long_each_step_lasts() -> None:
    build = Profile.model_fields["snapshot_timeout_seconds"].default
    assert [numbers(row[1]) for row in STEPS] == [
        [REQUEST_SECONDS],
        [build, snapshots.PENDING_SECONDS, snapshots.GONE_SECONDS],
        [lifecycle.RECONCILE_SECONDS, lifecycle._REPLACEMENTS, STATES[SandboxState.STOPPED].seconds],
        [OPENINGS],
        [],
        [PLATFORM_SECONDS],
        [CLOSE_SECONDS, CLOSE_UNREACHED_SECONDS],
        [QUEUE_SECONDS],
    ]
    assert numbers(SECTION.split("\n\n")[-1])[0] == heartbeat.INTERVAL_SECONDS
