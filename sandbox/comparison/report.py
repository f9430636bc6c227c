"""A comparison in words: lines for a person, and a text of bounded length for a language model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from sandbox.comparison.verdicts import (
    AcceptedDifference,
    QueryStatus,
    QueryVerdict,
    ResultDifference,
    ResultsComparison,
)
from sandbox.feedback import SMALLEST_BUDGET

VALUE_CHARACTERS: Final = 160
"""Characters of a value in a line."""

SMALLEST_SHARE: Final = 100
"""Characters of feedback below which telling about a query is not worth it."""

_NOTE_ROOM: Final = 60

SYMBOLS: Final = {
    QueryStatus.EQUIVALENT: "=",
    QueryStatus.DIFFERENT: "≠",
    QueryStatus.MISSING_IN_SOURCE: "+",
    QueryStatus.MISSING_IN_TARGET: "-",
    QueryStatus.FAILED: "!",
    QueryStatus.IGNORED: "·",
}
_FINE: Final = frozenset({QueryStatus.EQUIVALENT, QueryStatus.IGNORED})


def comparison_lines(comparison: ResultsComparison, *, differences: int = 20) -> list[str]:
    """Returns a comparison as lines of text.

    Args:
        comparison: The comparison.
        differences: How many differences of each query are listed.
    """
    lines = [comparison.message]
    for query in comparison.queries:
        lines += query_lines(query, differences=differences)
    if (more := sum(comparison.counts.values()) - len(comparison.queries)) > 0:
        lines.append(f"… and {more} more queries")
    lines += [f"accepted by {accepted_line(accepted)}" for accepted in comparison.accepted]
    words = comparison.rules.in_words()
    lines.append(f"rules: {'; '.join(words) if words else 'strict'}")
    return lines


def query_lines(query: QueryVerdict, *, differences: int) -> list[str]:
    """Returns the verdict on a query: one line, and one for each difference, hint and thing not compared."""
    lines = [f"{SYMBOLS[query.status]} {_head(query)}"]
    lines += [f"    hint: {hint}" for hint in query.hints]
    lines += [f"    {difference_line(found)}" for found in query.differences[:differences]]
    if (more := query.total_differences - len(query.differences[:differences])) > 0:
        lines.append(f"    … and {more} more differences")
    lines += [f"    not compared: {what}" for what in query.not_compared]
    return lines


def difference_line(found: ResultDifference) -> str:
    """Returns a difference as one line: where, both values, what would explain it."""
    where = found.path if found.target_path is None else f"{found.path} | {found.target_path}"
    match found.kind:
        case "missing":
            what = f"source has {value_text(found.source)}, target has nothing"
        case "unexpected":
            what = f"source has nothing, target has {value_text(found.target)}"
        case "length":
            what = f"source has {found.source} elements, target {found.target}"
        case _:
            what = f"source {value_text(found.source)}, target {value_text(found.target)}"
    return f"{where}: {what}{f' ({found.hint})' if found.hint else ''}"


def accepted_line(accepted: AcceptedDifference) -> str:
    """Returns what a rule accepted: its name, how often, the first example."""
    where = accepted.path if accepted.target_path is None else f"{accepted.path} | {accepted.target_path}"
    example = f", first at {where}"
    if accepted.source is not None or accepted.target is not None:
        example += f": {value_text(accepted.source)} as {value_text(accepted.target)}"
    return f"the rule {accepted.rule}: {accepted.count}{example}"


def value_text(value: JsonValue) -> str:
    """Returns a value as JSON on one line, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_CHARACTERS else f"{text[: VALUE_CHARACTERS - 1]}…"


def comparison_feedback(comparison: ResultsComparison, *, budget_chars: int) -> str:
    """Returns what a language model needs to correct a translation, within a number of characters.

    Queries that are not equivalent come first and share the room, the first differences of each before the later ones;
    what does not fit is counted.

    Args:
        comparison: The comparison.
        budget_chars: The longest text, in characters; at least 200.

    Raises:
        ValueError: The budget is too small.
    """
    if budget_chars < SMALLEST_BUDGET:
        raise ValueError(f"budget_chars must be at least {SMALLEST_BUDGET}, not {budget_chars}")
    bad = [query for query in comparison.queries if query.status not in _FINE]
    lines = [_cut(comparison.message, SMALLEST_BUDGET // 2)]
    room = budget_chars - len(lines[0])
    told = bad
    if len(bad) * SMALLEST_SHARE > room:
        # Few queries told well are worth more than many cut to nothing.
        room -= _NOTE_ROOM
        told = bad[: max(room // (2 * SMALLEST_SHARE), room > SMALLEST_SHARE)]
    texts = [query_lines(query, differences=len(query.differences)) for query in told]
    for text, share in zip(texts, _shares([sum(len(line) + 1 for line in text) for text in texts], room), strict=True):
        block = _block(text, share)
        lines += block
        room -= sum(len(line) + 1 for line in block)
    if len(told) < len(bad):
        lines.append(f"… and {len(bad) - len(told)} more queries that are not equivalent")
    fine = [query.name for query in comparison.queries if query.status is QueryStatus.EQUIVALENT]
    rest = [f"equivalent: {', '.join(fine)}"] if fine else []
    rest += [f"accepted by {accepted_line(accepted)}" for accepted in comparison.accepted]
    for line in rest:
        if len(line) < room:
            lines.append(line)
            room -= len(line) + 1
    return "\n".join(lines)


def _head(query: QueryVerdict) -> str:
    rows = ""
    if query.source_rows is not None or query.target_rows is not None:
        source, target = (str(n) if n is not None else "?" for n in (query.source_rows, query.target_rows))
        same = f" ({source} row{'' if source == '1' else 's'})"
        rows = same if source == target else f" (rows: source {source}, target {target})"
    # The symbol says it all about a query that is equivalent.
    return f"{query.name}{rows}" + ("" if query.status is QueryStatus.EQUIVALENT else f": {query.message}")


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """Parts the room so that what a short text does not need goes to the long ones."""
    shares = [0] * len(sizes)
    for left, index in zip(range(len(sizes), 0, -1), sorted(range(len(sizes)), key=sizes.__getitem__), strict=True):
        shares[index] = min(sizes[index], room // left)
        room -= shares[index]
    return shares


def _block(lines: Sequence[str], share: int) -> list[str]:
    """Returns the first lines that fit, line ends included, and where some are left out a last one that counts them."""
    if sum(len(line) + 1 for line in lines) <= share:
        return list(lines)
    note = "    … {} more lines"
    room = share - len(note) - 8
    block: list[str] = []
    for line in lines:
        if len(line) + 1 > room:
            if not block:
                block.append(_cut(line, room - 1))
            break
        block.append(line)
        room -= len(line) + 1
    if len(block) < len(lines):
        block.append(note.format(len(lines) - len(block)))
    return block


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[: characters - 1]}…"
