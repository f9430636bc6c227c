"""The verdict on a run: from its phases, its result and what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from sandbox.comparison import compare
from sandbox.models import Comparison, Diagnostic, Outcome, ResultExpectation, Severity
from sandbox.outcomes import Verdict
from sandbox.results import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The verdict on a run.

    Attributes:
        outcome: Its word.
        message: One sentence for a person.
        comparison: With the expected result, when there was one and a result.
    """

    outcome: Outcome
    message: str
    comparison: Comparison | None = None


def result_is_read(expectation: ResultExpectation, expected: JsonValue) -> bool:
    """True if a result file matters for the verdict."""
    return expectation is not ResultExpectation.NONE or expected is not None


def conclude(
    *,
    phases: Sequence[Verdict],
    diagnostics: Sequence[Diagnostic],
    reading: Reading | None,
    expectation: ResultExpectation,
    expected: JsonValue,
) -> Conclusion:
    """Returns the verdict on a run.

    Args:
        phases: Verdicts on the phases that ran; the last one may be a failure.
        diagnostics: Findings, for the sentence.
        reading: What lay in the results directory, ``None`` when nobody looked.
        expectation: Whether there must be a result.
        expected: What it must be; ``None`` accepts any.
    """
    failed = next((verdict for verdict in phases if verdict.outcome is not Outcome.PASSED), None)
    if failed is not None:
        return Conclusion(outcome=failed.outcome, message=_with_finding(failed.message, diagnostics))
    passed = Conclusion(outcome=Outcome.PASSED, message="The program passed.")
    if reading is None:
        return passed
    problem = reading.problem
    if problem is not None:
        needed = expectation is ResultExpectation.REQUIRED or expected is not None
        if problem.outcome is Outcome.RESULT_MISSING and not needed:
            return passed
        return Conclusion(outcome=problem.outcome, message=problem.message)
    if expected is None:
        return passed
    comparison = compare(expected, reading.value)
    if comparison.equal:
        return Conclusion(outcome=Outcome.PASSED, message="The program passed.", comparison=comparison)
    first = comparison.differences[0]
    count = comparison.total_differences
    return Conclusion(
        outcome=Outcome.MISMATCH,
        message=f"The result differs from what was expected in {count} place{'' if count == 1 else 's'}, "
        f"first at {first.path} ({first.kind}).",
        comparison=comparison,
    )


def _with_finding(message: str, diagnostics: Sequence[Diagnostic]) -> str:
    """Adds the first error a tool reported, since that is what a reader looks for."""
    first = next((finding for finding in diagnostics if finding.severity is Severity.ERROR), None)
    if first is None or first.message in message:
        return message
    place = "" if first.path is None else f"{first.path}:{first.line}: " if first.line else f"{first.path}: "
    code = f"{first.code}: " if first.code and first.code not in first.message else ""
    return f"{message} {place}{code}{first.message}"
