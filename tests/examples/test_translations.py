"""Every example of a translation gets the verdict its description names: right ones pass, wrong ones are refused."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from typing import Any

import pytest

from flows.cli.translations import load_translation, translation_files
from sandbox.comparison import QueryStatus, TranslationOutcome
from sandbox.translation import conclude_translation, sides_of
from tests.examples.test_examples import read
from tests.examples.workbench import Workbench

EXAMPLES = Path(__file__).parents[2] / "examples"


def needs_database(path: Path) -> bool:
    """Whether a translation is tested in ``tests/databases``."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return any("connections" in read(EXAMPLES / document[side]) for side in ("source", "target"))


FILES = [path for path in translation_files(EXAMPLES) if not needs_database(path)]


def slow_when_large(path: Path) -> Any:
    """The snapshot of .NET takes most of a minute."""
    marks = [pytest.mark.slow, pytest.mark.timeout(300)] if "csharp" in path.read_text(encoding="utf-8") else []
    return pytest.param(path, marks=marks, id=path.stem)


@pytest.mark.parametrize("path", [slow_when_large(path) for path in FILES])
async def test_gets_its_verdict(path: Path, workbench: Workbench) -> None:
    example = load_translation(path)
    requests = sides_of(example.source, example.target)
    for request in requests:
        await workbench.profile(request.profile)
    source, target = await asyncio.gather(*(workbench.validate(request) for request in requests))
    result = conclude_translation(source, target, rules=example.rules)
    assert not example.faults(result), result.text()
    assert len(result.feedback(1000)) <= 1000
    for name, status in example.queries.items():
        if status in (QueryStatus.DIFFERENT, QueryStatus.MISSING_IN_TARGET):
            assert name in result.feedback(1000)


def test_there_are_right_and_wrong_ones() -> None:
    verdicts = [load_translation(path).verdict for path in FILES]
    assert verdicts.count(TranslationOutcome.EQUIVALENT) >= 3
    assert verdicts.count(TranslationOutcome.DIFFERENT) >= 6
    assert TranslationOutcome.TARGET_FAILED in verdicts


def test_the_readme_lists_every_translation() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in translation_files(EXAMPLES):
        assert f"`{path.stem}`" in text
