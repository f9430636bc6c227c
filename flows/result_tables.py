"""Findings, results and differences as tables: rows for table artifacts, and tables in markdown.

Everything in them comes from programs and their compilers; every text is made harmless and cut, every table ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pydantic import JsonValue

from flows.plain_text import cell, escaped, fenced, marked, printable, shortened
from sandbox.comparison.answers import Answer, answer_of, failure_of
from sandbox.comparison.findings import Absent
from sandbox.comparison.names import Names
from sandbox.comparison.queries import WHOLE
from sandbox.comparison.report import value_text
from sandbox.comparison.rules import STRICT
from sandbox.models import Diagnostic, Difference

TABLE_ROWS: Final = 500
CELL_CHARACTERS: Final = 500
MESSAGE_CHARACTERS: Final = 2_000
MARKDOWN_CHARACTERS: Final = 50_000
SHOWN_ROWS: Final = 20
SHOWN_COLUMNS: Final = 12
_MARKDOWN_CELL: Final = 80

_KINDS: Final = {
    "missing": "missing",
    "unexpected": "not expected",
    "length": "other length",
    "type": "other type",
}


def diagnostics_table(diagnostics: Sequence[Diagnostic]) -> list[dict[str, Any]]:
    """Returns the rows of the diagnostics artifact; a last row says how many were left out."""
    rows: list[dict[str, Any]] = [
        {
            "severity": found.severity.value,
            "file": cell(found.path or "", characters=300),
            "line": found.line,
            "column": found.column,
            "code": cell(found.code or "", characters=200),
            "message": cell(found.message, characters=MESSAGE_CHARACTERS),
            "source": cell(found.excerpt or "", characters=300),
            "phase": found.phase or "",
            "tool": found.tool,
        }
        for found in diagnostics[:TABLE_ROWS]
    ]
    return _with_rest(rows, len(diagnostics), column="message")


def results_table(result: JsonValue) -> list[dict[str, Any]]:
    """Returns a row for each query of a result: how many rows it gave, their columns, first and last of them."""
    queries = _queries(result)
    rows = [_query_row(name, value) for name, value in queries[:TABLE_ROWS]]
    return _with_rest(rows, len(queries), column="query")


def result_markdown(result: JsonValue, *, path: str | None) -> str:
    """Returns a result as markdown: a table of the rows of each query, then the document; cut where it is long.

    Args:
        result: The result document.
        path: Where it was in the sandbox.
    """
    parts = [escaped(shortened(path, characters=300)) if path else "The result", ""]
    size = 0
    queries = _queries(result)
    for number, (name, value) in enumerate(queries):
        section = _query_markdown(name, value)
        size += len(section)
        if number and size > MARKDOWN_CHARACTERS // 2:
            parts += [f"… and {len(queries) - number} more queries; see the table of results.", ""]
            break
        parts += [section, ""]
    text = _beginning(result, characters=MARKDOWN_CHARACTERS // 2 + 1)
    shown = text[: MARKDOWN_CHARACTERS // 2]
    parts += ["## Document", "", fenced(printable(shown), language="json"), ""]
    if len(shown) < len(text):
        parts += ["Cut: the document goes on.", ""]
    return "\n".join(parts)


def differences_markdown(differences: Iterable[Difference], *, total: int) -> str:
    """Returns differences between the expected result and the one found, with the parts that differ in brackets."""
    rows = [
        (found.path, _KINDS.get(found.kind, "other value"), *both(found.expected, found.actual, kind=found.kind))
        for found in differences
    ]
    lines = [table(("where", "what", "expected", "found"), rows)]
    if total > len(rows):
        lines += ["", f"… and {total - len(rows)} more"]
    return "\n".join(lines)


def both(expected: JsonValue, actual: JsonValue, *, kind: str) -> tuple[str, str]:
    """Returns two values of a difference as JSON, the part that differs in brackets; what is not there is empty."""
    if kind == "missing":
        return value_text(expected), ""
    if kind == "unexpected":
        return "", value_text(actual)
    return marked(value_text(expected), value_text(actual))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, characters: int = CELL_CHARACTERS) -> str:
    """Returns a table in markdown, whatever the texts in it hold."""
    lines = [f"| {' | '.join(escaped(head) or ' ' for head in heads)} |", f"|{'---|' * len(heads)}"]
    lines += [
        f"| {' | '.join(escaped(shortened(text, characters=characters)) or ' ' for text in row)} |" for row in rows
    ]
    return "\n".join(lines)


def _beginning(value: JsonValue, *, characters: int) -> str:
    """The first characters of a document, without making the others."""
    size = 0
    pieces = []
    for piece in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value):
        pieces.append(piece)
        size += len(piece)
        if size >= characters:
            break
    return "".join(pieces)[:characters]


def _queries(result: JsonValue) -> list[tuple[str, JsonValue]]:
    return list(result.items()) if isinstance(result, dict) else [(WHOLE, result)]


def _query_row(name: str, value: JsonValue) -> dict[str, Any]:
    names = Names(STRICT)
    answer = answer_of(value, rules=STRICT, names=names)
    failure = failure_of(answer, rules=STRICT, names=names)
    first, last = _ends(answer)
    other = failure is None and answer.shape == "other"
    return {
        "query": cell(name, characters=200),
        "rows": answer.number,
        "columns": cell(", ".join(_columns([row for row in (first, last) if row is not None])), characters=300),
        "first row": "" if first is None else cell(value_text(first), characters=CELL_CHARACTERS),
        "last row": "" if last is None else cell(value_text(last), characters=CELL_CHARACTERS),
        "answer": cell(value_text(value), characters=CELL_CHARACTERS) if other else "",
        "failure": cell(failure or "", characters=CELL_CHARACTERS),
    }


def _query_markdown(name: str, value: JsonValue) -> str:
    answer = answer_of(value, rules=STRICT, names=Names(STRICT))
    number = answer.number
    rows = "" if number is None else f" ({number:,} row{'' if number == 1 else 's'})"
    lines = [f"## {escaped(shortened(name, characters=200))}{rows}", ""]
    shown = answer.rows[:SHOWN_ROWS] if answer.rows is not None else [end for end in _ends(answer) if end is not None]
    if not shown:
        if answer.shape == "other":
            lines.append(escaped(value_text(value)))
        return "\n".join(lines)
    columns = _columns(shown)
    heads = columns[:SHOWN_COLUMNS] or ["value"]
    lines.append(table(heads, [_row_texts(row, heads if columns else []) for row in shown], characters=_MARKDOWN_CELL))
    if len(columns) > SHOWN_COLUMNS:
        lines += ["", f"… and {len(columns) - SHOWN_COLUMNS} more columns"]
    if answer.rows is None and number is not None and number > 2:
        lines += ["", "The first and the last row; the program gave no others."]
    elif answer.rows is not None and len(answer.rows) > SHOWN_ROWS:
        lines += ["", f"… and {len(answer.rows) - SHOWN_ROWS:,} more rows"]
    return "\n".join(lines)


def _ends(answer: Answer) -> tuple[Any, Any]:
    """The first and the last row, ``None`` where there is none."""
    if answer.rows is not None:
        return (answer.rows[0], answer.rows[-1]) if answer.rows else (None, None)
    return tuple(None if isinstance(end, Absent) else end for end in (answer.first, answer.last))  # type: ignore[return-value]


def _columns(rows: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(key for row in rows if isinstance(row, dict) for key in row))


def _row_texts(row: Any, columns: Sequence[str]) -> list[str]:
    if not columns:
        return [value_text(row)]
    if not isinstance(row, dict):
        return [value_text(row), *[""] * (len(columns) - 1)]
    return [_plain(row[column]) if column in row else "" for column in columns]


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else value_text(value)


def _with_rest(rows: list[dict[str, Any]], total: int, *, column: str) -> list[dict[str, Any]]:
    if total > len(rows):
        rows.append({**dict.fromkeys(rows[0], ""), column: f"{total - len(rows)} more left out"})
    return rows
