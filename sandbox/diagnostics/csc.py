"""Findings of the C# compiler and of MSBuild, which prints the same form, on standard output.

``path(line,column): error CODE: text [project]``; without a place ``origin : error CODE: text`` or
``error CODE: text``. MSBuild prints each finding twice, once when it occurs and once in its summary. Findings of NuGet
have the project's path and no line; the line is that of the reference to the package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sandbox.diagnostics.nuget import explained_restore
from sandbox.diagnostics.transcript import Transcript
from sandbox.models import Diagnostic, Severity

_KIND: Final = r"(?P<kind>error|warning|info) (?P<code>[A-Z]{2,12}\d{1,6})"
_REST: Final = r": (?P<text>.*?)(?: \[(?P<project>[^\[\]]+\.\w*proj)(?:::[^\[\]]*)?\])?"
_PLACED: Final = re.compile(rf"\s*(?P<path>\S.*?)\((?P<line>\d+),(?P<column>\d+)(?:,\d+,\d+)?\): {_KIND}{_REST}")
_LOOSE: Final = re.compile(rf"\s*(?:(?P<origin>[^:()]+?) ?: )?{_KIND}{_REST}")

_ENDED: Final = ("Unhandled exception. ", "Stack overflow.")
_COMPILER_CODE: Final = re.compile(r" +at Microsoft\.CodeAnalysis\.")
CRASH_LINES: Final = 40
"""How far below its head a trace must show the compiler's own code."""

_PACKAGE: Final = re.compile(r"(?:Unable to find (?:a stable )?package|depends on) ([\w.-]+\w)")

_SEVERITIES: Final = {"error": Severity.ERROR, "warning": Severity.WARNING, "info": Severity.INFO}


def parse_csc(transcript: Transcript) -> Iterator[Diagnostic]:
    """Reads the output of ``csc`` and of MSBuild (``dotnet build``, ``dotnet restore``)."""
    last: Diagnostic | None = None
    for line in transcript.stdout:
        if ": error " not in line and ": warning " not in line and not line.startswith(("error ", "warning ", "info ")):
            continue
        found, further = _finding(transcript, line)
        if further is not None:
            # MSBuild gives each line of a text the head of the first one.
            if last is not None and last.code == further[0]:
                last = last.model_copy(update={"details": (*last.details, further[1])})
            continue
        if found is not None:
            if last is not None:
                yield explained_restore(last)
            last = found
    if last is not None:
        yield explained_restore(last)
    yield from _crash(transcript)


def _crash(transcript: Transcript) -> Iterator[Diagnostic]:
    """The compiler's own end: the runtime prints the trace of the compiler's code on standard error."""
    lines = transcript.stderr
    for index, line in enumerate(lines):
        if line.startswith(_ENDED) and any(map(_COMPILER_CODE.match, lines[index + 1 : index + CRASH_LINES])):
            yield transcript.diagnostic(
                "the C# compiler crashed", tool="csc", code="compiler_crash", details=lines[index:]
            )
            return


def _finding(transcript: Transcript, line: str) -> tuple[Diagnostic | None, tuple[str, str] | None]:
    """The finding a line begins, or code and text of a further line of the one before."""
    if match := _PLACED.fullmatch(line):
        found = transcript.diagnostic(
            match["text"],
            tool=_tool(match["code"]),
            severity=_SEVERITIES[match["kind"]],
            path=match["path"],
            line=int(match["line"]),
            column=int(match["column"]),
            code=match["code"],
        )
        return found, None
    if (match := _LOOSE.fullmatch(line)) is None:
        return None, None
    if match["text"].startswith("  ") and match["code"].startswith("NU"):
        return None, (match["code"], match["text"].strip())
    origin = match["origin"] or ""
    given = transcript.sources.is_given(transcript.sources.relative(origin))
    path = origin if given else None
    number: int | None = None
    if package := _PACKAGE.search(match["text"]):
        reference = re.compile(
            rf".*<PackageReference\b[^>]*\b(?:Include|Update)\s*=\s*\"{re.escape(package[1])}\".*", re.I
        )
        path, number = transcript.sources.find(reference, suffix="proj") or (path, number)
    found = transcript.diagnostic(
        match["text"],
        tool=_tool(match["code"]),
        severity=_SEVERITIES[match["kind"]],
        path=path,
        line=number,
        code=match["code"],
    )
    return found, None


def _tool(code: str) -> str:
    return "csc" if code.startswith("CS") and code[2:].isdigit() else "msbuild"
