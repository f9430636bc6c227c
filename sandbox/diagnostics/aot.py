"""What is said of libraries and caches made ahead of time that do not fit: slower, but not wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sandbox.diagnostics.transcript import Transcript
from sandbox.models import Diagnostic, Severity

_JVM_LOG: Final = re.compile(r"\[[\d.,]+s\]\[(?:warning|error) *\]\[(?:aot|cds)[^]]*\] (?P<text>\S.*)")
_DOTNET: Final = re.compile(r"warning UOM0002: (?P<text>.+)")


def parse_aot(transcript: Transcript) -> Iterator[Diagnostic]:
    """Reads the Java virtual machine's own log, and what the dotnet profile says before it starts a program."""
    said = [match["text"] for line in transcript.stderr if (match := _JVM_LOG.match(line))]
    if said:
        yield transcript.diagnostic(
            "the program's AOT cache was not used; it started later, its outcome is the same",
            tool="jvm",
            severity=Severity.WARNING,
            code="aot-cache",
            details=said,
        )
    if match := _DOTNET.fullmatch(next(iter(transcript.stderr), "")):
        yield transcript.diagnostic(
            "the libraries compiled ahead were not used; the program started later, its outcome is the same",
            tool="dotnet",
            severity=Severity.WARNING,
            code="aot-cache",
            details=[match["text"]],
        )
