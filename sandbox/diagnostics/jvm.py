"""Uncaught exceptions and start-up failures of the Java virtual machine, as it prints them on standard error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sandbox.diagnostics.transcript import Transcript
from sandbox.models import Diagnostic

TOOL: Final = "jvm"

_UNCAUGHT: Final = re.compile(r'Exception in thread ".*" (?P<type>[\w.$]+)(?:: (?P<text>.*))?')
_THROWN_WHILE_HANDLING: Final = re.compile(
    r"Exception: (?P<type>[\w.$]+) thrown from the UncaughtExceptionHandler in thread .*"
)
_FRAME: Final = re.compile(
    r"\s+at (?:[^\s()]*/)?(?P<where>[^\s()/]+)\((?P<file>[^\s():]+\.java)(?::(?P<line>\d+))?\).*"
)
_CAUSE: Final = re.compile(r"(?:Caused by|Suppressed): .+")
_STACK: Final = re.compile(r"\s+(?:at .+|\.\.\. \d+ more|Suppressed: .+|Caused by: .+)|Caused by: .+")
_LAUNCHER: Final = re.compile(
    r"(?:Error|error): (?P<text>"
    r"Could not find or load main class .+"
    r"|Main method not found in .+"
    r"|Main method is not .+"
    r"|[Nn]o main method found in .+"
    r"|[Nn]o class declared in .+"
    r"|LinkageError occurred while loading main class .+"
    r"|Unable to initialize main class .+"
    r"|Could not create the Java Virtual Machine\."
    r"|Invalid maximum heap size: .+"
    r")"
)
_NO_START: Final = "Error occurred during initialization of VM"
_FATAL: Final = "# A fatal error has been detected by the Java Runtime Environment:"
MAX_TEXT_LINES: Final = 20


def parse_jvm(transcript: Transcript) -> Iterator[Diagnostic]:
    """Reads what the virtual machine said about exceptions nobody caught and about its own failures."""
    lines = transcript.stderr
    index = 0
    while index < len(lines):
        line = lines[index]
        if match := _UNCAUGHT.fullmatch(line):
            found, index = _exception(transcript, match, index + 1)
            yield found
            continue
        if match := _THROWN_WHILE_HANDLING.fullmatch(line):
            yield transcript.diagnostic(line, tool=TOOL, code=match["type"])
        elif match := _LAUNCHER.fullmatch(line):
            details = [following for following in lines[index + 1 : index + 6] if following.strip()]
            yield transcript.diagnostic(match["text"], tool=TOOL, code="launcher", details=details)
            return
        elif line in (_NO_START, _FATAL):
            details = [following.removeprefix("#").strip() for following in lines[index + 1 : index + 12]]
            told = [detail for detail in details if detail]
            text = told[0] if told else line
            yield transcript.diagnostic(text, tool=TOOL, code="jvm", details=(line.lstrip("# "), *told[1:]))
            return
        index += 1


def _exception(transcript: Transcript, head: re.Match[str], index: int) -> tuple[Diagnostic, int]:
    lines = transcript.stderr
    details: list[str] = []
    # A message may have several lines; the stack begins with the first line that looks like one.
    ahead = range(index, min(index + MAX_TEXT_LINES, len(lines)))
    first = next((at for at in ahead if _STACK.fullmatch(lines[at])), index)
    details += [line for line in lines[index:first] if line.strip()]
    index = first
    stack: list[str] = []
    in_text = False
    while index < len(lines) and not _UNCAUGHT.fullmatch(lines[index]):
        if _STACK.fullmatch(lines[index]):
            in_text = _CAUSE.match(lines[index].strip()) is not None
        elif not (in_text and _stack_goes_on(lines, index + 1)):
            break
        stack.append(lines[index])
        index += 1
    details += [line.strip() for line in stack if _CAUSE.match(line.strip())]
    path, number = _blamed(transcript, stack)
    kind = head["type"]
    text = f"{kind}: {head['text']}" if head["text"] else kind
    return transcript.diagnostic(text, tool=TOOL, path=path, line=number, code=kind, details=details), index


def _stack_goes_on(lines: Sequence[str], index: int) -> bool:
    """Whether a line is a further one of a cause's message: then stack lines follow soon."""
    return any(_STACK.fullmatch(line) for line in lines[index : index + MAX_TEXT_LINES])


def _blamed(transcript: Transcript, stack: Sequence[str]) -> tuple[str | None, int | None]:
    """The first frame in a file of the caller."""
    for line in stack:
        match = _FRAME.fullmatch(line)
        if match is None or match["line"] is None:
            continue
        path = transcript.sources.of_class(match["where"].rpartition(".")[0], file=match["file"])
        if path is not None:
            return path, int(match["line"])
    return None, None
