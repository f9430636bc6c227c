"""Findings of ``javac``, as it prints them on standard error.

The form (JDK 17 to 25): a head line ``path:line: error: text``, the source line, a line with a caret below the
column, then indented lines that belong to it (``symbol:``, ``location:``, ``required:``). The source line is skipped as
a whole, so source text that looks like a head makes no finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sandbox.diagnostics.javac_codes import code_of
from sandbox.diagnostics.transcript import Transcript
from sandbox.models import Diagnostic, Severity

TOOL: Final = "javac"

_HEAD: Final = re.compile(
    r"(?P<path>[^\s:][^:]*\.java):(?P<line>\d+): (?P<kind>error|warning|Note): "
    r"(?:\[(?P<lint>[a-z][\w-]*)\] )?(?P<text>\S.*)"
)
_LOOSE: Final = re.compile(r"(?P<kind>error|warning|Note): (?:\[(?P<lint>[a-z][\w-]*)\] )?(?P<text>\S.*)")
_CARET: Final = re.compile(r"[ \t]*\^")
_CRASH: Final = re.compile(r"An exception has occurred in the compiler \((?P<version>[^)]*)\)")
_JVM_LOG: Final = re.compile(r"\[[\d.,]+s\]\[(?P<level>warning|error) *\]\[(?:aot|cds)[^]]*\] (?P<text>\S.*)")
_NOISE: Final = ("Some messages have been simplified", "Recompile with -X")

_SEVERITIES: Final = {"error": Severity.ERROR, "warning": Severity.WARNING, "Note": Severity.INFO}


def parse_javac(transcript: Transcript) -> Iterator[Diagnostic]:
    """Reads the output of ``javac``."""
    lines = transcript.stderr
    index = 0
    while index < len(lines):
        line = lines[index]
        if head := _HEAD.fullmatch(line):
            found, index = _positioned(transcript, head, index)
            yield found
        elif crash := _CRASH.match(line):
            yield transcript.diagnostic(
                f"the compiler {crash['version']} crashed", tool=TOOL, code="compiler_crash", details=lines[index + 1 :]
            )
            return
        elif (loose := _LOOSE.fullmatch(line)) and not loose["text"].startswith(_NOISE):
            yield transcript.diagnostic(
                loose["text"],
                tool=TOOL,
                severity=_SEVERITIES[loose["kind"]],
                code=loose["lint"] or (code_of(loose["text"]) if loose["kind"] == "error" else None),
            )
            index += 1
        else:
            index += 1
    yield from _rejected_cache(transcript)


def _positioned(transcript: Transcript, head: re.Match[str], index: int) -> tuple[Diagnostic, int]:
    lines = transcript.stderr
    column: int | None = None
    excerpt: str | None = None
    index += 1
    if index + 1 < len(lines) and _CARET.fullmatch(lines[index + 1]):
        excerpt = lines[index]
        column = len(lines[index + 1])
        index += 2
    details: list[str] = []
    while index < len(lines) and lines[index].startswith(("  ", "\t")):
        details.append(lines[index])
        index += 1
    found = transcript.diagnostic(
        head["text"],
        tool=TOOL,
        severity=_SEVERITIES[head["kind"]],
        path=head["path"],
        line=int(head["line"]),
        column=column,
        code=head["lint"] or code_of(head["text"]),
        details=[detail.strip() for detail in details],
        excerpt=excerpt,
    )
    return found, index


def _rejected_cache(transcript: Transcript) -> Iterator[Diagnostic]:
    """One warning when the virtual machine could not use its AOT cache: slower, but not wrong."""
    said = [match["text"] for line in transcript.stdout if (match := _JVM_LOG.match(line))]
    if said:
        yield transcript.diagnostic(
            "the compiler's AOT cache was not used; the build took longer, its outcome is the same",
            tool=TOOL,
            severity=Severity.WARNING,
            code="aot-cache",
            details=said,
        )
