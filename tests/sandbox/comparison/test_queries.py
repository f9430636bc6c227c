"""Verdicts by query: shapes of answers, what is missing, what failed, and what the report holds."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.comparison import MAX_DIFFERENCES, QueryStatus, TranslationOutcome, compare_results
from sandbox.comparison.queries import MAX_LISTED, MAX_QUERIES
from tests.sandbox.comparison.judge import judge, query

ROWS: list[Any] = [{"id": number, "name": f"n{number}"} for number in range(5)]
SAMPLED = {"count": 5, "firstSample": ROWS[0], "lastSample": ROWS[-1]}


def test_each_query_has_its_verdict() -> None:
    source = {"same": [1], "other": [1], "gone": [1], "failed": {"error": "no such column"}, "ignored": 1}
    target = {"same": [1], "other": [2], "new": [1], "failed": [1], "ignored": 2}
    comparison = judge(source, target, ignored=["$.ignored"])
    assert {verdict.name: verdict.status.value for verdict in comparison.queries} == {
        "same": "equivalent",
        "other": "different",
        "gone": "missing_in_target",
        "failed": "failed",
        "ignored": "ignored",
        "new": "missing_in_source",
    }
    assert comparison.outcome is TranslationOutcome.DIFFERENT
    assert comparison.message == (
        "1 of 5 queries are equivalent; 1 different, 1 failed, 1 missing in source, 1 missing in target (1 ignored)."
    )
    assert "source: no such column" in comparison.queries[3].message


def test_two_failures_of_one_kind_are_not_equivalent() -> None:
    same: Any = {"q": {"error": "connection refused"}}
    comparison = compare_results(same, same)
    assert comparison.outcome is TranslationOutcome.DIFFERENT
    assert comparison.counts == {QueryStatus.FAILED: 1}
    assert judge(same, same, failure_keys=[]).equivalent
    assert compare_results({"q": {"error": None}}, {"q": {"error": None}}).equivalent
    assert compare_results({"q": {"error": "x", "count": 0}}, {"q": {"error": "x", "count": 0}}).equivalent


@pytest.mark.parametrize("nothing", [({}, {}, {}), ({"a": 1}, {"a": 2}, {"ignored": ["$.*"]})])
def test_nothing_compared_is_no_success(nothing: tuple[Any, Any, dict[str, Any]]) -> None:
    source, target, rules = nothing
    comparison = judge(source, target, **rules)
    assert comparison.outcome is TranslationOutcome.NOTHING_COMPARED
    assert not comparison.equivalent


def test_results_that_are_no_objects_of_queries() -> None:
    assert compare_results([1, 2], [1, 2]).queries[0].name == "$"
    assert judge([1, 2], [2, 1], rows="unordered").equivalent
    assert not compare_results([1], {"q": [1]}).equivalent
    assert not compare_results(None, {"q": [1]}).equivalent


def test_samples_against_whole_rows_are_a_difference_by_default() -> None:
    verdict = query(ROWS, SAMPLED)
    assert verdict.status is QueryStatus.DIFFERENT
    assert "samples=comparable" in verdict.hints[0]


@pytest.mark.parametrize("whole", [ROWS, {"count": 5, "rows": ROWS}, {"rows": ROWS}])
def test_samples_are_compared_with_the_rows_they_are(whole: Any) -> None:
    for source, target in ((whole, SAMPLED), (SAMPLED, whole)):
        verdict = query(source, target, samples="comparable")
        assert verdict.status is QueryStatus.EQUIVALENT, verdict
        assert verdict.not_compared == ("3 of 5 rows: the other side has samples only",)
        assert (verdict.source_rows, verdict.target_rows) == (5, 5)
        assert [one.rule for one in verdict.accepted] == ["samples"]


@pytest.mark.parametrize(
    ("sampled", "path"),
    [
        ({**SAMPLED, "count": 4}, "$.q"),
        ({**SAMPLED, "firstSample": ROWS[1]}, "$.q[0].id"),
        ({**SAMPLED, "lastSample": {**ROWS[4], "name": "x"}}, "$.q[4].name"),
        ({**SAMPLED, "firstSample": None}, "$.q[0]"),
        ({**SAMPLED, "total": 1}, "$.q.total"),
    ],
)
def test_samples_that_are_not_those_of_the_rows(sampled: Any, path: str) -> None:
    assert query(ROWS, sampled, samples="comparable").differences[0].path == path
    assert query(sampled, ROWS, samples="comparable").status is QueryStatus.DIFFERENT


def test_samples_of_unordered_rows_may_be_any_two() -> None:
    sampled = {"count": 5, "firstSample": ROWS[3], "lastSample": ROWS[1]}
    rules: dict[str, Any] = {"samples": "comparable", "rows": "unordered"}
    assert query(ROWS, sampled, **rules).status is QueryStatus.EQUIVALENT
    assert query(sampled, ROWS, **rules).status is QueryStatus.EQUIVALENT
    twice = {**sampled, "lastSample": ROWS[3]}
    assert query(ROWS, twice, **rules).status is QueryStatus.DIFFERENT
    strange = {**sampled, "lastSample": {"id": 9, "name": "n9"}}
    assert query(ROWS, strange, **rules).status is QueryStatus.DIFFERENT
    assert query(ROWS[:1], {"count": 1, "firstSample": ROWS[0], "lastSample": ROWS[0]}, **rules).total_differences == 0


def test_no_rows_and_their_samples() -> None:
    for nothing in ({"count": 0, "firstSample": None, "lastSample": None}, {"count": 0, "firstSample": None}):
        assert query([], nothing, samples="comparable").status is QueryStatus.EQUIVALENT
    something = {"count": 0, "firstSample": {"id": 1}, "lastSample": None}
    verdict = query([], something, samples="comparable")
    assert [(one.kind, one.target_path or one.path) for one in verdict.differences] == [
        ("unexpected", "$.q.firstSample")
    ]


def test_what_samples_do_not_tell_is_said() -> None:
    verdict = query(ROWS, {"firstSample": ROWS[0]}, samples="comparable")
    assert verdict.status is QueryStatus.EQUIVALENT
    assert verdict.not_compared == (
        "the number of rows: the target does not tell it",
        "the last row: there is no sample of it",
        "3 of 5 rows: the other side has samples only",
    )


def test_samples_of_both_sides_without_an_order() -> None:
    two = {"count": 2, "firstSample": ROWS[0], "lastSample": ROWS[1]}
    swapped = {"count": 2, "firstSample": ROWS[1], "lastSample": ROWS[0]}
    assert query(two, swapped).status is QueryStatus.DIFFERENT
    assert query(two, swapped, rows="unordered").status is QueryStatus.EQUIVALENT
    # Of five rows nobody knows which two these are: refused, with the reason.
    other = {**SAMPLED, "firstSample": ROWS[2]}
    verdict = query(SAMPLED, other, rows="unordered")
    assert verdict.status is QueryStatus.DIFFERENT
    assert "whole rows" in verdict.hints[0]


def test_names_of_shapes_follow_the_key_rule() -> None:
    sampled = {"Count": 5, "FirstSample": ROWS[0], "LastSample": ROWS[-1]}
    assert query({"rows": ROWS}, sampled, samples="comparable", names="words").status is QueryStatus.EQUIVALENT


def test_rows_in_another_order_are_named_as_such() -> None:
    assert query(ROWS, ROWS[::-1]).hints == ("the same rows in another order (rule rows=unordered)",)
    assert query(ROWS, [*ROWS[:4], ROWS[0]]).hints == ()


def test_a_wrong_field_among_unordered_rows_is_shown_as_one() -> None:
    target = [dict(row, extra=1) for row in ROWS[::-1]]
    source = [dict(row, extra=1) for row in ROWS]
    target[2]["name"] = "wrong"
    verdict = query(source, target, rows="unordered")
    assert [(one.path, one.target_path, one.source, one.target) for one in verdict.differences] == [
        ("$.q[2].name", None, "n2", "wrong")
    ]


def test_rows_that_only_one_side_has() -> None:
    verdict = query(ROWS, [*ROWS[1:], {"entirely": "else"}], rows="unordered")
    assert [(one.path, one.target_path, one.kind) for one in verdict.differences] == [
        ("$.q[0]", "$.q", "missing"),
        ("$.q", "$.q[4]", "unexpected"),
    ]


@pytest.mark.parametrize(
    ("source", "target", "equivalent"),
    [
        ([1.0, 1.1], [1.2, 1.1], True),  # the equal pair is in the way: 1.0 and 1.2 do not fit
        ([1.0, 1.0], [1.2, 1.1], False),
        ([{"a": 1, "b": 5.01}, {"a": 2, "b": 5.0}], [{"a": 2, "b": 5.05}, {"a": 1, "b": 4.95}], True),
        ([{"a": 1.0, "b": 2.0}, {"a": 1.05, "b": 1.0}], [{"a": 1.05, "b": 2.0}, {"a": 1.0, "b": 1.0}], True),
        ([{"a": 1.0, "b": 2.0}, {"a": 1.05, "b": 1.0}], [{"a": 1.05, "b": 2.2}, {"a": 1.0, "b": 1.0}], False),
    ],
)
def test_unordered_rows_within_a_tolerance(source: Any, target: Any, equivalent: bool) -> None:
    rules: dict[str, Any] = {"rows": "unordered", "absolute_tolerance": "0.1"}
    assert judge({"q": source}, {"q": target}, **rules).equivalent is equivalent
    assert judge({"q": target}, {"q": source}, **rules).equivalent is equivalent


def test_deep_rows_are_compared_in_order_and_that_is_said() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    verdict = query([deep, 2], [deep, 2], rows="unordered")
    assert verdict.status is QueryStatus.EQUIVALENT
    assert "compared in order" in verdict.not_compared[0]


def test_the_report_is_bounded() -> None:
    source: Any = {f"q{number}": list(range(100)) for number in range(MAX_QUERIES + 50)}
    target: Any = {name: [-1] * 100 for name in source}
    target["q7"] = source["q7"]
    comparison = compare_results(source, target)
    assert len(comparison.queries) == MAX_QUERIES
    assert comparison.counts == {QueryStatus.DIFFERENT: MAX_QUERIES + 49, QueryStatus.EQUIVALENT: 1}
    assert all(len(verdict.differences) <= MAX_DIFFERENCES for verdict in comparison.queries)
    assert sum(len(verdict.differences) for verdict in comparison.queries) == MAX_LISTED
    assert comparison.queries[0].total_differences == 100


def test_a_hundred_thousand_rows() -> None:
    source = [{"orderId": n, "total": f"{n}.50", "placed": "2024-01-10"} for n in range(100_000)]
    target = [{"order_id": f"o{n}", "total": n + 0.5, "placed": "2024-01-10T00:00:00"} for n in range(100_000)]
    rules: dict[str, Any] = {
        "rows": "unordered",
        "names": "words",
        "numeric_text": True,
        "dates": {"midnight": True},
        "ids": [{"paths": ["$..orderId"]}],
    }
    comparison = judge({"q": source}, {"q": target[::-1]}, **rules)
    assert comparison.equivalent
    assert {one.rule: one.count for one in comparison.accepted} == {
        "dates": 100_000,
        "ids": 100_000,
        "names": 100_000,
        "numeric_text": 100_000,
        "rows": 100_000,
    }
    target[5]["total"] = 0
    verdict = judge({"q": source}, {"q": target}, **rules).queries[0]
    assert (verdict.total_differences, verdict.differences[0].path) == (1, "$.q[5].total")
