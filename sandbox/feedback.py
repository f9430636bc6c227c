"""A verdict as a compact text for a language model: what went wrong, where, and the end of the output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sandbox.models import Diagnostic, ValidationResult

SMALLEST_BUDGET: Final = 200
"""Characters below which a text would say nothing."""

DETAILS: Final = 6
"""Further lines of the tool that are told with a finding."""

FINDINGS_SHARE: Final = 0.6
"""Part of the room that findings may take while there is output to show."""


def result_feedback(result: ValidationResult, *, budget_chars: int) -> str:
    """Returns outcome, first findings with their source, and the end of the output, within a number of characters.

    Errors come before warnings; what does not fit is counted or marked with an ellipsis.

    Args:
        result: The verdict.
        budget_chars: The longest text, in characters; at least 200.

    Raises:
        ValueError: The budget is too small.
    """
    if budget_chars < SMALLEST_BUDGET:
        raise ValueError(f"budget_chars must be at least {SMALLEST_BUDGET}, not {budget_chars}")
    return feedback_within(result, headline=f"{result.outcome.value}: {result.message}", room=budget_chars)


def feedback_within(result: ValidationResult, *, headline: str, room: int) -> str:
    """Returns the same behind a headline of the caller's, for a text that has more than one verdict.

    Args:
        result: The verdict.
        headline: The first line, which takes at most half of the room.
        room: The longest text, in characters; enough for a few words.
    """
    lines = [_cut(headline, room // 2)]
    room -= len(lines[0])
    output = () if result.passed else _output(result)
    for block in (_findings(result, int(room * FINDINGS_SHARE) if output else room), _differences(result)):
        for line in block:
            if len(line) + 1 > room:
                break
            lines.append(line)
            room -= len(line) + 1
    lines += _end(output, room)
    return "\n".join(lines)


def finding_line(found: Diagnostic) -> str:
    """Returns a finding as one line: place, code, text, line of source."""
    place = ":".join(str(part) for part in (found.path, found.line, found.column) if part is not None)
    code = f"{found.code}: " if found.code and found.code not in found.message else ""
    excerpt = f" | {found.excerpt.strip()}" if found.excerpt else ""
    return f"{f'{place}: ' if place else ''}{code}{found.message}{excerpt}"


def _findings(result: ValidationResult, room: int) -> Iterable[str]:
    order = ("error", "warning", "info")
    found = sorted(result.diagnostics, key=lambda item: order.index(item.severity.value))
    for index, item in enumerate(found):
        text = f"{item.severity.value}: {finding_line(item)}"
        block = [text, *(f"    {line.strip()}" for line in item.details[:DETAILS] if line.strip())]
        note = f"… and {len(found) - index} more findings"
        need = sum(len(line) + 1 for line in block)
        last = index == len(found) - 1
        if need + (0 if last else len(note) + 1) > room:
            if index == 0 and room > len(note) + 80:
                yield _cut(text, room - len(note) - 2)
                note = f"… and {len(found) - 1} more findings" if not last else ""
            if note:
                yield note
            return
        yield from block
        room -= need


def _differences(result: ValidationResult) -> Iterable[str]:
    if result.comparison is None or result.comparison.equal:
        return
    for found in result.comparison.differences:
        yield _cut(f"{found.path}: expected {found.expected!r}, got {found.actual!r}", 400)


def _output(result: ValidationResult) -> Sequence[str]:
    if not result.phases:
        return ()
    last = result.phases[-1]
    lines: list[str] = []
    for name, stream in (("standard output", last.stdout), ("standard error", last.stderr)):
        if text := stream.text.strip():
            lines += [f"{name} of {last.name}, its end:", *text.splitlines()]
    return lines


def _end(output: Sequence[str], room: int) -> list[str]:
    """The last lines that fit, each stream's heading kept with what is left of it."""
    kept: list[str] = []
    for line in reversed(output):
        text = _cut(line, 400)
        if len(text) + 1 > room:
            break
        kept.append(text)
        room -= len(text) + 1
    return kept[::-1]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
