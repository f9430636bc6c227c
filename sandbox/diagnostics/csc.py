"""Findings of the C# compiler and of MSBuild, which prints the same form, on standard output.

``path(line,column): error CODE: text [project]``; without a place ``origin : error CODE: text`` or
``error CODE: text``. MSBuild prints each finding twice, once when it occurs and once in its summary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sandbox.diagnostics.transcript import Transcript
from sandbox.models import Diagnostic, Severity

_KIND: Final = r"(?P<kind>error|warning|info) (?P<code>[A-Z]{2,12}\d{1,6})"
_REST: Final = r": (?P<text>.*?)(?: \[(?P<project>[^\[\]]+\.\w*proj)(?:::[^\[\]]*)?\])?"
_PLACED: Final = re.compile(rf"\s*(?P<path>\S.*?)\((?P<line>\d+),(?P<column>\d+)(?:,\d+,\d+)?\): {_KIND}{_REST}")
_LOOSE: Final = re.compile(rf"\s*(?:(?P<origin>[^:()]+?) ?: )?{_KIND}{_REST}")

_SEVERITIES: Final = {"error": Severity.ERROR, "warning": Severity.WARNING, "info": Severity.INFO}


def parse_csc(transcript: Transcript) -> Iterator[Diagnostic]:
    """Reads the output of ``csc`` and of MSBuild (``dotnet build``, ``dotnet restore``)."""
    for line in transcript.stdout:
        if ": error " not in line and ": warning " not in line and not line.startswith(("error ", "warning ", "info ")):
            continue
        if match := _PLACED.fullmatch(line):
            yield transcript.diagnostic(
                match["text"],
                tool=_tool(match["code"]),
                severity=_SEVERITIES[match["kind"]],
                path=match["path"],
                line=int(match["line"]),
                column=int(match["column"]),
                code=match["code"],
            )
        elif match := _LOOSE.fullmatch(line):
            origin = match["origin"] or ""
            yield transcript.diagnostic(
                match["text"],
                tool=_tool(match["code"]),
                severity=_SEVERITIES[match["kind"]],
                path=origin if transcript.sources.is_given(transcript.sources.relative(origin)) else None,
                code=match["code"],
            )


def _tool(code: str) -> str:
    return "csc" if code.startswith("CS") and code[2:].isdigit() else "msbuild"
