"""One code for each kind of failure, whatever the tool; and something to read when no tool said anything."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.diagnostics import find_diagnostics, with_cause
from sandbox.models import Diagnostic, Outcome, Severity
from sandbox.outcomes import Facts, Status, phase_verdict
from sandbox.profiles import Phase
from tests.sandbox.diagnostics.test_recorded_output import stream

WORKSPACE = "/sandbox/thread-1/run-1"


def find(parser: str, *, stdout: str = "", stderr: str = "", network: str = "none") -> tuple[Diagnostic, ...]:
    return find_diagnostics(
        [parser], stdout=stdout, stderr=stderr, phase="run", files={}, workspace=WORKSPACE, network=network
    )


@pytest.mark.parametrize(
    ("parser", "stderr", "code"),
    [
        ("jvm", 'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space', "out-of-memory"),
        ("dotnet", "Unhandled exception. System.OutOfMemoryException: Array dimensions exceeded", "out-of-memory"),
        ("dotnet", "Out of memory.", "out-of-memory"),
        (
            "python",
            'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nMemoryError',
            "out-of-memory",
        ),
        ("dotnet", "Unhandled exception. System.IO.IOException: No space left on device : '/x'", "disk-full"),
        ("dotnet", "Unhandled exception. System.IO.IOException: Disk quota exceeded : '/x'", "disk-full"),
        (
            "jvm",
            'Exception in thread "main" java.nio.file.FileSystemException: /x: No space left on device',
            "disk-full",
        ),
        (
            "jvm",
            'Exception in thread "main" java.io.UncheckedIOException: x\nCaused by: java.io.IOException: '
            "No space left on device\n\tat Main.main(Main.java:1)",
            "disk-full",
        ),
        ("javac", "error: error writing Main: Main.class: No space left on device", "disk-full"),
        ("jvm", 'Exception in thread "main" java.net.UnknownHostException: api.example.com', "no-network"),
        ("jvm", 'Exception in thread "main" java.net.ConnectException: Network is unreachable', "no-network"),
        (
            "dotnet",
            "Unhandled exception. System.Net.Http.HttpRequestException: Name or service not known",
            "no-network",
        ),
    ],
)
def test_one_code_for_one_cause_in_every_language(parser: str, stderr: str, code: str) -> None:
    (found,) = find(parser, stderr=stderr)
    assert found.code == code


@pytest.mark.parametrize(
    ("parser", "streams"),
    [
        ("csc", {"stdout": "A.cs(1,8): error CS1029: #error: 'System.IO.IOException: No space left on device'"}),
        ("jvm", {"stderr": 'Exception in thread "main" a.Fault: java.lang.OutOfMemoryError'}),
        ("jvm", {"stderr": 'Exception in thread "main" java.io.IOException: said: No space left on device'}),
        ("dotnet", {"stderr": "Unhandled exception. Shop.Fault: Network is unreachable"}),
        (
            "dotnet",
            {"stderr": "Unhandled exception. System.Net.Http.HttpRequestException: Connection refused (a.b:80)"},
        ),
    ],
)
def test_the_words_of_a_program_or_source_make_no_cause(parser: str, streams: dict[str, str]) -> None:
    (found,) = find(parser, **streams)
    assert found.code not in ("disk-full", "out-of-memory", "no-network")


def completed(
    found: tuple[Diagnostic, ...] = (), *, cause: str | None = None, stdout: str = "", stderr: str = ""
) -> tuple[Diagnostic, ...]:
    return with_cause(found, cause=cause, message="It failed.", phase="run", stdout=stdout, stderr=stderr)


ERROR = Diagnostic(severity=Severity.ERROR, message="x", tool="jvm", code="out-of-memory")
WARNING = Diagnostic(severity=Severity.WARNING, message="y", tool="javac")


def test_a_cause_that_only_the_facts_give_is_a_finding_with_the_verdicts_sentence() -> None:
    (found,) = completed(cause="killed", stderr="whatever")
    assert (found.severity, found.code, found.message, found.phase) == (Severity.ERROR, "killed", "It failed.", "run")


def test_a_cause_that_the_runtime_gave_already_is_not_told_twice() -> None:
    assert completed((ERROR,), cause="out-of-memory", stderr="whatever") == (ERROR,)


def test_a_failure_that_nothing_explains_carries_its_last_lines() -> None:
    stderr = "".join(f"line {number}\n" for number in range(100))
    warning, found = completed((WARNING,), stdout="not this\n", stderr=f"{stderr}\n\x1b[31mthe end\x1b[0m\n")
    assert warning == WARNING
    assert (found.severity, found.code) == (Severity.INFO, "last-lines")
    assert found.details[-1] == "the end"
    assert len(found.details) == 40
    assert found.details[0] == "line 61"


def test_standard_output_is_shown_when_nothing_is_on_standard_error() -> None:
    (found,) = completed(stdout="no orders\n", stderr="\n")
    assert found.details == ("no orders",)
    assert found.message == "the last line that the phase run printed"


def test_an_error_needs_no_last_lines_and_silence_has_none() -> None:
    assert completed((ERROR,), stderr="more") == (ERROR,)
    assert completed() == ()


def test_endless_lines_are_bounded() -> None:
    (found,) = completed(stderr="x" * 10_000_000)
    assert [len(line) for line in found.details] == [500]


def facts(**fields: Any) -> Facts:
    phase = Phase(name="run", command="x", failure=Outcome.RUNTIME_ERROR, diagnostics=("dotnet",))
    defaults: dict[str, Any] = {"phase": phase, "limit": 10.0, "seconds": 1.0}
    return Facts(**(defaults | fields))


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"exit_code": 137, "end_reason": "memory"}, "out-of-memory"),
        ({"exit_code": 137, "status": Status(oom_kills=1)}, "out-of-memory"),
        ({"exit_code": 134, "stderr": "Out of memory.\n"}, "out-of-memory"),
        ({"exit_code": 137, "end_reason": "disk"}, "disk-full"),
        ({"exit_code": 127, "stderr": "run: 1: mvn: not found\n"}, "tool-missing"),
        ({"exit_code": 137}, "killed"),
        ({"exit_code": 143}, None),
        ({"exit_code": 1}, None),
        ({"exit_code": 0}, None),
    ],
)
def test_facts_about_the_process_give_the_cause(fields: dict[str, Any], cause: str | None) -> None:
    assert phase_verdict(facts(**fields)).cause == cause


def test_a_database_that_answered_before_is_not_why_the_program_failed() -> None:
    told: dict[str, Any] = {"exit_code": 134, "stderr": stream("dotnet-10.0.12-npgsql-down", "stderr")}
    unseen = phase_verdict(facts(**told))
    assert (unseen.outcome, unseen.cause) == (Outcome.DATABASE_UNREACHABLE, "database-unreachable")
    assert unseen.message == "PostgreSQL at 127.0.0.1:1 did not answer: Connection refused."
    assert phase_verdict(facts(**told, answered=True)).outcome is Outcome.RUNTIME_ERROR
