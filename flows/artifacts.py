"""What a run shows in the Prefect UI: summary, live console per phase, diagnostics, result.

Keys are stable per role, so the UI's list of artifacts shows the newest of each and its history.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import orjson

from flows.plain_text import HeadAndTail, escaped, fenced, printable, shortened
from flows.publisher import PUBLISHER, Artifact
from flows.run_log import stream_of
from sandbox.events import PHASE_FINISHED, PHASE_STARTED, Event
from sandbox.models import Diagnostic, Outcome, PhaseResult, ValidationResult

CONSOLE_HEAD: Final = 16_000
CONSOLE_TAIL: Final = 32_000
RESULT_CHARACTERS: Final = 50_000
MESSAGE_CHARACTERS: Final = 2_000
TABLE_ROWS: Final = 500
SUMMARY_DIAGNOSTICS: Final = 10
UPDATE_SECONDS: Final = 1.0


def artifact_key(role: str, *parts: str) -> str:
    """Returns a key of lower-case letters, digits and dashes, such as ``validation-summary-java-plain``."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(("validation", role, *parts)).lower()).strip("-")


class Console:
    """A sink of events that keeps one artifact per phase up to date, at most once a second.

    A phase that is over before the first update appears once, complete.

    Args:
        profile: Name of the profile.
        framework: Name of the project template.
        flow_run_id: The run.
    """

    def __init__(self, *, profile: str, framework: str, flow_run_id: UUID) -> None:
        self._names = (profile, framework)
        self._flow_run_id = flow_run_id
        self._artifact: Artifact | None = None
        self._phase = ""
        self._text = HeadAndTail(head=CONSOLE_HEAD, tail=CONSOLE_TAIL)
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, event: Event) -> None:
        """Takes an event."""
        phase = event["phase"]
        if event["type"] == PHASE_STARTED and phase:
            self.close()
            self._phase = phase
            self._text = HeadAndTail(head=CONSOLE_HEAD, tail=CONSOLE_TAIL)
            self._artifact = Artifact(
                key=artifact_key("console", *self._names, phase),
                type="markdown",
                description=f"What the {phase} phase printed, as it came",
                flow_run_id=self._flow_run_id,
            )
        elif event["type"] == PHASE_FINISHED:
            self.close()
        elif stream_of(event["type"]) in ("stdout", "stderr") and isinstance(event["data"], str):
            self._text.add(event["data"])
            if self._timer is None and self._artifact is not None:
                self._timer = asyncio.get_running_loop().call_later(UPDATE_SECONDS, self._update)

    def close(self) -> None:
        """Publishes the last state of the phase; a phase that printed nothing has no console."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._artifact is not None:
            self._publish("complete")
            self._artifact = None

    def _update(self) -> None:
        self._timer = None
        self._publish("running")

    def _publish(self, state: str) -> None:
        if self._artifact is None or not self._text.total:
            return
        text, phase, total = self._text.text(), self._phase, self._text.total
        PUBLISHER.publish(self._artifact, lambda: console_markdown(phase=phase, state=state, text=text, total=total))


def console_markdown(*, phase: str, state: str, text: str, total: int) -> str:
    """Returns the console of a phase.

    Args:
        phase: Its name.
        state: ``running`` or ``complete``.
        text: What was kept of its output.
        total: Characters it printed altogether.
    """
    return f"**{escaped(phase)}** · {state} · {total:,} characters\n\n{fenced(printable(text))}\n"


def publish_verdict(result: ValidationResult, *, flow_run_id: UUID) -> None:
    """Queues summary, diagnostics and result of a finished run; returns at once."""
    names = (result.profile, result.framework)

    def artifact(role: str, type_: str, description: str) -> Artifact:
        return Artifact(key=artifact_key(role, *names), type=type_, description=description, flow_run_id=flow_run_id)

    PUBLISHER.publish(artifact("summary", "markdown", "Verdict of the validation"), lambda: summary_markdown(result))
    if result.diagnostics:
        PUBLISHER.publish(
            artifact("diagnostics", "table", "Findings of compilers and runtimes"),
            lambda: json.dumps(diagnostics_table(result.diagnostics)),
        )
    if result.result is not None:
        PUBLISHER.publish(artifact("result", "markdown", "What the program computed"), lambda: result_markdown(result))


def summary_markdown(result: ValidationResult) -> str:
    """Returns the verdict as markdown: outcome, phases, findings, times, what happened on the way."""
    mark = "✅" if result.passed else "❌"
    lines = [
        f"# {mark} {result.outcome.state_name}",
        "",
        escaped(shortened(result.message, characters=MESSAGE_CHARACTERS)),
        "",
        f"`{result.profile}` / `{result.framework}` · thread `{result.thread_id}` · run `{result.run_id}`",
        "",
    ]
    if result.phases:
        lines += ["| phase | outcome | exit code | seconds | stdout | stderr |", "|---|---|---|---|---|---|"]
        lines += [_phase_row(phase) for phase in result.phases]
        lines.append("")
    if result.diagnostics:
        lines += [f"## Diagnostics ({len(result.diagnostics)})", ""]
        lines += [_finding(found) for found in result.diagnostics[:SUMMARY_DIAGNOSTICS]]
        if len(result.diagnostics) > SUMMARY_DIAGNOSTICS:
            lines += ["", f"… and {len(result.diagnostics) - SUMMARY_DIAGNOSTICS} more in the diagnostics artifact."]
        lines.append("")
    if result.comparison is not None and not result.comparison.equal:
        lines += [f"## Differences ({result.comparison.total_differences})", ""]
        lines += [
            f"- {escaped(found.path)}: expected {_value(found.expected)}, got {_value(found.actual)}"
            for found in result.comparison.differences[:SUMMARY_DIAGNOSTICS]
        ]
        lines.append("")
    for title, texts in (("Recovered on the way", result.recoveries), ("Warnings", result.warnings)):
        if texts:
            lines += [f"## {title}", "", *(f"- {escaped(text)}" for text in texts), ""]
    times = result.timings
    lines += [
        "| step | seconds |",
        "|---|---|",
        f"| snapshot | {times.snapshot:.3f} |",
        f"| sandbox | {times.sandbox:.3f} |",
        f"| queue | {times.queue:.3f} |",
        *(f"| {escaped(name)} | {seconds:.3f} |" for name, seconds in times.phases.items()),
        f"| results | {times.results:.3f} |",
        f"| total | {times.total:.3f} |",
        "",
    ]
    if result.sandbox is not None:
        where = result.sandbox
        lines.append(
            f"Sandbox `{where.sandbox_name}` from snapshot `{where.snapshot}`, isolation {where.isolation.value}."
        )
    return "\n".join(lines)


def diagnostics_table(diagnostics: Sequence[Diagnostic]) -> list[dict[str, Any]]:
    """Returns the rows of the diagnostics artifact; a last row says how many were left out."""
    rows = [
        {
            "severity": found.severity.value,
            "file": found.path or "",
            "line": found.line,
            "column": found.column,
            "code": found.code or "",
            "message": shortened(printable(found.message), characters=MESSAGE_CHARACTERS),
            "source": shortened(printable(found.excerpt or ""), characters=300),
            "phase": found.phase or "",
            "tool": found.tool,
        }
        for found in diagnostics[:TABLE_ROWS]
    ]
    if len(diagnostics) > TABLE_ROWS:
        rows.append({**dict.fromkeys(rows[0], ""), "message": f"{len(diagnostics) - TABLE_ROWS} more left out"})
    return rows


def result_markdown(result: ValidationResult) -> str:
    """Returns the result document as markdown, cut where it is long."""
    text = orjson.dumps(result.result, option=orjson.OPT_INDENT_2).decode()
    cut = f"\n\nCut: {len(text):,} characters altogether." if len(text) > RESULT_CHARACTERS else ""
    return f"`{result.result_path or 'result'}`\n\n{fenced(text[:RESULT_CHARACTERS], language='json')}{cut}\n"


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
    head = " · ".join(escaped(word) for word in words if word)
    text = f"- {head}: {escaped(shortened(found.message, characters=500))}"
    return f"{text}\n\n{fenced(printable(found.excerpt))}\n" if found.excerpt else text


def _value(value: object) -> str:
    return escaped(shortened(orjson.dumps(value).decode(), characters=200))


def _bytes(count: int) -> str:
    return f"{count:,} B" if count < 10_000 else f"{count / 1000:,.1f} kB"
