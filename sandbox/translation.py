"""The verdict on a translation: both programs' verdicts, and the comparison of what they computed."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from sandbox.comparison.queries import MAX_QUERIES, WHOLE, compare_results
from sandbox.comparison.report import comparison_feedback, comparison_lines
from sandbox.comparison.rules import STRICT, ComparisonRules
from sandbox.comparison.verdicts import QueryStatus, QueryVerdict, ResultsComparison, TranslationOutcome
from sandbox.errors import ConfigurationError
from sandbox.feedback import SMALLEST_BUDGET, feedback_within, finding_line
from sandbox.models import (
    Isolation,
    Model,
    ResultExpectation,
    Severity,
    ValidationRequest,
    ValidationResult,
)

SHOWN_DIAGNOSTICS: Final = 10
SHOWN_OUTPUT_LINES: Final = 10


class TranslationResult(Model):
    """The verdict on a translation.

    Attributes:
        outcome: ``equivalent``, ``different``, ``source_failed``, ``target_failed``, ``both_failed`` or
            ``nothing_compared``.
        message: One sentence for a person.
        source: The verdict on the program that was translated.
        target: The verdict on its translation.
        comparison: Of their results; ``None`` when a side failed.
        queries: Verdict by query. When a side failed, the queries of the other one, each ``failed``.
        rules: Under which it was compared.
        seconds: Wall time of the whole.
        flow_run_id: Id of the Prefect flow run, when there was one.
    """

    outcome: TranslationOutcome
    message: str
    source: ValidationResult
    target: ValidationResult
    comparison: ResultsComparison | None = None
    queries: tuple[QueryVerdict, ...] = ()
    rules: ComparisonRules = Field(default_factory=ComparisonRules)
    seconds: float = 0.0
    flow_run_id: str | None = None

    @property
    def equivalent(self) -> bool:
        """True only for the outcome ``equivalent``."""
        return self.outcome is TranslationOutcome.EQUIVALENT

    def text(self) -> str:
        """Returns the whole report as text for a person."""
        lines = [f"{self.outcome.value}: {self.message}"]
        for side, result in (("source", self.source), ("target", self.target)):
            lines += side_lines(side, result)
        if self.comparison is not None:
            lines += comparison_lines(self.comparison)[1:]
        return "\n".join(lines)

    def feedback(self, budget_chars: int = 4000) -> str:
        """Returns what a language model needs to correct the translation.

        Args:
            budget_chars: The longest text, in characters; at least 200.

        Raises:
            ValueError: The budget is too small.
        """
        if budget_chars < SMALLEST_BUDGET:
            raise ValueError(f"budget_chars must be at least {SMALLEST_BUDGET}, not {budget_chars}")
        if self.comparison is not None:
            return comparison_feedback(self.comparison, budget_chars=budget_chars)
        failed = [(side, result) for side, result in _sides(self.source, self.target) if not _has_result(result)]
        texts: list[str] = []
        room = budget_chars
        for index, (side, result) in enumerate(failed):
            headline = f"The {side} {_failure(result)}"
            texts.append(feedback_within(result, headline=headline, room=room // (len(failed) - index) - index))
            room -= len(texts[-1])
        return "\n".join(texts)


def sides_of(source: ValidationRequest, target: ValidationRequest) -> tuple[ValidationRequest, ValidationRequest]:
    """Returns both requests as they are validated: identified, in one thread, each with a result that is required.

    Sides of one profile would share a sandbox, where the translation could copy the result it has to compute; it gets
    one of its own, unless the request says otherwise.

    Raises:
        ConfigurationError: A request wants no result, or both have one run id.
    """
    for name, request in (("source", source), ("target", target)):
        if request.result is ResultExpectation.NONE:
            raise ConfigurationError("must not be `none`: results are what is compared", field=f"{name}.result")
    if source.run_id is not None and source.run_id == target.run_id:
        raise ConfigurationError("is the source's too; each side is a run of its own", field="target.run_id")
    thread = source.thread_id or target.thread_id
    needed = {"result": ResultExpectation.REQUIRED}
    one = source.model_copy(update={**needed, "thread_id": source.thread_id or thread}).identified()
    alone = source.profile == target.profile and target.isolation is None
    isolation = Isolation.RUN if alone else target.isolation
    update = {**needed, "thread_id": target.thread_id or one.thread_id, "isolation": isolation}
    other = target.model_copy(update=update).identified()
    return one, other


def conclude_translation(
    source: ValidationResult,
    target: ValidationResult,
    *,
    rules: ComparisonRules = STRICT,
    seconds: float = 0.0,
    flow_run_id: str | None = None,
) -> TranslationResult:
    """Returns the verdict on a translation from the verdicts on its sides; compares their results if both have one.

    Comparing large results takes seconds; call it in a thread where an event loop must go on.

    Args:
        source: The verdict on the program that was translated.
        target: The verdict on its translation.
        rules: Which differences are accepted.
        seconds: Wall time so far; that of the comparison is added.
        flow_run_id: Id of the Prefect flow run.
    """
    failed = [side for side, result in (("source", source), ("target", target)) if not _has_result(result)]
    if not failed:
        comparison = compare_results(source.result, target.result, rules=rules)
        return TranslationResult(
            outcome=comparison.outcome,
            message=comparison.message,
            source=source,
            target=target,
            comparison=comparison,
            queries=comparison.queries,
            rules=rules,
            seconds=seconds + comparison.seconds,
            flow_run_id=flow_run_id,
        )
    outcome = TranslationOutcome.BOTH_FAILED if len(failed) == 2 else TranslationOutcome(f"{failed[0]}_failed")
    reasons = [f"The {side} {_failure(result)}" for side, result in _sides(source, target) if side in failed]
    known = {"source": target, "target": source}[failed[0]] if len(failed) == 1 else None
    said = "; ".join(f"{side}: {result.outcome.value}" for side, result in _sides(source, target) if side in failed)
    return TranslationResult(
        outcome=outcome,
        message=" ".join(reasons),
        source=source,
        target=target,
        queries=() if known is None else _failed_queries(known, said),
        rules=rules,
        seconds=seconds,
        flow_run_id=flow_run_id,
    )


def side_lines(side: str, result: ValidationResult) -> list[str]:
    """Returns one side's verdict as lines: its outcome, the findings of its tools, and the end of its errors."""
    place = f"{result.profile}/{result.framework}"
    lines = [f"{side} ({place}): {result.outcome.value}, {result.timings.total:.2f} s"]
    if _has_result(result):
        return lines
    lines.append(f"{side}: {result.message}")
    errors = [found for found in result.diagnostics if found.severity is Severity.ERROR]
    lines += [f"    {finding_line(found)}" for found in errors[:SHOWN_DIAGNOSTICS]]
    if len(errors) > SHOWN_DIAGNOSTICS:
        lines.append(f"    … and {len(errors) - SHOWN_DIAGNOSTICS} more errors")
    if not errors and result.phases:
        last = result.phases[-1]
        printed = (last.stderr.text.strip() or last.stdout.text.strip()).splitlines()
        lines += [f"    {line}" for line in printed[-SHOWN_OUTPUT_LINES:]]
    if result.comparison is not None and not result.comparison.equal:
        lines += [
            f"    {found.path}: expected {found.expected!r}, got {found.actual!r}"[:400]
            for found in result.comparison.differences[:SHOWN_DIAGNOSTICS]
        ]
    return lines


def _sides(source: ValidationResult, target: ValidationResult) -> tuple[tuple[str, ValidationResult], ...]:
    return ("source", source), ("target", target)


def _has_result(result: ValidationResult) -> bool:
    return result.passed and result.result_path is not None


def _failure(result: ValidationResult) -> str:
    if result.passed:
        return "passed but left no result."
    return f"ended with {result.outcome.value}: {result.message}"


def _failed_queries(known: ValidationResult, said: str) -> tuple[QueryVerdict, ...]:
    names = list(known.result) if isinstance(known.result, dict) else [WHOLE]
    return tuple(
        QueryVerdict(name=name, status=QueryStatus.FAILED, message=f"The query has no counterpart: {said}.")
        for name in names[:MAX_QUERIES]
    )
