"""Stack traces of Java: the exception, what caused it, and where in the caller's files it came from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sandbox.diagnostics.transcript import Transcript

_HEAD: Final = re.compile(r"(?:Caused by: )?(?P<type>(?:[a-z_][\w]*\.)+[A-Z][\w$]*)(?:: (?P<text>.*))?")
_FRAME: Final = re.compile(
    r"\tat (?:[^\s()]*/)?(?P<where>[^\s()/]+)\((?:(?P<file>[^\s():]+\.java)(?::(?P<line>\d+))?|[^()]*)\).*"
)
_OMITTED: Final = re.compile(r"\t\.\.\. \d+ (?:common frames omitted|more)")
MAX_LINES: Final = 2000


@dataclass(slots=True)
class Thrown:
    """One exception of a trace.

    Attributes:
        type: Its class, with the package.
        text: Its message, one item a line; empty without a message.
        frames: Class and method, file and line of each frame that has them, innermost first.
    """

    type: str
    text: list[str]
    frames: list[tuple[str, str, int]] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """Class and first line of the message."""
        return f"{self.type}: {self.text[0]}" if self.text else self.type


def read_trace(lines: Sequence[str]) -> list[Thrown]:
    """Returns the exceptions of a trace, the outermost first; suppressed ones are left out.

    Args:
        lines: The trace and what follows; it ends at the first line that cannot belong to it.
    """
    chain: list[Thrown] = []
    framed = False
    for position, line in enumerate(lines[:MAX_LINES]):
        if frame := _FRAME.fullmatch(line):
            if not chain:
                break
            framed = True
            if frame["line"]:
                chain[-1].frames.append((frame["where"], frame["file"], int(frame["line"])))
        elif _OMITTED.fullmatch(line) or line.startswith(("\tSuppressed: ", "\t\t", "\tCaused by: ")):
            framed = True
        elif (head := _HEAD.fullmatch(line)) and (not chain or line.startswith("Caused by: ")):
            chain.append(Thrown(head["type"], [head["text"]] if head["text"] else []))
            framed = False
        elif chain and not framed and _goes_on(lines, position + 1):
            chain[-1].text.append(line)
        else:
            break
    return chain


def _goes_on(lines: Sequence[str], position: int) -> bool:
    """Whether a line is a further one of a message: then frames follow soon."""
    return any(_FRAME.fullmatch(line) for line in lines[position : position + 20])


def blamed(transcript: Transcript, chain: Sequence[Thrown]) -> tuple[str | None, int | None]:
    """Returns the first frame that lies in a file of the caller: path and line, twice ``None`` without one."""
    for thrown in chain:
        for where, file, line in thrown.frames:
            path = transcript.sources.of_class(where.rpartition(".")[0], file=file)
            if path is not None:
                return path, line
    return None, None
