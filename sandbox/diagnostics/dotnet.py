"""Uncaught exceptions and aborts of .NET, as the runtime prints them on standard error, and databases that are down."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sandbox.diagnostics.causes import DATABASE_UNREACHABLE
from sandbox.diagnostics.dotnet_drivers import unreachable_trace
from sandbox.diagnostics.transcript import Transcript
from sandbox.models import Diagnostic

TOOL: Final = "dotnet"

_UNCAUGHT: Final = re.compile(r"Unhandled exception\. (?P<type>[\w.+`]+)(?: \([^)]*\))?(?:: (?P<text>.*))?")
_INNER: Final = re.compile(r" *---> (?P<text>.+)")
_FRAME: Final = re.compile(r" +at (?P<where>.+?)(?: in (?P<path>.+):line (?P<line>\d+))?")
_ABORT: Final = re.compile(
    r"(?P<text>Stack overflow\.|Out of memory\.|Process terminated\.(?: .*)?|Fatal error\.(?: .*)?"
    r"|Failed to create CoreCLR.*|GC heap initialization failed.*"
    r"|You must install or update \.NET to run this application\."
    r"|A fatal error was encountered\..*|The application to execute does not exist: .*)"
)
_CODES: Final = {"Stack overflow.": "StackOverflow", "Out of memory.": "OutOfMemory"}
_SQL_ERROR: Final = re.compile(r"Error Number:-?\d+,State:\d+,Class:\d+")
"""What SQL Server calls an error by is below the stack, not in the message."""

_END_OF_INNER: Final = "--- End of inner exception stack trace ---"
MAX_TEXT_LINES: Final = 20


def parse_dotnet(transcript: Transcript) -> Iterator[Diagnostic]:
    """Reads what ended the process: the runtime prints it last, so only the last such text counts."""
    ended = next(_ended(transcript), None)
    down = unreachable_trace(transcript)
    if down is None:
        if ended is not None:
            yield ended
        return
    server, trace = down
    path, line = (ended.path, ended.line) if ended else _blamed(transcript, trace)
    told = (ended.message, *ended.details) if ended else trace[:1]
    yield transcript.diagnostic(str(server), tool=TOOL, path=path, line=line, code=DATABASE_UNREACHABLE, details=told)


def _ended(transcript: Transcript) -> Iterator[Diagnostic]:
    lines = transcript.stderr
    for index in range(len(lines) - 1, -1, -1):
        if match := _UNCAUGHT.fullmatch(lines[index]):
            yield _exception(transcript, match, lines[index + 1 :])
            return
        if match := _ABORT.fullmatch(lines[index]):
            following = lines[index + 1 :]
            path, number = _blamed(transcript, following)
            yield transcript.diagnostic(
                match["text"],
                tool=TOOL,
                path=path,
                line=number,
                code=_CODES.get(match["text"], "runtime"),
                details=[line.strip() for line in following[:10] if line.strip() and not line.startswith("---")],
            )
            return


def _exception(transcript: Transcript, head: re.Match[str], following: Sequence[str]) -> Diagnostic:
    details: list[str] = []
    for line in following[:MAX_TEXT_LINES]:
        if _INNER.fullmatch(line) or _FRAME.fullmatch(line):
            break
        if line.strip():
            details.append(line)
    details += [match["text"] for line in following if (match := _INNER.fullmatch(line))]
    details += [line for line in following if _SQL_ERROR.fullmatch(line)][:1]
    # Inner exceptions come first, each with its stack; the outermost one's own stack follows the last such line.
    inner = [at for at, line in enumerate(following) if line.strip() == _END_OF_INNER]
    path, number = _blamed(transcript, following[inner[-1] :]) if inner else (None, None)
    if path is None:
        path, number = _blamed(transcript, following)
    kind = head["type"]
    text = f"{kind}: {head['text']}" if head["text"] else kind
    return transcript.diagnostic(text, tool=TOOL, path=path, line=number, code=kind, details=details)


def _blamed(transcript: Transcript, stack: Sequence[str]) -> tuple[str | None, int | None]:
    """The first frame in a file of the caller."""
    sources = transcript.sources
    for line in stack:
        match = _FRAME.fullmatch(line)
        if match is not None and match["path"] and sources.is_given(sources.relative(match["path"])):
            return match["path"], int(match["line"])
    return None, None
