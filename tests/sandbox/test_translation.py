"""The verdict on a translation from the verdicts on its sides."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.comparison import ComparisonRules, QueryStatus, TranslationOutcome
from sandbox.errors import ConfigurationError
from sandbox.models import (
    Diagnostic,
    Isolation,
    Outcome,
    PhaseResult,
    ResultExpectation,
    Severity,
    StreamOutput,
    ValidationRequest,
    ValidationResult,
)
from sandbox.translation import conclude_translation, sides_of


def passed(result: Any, **fields: Any) -> ValidationResult:
    return ValidationResult(
        **{
            "outcome": Outcome.PASSED,
            "message": "The program passed.",
            "profile": "python",
            "framework": "plain",
            "thread_id": "t",
            "run_id": "r",
            "result": result,
            "result_path": "/sandbox/t/r/results/result.json",
            **fields,
        }
    )


def broken(**fields: Any) -> ValidationResult:
    return passed(
        None,
        **{"outcome": Outcome.COMPILE_ERROR, "message": "The phase build failed.", "result_path": None, **fields},
    )


def test_both_passed() -> None:
    result = conclude_translation(passed({"q": [1]}), passed({"q": [1]}), seconds=2.0, flow_run_id="f")
    assert result.equivalent
    assert result.comparison is not None
    assert result.queries == result.comparison.queries
    assert result.flow_run_id == "f"
    assert result.seconds >= 2.0
    other = conclude_translation(passed({"q": [1]}), passed({"q": [2]}))
    assert other.outcome is TranslationOutcome.DIFFERENT
    assert other.outcome.state_name == "Different"
    assert "$.q[0]: source 1, target 2" in other.text()
    assert "$.q[0]: source 1, target 2" in other.feedback()


def test_the_rules_are_used_and_kept() -> None:
    rules = ComparisonRules(numeric_text=True)
    result = conclude_translation(passed({"q": ["1"]}), passed({"q": [1]}), rules=rules)
    assert result.equivalent
    assert result.rules == rules


@pytest.mark.parametrize(
    ("source", "target", "outcome", "statuses"),
    [
        (broken(), passed({"a": 1, "b": 2}), "source_failed", {"a": "failed", "b": "failed"}),
        (passed({"a": 1}), broken(), "target_failed", {"a": "failed"}),
        (passed([1]), broken(), "target_failed", {"$": "failed"}),
        (broken(), broken(), "both_failed", {}),
        (passed({"a": 1}), passed(None, result_path=None), "target_failed", {"a": "failed"}),
    ],
)
def test_a_side_that_failed(
    source: ValidationResult, target: ValidationResult, outcome: str, statuses: dict[str, str]
) -> None:
    result = conclude_translation(source, target)
    assert result.outcome.value == outcome
    assert not result.equivalent
    assert result.comparison is None
    assert {query.name: query.status.value for query in result.queries} == statuses
    assert all(query.status is QueryStatus.FAILED for query in result.queries)


def test_the_feedback_on_a_side_that_failed_has_the_findings() -> None:
    finding = Diagnostic(
        severity=Severity.ERROR,
        message="cannot find symbol",
        path="Main.java",
        line=7,
        tool="javac",
        excerpt="  foo();",
    )
    result = conclude_translation(passed({"a": 1}), broken(diagnostics=(finding,) * 12))
    assert result.feedback().count("Main.java:7: cannot find symbol | foo();") == 12
    assert "and 4 more findings" in result.feedback(500)
    for budget in (200, 250, 400):
        short = result.feedback(budget)
        assert len(short) <= budget
        assert short.startswith("The target ended with compile_error")
    with pytest.raises(ValueError, match="at least 200"):
        result.feedback(10)


def test_without_findings_the_end_of_the_errors_is_told() -> None:
    stderr = StreamOutput(head="".join(f"line {n}\n" for n in range(100)), total_bytes=900)
    phase = PhaseResult(name="run", command="x", exit_code=1, outcome=Outcome.RUNTIME_ERROR, stderr=stderr)
    text = conclude_translation(passed({"a": 1}), broken(phases=(phase,))).feedback(400)
    assert text.endswith("line 99")
    assert "line 50" not in text


@given(budget=st.integers(min_value=200, max_value=3000), findings=st.integers(0, 30), printed=st.integers(0, 200))
def test_sides_that_failed_share_the_room(budget: int, findings: int, printed: int) -> None:
    found = Diagnostic(severity=Severity.ERROR, message="cannot find symbol", path="Main.java", line=7, tool="javac")
    stderr = StreamOutput(head="".join(f"line {n}\n" for n in range(printed)), total_bytes=900)
    phase = PhaseResult(name="run", command="x", exit_code=1, outcome=Outcome.RUNTIME_ERROR, stderr=stderr)
    long = broken(diagnostics=(found,) * findings, phases=(phase,))
    text = conclude_translation(long, broken(phases=(phase,))).feedback(budget)
    assert len(text) <= budget
    assert text.startswith("The source ended with compile_error")
    assert "\nThe target ended with compile_error" in text


def test_the_result_survives_json() -> None:
    result = conclude_translation(passed({"q": ["1"]}), passed({"q": [1]}), rules=ComparisonRules(numeric_text=True))
    assert type(result).model_validate_json(result.model_dump_json()) == result


def request(**fields: Any) -> ValidationRequest:
    return ValidationRequest(profile="python", files={"main.py": "1"}, **fields)


def test_both_requests_share_a_thread_and_need_a_result() -> None:
    one, other = sides_of(request(), request())
    assert one.thread_id == other.thread_id is not None
    assert one.run_id != other.run_id
    assert one.result is other.result is ResultExpectation.REQUIRED
    one, other = sides_of(request(), request(thread_id="talk"))
    assert (one.thread_id, other.thread_id) == ("talk", "talk")
    one, other = sides_of(request(thread_id="a"), request(thread_id="b"))
    assert (one.thread_id, other.thread_id) == ("a", "b")


def test_requests_that_cannot_be_compared() -> None:
    with pytest.raises(ConfigurationError, match=r"target\.result"):
        sides_of(request(), request(result=ResultExpectation.NONE))
    with pytest.raises(ConfigurationError, match=r"target\.run_id"):
        sides_of(request(run_id="r"), request(run_id="r"))


def test_a_translation_within_one_profile_is_alone_unless_it_asks_for_company() -> None:
    one, other = sides_of(request(), request())
    assert (one.isolation, other.isolation) == (None, Isolation.RUN)
    assert sides_of(request(), request(isolation=Isolation.SHARED))[1].isolation is Isolation.SHARED
    java = ValidationRequest(profile="java", files={"Main.java": "1"})
    assert sides_of(request(), java)[1].isolation is None
