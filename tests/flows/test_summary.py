"""The summary of a run: verdict, times, findings, links."""

from __future__ import annotations

from flows.summary import CHART_COLUMNS, failure_markdown, summary_markdown, time_chart
from sandbox.errors import SandboxLostError, SnapshotBuildError
from sandbox.models import Diagnostic, Outcome, Severity, Timings
from tests.flows.hostile import HOSTILE, assert_harmless, verdict


def test_nothing_in_a_summary_is_interpreted() -> None:
    assert_harmless(summary_markdown(verdict(), links=[("log", "../x")]))


def test_it_says_that_an_exit_code_is_unknown() -> None:
    assert "| unknown |" in summary_markdown(verdict())


def test_it_begins_with_the_verdict_and_links_on() -> None:
    text = summary_markdown(
        verdict(outcome=Outcome.PASSED, message="The program passed."), links=[("run", "../r"), ("log", "../l")]
    )
    assert text.startswith("# ✔ Passed\n\nThe program passed.\n")
    assert "\n[run](../r) · [log](../l)\n" in text


def test_the_chart_shows_each_step_in_proportion() -> None:
    times = Timings(snapshot=0.001, sandbox=0.5, phases={"build": 2.0, "run": 1.0}, results=0.0, total=3.6)
    bars = {line.split()[0]: line.count("█") for line in time_chart(times).split("\n")[1:-1]}
    assert bars == {
        "snapshot": 0,
        "sandbox": CHART_COLUMNS // 4,
        "queue": 0,
        "build": CHART_COLUMNS,
        "run": CHART_COLUMNS // 2,
        "results": 0,
        "overhead": 0,
        "total": 0,
    }
    assert "\nsnapshot      0.001 s  ▏\n" in time_chart(times)


def test_a_chart_of_nothing_is_one() -> None:
    assert "\ntotal         0.000 s\n" in time_chart(Timings())


def test_it_stays_small() -> None:
    many = tuple(
        Diagnostic(severity=Severity.ERROR, message="m" * 10_000, excerpt="e" * 10_000, path="p" * 5000, tool="javac")
        for _ in range(5000)
    )
    words = tuple("w" * 10_000 for _ in range(500))
    text = summary_markdown(verdict(diagnostics=many, message="x" * 1_000_000, recoveries=words, warnings=words))
    assert len(text) < 120_000
    assert "and 4990 more in the diagnostics artifact" in text
    assert "- … and 480 more" in text


def test_a_run_without_a_verdict_says_why_and_what_to_do() -> None:
    error = SandboxLostError("it is gone", step="stream_logs", sandbox="box-1", state="destroyed", remedy="Try again.")
    text = failure_markdown(error, links=[("log", "../l")])
    assert text.startswith("# ! No verdict\n\nit is gone\n\n[log](../l)\n")
    assert "| step | stream\\_logs |\n| sandbox | box\\-1 |\n| state | destroyed |\n| what to do | Try again. |" in text


def test_the_log_of_a_failed_build_is_harmless() -> None:
    text = failure_markdown(SnapshotBuildError(HOSTILE, log_tail=(HOSTILE, "the end"), sandbox=HOSTILE, remedy=HOSTILE))
    assert_harmless(text)
    assert "\nthe end\n" in text
