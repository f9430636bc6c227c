"""Log streams that break, freeze, are refused: the run passes and its output is whole."""

from __future__ import annotations

import pytest

import sandbox.following as following
from sandbox.errors import SandboxLostError
from sandbox.models import Outcome, RunLimits
from tests.sandbox.conftest import Faulty
from tests.sandbox.fault_proxy import Harm
from tests.sandbox.shell_profile import Recorded, shell_profile, validate

LOGS = r"GET .*/logs\?follow=true"
LINES = "".join(f"{number} é日😀\n" for number in range(2000))
PRINT = 'i=0; while [ $i -lt 2000 ]; do echo "$i é日😀"; i=$((i+1)); done; echo end >&2'


@pytest.mark.parametrize("cut", [0, 1, 5, 1000, 1001, 1002, 1003, 10_000])
@pytest.mark.parametrize("code", [None, 1000, 1011])
async def test_a_broken_stream_is_taken_up_without_loss_or_repetition(
    faulty: Faulty, cut: int, code: int | None
) -> None:
    faulty.proxy.harms = [Harm(LOGS, cut_bytes=cut, close_code=code, times=2)]
    sink = Recorded()
    # A stream that is closed properly while the program runs is the interesting one; see `sandbox.following`.
    command = f"{PRINT}; sleep 0.5" if code == 1000 else PRINT
    result = await validate(faulty.daytona, shell_profile(command), sink=sink)
    assert result.outcome is Outcome.PASSED, result
    assert result.phases[0].stdout.text == LINES
    assert result.phases[0].stderr.text == "end\n"
    assert sink.text("shell_sandbox_command_execution_stdout") == LINES
    assert len(result.warnings) == 1


async def test_a_stream_closed_properly_while_the_program_runs_is_no_end(faulty: Faulty) -> None:
    faulty.proxy.harms = [Harm(LOGS, cut_bytes=3, close_code=1000)]
    result = await validate(faulty.daytona, shell_profile("echo begun; sleep 1; echo ended; exit 3"))
    assert result.phases[0].exit_code == 3
    assert result.phases[0].stdout.text == "begun\nended\n"


@pytest.mark.parametrize("refusals", [3, 1000])
async def test_refused_streams_are_tried_again_and_then_read_by_polling(faulty: Faulty, refusals: int) -> None:
    faulty.proxy.harms = [Harm(LOGS, status=503, times=refusals)]
    result = await validate(faulty.daytona, shell_profile(f"{PRINT}; sleep 1; echo late"))
    assert result.outcome is Outcome.PASSED, result
    assert result.phases[0].stdout.text == f"{LINES}late\n"
    assert faulty.proxy.count(LOGS) == (4 if refusals == 3 else faulty.proxy.count(LOGS))


async def test_a_frozen_stream_does_not_hide_the_end(faulty: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "ASK_SECONDS", 0.2)
    monkeypatch.setattr(following, "LINGER_SECONDS", 0.2)
    faulty.proxy.harms = [Harm(LOGS, freeze=True)]
    result = await validate(faulty.daytona, shell_profile("echo whole"))
    assert result.outcome is Outcome.PASSED, result
    assert result.phases[0].stdout.text == "whole\n"


async def test_a_status_that_is_never_answered_is_asked_again(faulty: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "ANSWER_SECONDS", 1)
    faulty.proxy.harms = [Harm(r"GET .*/command/[^/]+$", freeze=True, times=2)]
    assert (await validate(faulty.daytona, shell_profile("echo x"))).passed


@pytest.mark.parametrize("status", [500, 502, 503, 429])
async def test_a_status_that_fails_is_asked_again(faulty: Faulty, status: int) -> None:
    faulty.proxy.harms = [Harm(r"GET .*/command/[^/]+$", status=status, times=2)]
    assert (await validate(faulty.daytona, shell_profile("echo x"))).passed


async def test_time_without_connection_is_not_charged_to_the_program(faulty: Faulty) -> None:
    faulty.proxy.harms = [Harm(r"(GET .*/command/[^/]+$)|/logs", status=503, times=12)]
    result = await validate(
        faulty.daytona, shell_profile("sleep 0.5; echo done"), limits=RunLimits(total_seconds=1, no_output_seconds=0.9)
    )
    assert result.outcome is Outcome.PASSED, result
    assert result.phases[0].stdout.text == "done\n"


async def test_an_environment_that_is_not_taken_at_once_is_sent_again(faulty: Faulty) -> None:
    faulty.proxy.harms = [Harm("POST .*/input", status=503, times=2), Harm("POST .*/input", drop=True, after=True)]
    result = await validate(faulty.daytona, shell_profile('echo "$A"'), environment={"A": "arrived"})
    assert result.phases[0].stdout.text == "arrived\n"


@pytest.mark.parametrize("harm", [{"status": 410}, {"status": 404}, {"drop": True}, {"drop": True, "after": True}])
async def test_a_lost_session_is_opened_anew_once(faulty: Faulty, harm: dict[str, object]) -> None:
    faulty.proxy.harms = [Harm("POST .*/exec$", **harm)]  # type: ignore[arg-type]
    result = await validate(faulty.daytona, shell_profile("echo x >> log; cat log", "cat log"))
    assert result.outcome is Outcome.PASSED, result
    assert faulty.proxy.count("POST .*/process/session$") == 2
    sandbox = await faulty.daytona.get("validation-sandbox-shell-sandbox")
    assert await sandbox.process.list_sessions() == []


async def test_a_sandbox_lost_during_the_run_is_replaced_and_the_run_repeated_once(faulty: Faulty) -> None:
    profile = shell_profile("echo begun; sleep 1; echo ended", type="lossy-sandbox")
    sink = Recorded()
    deleted = False

    async def delete_once(line: str) -> None:
        nonlocal deleted
        if "follow=true" in line and not deleted:
            deleted = True
            await faulty.daytona.delete(await faulty.daytona.get(profile.sandbox_name))

    faulty.proxy.before = delete_once
    result = await validate(faulty.daytona, profile, sink=sink)
    assert result.outcome is Outcome.PASSED, result
    assert result.phases[0].stdout.text == "begun\nended\n"
    assert sum("repeated once" in line for line in result.recoveries) == 1


async def test_a_sandbox_lost_twice_is_an_error_that_says_so(faulty: Faulty) -> None:
    profile = shell_profile("echo begun; sleep 5", type="lossy-sandbox")

    async def delete_always(line: str) -> None:
        if "follow=true" in line:
            await faulty.daytona.delete(await faulty.daytona.get(profile.sandbox_name))

    faulty.proxy.before = delete_always
    with pytest.raises(SandboxLostError) as caught:
        await validate(faulty.daytona, profile)
    assert caught.value.state == "absent"
    assert "validation-sandbox-lossy-sandbox" in str(caught.value)
