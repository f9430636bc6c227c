"""Removal of terminal control sequences: colours, cursor moves, titles, progress."""

from __future__ import annotations

import re
from typing import Final

# ECMA-48: CSI sequences, then strings (OSC, DCS, APC, PM, SOS) that BEL or ST ends, then two-character escapes. A
# string whose end is missing ends with its line, so that a lone introducer cannot swallow the rest of the output.
_SEQUENCE: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]P_^X][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]"
)


def strip_ansi(text: str) -> str:
    """Returns the text without terminal control sequences."""
    if "\x1b" not in text and "\x9b" not in text:
        return text
    return _SEQUENCE.sub("", text)
