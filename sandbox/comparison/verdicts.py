"""What a comparison of two results answers. Field names are stable."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, JsonValue

from sandbox.comparison.rules import ComparisonRules
from sandbox.models import Model


class QueryStatus(StrEnum):
    """The verdict on one query."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    MISSING_IN_SOURCE = "missing_in_source"
    MISSING_IN_TARGET = "missing_in_target"
    FAILED = "failed"
    IGNORED = "ignored"


class TranslationOutcome(StrEnum):
    """The verdict on a translation.

    ``nothing_compared`` is no success: both results are empty, or the rules ignore every query.
    """

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    SOURCE_FAILED = "source_failed"
    TARGET_FAILED = "target_failed"
    BOTH_FAILED = "both_failed"
    NOTHING_COMPARED = "nothing_compared"

    @property
    def state_name(self) -> str:
        """The name of the Prefect state that carries this outcome, such as ``SourceFailed``."""
        return "".join(word.capitalize() for word in self.value.split("_"))


class ResultDifference(Model):
    """One place where the two sides differ.

    Attributes:
        path: JSON path in the source's result, such as ``$.openOrders[3].total``.
        target_path: Path in the target's result, where it is another.
        source: The value there, ``None`` when absent or null (see ``kind``).
        target: The target's value.
        kind: ``value``, ``type``, ``missing`` (in the target), ``unexpected`` (only in the target), ``length`` or
            ``id`` (an identifier that another one already stands for).
        hint: What would explain it, such as the rule that would accept it.
    """

    path: str
    target_path: str | None = None
    source: JsonValue = None
    target: JsonValue = None
    kind: str = "value"
    hint: str | None = None


class AcceptedDifference(Model):
    """A rule that accepted differences, how many, and the first of them."""

    rule: str
    count: int
    path: str
    target_path: str | None = None
    source: JsonValue = None
    target: JsonValue = None


class QueryVerdict(Model):
    """The verdict on one query.

    Attributes:
        name: Its name in the source's result; in the target's when the source has none.
        status: See ``QueryStatus``.
        message: One sentence for a person.
        source_rows: Rows the source has, as far as told.
        target_rows: Rows the target has.
        total_differences: Differences there are.
        differences: The first of them.
        accepted: Rules that accepted a difference.
        not_compared: What could not be compared, in words.
        hints: What would explain the whole, such as the same rows in another order.
    """

    name: str
    status: QueryStatus
    message: str
    source_rows: int | None = None
    target_rows: int | None = None
    total_differences: int = 0
    differences: tuple[ResultDifference, ...] = ()
    accepted: tuple[AcceptedDifference, ...] = ()
    not_compared: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


class ResultsComparison(Model):
    """The verdict on two results.

    Attributes:
        outcome: ``equivalent``, ``different`` or ``nothing_compared``.
        message: One sentence for a person.
        queries: Verdict by query, in the source's order; at most 500, those that are not equivalent first of all.
        counts: Number of queries by status; all are counted.
        rules: Under which it was compared.
        seconds: How long the comparison took.
    """

    outcome: TranslationOutcome
    message: str
    queries: tuple[QueryVerdict, ...] = ()
    counts: dict[QueryStatus, int] = Field(default_factory=dict)
    rules: ComparisonRules = ComparisonRules()
    seconds: float = 0.0

    @property
    def equivalent(self) -> bool:
        """True only for the outcome ``equivalent``."""
        return self.outcome is TranslationOutcome.EQUIVALENT

    @property
    def accepted(self) -> tuple[AcceptedDifference, ...]:
        """The rules that accepted differences in any listed query, with counts added up."""
        found: dict[str, AcceptedDifference] = {}
        for query in self.queries:
            for accepted in query.accepted:
                known = found.get(accepted.rule)
                count = accepted.count + (known.count if known else 0)
                found[accepted.rule] = (known or accepted).model_copy(update={"count": count})
        return tuple(found[rule] for rule in sorted(found))
