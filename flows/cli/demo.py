"""``uom-sandbox demo``: the examples through the whole product, verdict against expected verdict."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from flows.cli.examples import Example, examples_directory, load_example
from flows.cli.running import quiet_prefect
from flows.cli.running import run as run_to_end
from flows.cli.terminal import Console, one_line, summary
from flows.cli.translations import Translation, load_translation, translation_files
from flows.outcomes import EXIT_DIFFERS, EXIT_INFRASTRUCTURE, EXIT_PASSED, TRANSLATIONS
from sandbox.errors import ConfigurationError, SandboxError, SnapshotBuildError
from sandbox.models import ValidationRequest
from sandbox.profiles import builtin_profile, builtin_profile_names

LIVE_LINES = 20
"""Lines of output that are shown of each program; one of the examples floods."""

SHOWN_TRANSLATIONS = ("python-to-java", "java-inner-join")
"""Translations that are shown when no names are given: one that passes, one that is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table.

    Attributes:
        name: Of the example.
        verdict: The word that was found, ``not run``, or ``failed``.
        colour: Its colour.
        detail: Seconds, or why not.
    """

    name: str
    verdict: str
    colour: str
    detail: str


def run(options: argparse.Namespace) -> int:
    """Validates the examples and prints the table."""
    directory = examples_directory(options.examples)
    known = sorted(path.parent.name for path in directory.glob("*/example.toml"))
    pairs = {path.stem: path for path in translation_files(directory)}
    if twice := pairs.keys() & set(known):
        raise ConfigurationError(
            f"{', '.join(sorted(twice))}: the name of a program and of a translation",
            field="examples",
            remedy="Rename one of them.",
        )
    if unknown := set(options.names) - {*known, *pairs}:
        raise ConfigurationError(
            f"no example {', '.join(sorted(unknown))}",
            field="NAME",
            remedy=f"There are: {', '.join((*known, *pairs))}.",
        )
    names = options.names or (*known, *(name for name in SHOWN_TRANSLATIONS if name in pairs))
    examples = [load_translation(pairs[name]) if name in pairs else load_example(directory / name) for name in names]
    if not options.names:
        # What takes long to prepare comes last, so that nothing else waits for it.
        examples.sort(key=lambda item: isinstance(item, Example) and _tools(item.request) != item.request.profile)
    quiet_prefect()
    # One stream, so that the order is kept also where the output is not a terminal.
    return run_to_end(_demo(examples, Console(live_lines=LIVE_LINES, errors=sys.stdout)))


async def _demo(examples: Sequence[Example | Translation], console: Console) -> int:
    from flows.prefect_connection import prefect_api
    from sandbox.connection import client, platform_credentials

    rows: list[Row] = []
    without: dict[str, str] = {}
    async with prefect_api(progress=console.status) as api_url, client(await platform_credentials()):
        for example in examples:
            if isinstance(example, Translation):
                rows.append(await _translation(example, console, without))
            else:
                rows.append(await _one(example, console, without))
    _table(rows, console)
    console.line(console.paint(f"  every run is kept at {api_url.removesuffix('/api')}/runs", "dim"))
    words = {row.verdict for row in rows}
    if "failed" in words or words == {"not run"}:
        return EXIT_INFRASTRUCTURE
    return EXIT_DIFFERS if "differs" in words else EXIT_PASSED


async def _one(example: Example, console: Console, without: dict[str, str]) -> Row:
    """Validates one example; ``without`` remembers profiles whose tools are missing, and why."""
    from flows.api import validate

    profile, tools = example.request.profile, _tools(example.request)
    console.line(f"{console.paint(example.name, 'bold')}  {example.title}")
    if profile not in builtin_profile_names():
        without[tools] = f"there is no profile {profile}"
    reason = without.get(tools) or _unnamed(example)
    if not reason:
        console.begin()
        try:
            result = await validate(example.request, on_event=console.on_event)
        except SnapshotBuildError as error:
            reason = without[tools] = f"the tools of {tools} are not here: {_reason(error)}"
        except SandboxError as error:
            console.line(f"{error}\n")
            return Row(name=example.name, verdict="failed", colour="red", detail=one_line(error.message))
        else:
            for line in summary(result, console):
                console.line(line)
            console.line()
            if faults := example.faults(result):
                return Row(name=example.name, verdict="differs", colour="red", detail=one_line("; ".join(faults)))
            seconds = f"{result.timings.total:6.2f} s"
            return Row(name=example.name, verdict=result.outcome.value, colour="green", detail=seconds)
    console.line(console.paint(f"not run: {reason}\n", "yellow"))
    return Row(name=example.name, verdict="not run", colour="yellow", detail=reason)


def _unnamed(example: Example | Translation) -> str | None:
    """Why the databases of an example are not known, ``None`` when they are."""
    if not example.missing:
        return None
    return f"its databases are not named: set {', '.join(example.missing)}, see examples/README.md"


def _tools(request: ValidationRequest) -> str:
    """What a snapshot is prepared for: a profile, and the framework where that has a snapshot of its own."""
    if request.profile in builtin_profile_names():
        profile = builtin_profile(request.profile)
        framework = request.framework or profile.default_framework
        if framework in profile.frameworks and profile.frameworks[framework].snapshot == "own":
            return f"{request.profile} with {framework}"
    return request.profile


async def _translation(example: Translation, console: Console, without: dict[str, str]) -> Row:
    """Validates and compares one pair; what the programs print is not shown."""
    from flows.translation_api import validate_translation

    console.line(f"{console.paint(example.name, 'bold')}  {example.title}")
    missing = next((without[_tools(r)] for r in (example.source, example.target) if _tools(r) in without), None)
    missing = missing or _unnamed(example)
    if missing is None:
        try:
            result = await validate_translation(example.source, example.target, rules=example.rules)
        except SnapshotBuildError as error:
            missing = f"its tools are not here: {_reason(error)}"
        except SandboxError as error:
            console.line(f"{error}\n")
            return Row(name=example.name, verdict="failed", colour="red", detail=one_line(error.message))
        else:
            row = TRANSLATIONS[result.outcome]
            head, *lines = result.text().splitlines()
            console.line(f"{console.paint(f'{row.symbol} {one_line(head)}', row.colour)}")
            for line in lines:
                console.line(f"  {one_line(line)}")
            console.line()
            if faults := example.faults(result):
                return Row(name=example.name, verdict="differs", colour="red", detail=one_line("; ".join(faults)))
            seconds = f"{result.seconds:6.2f} s"
            return Row(name=example.name, verdict=result.outcome.value, colour="green", detail=seconds)
    console.line(console.paint(f"not run: {missing}\n", "yellow"))
    return Row(name=example.name, verdict="not run", colour="yellow", detail=missing)


def _reason(error: SnapshotBuildError) -> str:
    """What the failed set-up step said last, without the builder's own lines."""
    lines = [one_line(line).strip() for line in error.log_tail]
    said = [line for line in lines if line and not line.startswith(("[", "ERROR:"))]
    return " ".join(said[-2:]) or one_line(error.message)


def _table(rows: Sequence[Row], console: Console) -> None:
    width, verdicts = max(len(row.name) for row in rows), max(len(row.verdict) for row in rows)
    for row in rows:
        symbol = {"green": "✔", "red": "✘", "yellow": "·"}[row.colour]
        verdict = console.paint(f"{symbol} {row.verdict:<{verdicts}}", row.colour)
        console.line(f"  {row.name:<{width}}  {verdict} {row.detail}")
