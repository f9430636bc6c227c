"""Findings, results and differences as tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flows.result_tables import (
    TABLE_ROWS,
    diagnostics_table,
    differences_markdown,
    result_markdown,
    results_table,
)
from sandbox.models import Diagnostic, Difference, Severity
from tests.flows.hostile import HOSTILE, NEVER, assert_harmless, verdict


def cells(rows: list[dict[str, Any]]) -> str:
    return "\n".join(text for row in rows for text in row.values() if isinstance(text, str))


def test_a_finding_is_a_row_with_its_source_line() -> None:
    found = Diagnostic(
        severity=Severity.ERROR,
        message="cannot find symbol",
        path="src/Main.java",
        line=3,
        column=9,
        code="compiler.err.cant.resolve",
        excerpt="    List<Order> orders = find();",
        tool="javac",
        phase="build",
    )
    assert diagnostics_table([found]) == [
        {
            "severity": "error",
            "file": "src/Main.java",
            "line": 3,
            "column": 9,
            "code": "compiler.err.cant.resolve",
            "message": "cannot find symbol",
            "source": "    List<\u2060Order> orders = find();",
            "phase": "build",
            "tool": "javac",
        }
    ]


def test_nothing_in_a_table_is_interpreted_where_cells_are_markdown() -> None:
    hostile = verdict()
    for rows in (diagnostics_table(hostile.diagnostics), results_table(hostile.result)):
        text = cells(rows)
        for sign in (*NEVER, "<img", "<script", "</", "<!", "](", "![", "][", "]:", "://"):
            assert sign not in text
        assert json.dumps(rows).encode()


def test_nothing_in_a_result_or_comparison_is_interpreted() -> None:
    hostile = verdict()
    assert hostile.comparison is not None
    assert_harmless(result_markdown(hostile.result, path=hostile.result_path))
    assert_harmless(differences_markdown(hostile.comparison.differences, total=30))


def test_tables_end() -> None:
    many = [Diagnostic(severity=Severity.ERROR, message="m" * 10_000, tool="javac") for _ in range(5000)]
    rows = diagnostics_table(many)
    assert len(rows) == TABLE_ROWS + 1
    assert rows[-1]["message"] == "4500 more left out"
    assert len(json.dumps(rows)) < 2_000_000

    queries = results_table({f"q{number}": [{"a": "x" * 100_000}] for number in range(600)})
    assert len(queries) == TABLE_ROWS + 1
    assert queries[-1]["query"] == "100 more left out"
    assert len(json.dumps(queries)) < 2_000_000


@pytest.mark.parametrize(
    ("answer", "row"),
    [
        (
            [{"id": 1, "name": "a"}, {"id": 2, "town": "b"}],
            {"rows": 2, "columns": "id, name, town", "first row": '{"id": 1, "name": "a"}'},
        ),
        (
            {"count": 7, "firstSample": {"id": 1}, "lastSample": {"id": 9}},
            {"rows": 7, "columns": "id", "first row": '{"id": 1}', "last row": '{"id": 9}', "answer": ""},
        ),
        ({"count": 2, "rows": [1, 2]}, {"rows": 2, "columns": "", "first row": "1", "last row": "2"}),
        ([], {"rows": 0, "first row": "", "last row": ""}),
        ({"error": "no such table"}, {"rows": None, "failure": "no such table", "answer": ""}),
        (42, {"rows": None, "answer": "42", "failure": ""}),
    ],
)
def test_a_query_is_a_row(answer: Any, row: dict[str, Any]) -> None:
    (found,) = results_table({"orders": answer})
    assert found["query"] == "orders"
    assert {name: found[name] for name in row} == row


def test_a_result_that_is_no_object_is_one_query() -> None:
    assert results_table([1, 2, 3])[0] | {"query": "$", "rows": 3} == results_table([1, 2, 3])[0]
    assert results_table({}) == []


def test_a_result_is_a_table_per_query_and_the_document() -> None:
    text = result_markdown(
        {"orders": [{"id": 1, "name": "a|b"}, {"id": 2}], "total": {"count": 1, "firstSample": {"sum": 5}}, "n": 3},
        path="/sandbox/t/r/results/result.json",
    )
    assert "## orders (2 rows)\n\n| id | name |\n|---|---|\n| 1 | a\\|b |\n| 2 |   |\n" in text
    assert "## total (1 row)\n\n| sum |\n|---|\n| 5 |\n" in text
    assert "## n\n\n3\n" in text
    assert '```json\n{\n  "orders": [' in text


def test_a_large_result_is_cut_and_says_so() -> None:
    wide: Any = {f"q{number}": [{f"c{column}": "y" * 500 for column in range(40)}] * 1000 for number in range(100)}
    text = result_markdown(wide, path=None)
    assert len(text) < 100_000
    assert "and 28 more columns" in text
    assert "and 980 more rows" in text
    assert "more queries; see the table of results" in text
    assert "Cut: the document goes on." in text


def test_differences_are_marked() -> None:
    differences = [
        Difference(path="$.date", expected="2026-01-05", actual="2026-01-06"),
        Difference(path="$.name", expected="x", actual=None, kind="missing"),
        Difference(path="$.extra", expected=None, actual=[1], kind="unexpected"),
        Difference(path="$.n", expected=1, actual=2),
    ]
    assert differences_markdown(differences, total=6).split("\n")[2:] == [
        "| $.date".replace("$", "\\$") + ' | other value | "2026\\-01\\-⟦05⟧" | "2026\\-01\\-⟦06⟧" |',
        '| \\$.name | missing | "x" |   |',
        "| \\$.extra | not expected |   | \\[1\\] |",
        "| \\$.n | other value | 1 | 2 |",
        "",
        "… and 2 more",
    ]


def test_a_hostile_text_is_still_read() -> None:
    assert "evil.example" in cells(diagnostics_table(verdict().diagnostics))
    assert "red link" in cells(diagnostics_table([Diagnostic(severity=Severity.ERROR, message=HOSTILE, tool="x")]))
