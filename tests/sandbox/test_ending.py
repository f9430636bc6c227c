"""Nothing of a program runs when its verdict is told, or the result says that this is not certain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from daytona import AsyncDaytona

import sandbox.budget as budget
import sandbox.session as session
from sandbox.budget import Allowance, RunDeadline
from sandbox.errors import PlatformUnavailableError
from sandbox.events import EventStream
from sandbox.models import Outcome, RunLimits, ValidationRequest
from sandbox.validation import Validation
from tests.sandbox.conftest import Faulty
from tests.sandbox.fault_proxy import Harm
from tests.sandbox.shell_profile import Recorded, shell_profile, validate

HIDDEN = "setsid env -i sleep 4714 </dev/null >/dev/null 2>&1 &\n"
"""A daemon without our mark that holds no output: only its descent tells where it comes from."""

KILL_SCRIPT = "read -r _ _ _ script _ </proc/$PPID/stat; kill -9 $script; sleep 30"


@pytest.mark.parametrize(
    ("program", "limits", "outcome"),
    [
        ("echo begun; sleep 30", {"total_seconds": 0.5}, Outcome.TIMEOUT),
        ("trap '' TERM; echo begun; while :; do sleep 1; done", {"total_seconds": 0.5}, Outcome.TIMEOUT),
        ("echo begun; sleep 30", {"no_output_seconds": 0.5}, Outcome.STALLED),
        ("echo begun; yes", {"output_bytes": 100_000}, Outcome.OUTPUT_EXCEEDED),
        (f"echo begun; {KILL_SCRIPT}", {"total_seconds": 1.0}, Outcome.TIMEOUT),
        ("echo begun; kill -9 $$", {}, Outcome.RUNTIME_ERROR),
    ],
    ids=["timeout", "deaf", "stalled", "flood", "guard killed", "killed"],
)
async def test_its_whole_tree_is_gone_before_the_verdict(
    daytona: AsyncDaytona, program: str, limits: dict[str, float], outcome: Outcome
) -> None:
    profile = shell_profile(f"{HIDDEN} sleep 4714 & setsid sleep 4714 &\n{program}")
    request = ValidationRequest(profile="shell", files={"main.sh": ""}, limits=RunLimits(**limits)).identified()
    async with EventStream(run_id=str(request.run_id), thread_id=str(request.thread_id)) as events:
        validation = Validation(request, profile=profile, client=daytona, events=events)
        try:
            await validation.ensure_snapshot()
            await validation.reconcile_sandbox()
            await validation.open_session()
            await validation.start_phase(validation.phases[0])
            await validation.stream_phase()
            result = await validation.finish_phase()
            sandbox = await daytona.get(profile.sandbox_name)
            left = await sandbox.process.exec("pgrep -af '[4]714'; pgrep -x yes; true")
        finally:
            await validation.close()
    assert result.outcome is outcome, result
    assert result.stdout.text.startswith("begun\n")
    assert left.result == ""


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (Harm("POST .*/process/execute", status=503, times=1000), "made to fail"),
        (Harm("POST .*/process/execute", freeze=True, times=1000), "did not answer"),
        (Harm("DELETE .*/process/session/", status=500, times=1000), "session could not be deleted"),
        (
            Harm("POST .*/process/execute", body=lambda answer: answer | {"result": "2\n"}),
            "2 processes are still there",
        ),
        (Harm("POST .*/process/execute", body=lambda answer: answer | {"result": "?"}), "cannot be listed: ?"),
    ],
    ids=["refused", "silent", "session stays", "left over", "nonsense"],
)
async def test_an_end_that_cannot_be_confirmed_is_named(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch, harm: Harm, reason: str
) -> None:
    monkeypatch.setattr(session, "KILL_SECONDS", 1.0)
    monkeypatch.setattr(budget, "CLOSE_SECONDS", 1.0)
    profile = shell_profile("echo begun; sleep 30", type="unended-sandbox")
    assert (await validate(faulty.daytona, shell_profile("true", type="unended-sandbox"))).passed
    faulty.proxy.harms = [harm]
    result = await validate(faulty.daytona, profile, limits=RunLimits(no_output_seconds=0.5))
    assert result.outcome is Outcome.STALLED, result
    assert result.phases[0].stdout.text == "begun\n"
    assert [text.split(":")[0] for text in result.warnings] == ["end_unconfirmed"]
    assert reason in result.warnings[0]
    assert "phase one" in result.warnings[0]
    faulty.proxy.harms = []
    await faulty.daytona.delete(await faulty.daytona.get(profile.sandbox_name))


@pytest.mark.parametrize("harm", [{"freeze": True}, {"drop": True}, {"status": 503}, {"status": 429}])
@pytest.mark.parametrize("isolation", ["shared", "run"])
async def test_a_close_that_reaches_nobody_ends(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch, isolation: str, harm: dict[str, object]
) -> None:
    monkeypatch.setattr(budget, "CLOSE_SECONDS", 1.0)
    profile = shell_profile("echo begun; sleep 30", type="unreached-sandbox")
    sink = Recorded()
    async with asyncio.timeout(60):
        running = asyncio.create_task(validate(faulty.daytona, profile, sink=sink, isolation=isolation))
        await sink.until("begun\n")
        faulty.proxy.harms = [Harm("", times=1_000_000, **harm)]  # type: ignore[arg-type]
        running.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert time.monotonic() - began < 15, "one bound for all of it, not one for each try"
    faulty.proxy.harms = []
    async for sandbox in faulty.daytona.list():
        if sandbox.name.startswith(profile.sandbox_name):
            await faulty.daytona.delete(sandbox)


async def test_the_platform_may_keep_a_run_waiting_for_so_long_and_no_longer(faulty: Faulty) -> None:
    profile = shell_profile("echo begun; sleep 1; echo ended")
    assert (await validate(faulty.daytona, shell_profile("true"))).passed
    faulty.proxy.harms = [Harm(r"(GET .*/command/[^/]+$)|/logs", status=503, times=1_000_000)]
    with pytest.raises(PlatformUnavailableError, match=r"it may for 0.5 s \(limits\.platform_seconds\)"):
        await validate(faulty.daytona, profile, limits=RunLimits(platform_seconds=0.5))


@pytest.mark.parametrize("pattern", ["GET .*/files", "POST .*/bulk-download"])
async def test_a_platform_that_is_away_while_the_result_is_read_is_asked_again(faulty: Faulty, pattern: str) -> None:
    faulty.proxy.harms = [Harm(pattern, status=503, times=3), Harm(pattern, drop=True, times=2)]
    result = await validate(faulty.daytona, shell_profile("echo '[1]' > $UOM_RESULT_FILE"), result="required")
    assert result.result == [1]


async def test_a_slow_platform_costs_the_program_none_of_its_time(faulty: Faulty) -> None:
    async def slow(line: str) -> None:
        if line.startswith("POST") and line.endswith("/exec"):
            await asyncio.sleep(1.5)

    faulty.proxy.before = slow
    profile = shell_profile("sleep 0.2", "sleep 0.2", "sleep 30")
    result = await validate(faulty.daytona, profile, limits=RunLimits(total_seconds=1.4))
    assert [phase.outcome for phase in result.phases] == [Outcome.PASSED, Outcome.PASSED, Outcome.TIMEOUT]


def stepped(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Stops the clock of budgets; what is returned sets it."""
    now = 100.0

    def turn(seconds: float) -> None:
        nonlocal now
        now = seconds

    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now))
    return turn


def test_an_allowance_counts_while_something_is_held_up_and_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    turn = stepped(monkeypatch)
    allowance = Allowance(10)
    turn(200)
    assert (allowance.remaining, allowance.capped(30)) == (10, 30)
    with allowance.held_up(197):
        assert (allowance.remaining, allowance.capped(30)) == (7, 7)
        with allowance.held_up(199):
            turn(202)
        assert allowance.remaining == 5
    turn(204)
    with allowance.held_up(200):  # what was counted before is not counted again
        assert allowance.remaining == 3
        turn(300)
        assert allowance.expired
    assert (allowance.remaining, allowance.capped(30)) == (0, 30)


def test_a_program_spends_its_own_time_and_no_more_than_was_seen_from_here() -> None:
    deadline = RunDeadline(RunLimits(total_seconds=10))
    assert deadline.phase_limit(60) == 10
    deadline.spend(6, inside=4)
    assert deadline.phase_limit(60) == 6
    deadline.spend(1, inside=100)
    deadline.spend(1, inside=None)
    assert (deadline.phase_limit(60), deadline.phase_limit(3)) == (4, 3)
    deadline.spend(20, inside=None)
    assert 0 < deadline.phase_limit(60) < 0.01
    deadline.begin()
    assert deadline.phase_limit(60) == 10
    assert RunDeadline(RunLimits()).phase_limit(60) == 60
