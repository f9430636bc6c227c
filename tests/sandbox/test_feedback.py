"""A verdict as a text for a language model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.models import (
    Comparison,
    Diagnostic,
    Difference,
    Outcome,
    PhaseResult,
    Severity,
    StreamOutput,
    ValidationResult,
)


def result(**fields: Any) -> ValidationResult:
    return ValidationResult(
        **{
            "outcome": Outcome.COMPILE_ERROR,
            "message": "The phase build failed with exit code 1.",
            "profile": "java",
            "framework": "plain",
            "thread_id": "t",
            "run_id": "r",
            **fields,
        }
    )


def finding(number: int = 1, **fields: Any) -> Diagnostic:
    return Diagnostic(
        **{
            "severity": Severity.ERROR,
            "message": f"cannot find symbol {number}",
            "path": "Main.java",
            "line": 7,
            "column": 3,
            "code": "compiler.err.cant.resolve",
            "tool": "javac",
            "details": ("symbol: class Foo",),
            "excerpt": "    Foo foo;",
            **fields,
        }
    )


def phase(**fields: Any) -> PhaseResult:
    return PhaseResult(**{"name": "run", "command": "x", "exit_code": 1, "outcome": Outcome.RUNTIME_ERROR, **fields})


def test_findings_come_with_place_code_source_and_details() -> None:
    text = result(diagnostics=(finding(),)).feedback()
    assert text.splitlines() == [
        "compile_error: The phase build failed with exit code 1.",
        "error: Main.java:7:3: compiler.err.cant.resolve: cannot find symbol 1 | Foo foo;",
        "    symbol: class Foo",
    ]


def test_errors_come_before_warnings_and_the_rest_is_counted() -> None:
    found = (finding(0, severity=Severity.WARNING), *(finding(number) for number in range(1, 40)))
    lines = result(diagnostics=found).feedback(1000).splitlines()
    assert lines[1].startswith("error: ")
    told = sum(line.startswith("error: ") for line in lines)
    assert lines[-1] == f"… and {40 - told} more findings"


def test_the_end_of_the_output_is_kept() -> None:
    stderr = StreamOutput(head="".join(f"line {number}\n" for number in range(1000)), total_bytes=9000)
    text = result(outcome=Outcome.RUNTIME_ERROR, phases=(phase(stderr=stderr),)).feedback(400)
    assert text.endswith("line 999")
    assert "line 900\n" not in text


def test_differences_are_told() -> None:
    comparison = Comparison(
        equal=False, total_differences=1, differences=(Difference(path="$.a", expected=1, actual="1", kind="type"),)
    )
    text = result(outcome=Outcome.MISMATCH, message="It differs.", comparison=comparison).feedback()
    assert text == "mismatch: It differs.\n$.a: expected 1, got '1'"


def test_what_passed_needs_few_words() -> None:
    passed = result(
        outcome=Outcome.PASSED, message="The program passed.", phases=(phase(stdout=StreamOutput(head="x")),)
    )
    assert passed.feedback() == "passed: The program passed."


def test_a_budget_that_is_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 200"):
        result().feedback(199)


@given(
    budget=st.integers(200, 3000),
    messages=st.lists(st.text(max_size=300), max_size=12),
    printed=st.text(max_size=3000),
)
def test_the_budget_is_kept(budget: int, messages: list[str], printed: str) -> None:
    stream = StreamOutput(head=printed, total_bytes=len(printed.encode()))
    found = tuple(finding(message=message) for message in messages)
    text = result(diagnostics=found, phases=(phase(stdout=stream, stderr=stream),)).feedback(budget)
    assert len(text) <= budget
