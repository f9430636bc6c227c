"""Comparison of results: with what was expected, strictly, and of a translation with its source, under rules.

``compare`` is the strict one: the same kind of value in the same place. Numbers are equal by value, so ``1`` equals
``1.0``; ``true`` never equals ``1``. The order of list elements counts, the order of keys does not. Nothing is rounded.

``compare_results`` gives a verdict per query under ``ComparisonRules``, whose module lists them. Both walk in the same
way; the work grows with the size of the results, the report is bounded.
"""

from __future__ import annotations

from pydantic import JsonValue

from sandbox.comparison.findings import MAX_DIFFERENCES, MAX_VALUE_BYTES, Findings
from sandbox.comparison.queries import compare_results
from sandbox.comparison.rules import (
    STRICT,
    ComparisonRules,
    DateRules,
    IdRule,
    NameRule,
    Precision,
    RowOrder,
    SampleRule,
    checked_rules,
    load_rules_file,
)
from sandbox.comparison.verdicts import (
    AcceptedDifference,
    QueryStatus,
    QueryVerdict,
    ResultDifference,
    ResultsComparison,
    TranslationOutcome,
)
from sandbox.comparison.walk import strict_walker
from sandbox.models import Comparison, Difference

__all__ = [
    "MAX_DIFFERENCES",
    "MAX_VALUE_BYTES",
    "STRICT",
    "AcceptedDifference",
    "ComparisonRules",
    "DateRules",
    "IdRule",
    "NameRule",
    "Precision",
    "QueryStatus",
    "QueryVerdict",
    "ResultDifference",
    "ResultsComparison",
    "RowOrder",
    "SampleRule",
    "TranslationOutcome",
    "checked_rules",
    "compare",
    "compare_results",
    "load_rules_file",
]


def compare(expected: JsonValue, actual: JsonValue) -> Comparison:
    """Compares a result with its expectation, strictly.

    Args:
        expected: What it must be.
        actual: What it is.

    Returns:
        The first 20 differences in document order and the number of all.
    """
    walker = strict_walker()
    findings = Findings()
    walker.walk(expected, actual, places=((), ()), state=walker.states.root, findings=findings)
    return Comparison(
        equal=not findings.total,
        total_differences=findings.total,
        differences=tuple(
            Difference(path=found.path, expected=found.source, actual=found.target, kind=found.kind)
            for found in findings.differences
        ),
    )
