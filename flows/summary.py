"""The summary of a run in markdown: the verdict first, then where the time went, what was found, and links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from flows.outcomes import OUTCOMES
from flows.plain_text import escaped, fenced, printable, shortened
from flows.result_tables import MESSAGE_CHARACTERS, differences_markdown, table
from sandbox.errors import SandboxError, SnapshotBuildError
from sandbox.models import Diagnostic, Outcome, PhaseResult, Timings, ValidationResult

SUMMARY_DIAGNOSTICS: Final = 10
SUMMARY_SENTENCES: Final = 20
CHART_COLUMNS: Final = 40
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"

Link = tuple[str, str]
"""Text and address."""


def summary_markdown(result: ValidationResult, *, links: Sequence[Link] = ()) -> str:
    """Returns the verdict as markdown.

    Args:
        result: The verdict.
        links: Where to read on.
    """
    lines = [
        f"# {OUTCOMES[result.outcome].symbol} {result.outcome.state_name}",
        "",
        escaped(shortened(result.message, characters=MESSAGE_CHARACTERS)),
        "",
        f"`{result.profile}` / `{result.framework}` · thread `{result.thread_id}` · run `{result.run_id}`",
        "",
        *link_lines(links),
    ]
    if result.phases:
        lines += ["| phase | outcome | exit code | seconds | stdout | stderr |", "|---|---|---|---|---|---|"]
        lines += [_phase_row(phase) for phase in result.phases]
        lines.append("")
    lines += ["## Times", "", time_chart(result.timings), ""]
    if result.diagnostics:
        lines += [f"## Diagnostics ({len(result.diagnostics)})", ""]
        lines += [_finding(found) for found in result.diagnostics[:SUMMARY_DIAGNOSTICS]]
        if len(result.diagnostics) > SUMMARY_DIAGNOSTICS:
            lines += ["", f"… and {len(result.diagnostics) - SUMMARY_DIAGNOSTICS} more in the diagnostics artifact."]
        lines.append("")
    if result.comparison is not None and not result.comparison.equal:
        shown = result.comparison.differences[:SUMMARY_DIAGNOSTICS]
        total = result.comparison.total_differences
        lines += [f"## Differences ({total})", "", differences_markdown(shown, total=total), ""]
    lines += sentences("Recovered on the way", result.recoveries)
    lines += sentences("Warnings", result.warnings)
    if result.sandbox is not None:
        where = result.sandbox
        lines.append(
            f"Sandbox `{where.sandbox_name}` from snapshot `{where.snapshot}`, isolation {where.isolation.value}."
        )
    return "\n".join(lines)


def failure_markdown(error: SandboxError, *, links: Sequence[Link] = ()) -> str:
    """Returns why a run ended without a verdict, as markdown.

    Args:
        error: Why.
        links: Where to read on.
    """
    lines = [
        "# ! No verdict",
        "",
        escaped(shortened(error.message, characters=MESSAGE_CHARACTERS)),
        "",
        *link_lines(links),
    ]
    facts = (("step", error.step), ("sandbox", error.sandbox), ("state", error.state), ("what to do", error.remedy))
    known = [(name, text) for name, text in facts if text]
    if known:
        lines += [table(("", ""), known, characters=MESSAGE_CHARACTERS), ""]
    if isinstance(error, SnapshotBuildError) and error.log_tail:
        tail = "\n".join(shortened(printable(line), characters=500) for line in error.log_tail)
        lines += ["## The end of the build log", "", fenced(tail), ""]
    return "\n".join(lines)


def time_chart(times: Timings) -> str:
    """Returns the seconds of each step as a small bar chart of text."""
    steps = [("snapshot", times.snapshot), ("sandbox", times.sandbox), ("queue", times.queue)]
    steps += [*times.phases.items(), ("results", times.results), ("overhead", times.overhead)]
    width = max(len(name) for name, _ in steps)
    longest = max(seconds for _, seconds in steps)
    lines = [f"{name:<{width}}  {seconds:9.3f} s  {_bar(seconds, longest)}".rstrip() for name, seconds in steps]
    lines.append(f"{'total':<{width}}  {times.total:9.3f} s")
    return fenced("\n".join(lines))


def link_lines(links: Sequence[Link]) -> list[str]:
    """Returns links as one line of markdown and an empty one; nothing for none."""
    return [" · ".join(f"[{escaped(text)}]({address})" for text, address in links), ""] if links else []


def sentences(title: str, texts: Sequence[str]) -> list[str]:
    """Returns a section with one sentence a line; nothing for none."""
    if not texts:
        return []
    shown = [f"- {escaped(shortened(text, characters=MESSAGE_CHARACTERS))}" for text in texts[:SUMMARY_SENTENCES]]
    if len(texts) > SUMMARY_SENTENCES:
        shown.append(f"- … and {len(texts) - SUMMARY_SENTENCES} more")
    return [f"## {title}", "", *shown, ""]


def _bar(seconds: float, longest: float) -> str:
    eighths = round(8 * CHART_COLUMNS * seconds / longest) if longest > 0 else 0
    whole, part = divmod(max(eighths, 1 if seconds > 0 else 0), 8)
    return "█" * whole + (_EIGHTHS[part] if part else "")


def _phase_row(phase: PhaseResult) -> str:
    exit_code = "unknown" if phase.exit_code is None else str(phase.exit_code)
    if phase.signal is not None:
        exit_code += f" (signal {phase.signal})"
    outcome = "passed" if phase.outcome is Outcome.PASSED else f"**{escaped(phase.outcome.value)}**"
    cells = (escaped(phase.name), outcome, exit_code, f"{phase.seconds:.2f}")
    return f"| {' | '.join((*cells, _bytes(phase.stdout.total_bytes), _bytes(phase.stderr.total_bytes)))} |"


def _finding(found: Diagnostic) -> str:
    place = ":".join(str(part) for part in (found.path, found.line, found.column) if part is not None)
    words = (found.severity.value, found.code or "", place)
    head = " · ".join(escaped(shortened(word, characters=300)) for word in words if word)
    text = f"- {head}: {escaped(shortened(found.message, characters=500))}"
    excerpt = shortened(printable(found.excerpt or ""), characters=500)
    return f"{text}\n\n{fenced(excerpt)}\n" if excerpt else text


def _bytes(count: int) -> str:
    return f"{count:,} B" if count < 10_000 else f"{count / 1000:,.1f} kB"
