"""Why a Spring Boot application ended: what its log says on standard output, and the drivers of its databases.

Spring Boot logs the exception that ended it, or what its failure analysis made of it, and then keeps the virtual
machine from printing it again. Exceptions that a program logs itself, and lives on, are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sandbox.diagnostics.causes import DATABASE_UNREACHABLE
from sandbox.diagnostics.spring_drivers import unreachable_server
from sandbox.diagnostics.stack_trace import Thrown, blamed, read_trace
from sandbox.diagnostics.transcript import Transcript
from sandbox.models import Diagnostic

TOOL: Final = "spring"

_LOG: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\S+ +(?P<level>TRACE|DEBUG|INFO|WARN|ERROR) \d+ --- "
    r"(?:\[[^\]]*\] ?)+ ?(?P<logger>\S+) +: ?(?P<text>.*)"
)
_RUN_FAILED: Final = "Application run failed"
_ANALYSIS: Final = "APPLICATION FAILED TO START"
_DEFAULT_PACKAGE: Final = re.compile(r"\*\* WARNING \*\* : .*@ComponentScan of the default package\.")
_WRAPPERS: Final = re.compile(
    r"org\.springframework\.beans\.(?:factory\.)?\w+"
    r"|org\.springframework\.context\.ApplicationContextException"
    r"|org\.springframework\.data\.mapping\.MappingException: Cannot create PersistentEntity for .*"
    r"|java\.lang\.IllegalStateException: Failed to execute (?:Command|Application)(?:Line)?Runner"
)
_QUERY_METHOD: Final = re.compile(r"(?:query for|query) method.*?\b(?P<type>\w+)\.(?P<name>\w+)\(")
_CLASS: Final = re.compile(r"\b(?:in|constructor in|field \w+ in) (?P<name>(?:[a-z_]\w*\.)+[A-Z][\w$]*)")


def parse_spring(transcript: Transcript) -> Iterator[Diagnostic]:
    """Reads why the application ended."""
    lines = transcript.stdout
    server = unreachable_server(transcript)
    ended: Diagnostic | None = None
    default_package = False
    for index, line in enumerate(lines):
        if _DEFAULT_PACKAGE.fullmatch(line):
            default_package = True
        elif line == _ANALYSIS:
            ended = _analysed(transcript, _block(lines, index + 1)) or ended
        elif (log := _LOG.fullmatch(line)) and log["level"] == "ERROR" and log["text"] == _RUN_FAILED:
            ended = _thrown(transcript, read_trace(_block(lines, index + 1)), default_package=default_package) or ended
    if server is not None:
        yield transcript.diagnostic(
            str(server),
            tool=TOOL,
            path=ended.path if ended else None,
            line=ended.line if ended else None,
            code=DATABASE_UNREACHABLE,
            details=[ended.message] if ended else (),
        )
    elif ended is not None:
        yield ended


def _block(lines: Sequence[str], start: int) -> list[str]:
    """What belongs to a log line: all up to the next one, without empty lines before it."""
    while start < len(lines) and not lines[start].strip():
        start += 1
    end = next((at for at in range(start, len(lines)) if _LOG.fullmatch(lines[at])), len(lines))
    return list(lines[start:end])


def _analysed(transcript: Transcript, block: Sequence[str]) -> Diagnostic | None:
    """The finding of Spring Boot's own failure analysis: a description and an action."""
    parts: dict[str, list[str]] = {"Description:": [], "Action:": []}
    part: list[str] | None = None
    for line in block:
        if line in parts:
            part = parts[line]
        elif part is not None and line.strip():
            part.append(line.strip())
    description, action = parts["Description:"], parts["Action:"]
    if not description:
        return None
    path, number = _declared(transcript, description)
    return transcript.diagnostic(
        description[0],
        tool=TOOL,
        path=path,
        line=number,
        code="start-up",
        details=[*description[1:], *(f"action: {line}" for line in action)],
    )


def _thrown(transcript: Transcript, chain: Sequence[Thrown], *, default_package: bool) -> Diagnostic | None:
    """The exception that ended the application, without the ones that only tell which bean was being made."""
    if not chain:
        return None
    wrappers = 0
    while wrappers < len(chain) - 1 and _WRAPPERS.match(chain[wrappers].summary):
        wrappers += 1
    thrown = chain[wrappers]
    path, number = blamed(transcript, [*chain[wrappers:], *chain[:wrappers]])
    if method := _QUERY_METHOD.search(thrown.summary):
        declared = transcript.sources.find(re.compile(rf".*\b{method['name']}\s*\(.*"), suffix=".java")
        path, number = declared or (path, number)
    details = [*thrown.text[1:], *(f"caused by {cause.summary}" for cause in chain[wrappers + 1 :])]
    details += [f"while: {outer.summary}" for outer in chain[:wrappers]]
    if default_package:
        return transcript.diagnostic(
            "the application lies in the default package, so that Spring scans every class of every library; "
            "declare a package",
            tool=TOOL,
            path=path,
            line=number,
            code="default-package",
            details=[thrown.summary, *details],
        )
    return transcript.diagnostic(thrown.summary, tool=TOOL, path=path, line=number, code=thrown.type, details=details)


def _declared(transcript: Transcript, description: Sequence[str]) -> tuple[str | None, int | None]:
    """Where the caller declares the class that a description names first."""
    for line in description:
        if match := _CLASS.search(line):
            simple = re.split(r"[.$]", match["name"])[-1]
            pattern = re.compile(rf".*\b(?:class|record|interface|enum)\s+{re.escape(simple)}\b.*")
            return transcript.sources.find(pattern, suffix=".java") or (None, None)
    return None, None
