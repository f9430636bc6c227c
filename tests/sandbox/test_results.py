"""The result file: found, checked, refused with a reason, compared."""

from __future__ import annotations

from typing import Any

import pytest
from daytona import AsyncDaytona
from pydantic import SecretStr

from sandbox.models import Outcome, RunLimits, ValidationResult
from tests.sandbox.shell_profile import Recorded, shell_profile, validate


async def run(daytona: AsyncDaytona, command: str, **fields: Any) -> ValidationResult:
    fields.setdefault("result", "required")
    return await validate(daytona, shell_profile(command), **fields)


async def test_a_result_is_read_and_other_files_are_listed(daytona: AsyncDaytona) -> None:
    sink = Recorded()
    result = await run(
        daytona,
        """printf '\\357\\273\\277{"q": {"count": 2, "firstSample": "ž"}}' > "$UOM_RESULT_FILE"
        cd "$UOM_RESULTS_DIR"; echo '{"forged": 1}' > newer.json; mkdir sub""",
        sink=sink,
    )
    assert result.outcome is Outcome.PASSED, result
    assert result.result == {"q": {"count": 2, "firstSample": "ž"}}
    assert result.result_path == f"/sandbox/{result.thread_id}/{result.run_id}/results/result.json"
    assert result.unexpected_files == ("newer.json", "sub/")
    assert "result" in sink.types()


@pytest.mark.parametrize(
    ("command", "outcome", "parts"),
    [
        ("true", Outcome.RESULT_MISSING, ["no result file"]),
        ("rm -rf $UOM_RESULTS_DIR", Outcome.RESULT_MISSING, ["no result file"]),
        ("rm -rf $UOM_RESULTS_DIR; : > $UOM_RESULTS_DIR", Outcome.RESULT_MISSING, ["no result file"]),
        ("mkdir $UOM_RESULT_FILE", Outcome.RESULT_INVALID, ["is a directory"]),
        ("echo '{}' > x; ln -s $PWD/x $UOM_RESULT_FILE", Outcome.RESULT_INVALID, ["plain file", "link"]),
        ("ln -s /etc/passwd $UOM_RESULT_FILE", Outcome.RESULT_INVALID, ["link"]),
        ("ln -s nowhere $UOM_RESULT_FILE", Outcome.RESULT_INVALID, ["link"]),
        ("rm -r $UOM_RESULTS_DIR; ln -s /etc $UOM_RESULTS_DIR", Outcome.RESULT_INVALID, ["directory", "link"]),
        (
            "mkdir x; echo '{}' > x/result.json; rm -r $UOM_RESULTS_DIR; ln -s $PWD/x $UOM_RESULTS_DIR",
            Outcome.RESULT_INVALID,
            ["link"],
        ),
        ("mkfifo $UOM_RESULT_FILE", Outcome.RESULT_INVALID, ["plain file"]),
        (": > $UOM_RESULT_FILE", Outcome.RESULT_INVALID, ["empty"]),
        ("echo '{}' > $UOM_RESULT_FILE; chmod 000 $UOM_RESULT_FILE", Outcome.RESULT_INVALID, ["permission denied"]),
        ("echo '{}' > $UOM_RESULT_FILE; chmod 000 $UOM_RESULTS_DIR", Outcome.RESULT_INVALID, ["permission denied"]),
        ("echo '{}' > $UOM_RESULT_FILE; chmod 000 $UOM_WORKSPACE", Outcome.RESULT_INVALID, ["permission denied"]),
        ('printf \'{"q": {"avg": NaN}}\' > $UOM_RESULT_FILE', Outcome.RESULT_INVALID, ["NaN", "$.q.avg"]),
        ("printf '{\"q\": [1, 2' > $UOM_RESULT_FILE", Outcome.RESULT_INVALID, ["half-written", "ended with 0"]),
        ("printf '[1, 2' > $UOM_RESULT_FILE; kill -9 $$", Outcome.RUNTIME_ERROR, ["SIGKILL"]),
        ('printf \'{"a": {"b": 1, "b": 2}}\' > $UOM_RESULT_FILE', Outcome.RESULT_INVALID, ['"b"', "twice", "$.a"]),
        (
            "printf '{\"q\": [1, 123456789012345678901]}' > $UOM_RESULT_FILE",
            Outcome.RESULT_INVALID,
            ["64 bits", "$.q[1]"],
        ),
        ("printf '[\"caf\\351\"]' > $UOM_RESULT_FILE", Outcome.RESULT_INVALID, ["not UTF-8", "0xe9", "column 6"]),
        ("printf '[1] [2]' > $UOM_RESULT_FILE", Outcome.RESULT_INVALID, ["more after the end"]),
        ("truncate -s 1000M $UOM_RESULT_FILE", Outcome.RESULT_INVALID, ["1048576000", "4096"]),
        ("printf '{\\000\"\\000' > $UOM_RESULT_FILE", Outcome.RESULT_INVALID, ["UTF-16"]),
        ("head -c 5000 /dev/zero | tr '\\0' 1 > $UOM_RESULT_FILE", Outcome.RESULT_INVALID, ["5000", "4096"]),
    ],
)
async def test_what_is_wrong_is_said(daytona: AsyncDaytona, command: str, outcome: Outcome, parts: list[str]) -> None:
    result = await run(daytona, command, limits=RunLimits(result_bytes=4096))
    assert result.outcome is outcome, result
    for part in parts:
        assert part in result.message
    assert result.result is None


async def test_a_printed_path_counts_only_inside_the_results_directory(daytona: AsyncDaytona) -> None:
    inside = await run(daytona, "echo '{\"a\": 1}' > results/other.json; echo JSON_PATH=results/other.json")
    assert inside.outcome is Outcome.PASSED, inside
    assert inside.result == {"a": 1}
    absolute = await run(daytona, "echo '[2]' > results/o.json; echo JSON_PATH=$UOM_RESULTS_DIR/o.json")
    assert absolute.result == [2]
    for path in ("../../other.json", "/etc/passwd", "forged.json", "results/../forged.json", "results/sub/x.json"):
        outside = await run(
            daytona,
            f"echo '{{}}' > forged.json; mkdir results/sub; echo '{{}}' > results/sub/x.json; echo JSON_PATH={path}",
        )
        assert outside.outcome is Outcome.RESULT_MISSING, path
    declared = await run(
        daytona, "echo '[1]' > $UOM_RESULT_FILE; echo '[2]' > results/other.json; echo JSON_PATH=results/other.json"
    )
    assert declared.result == [1]
    assert declared.unexpected_files == ("other.json",)


async def test_results_of_a_former_run_with_the_same_id_are_gone(daytona: AsyncDaytona) -> None:
    first = await run(daytona, "echo '[1]' > $UOM_RESULT_FILE; echo > results/x", thread_id="thread-s", run_id="same")
    assert first.passed
    second = await run(daytona, "ls results", thread_id="thread-s", run_id="same")
    assert second.outcome is Outcome.RESULT_MISSING
    assert second.phases[0].stdout.text == ""


async def test_a_program_that_throws_after_it_wrote_has_both(daytona: AsyncDaytona) -> None:
    result = await run(daytona, "echo '[1]' > $UOM_RESULT_FILE; exit 3")
    assert result.outcome is Outcome.RUNTIME_ERROR
    assert result.result == [1]
    half = await run(daytona, "printf '[1' > $UOM_RESULT_FILE; exit 3")
    assert half.outcome is Outcome.RUNTIME_ERROR
    assert half.result is None


@pytest.mark.parametrize(("rule", "outcome"), [("optional", Outcome.PASSED), ("none", Outcome.PASSED)])
async def test_a_result_need_not_be_there(daytona: AsyncDaytona, rule: str, outcome: Outcome) -> None:
    assert (await run(daytona, "true", result=rule)).outcome is outcome


async def test_an_optional_result_that_is_broken_is_not_ignored(daytona: AsyncDaytona) -> None:
    assert (await run(daytona, "echo '[' > $UOM_RESULT_FILE", result="optional")).outcome is Outcome.RESULT_INVALID


async def test_the_result_is_compared(daytona: AsyncDaytona) -> None:
    command = 'echo \'{"q": {"count": 2.0, "rows": [1, 2]}}\' > $UOM_RESULT_FILE'
    equal = await run(daytona, command, expected={"q": {"count": 2, "rows": [1, 2]}})
    assert equal.outcome is Outcome.PASSED
    assert equal.comparison is not None
    assert equal.comparison.equal
    other = await run(daytona, command, expected={"q": {"count": 2, "rows": [1, 3]}}, result="none")
    assert other.outcome is Outcome.MISMATCH
    assert "1 place" in other.message
    assert "$.q.rows[1]" in other.message
    assert (await run(daytona, "true", expected={"q": 1}, result="optional")).outcome is Outcome.RESULT_MISSING


async def test_secrets_in_a_result_are_compared_and_masked(daytona: AsyncDaytona) -> None:
    result = await run(
        daytona,
        'printf \'["%s"]\' "$TOKEN" > $UOM_RESULT_FILE',
        secrets={"TOKEN": "hidden-token"},
        expected=["hidden-token"],
    )
    assert result.outcome is Outcome.PASSED, result
    assert result.result == ["•••"]


async def test_a_large_result_is_read(daytona: AsyncDaytona) -> None:
    command = """awk 'BEGIN { printf "["; for (i = 0; i < 200000; i++) printf "%s%d", (i ? "," : ""), i; print "]" }' \\
        > $UOM_RESULT_FILE"""
    result = await run(daytona, command)
    assert result.result == list(range(200_000))


@pytest.mark.parametrize("note", ["mkdir {}", "mkfifo {}", "ln -s /etc/passwd {}", "ln -s nowhere/at/all {}"])
async def test_a_spoilt_note_of_the_phase_does_not_hide_the_verdict(daytona: AsyncDaytona, note: str) -> None:
    profile = shell_profile(f"rm -f .uom/one.status; {note.format('.uom/one.status')}; exit 3")
    result = await validate(daytona, profile)
    assert result.outcome is Outcome.RUNTIME_ERROR, result
    assert result.phases[0].exit_code == 3


async def test_secrets_are_masked_in_all_that_is_told_of_a_result(daytona: AsyncDaytona) -> None:
    sink = Recorded()
    result = await run(
        daytona,
        """printf '{"%s": "%s"}' "$S" "$S" > $UOM_RESULT_FILE; : > "$UOM_RESULTS_DIR/$S" """,
        secrets={"S": SecretStr("s3cr3t-value")},
        expected={"a": 1},
        sink=sink,
    )
    assert result.outcome is Outcome.MISMATCH, result
    assert "s3cr3t" not in result.model_dump_json()
    assert "s3cr3t" not in str(sink.events)
