"""What a run of ``validate-translation`` shows in the Prefect UI: the verdict, and a table of its queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from flows.artifact_keys import artifact_key
from flows.artifacts import links_of
from flows.outcomes import TRANSLATIONS
from flows.plain_text import cell, escaped, fenced, printable, shortened
from flows.publisher import PUBLISHER, Artifact
from flows.result_tables import MESSAGE_CHARACTERS, TABLE_ROWS, both, table
from flows.summary import Link, link_lines
from sandbox.comparison import QueryStatus, ResultDifference
from sandbox.comparison.report import accepted_line, difference_line
from sandbox.models import ValidationResult
from sandbox.translation import TranslationResult, side_lines

SUMMARY_QUERIES: Final = 50
SUMMARY_DIFFERENCES: Final = 5

_MARKS: Final = {
    QueryStatus.EQUIVALENT: "✔ equivalent",
    QueryStatus.DIFFERENT: "✘ different",
    QueryStatus.MISSING_IN_SOURCE: "✘ missing in source",
    QueryStatus.MISSING_IN_TARGET: "✘ missing in target",
    QueryStatus.FAILED: "✘ failed",
    QueryStatus.IGNORED: "ignored",
}


def publish_translation(result: TranslationResult, *, flow_run_id: UUID) -> None:
    """Queues the summary and the table of queries; returns at once."""
    names = (result.source.profile, result.source.framework, result.target.profile, result.target.framework)

    def artifact(role: str, type_: str, description: str) -> Artifact:
        return Artifact(key=artifact_key(role, *names), type=type_, description=description, flow_run_id=flow_run_id)

    others: tuple[tuple[str, Artifact], ...] = ()
    if result.queries:
        queries = artifact("translation-queries", "table", "Verdict by query")
        PUBLISHER.publish(queries, lambda: json.dumps(queries_table(result)))
        others = (("queries", queries),)
    runs = [
        (f"run of the {side}", f"../../runs/flow-run/{verdict.flow_run_id}")
        for side, verdict in (("source", result.source), ("target", result.target))
        if verdict.flow_run_id is not None
    ]
    PUBLISHER.publish(
        artifact("translation", "markdown", "Verdict on the translation"),
        lambda: translation_markdown(result, links=[*links_of(flow_run_id, others), *runs]),
    )


def translation_markdown(result: TranslationResult, *, links: Sequence[Link] = ()) -> str:
    """Returns the verdict as markdown: outcome, both sides, queries, differences, rules that accepted something.

    Args:
        result: The verdict.
        links: Where to read on.
    """
    lines = [
        f"# {TRANSLATIONS[result.outcome].symbol} {result.outcome.state_name}",
        "",
        escaped(shortened(result.message, characters=MESSAGE_CHARACTERS)),
        "",
        *link_lines(links),
        "| side | program | outcome | seconds | run |",
        "|---|---|---|---|---|",
        _side_row("source", result.source),
        _side_row("target", result.target),
        "",
    ]
    for side, verdict in (("source", result.source), ("target", result.target)):
        if said := side_lines(side, verdict)[2:]:
            lines += [f"## What the {side} says", "", fenced(printable("\n".join(said))), ""]
    if result.queries:
        lines += [
            f"## Queries ({len(result.queries)})",
            "",
            "| query | verdict | rows | differences |",
            "|---|---|---|---|",
        ]
        for query in result.queries[:SUMMARY_QUERIES]:
            rows = _rows(query.source_rows, query.target_rows)
            cells = (escaped(query.name), _MARKS[query.status], rows, str(query.total_differences or ""))
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
        if len(result.queries) > SUMMARY_QUERIES:
            lines += [f"… and {len(result.queries) - SUMMARY_QUERIES} more in the table of queries.", ""]
    for query in result.queries[:SUMMARY_QUERIES]:
        details = [f"hint: {escaped(hint)}" for hint in query.hints]
        details += [f"not compared: {escaped(what)}" for what in query.not_compared]
        if not details and not query.differences:
            continue
        lines += [f"### {escaped(query.name)}", ""]
        if shown := query.differences[:SUMMARY_DIFFERENCES]:
            lines += [table(("where", "source", "target", "hint"), [_difference_row(found) for found in shown]), ""]
            if (more := query.total_differences - len(shown)) > 0:
                lines += [f"… and {more} more", ""]
        if details:
            lines += [*(f"- {detail}" for detail in details), ""]
    if result.comparison is not None and result.comparison.accepted:
        lines += ["## Accepted by rules", ""]
        lines += [f"- {escaped(accepted_line(accepted))}" for accepted in result.comparison.accepted]
        lines.append("")
    words = result.rules.in_words()
    lines.append(f"Rules: {escaped('; '.join(words)) if words else 'strict'}.")
    return "\n".join(lines)


def queries_table(result: TranslationResult) -> list[dict[str, Any]]:
    """Returns the rows of the table of queries; a last row says how many were left out."""
    rows: list[dict[str, Any]] = [
        {
            "query": cell(query.name, characters=200),
            "verdict": query.status.value,
            "source rows": query.source_rows,
            "target rows": query.target_rows,
            "differences": query.total_differences,
            "first difference": cell(difference_line(query.differences[0]), characters=500)
            if query.differences
            else "",
            "accepted by": ", ".join(f"{accepted.rule} ({accepted.count})" for accepted in query.accepted),
            "not compared": cell("; ".join(query.not_compared), characters=500),
        }
        for query in result.queries[:TABLE_ROWS]
    ]
    total = sum(result.comparison.counts.values()) if result.comparison is not None else len(result.queries)
    if total > len(rows):
        rows.append({**dict.fromkeys(rows[0], ""), "query": f"{total - len(rows)} more left out"})
    return rows


def _difference_row(found: ResultDifference) -> tuple[str, str, str, str]:
    where = found.path if found.target_path is None else f"{found.path} | {found.target_path}"
    if found.kind == "length":
        return where, f"{found.source} elements", f"{found.target} elements", found.hint or ""
    return where, *both(found.source, found.target, kind=found.kind), found.hint or ""


def _side_row(side: str, result: ValidationResult) -> str:
    outcome = escaped(result.outcome.value)
    program = f"{escaped(result.profile)} / {escaped(result.framework)}"
    cells = (side, program, outcome if result.passed else f"**{outcome}**", f"{result.timings.total:.2f}")
    return f"| {' | '.join(cells)} | `{result.run_id}` |"


def _rows(source: int | None, target: int | None) -> str:
    if source is None and target is None:
        return ""
    if source == target:
        return str(source)
    return f"{'?' if source is None else source} / {'?' if target is None else target}"
