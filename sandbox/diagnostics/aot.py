"""What the Java virtual machine says of a cache made ahead of time that does not fit: slower, but not wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sandbox.diagnostics.transcript import Transcript
from sandbox.models import Diagnostic, Severity

TOOL: Final = "jvm"

_LOG: Final = re.compile(r"\[[\d.,]+s\]\[(?:warning|error) *\]\[(?:aot|cds)[^]]*\] (?P<text>\S.*)")


def parse_aot(transcript: Transcript) -> Iterator[Diagnostic]:
    """Reads the virtual machine's own log on standard error."""
    said = [match["text"] for line in transcript.stderr if (match := _LOG.match(line))]
    if said:
        yield transcript.diagnostic(
            "the program's AOT cache was not used; it started later, its outcome is the same",
            tool=TOOL,
            severity=Severity.WARNING,
            code="aot-cache",
            details=said,
        )
