"""The report in words: complete for a person, within its budget for a model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.comparison.report import comparison_feedback, comparison_lines
from sandbox.feedback import SMALLEST_BUDGET
from tests.sandbox.comparison.judge import judge

SOURCE: dict[str, Any] = {
    "revenue": [{"city": f"city {n}", "total": f"{n}.50"} for n in range(40)],
    "open": [{"orderId": 1, "placed": "2024-01-10"}],
    "gone": [1],
    "same": [1, 2],
    "failed": {"error": "no such table: orders"},
}
TARGET: dict[str, Any] = {
    "revenue": [{"city": f"city {n}", "total": n + 0.5} for n in range(40)],
    "open": [{"order_id": 1, "placed": "2024-01-10T00:00:00"}],
    "same": [1, 2],
    "failed": [1],
}


def test_lines_for_a_person() -> None:
    text = "\n".join(comparison_lines(judge(SOURCE, TARGET)))
    assert '$.revenue[0].total: source "0.50", target 0.5 (equal as numbers (rule numeric_text))' in text
    assert "… and 20 more differences" in text
    assert "hint: names in another spelling: orderId / order_id (rule names=words)" in text
    assert "- gone: The target does not have this query." in text
    assert "The query failed: source: no such table: orders" in text
    assert text.endswith("rules: strict")
    loose = "\n".join(comparison_lines(judge(SOURCE, TARGET, numeric_text=True)))
    assert 'accepted by the rule numeric_text: 40, first at $.revenue[0].total: "0.50" as 0.5' in loose
    assert "rules: numeric_text=True" in loose


@pytest.mark.parametrize("budget", [SMALLEST_BUDGET, 300, 600, 1500, 6000])
def test_feedback_keeps_its_budget_and_tells_the_worst_first(budget: int) -> None:
    text = comparison_feedback(judge(SOURCE, TARGET), budget_chars=budget)
    assert len(text) <= budget
    assert text.startswith("1 of 5 queries are equivalent")
    if budget >= 600:
        assert all(f" {name}" in text for name in ("revenue", "open", "gone", "failed"))
    if budget >= 300:
        assert "≠ revenue" in text
    if budget >= 1500:
        assert "numeric_text" in text
    if budget >= 6000:
        assert "equivalent: same" in text


@given(st.integers(SMALLEST_BUDGET, 3000), st.integers(1, 60), st.integers(1, 400))
def test_feedback_never_exceeds_its_budget(budget: int, queries: int, width: int) -> None:
    source = {f"query {n}" * (1 + n % 3): ["x" * width] * (n % 5 + 1) for n in range(queries)}
    target = {name: ["y" * width] for name in source}
    comparison = judge(source, target)
    text = comparison_feedback(comparison, budget_chars=budget)
    assert len(text) <= budget
    assert "query 0" in text or "more queries" in text


def test_a_budget_that_is_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 200"):
        comparison_feedback(judge(SOURCE, TARGET), budget_chars=199)
