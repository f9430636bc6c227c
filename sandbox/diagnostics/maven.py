"""Findings of ``javac`` and of Maven itself, as Maven prints them on standard output.

The form (Maven 3.8, compiler plugin 3.15, batch mode): ``[ERROR] path:[line,column] text``, the lines that belong to it
indented. When the goal fails, Maven repeats the whole list, each line with ``[ERROR]`` before it. The compiler runs
inside of Maven, which costs two things that the command line has: the source line, and the names of warnings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sandbox.diagnostics.javac_codes import code_of
from sandbox.diagnostics.maven_project import parse_project
from sandbox.diagnostics.transcript import Transcript
from sandbox.models import Diagnostic, Severity

TOOL: Final = "javac"
TAB: Final = 8
"""Columns from one tab stop to the next in the compiler's own counting, which Maven reports."""

_HEAD: Final = re.compile(
    r"\[(?P<kind>ERROR|WARNING)\] (?P<path>[^\s:\[][^:]*\.java):\[(?P<line>\d+),(?P<column>\d+)\] "
    r"(?:\[(?P<lint>[a-z][\w-]*)\] )?(?P<text>\S.*)"
)
_DETAIL: Final = re.compile(r"(?:\[(?:ERROR|WARNING)\] )?(?P<text>  +\S.*)")
_CRASH: Final = re.compile(r"An exception has occurred in the compiler \((?P<version>[^)]*)\)")
_LINTS: Final = {
    "has been deprecated and marked for removal": "removal",
    "has been deprecated": "deprecation",
    "unchecked ": "unchecked",
}

_SEVERITIES: Final = {"ERROR": Severity.ERROR, "WARNING": Severity.WARNING}


def parse_maven(transcript: Transcript) -> Iterator[Diagnostic]:
    """Reads the output of ``mvn``."""
    found = _compiler_findings(transcript)
    yield from found
    yield from parse_project(transcript, compiled=any(item.severity is Severity.ERROR for item in found))


def _compiler_findings(transcript: Transcript) -> list[Diagnostic]:
    lines = transcript.stdout
    found: dict[tuple[object, ...], Diagnostic] = {}
    for index, line in enumerate(lines):
        if head := _HEAD.fullmatch(line):
            item = _finding(transcript, head, _details(lines, index + 1))
            key = (item.severity, item.path, item.line, item.column, item.message)
            # Of the two lists, either may have lost the lines that belong to a finding.
            if key not in found or len(found[key].details) < len(item.details):
                found[key] = item
        elif crash := _CRASH.match(line):
            return [
                transcript.diagnostic(
                    f"the compiler {crash['version']} crashed",
                    tool=TOOL,
                    code="compiler_crash",
                    details=[told for line in lines[index + 1 :] if (told := line.removeprefix("[ERROR] ")).strip()],
                )
            ]
    return list(found.values())


def _details(lines: Sequence[str], index: int) -> list[str]:
    details = []
    while index < len(lines) and (match := _DETAIL.fullmatch(lines[index])):
        details.append(match["text"].strip())
        index += 1
    return details


def _finding(transcript: Transcript, head: re.Match[str], details: Sequence[str]) -> Diagnostic:
    line = int(head["line"])
    source = transcript.sources.line(transcript.sources.relative(head["path"]), line)
    code = head["lint"] or code_of(head["text"])
    if head["kind"] == "WARNING":
        code = head["lint"] or next((lint for words, lint in _LINTS.items() if words in head["text"]), None)
    return transcript.diagnostic(
        head["text"],
        tool=TOOL,
        severity=_SEVERITIES[head["kind"]],
        path=head["path"],
        line=line,
        column=_character(source, int(head["column"])),
        code=code,
        details=details,
    )


def _character(source: str | None, column: int) -> int:
    """The 1-based character that stands in a column, where tabs reach to the next stop."""
    if source is None or "\t" not in source:
        return column
    reached = 0
    for position, character in enumerate(source, start=1):
        reached = (reached // TAB + 1) * TAB if character == "\t" else reached + 1
        if reached >= column:
            return position
    return len(source) + 1
