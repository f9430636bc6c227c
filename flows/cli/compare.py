"""``uom-sandbox compare``."""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue, ValidationError

from flows.cli.program import read_program
from flows.cli.running import quiet_prefect
from flows.cli.running import run as run_to_end
from flows.cli.side_lines import SideLines
from flows.cli.terminal import Console, one_line
from flows.connections import split_references
from flows.outcomes import TRANSLATIONS
from flows.parameters import checked_request
from sandbox.comparison import ComparisonRules, ResultsComparison, checked_rules, compare_results
from sandbox.comparison.report import comparison_feedback, comparison_lines
from sandbox.errors import ConfigurationError
from sandbox.json_text import JsonTextError, parse_json
from sandbox.models import ValidationRequest, ValidationResult
from sandbox.translation import TranslationResult, conclude_translation


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two programs.

    Attributes:
        request: The program.
        connection_blocks: Names of blocks with its databases.
    """

    request: ValidationRequest
    connection_blocks: tuple[str, ...]


def run(options: argparse.Namespace) -> int:
    """Compares a translation with its source and returns the exit code of the verdict."""
    rules = _rules(options.rules, options.rule)
    console = Console(live=not options.quiet, output=sys.stderr)
    verdict: TranslationResult | ResultsComparison
    links: list[str] = []
    if options.results:
        verdict = _offline(options.source, options.target, rules)
    else:
        source, target = (_request(side, options) for side in ("source", "target"))
        quiet_prefect()
        verdict, links = run_to_end(_translate(source, target, rules, console))
    _print(verdict, options, console, links)
    return TRANSLATIONS[verdict.outcome].exit_code


async def _translate(
    source: Side, target: Side, rules: ComparisonRules, console: Console
) -> tuple[TranslationResult, list[str]]:
    from flows.prefect_connection import prefect_api
    from flows.translation_api import validate_translation

    lines = SideLines(console.on_event)
    async with prefect_api(progress=console.status) as api_url:
        result = await validate_translation(
            source.request,
            target.request,
            rules=rules,
            on_event=lines.on_event,
            source_connection_blocks=source.connection_blocks,
            target_connection_blocks=target.connection_blocks,
            progress=console.status,
        )
    await lines.close()
    return result, [f"{api_url.removesuffix('/api')}/runs/flow-run/{result.flow_run_id}"]


def _print(
    verdict: TranslationResult | ResultsComparison, options: argparse.Namespace, console: Console, links: list[str]
) -> None:
    if options.json:
        text = orjson.dumps(verdict.model_dump(mode="json"), option=orjson.OPT_INDENT_2).decode()
    elif options.feedback:
        text = (
            verdict.feedback(options.feedback)
            if isinstance(verdict, TranslationResult)
            else comparison_feedback(verdict, budget_chars=options.feedback)
        )
    elif options.quiet:
        return
    else:
        row = TRANSLATIONS[verdict.outcome]
        lines = (
            verdict.text().splitlines()[1:] if isinstance(verdict, TranslationResult) else comparison_lines(verdict)[1:]
        )
        head = console.paint(f"{row.symbol} {verdict.outcome.value}", row.colour)
        text = "\n".join([f"{head}  {one_line(verdict.message)}", *(f"  {one_line(line)}" for line in lines)])
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    for link in links:
        console.status(f"  {link}")


def _rules(file: Path | None, single: Mapping[str, str]) -> ComparisonRules:
    """The rules of the file, and over them the single ones."""
    document: dict[str, Any] = {}
    if file is not None:
        try:
            text = file.read_bytes()
            document = orjson.loads(text) if file.suffix == ".json" else tomllib.loads(text.decode())
        except OSError as error:
            raise ConfigurationError(f"cannot read {file}: {error.strerror}", field="--rules") from None
        except ValueError as error:
            raise ConfigurationError(f"{file}: {error}", field="--rules") from None
        checked_rules(document, field=str(file))
    for name, value in single.items():
        _put(document, name.split("."), _value(value), name)
    return checked_rules(document, field="--rule" if single else "--rules")


def _put(document: dict[str, Any], names: list[str], value: Any, whole: str) -> None:
    for name in names[:-1]:
        inner = document.get(name)
        if inner is None:
            inner = document[name] = {}
        if not isinstance(inner, dict):
            raise ConfigurationError(f"{name} has no members", field=f"--rule {whole}")
        document = inner
    document[names[-1]] = value


def _value(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _request(side: str, options: argparse.Namespace) -> Side:
    profile = getattr(options, f"{side}_profile")
    if not profile:
        raise ConfigurationError(
            "is needed to run a program", field=f"--{side}-profile", remedy="With --results nothing is run."
        )
    path: Path = getattr(options, side)
    blocks, connections = split_references(getattr(options, f"{side}_connection"), field=f"--{side}-connection")
    request = checked_request(
        {
            "profile": profile,
            "framework": getattr(options, f"{side}_framework"),
            "files": read_program([path]),
            "entry_point": getattr(options, f"{side}_entry_point"),
            "thread_id": options.thread,
            "environment": options.env,
            "secrets": {name: _secret(name) for name in options.secret_env},
            "connections": connections,
            "isolation": options.isolation,
            "limits": {"total_seconds": options.timeout} if options.timeout else {},
        }
    )
    return Side(request, tuple(blocks))


def _secret(name: str) -> str:
    if name not in os.environ:
        raise ConfigurationError(f"the environment has no variable {name}", field="--secret-env")
    return os.environ[name]


def _offline(source: Path, target: Path, rules: ComparisonRules) -> TranslationResult | ResultsComparison:
    """Compares two files; when both are verdicts, a side that did not pass is a failed side."""
    one, other = _read("SOURCE", source), _read("TARGET", target)
    if isinstance(one, ValidationResult) and isinstance(other, ValidationResult):
        return conclude_translation(one, other, rules=rules)
    return compare_results(_result(one, source), _result(other, target), rules=rules)


def _read(field: str, path: Path) -> ValidationResult | JsonValue:
    try:
        value = parse_json(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}", field=field) from None
    except JsonTextError as error:
        raise ConfigurationError(f"{path} is no result: {error.message}", field=field) from None
    try:
        return ValidationResult.model_validate(value)
    except ValidationError:
        return value


def _result(read: ValidationResult | JsonValue, path: Path) -> JsonValue:
    if not isinstance(read, ValidationResult):
        return read
    if not read.passed:
        raise ConfigurationError(f"{path} is the verdict {read.outcome.value}, which has no result to compare")
    return read.result
