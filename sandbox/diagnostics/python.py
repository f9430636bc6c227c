"""Uncaught exceptions and syntax errors of Python, as the interpreter prints them on standard error.

Forms of CPython 3.11 to 3.14. The interpreter prints an uncaught exception last, so of several tracebacks only the last
one counts, and before it those that a thread died of; a traceback that the program logged and survived does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from sandbox.diagnostics.transcript import Transcript
from sandbox.models import Diagnostic

TOOL: Final = "python"

_TRACEBACK: Final = re.compile(r"(?P<margin>\s*(?:[+|] )?)(?:Exception Group )?Traceback \(most recent call last\):")
_FRAME: Final = re.compile(r'  File "(?P<path>[^"]*)", line (?P<line>\d+)(?:, in (?P<name>.*))?')
_RAISED: Final = re.compile(r"(?P<type>[^\W\d][\w.]*)(?:: (?P<text>.*))?")
_THREAD: Final = re.compile(r"Exception in thread .*:")
_MARKER: Final = re.compile(r" {4,}[~^]+[~^ ]*")
_CHAINED: Final = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_SYNTAX: Final = ("SyntaxError", "IndentationError", "TabError")
MAX_NOTES: Final = 20


@dataclass(slots=True)
class _Frame:
    path: str
    line: int
    name: str | None
    source: str | None = None
    marker: int | None = None


@dataclass(slots=True)
class _Raised:
    """One exception: where it was raised, what it says, where its text ends."""

    type: str
    text: str
    frames: list[_Frame]
    notes: list[str] = field(default_factory=list)
    end: int = 0

    @property
    def headline(self) -> str:
        return f"{self.type}: {self.text}" if self.text else self.type


def parse_python(transcript: Transcript) -> Iterator[Diagnostic]:
    """Reads what the interpreter said about exceptions nobody caught."""
    lines = transcript.stderr
    chains = list(_chains(lines))
    for number, (start, chain) in enumerate(chains):
        in_thread = start > 0 and _THREAD.fullmatch(lines[start - 1])
        if in_thread or number == len(chains) - 1:
            yield _diagnostic(transcript, chain[-1], causes=chain[:-1])
    if not chains:
        yield from (_diagnostic(transcript, raised, causes=()) for raised in _syntax_errors(lines))


def _chains(lines: Sequence[str]) -> Iterator[tuple[int, list[_Raised]]]:
    index = 0
    chain: list[_Raised] = []
    start = 0
    while index < len(lines):
        head = _TRACEBACK.fullmatch(lines[index])
        if head is None:
            index += 1
            continue
        margin = "  | " if head["margin"].strip() else ""
        raised = _exception(lines, index + 1, margin=margin)
        if raised is None:
            index += 1
            continue
        if not chain:
            start = index
        chain.append(raised)
        index = raised.end
        if not (index + 1 < len(lines) and lines[index].strip("| ") in _CHAINED):
            yield start, chain
            chain = []
    if chain:
        yield start, chain


def _exception(lines: Sequence[str], index: int, *, margin: str) -> _Raised | None:
    def text_of(position: int) -> str:
        line = lines[position]
        return line.removeprefix(margin) if margin else line

    frames: list[_Frame] = []
    while index < len(lines) and text_of(index).startswith("  "):
        line = text_of(index)
        if match := _FRAME.fullmatch(line):
            frames.append(_Frame(match["path"], int(match["line"]), match["name"]))
        elif frames and _MARKER.fullmatch(line):
            frames[-1].marker = len(line) - len(line.lstrip())
        elif frames and frames[-1].source is None and line.startswith("    "):
            frames[-1].source = line[4:]
        index += 1
    if not frames or index >= len(lines) or not (match := _RAISED.fullmatch(text_of(index))):
        return None
    raised = _Raised(match["type"], match["text"] or "", frames)
    index += 1
    while index < len(lines) and not _starts_anew(lines, index):
        raised.notes.append(text_of(index))
        index += 1
    while index < len(lines) and not lines[index].strip("| "):
        index += 1
    raised.end = index
    return raised


def _starts_anew(lines: Sequence[str], index: int) -> bool:
    line = lines[index]
    if _TRACEBACK.fullmatch(line) or _THREAD.fullmatch(line) or _FRAME.fullmatch(line):
        return True
    following = lines[index + 1].strip("| ") if index + 1 < len(lines) else ""
    return not line.strip("| ") and following in _CHAINED


def _syntax_errors(lines: Sequence[str]) -> Iterator[_Raised]:
    """Blocks without a traceback: sources that could not be compiled. They stand last, or are no such blocks."""
    found: list[_Raised] = []
    index = next((i for i, line in enumerate(lines) if _FRAME.fullmatch(line)), len(lines))
    while index < len(lines):
        raised = _exception(lines, index, margin="")
        if raised is None or raised.type not in _SYNTAX or any(note.strip() for note in raised.notes[1:]):
            return
        found.append(raised)
        index = raised.end
    yield from found


def _diagnostic(transcript: Transcript, raised: _Raised, *, causes: Sequence[_Raised]) -> Diagnostic:
    frame = _blamed(transcript, raised)
    details = [note for note in raised.notes if note.strip()][:MAX_NOTES]
    details += [_told(transcript, cause) for cause in reversed(causes)]
    column = None
    if frame.marker is not None and frame.source is not None:
        original = transcript.sources.line(transcript.sources.relative(frame.path), frame.line)
        indent = 0 if original is None else len(original) - len(original.lstrip())
        column = frame.marker - 4 + indent + 1
    return transcript.diagnostic(
        raised.headline,
        tool=TOOL,
        path=frame.path,
        line=frame.line,
        column=column,
        code=raised.type,
        details=details,
        excerpt=frame.source,
    )


def _told(transcript: Transcript, raised: _Raised) -> str:
    frame = _blamed(transcript, raised)
    path = transcript.sources.relative(frame.path) or frame.path
    return f"caused by {raised.headline} ({path}:{frame.line})"


def _blamed(transcript: Transcript, raised: _Raised) -> _Frame:
    """The innermost frame in a file of the caller; the innermost at all if none is."""
    sources = transcript.sources
    own = (frame for frame in reversed(raised.frames) if sources.is_given(sources.relative(frame.path)))
    return next(own, raised.frames[-1])
