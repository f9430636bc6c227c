"""Why Maven could not even compile: projects it cannot read, libraries and plugins it cannot get, goals that fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sandbox.diagnostics.transcript import Transcript
from sandbox.models import Diagnostic

TOOL: Final = "maven"
PROJECT: Final = "pom.xml"

_PROBLEMS: Final = "Some problems were encountered while processing the POMs:"
_PROBLEM: Final = re.compile(
    r"\[(?:FATAL|ERROR)\] (?P<text>.+?) +@ (?:(?P<path>[^,]*pom\.xml), )?line (?P<line>\d+), column (?P<column>\d+)"
)
_PROBLEM_ANYWHERE: Final = re.compile(r"\[(?:FATAL|ERROR)\] (?P<text>\S.*)")
_END_OF_PROBLEMS: Final = re.compile(r"\s*@\s*")
_GOAL: Final = re.compile(
    r"\[ERROR\] Failed to execute goal (?:(?P<goal>\S+) (?:\(\S+\) )?)?on project (?P<project>\S+): (?P<text>.*)"
)
_OTHER: Final = re.compile(
    r"\[ERROR\] (?P<text>(?:Plugin \S+ or one of its dependencies could not be resolved"
    r"|Error resolving version for plugin|No plugin found for prefix"
    r"|Unknown lifecycle phase|The goal you specified requires a project).*)"
)
_HELP: Final = re.compile(r"(?: -> \[Help \d+\])+$")

_LISTED: Final = re.compile(r"The following artifacts could not be resolved: (?P<artifacts>.+?): (?P<reason>[A-Z].*)")
_ARTIFACT: Final = r"(?P<artifact>[\w.-]+(?::[\w.-]+){2,5})"
_OFFLINE: Final = re.compile(rf"in offline mode and the artifact {_ARTIFACT} has not been downloaded")
_ABSENT: Final = re.compile(rf"(?:Could not find artifact|Failure to find) {_ARTIFACT}")
_TRANSFER: Final = re.compile(rf"Could not transfer artifact {_ARTIFACT} from/to \S+ \(\S*\): (?P<why>.+)")
_ADDRESS: Final = re.compile(r" from/to \S+ \(\S*\)| (?:in|access) \S+ \(\S+://\S*\)")
_TYPES: Final = frozenset({"jar", "pom", "war", "test-jar", "maven-plugin"})


def parse_project(transcript: Transcript, *, compiled: bool) -> Iterator[Diagnostic]:
    """Reads what Maven says about the project, its libraries and its goals.

    Args:
        transcript: Its output.
        compiled: Whether the compiler's own errors are known, so that the goal's failure says nothing new.
    """
    lines = transcript.stdout
    in_problems = False
    for index, line in enumerate(lines):
        if line.endswith(_PROBLEMS):
            in_problems = True
        elif in_problems and _END_OF_PROBLEMS.fullmatch(line):
            in_problems = False
        elif in_problems:
            yield from _problem(transcript, line)
        elif match := _GOAL.fullmatch(line):
            yield from _failed_goal(transcript, match, lines[index + 1 : index + 40], compiled=compiled)
        elif match := _OTHER.fullmatch(line):
            text = _HELP.sub("", match["text"])
            yield _unresolved(transcript, text) or transcript.diagnostic(text, tool=TOOL, code="plugin")


def _problem(transcript: Transcript, line: str) -> Iterator[Diagnostic]:
    match = _PROBLEM.fullmatch(line)
    if match is None:
        if match := _PROBLEM_ANYWHERE.fullmatch(line):
            yield transcript.diagnostic(match["text"], tool=TOOL, path=PROJECT, code="project")
        return
    text, place = match["text"], (match["path"] or PROJECT, int(match["line"]), int(match["column"]))
    found = _unresolved(transcript, text, place=place)
    if found is None:
        text, _, details = text.partition(" (position: ")
        text = re.sub(r"(Non-parseable POM) \S*pom\.xml:", r"\1:", text)
        path, number, column = place
        found = transcript.diagnostic(
            text,
            tool=TOOL,
            path=path,
            line=number,
            column=column,
            code="project",
            details=[details.rstrip(") ")] if details else (),
        )
    yield found


def _failed_goal(
    transcript: Transcript, match: re.Match[str], following: tuple[str, ...], *, compiled: bool
) -> Iterator[Diagnostic]:
    text = _HELP.sub("", match["text"])
    if listed := _LISTED.search(text):
        for artifact in listed["artifacts"].split(", "):
            yield _artifact(transcript, artifact, reason=listed["reason"])
        return
    if found := _unresolved(transcript, text):
        yield found
        return
    if compiled and "ompilation failure" in text:
        return
    told = [line.removeprefix("[ERROR]").strip() for line in following if line.startswith("[ERROR]")]
    end = next((at for at, line in enumerate(told) if not line or line.startswith("-> [Help")), len(told))
    yield transcript.diagnostic(
        text.strip() or f"the goal {match['goal']} failed",
        tool=TOOL,
        code="goal",
        details=(f"goal {match['goal']}", *told[:end]) if match["goal"] else told[:end],
    )


def _unresolved(transcript: Transcript, text: str, *, place: tuple[str, int, int] | None = None) -> Diagnostic | None:
    """The finding for one artifact that is not there, ``None`` when the text is about something else."""
    for pattern in (_OFFLINE, _ABSENT, _TRANSFER):
        if match := pattern.search(text):
            return _artifact(transcript, match["artifact"], reason=text, place=place)
    return None


def _artifact(
    transcript: Transcript, artifact: str, *, reason: str, place: tuple[str, int, int] | None = None
) -> Diagnostic:
    parts = artifact.split(":")
    name = ":".join(part for part in parts if part not in _TYPES)
    if _OFFLINE.search(reason):
        code, said = "offline", f"{name} is not in the snapshot, and the sandbox has no network to fetch it"
        details: tuple[str, ...] = (
            "Use what the framework's template brings, or a profile whose network policy is `open`, or `allow` with "
            "Maven's repository.",
        )
    elif transfer := _TRANSFER.search(reason):
        code, said = "transfer", f"{name} could not be fetched"
        details = (_ADDRESS.sub("", transfer["why"]),)
    else:
        code, said, details = "not-found", f"the repository has no {name}", ()
    if place is None:
        line = re.compile(rf".*<artifactId>\s*{re.escape(parts[1])}\s*</artifactId>.*")
        where = transcript.sources.find(line, suffix=PROJECT)
        path, number = where or (None, None)
        return transcript.diagnostic(said, tool=TOOL, path=path, line=number, code=code, details=details)
    path, number, column = place
    return transcript.diagnostic(said, tool=TOOL, path=path, line=number, column=column, code=code, details=details)
