"""What a person sees: the program's output as it comes, lines about the run, the verdict.

The program is untrusted and so is its output: on a terminal, colours and line editing pass, everything that could
change the terminal itself (titles, clipboard, cursor keys, alternate screens) does not.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Final, TextIO

from flows.outcomes import OUTCOMES
from sandbox.events import EVENTS_LEFT_OUT, PHASE_FINISHED, PHASE_STARTED, SANDBOX_STATE, Event
from sandbox.models import Diagnostic, Outcome, PhaseResult, ValidationResult

_COLOURS: Final = {"green": "32", "red": "31", "yellow": "33", "dim": "2", "bold": "1"}
_SHOWN_DIAGNOSTICS: Final = 10
_SHOWN_DIFFERENCES: Final = 10
_ESCAPE: Final = re.compile(
    r"\x1b\[(?P<arguments>[0-9;:]*)(?P<kind>[mK])"
    r"|\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-Z\\-~])?"
)
_CONTROL: Final = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
_UNFINISHED: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,256}\x1b?|[ -/]*)?\Z")


class TerminalFilter:
    """Lets colours and line editing through and drops other control sequences, also when chunks cut them."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Returns what may be shown now; an unfinished sequence waits for its end."""
        text = self._held + text
        unfinished = _UNFINISHED.search(text)
        self._held = unfinished.group() if unfinished else ""
        text = text[: len(text) - len(self._held)]
        return _CONTROL.sub("", _ESCAPE.sub(lambda found: found.group() if found["kind"] else "", text))


class Console:
    """Writes to standard output and error, in threads, so that a slow reader does not hold up the run.

    Args:
        live: Whether to show the program's output and lines about the run.
        live_lines: How many lines of a program's output are shown; ``None`` shows all.
        output: Where the program's standard output goes.
        errors: Where everything else goes.
    """

    def __init__(
        self,
        *,
        live: bool = True,
        live_lines: int | None = None,
        output: TextIO | None = None,
        errors: TextIO | None = None,
    ) -> None:
        self._live = live
        self._live_lines = live_lines
        self._lines_left = live_lines or 0
        self._awaited: set[object] = set()
        self._output = output or sys.stdout
        self._errors = errors or sys.stderr
        self._filters = {stream: TerminalFilter() for stream in (self._output, self._errors) if stream.isatty()}
        self._at_line_start = True
        self._lock = threading.Lock()
        self._gone: set[int] = set()
        self._colour = self._errors.isatty() and not os.environ.get("NO_COLOR")

    async def on_event(self, event: Event) -> None:
        """Shows one event; a sink for ``validate``."""
        if self._live:
            await asyncio.to_thread(self._show, event)

    def begin(self) -> None:
        """Starts the count of shown lines anew, for the next program."""
        self._lines_left = self._live_lines or 0

    def status(self, text: str) -> None:
        """Writes a line about the run."""
        if self._live:
            self._line(self.paint(text, "dim"))

    def line(self, text: str = "") -> None:
        """Writes a line to standard error."""
        self._line(text)

    def paint(self, text: str, colour: str) -> str:
        """Returns the text in a colour, where the terminal has colours."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self._colour else text

    def _show(self, event: Event) -> None:
        data, kind = event["data"], event["type"]
        if isinstance(data, str):
            if kind.endswith("_stdout"):
                self._write(self._output, self._within_limit(data))
            elif kind.endswith("_stderr"):
                self._write(self._errors, self._within_limit(data))
            else:
                for line in data.splitlines():
                    self.status(f"  {one_line(line)}")
        elif isinstance(data, dict):
            if kind == PHASE_STARTED:
                self.status(f"▸ {event['phase']}")
            elif kind == PHASE_FINISHED:
                self._end_line()
            elif kind == EVENTS_LEFT_OUT:
                self.status(f"  [not shown: {one_line(str(data))}]")
            elif kind == SANDBOX_STATE and self._is_news(data):
                self.status(_state(data))

    def _is_news(self, data: Mapping[str, object]) -> bool:
        """A sandbox or snapshot that is found ready is no news; one that becomes ready is."""
        ready = data.get("state") in ("started", "active")
        waited = data.get("name") in self._awaited
        (self._awaited.discard if ready else self._awaited.add)(data.get("name"))
        return waited or not ready

    def _within_limit(self, text: str) -> str:
        if self._live_lines is None or not self._lines_left:
            return "" if self._live_lines is not None else text
        lines = text.splitlines(keepends=True)
        shown = lines[: self._lines_left]
        self._lines_left -= sum(line.endswith("\n") for line in shown)
        return "".join(shown) + ("" if self._lines_left else "… further output is not shown here\n")

    def _line(self, text: str) -> None:
        self._end_line()
        self._write(self._errors, f"{text}\n", trusted=True)

    def _end_line(self) -> None:
        """A program's last line may lack its end; ours must not continue it."""
        if not self._at_line_start and self._errors.isatty():
            self._write(self._errors, "\n", trusted=True)

    def _write(self, stream: TextIO, text: str, *, trusted: bool = False) -> None:
        if not trusted and stream in self._filters:
            text = self._filters[stream].feed(text)
        if not text or id(stream) in self._gone:
            return
        with self._lock:
            try:
                stream.write(text.encode(stream.encoding or "utf-8", "replace").decode(stream.encoding or "utf-8"))
                stream.flush()
            except (BrokenPipeError, ValueError):
                # The reader has gone; the verdict is still the exit code.
                self._gone.add(id(stream))
            self._at_line_start = text.endswith("\n")


def _state(data: Mapping[str, object]) -> str:
    """A line about a snapshot or sandbox: what it is, its name, its state, and how long that took."""
    known = ("subject", "name", "state", "elapsed", "limit")
    words = [one_line(str(data[name])) for name in known[:3] if data.get(name)]
    words += [f"{name} {one_line(str(value))}" for name, value in data.items() if value and name not in known]
    if isinstance(elapsed := data.get("elapsed"), int | float) and elapsed >= 1:
        words.append(f"after {elapsed:.1f} s")
    return "  " + "  ".join(words)


def one_line(text: str) -> str:
    """Returns untrusted text as one line without control characters."""
    return _CONTROL.sub("", TerminalFilter().feed(_ESCAPE.sub("", text))).replace("\r", "").replace("\n", " ")


def summary(result: ValidationResult, console: Console, *, links: Sequence[str] = ()) -> list[str]:
    """Returns the lines that tell a verdict.

    Args:
        result: The verdict.
        console: Knows whether colours are wanted.
        links: Further lines, such as the run's address in the UI.
    """
    row = OUTCOMES[result.outcome]
    paint = console.paint
    lines = [f"{paint(f'{row.symbol} {result.outcome.value}', row.colour)}  {one_line(result.message)}"]
    width = max((len(phase.name) for phase in result.phases), default=0)
    lines += [_phase(phase, console, max(width, 8)) for phase in result.phases]
    lines += [_diagnostic(found) for found in result.diagnostics[:_SHOWN_DIAGNOSTICS]]
    if len(result.diagnostics) > _SHOWN_DIAGNOSTICS:
        lines.append(f"  … and {len(result.diagnostics) - _SHOWN_DIAGNOSTICS} more findings")
    if result.comparison is not None and not result.comparison.equal:
        shown = result.comparison.differences[:_SHOWN_DIFFERENCES]
        lines += [f"  {one_line(d.path)}: expected {_short(d.expected)}, got {_short(d.actual)}" for d in shown]
        if (more := result.comparison.total_differences - len(shown)) > 0:
            lines.append(f"  … and {more} more differences")
    if result.result is not None:
        lines.append(f"  result  {_result(result.result)}")
    lines += [f"  recovered: {one_line(text)}" for text in result.recoveries]
    lines += [f"  {paint('warning:', 'yellow')} {one_line(text)}" for text in result.warnings]
    where = f"sandbox {result.sandbox.sandbox_name}  " if result.sandbox else ""
    facts = f"{where}thread {result.thread_id}  run {result.run_id}  {result.timings.total:.2f} s"
    lines.append(paint(f"  {facts}", "dim"))
    lines += [paint(f"  {link}", "dim") for link in links]
    return lines


def _phase(phase: PhaseResult, console: Console, width: int) -> str:
    if phase.exit_code is None:
        end = "no exit code"
    else:
        end = f"exit {phase.exit_code}" + (f", signal {phase.signal}" if phase.signal else "")
    word = "" if phase.outcome is Outcome.PASSED else f"  {console.paint(phase.outcome.value, 'red')}"
    return f"  {phase.name:<{width}}{phase.seconds:7.2f} s  {end}{word}"


def _diagnostic(found: Diagnostic) -> str:
    place = ":".join(str(part) for part in (found.path, found.line, found.column) if part is not None)
    code = f" {found.code}" if found.code else ""
    head = f"  {one_line(place)}: " if place else "  "
    return f"{head}{found.severity.value}{one_line(code)}: {one_line(found.message)}"


def _result(value: object) -> str:
    if not isinstance(value, dict):
        return _short(value)
    counts = [
        f"{one_line(str(name))} ({one_line(str(query['count']))})"
        if isinstance(query, dict) and "count" in query
        else one_line(str(name))
        for name, query in value.items()
    ]
    text = ", ".join(counts[:8])
    return f"{text}, …" if len(counts) > 8 else text


def _short(value: object) -> str:
    text = one_line(repr(value) if isinstance(value, str) else str(value))
    return text if len(text) <= 120 else f"{text[:119]}…"
