"""Translations between real databases: the right ones are equivalent, each wrong one differs exactly where it must."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from flows import validate_translation
from flows.cli.translations import Translation, load_translation, translation_files
from sandbox.comparison import TranslationOutcome
from sandbox.models import ValidationResult
from sandbox.translation import TranslationResult, conclude_translation, sides_of
from tests.examples.workbench import Workbench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
"""The snapshots of .NET and of Spring take most of a minute each."""

EXAMPLES = Path(__file__).parents[2] / "examples"
VARIABLES = {"postgresql": "SHOP_POSTGRESQL", "mongodb": "SHOP_MONGODB", "neo4j": "SHOP_NEO4J"}


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def descriptions(path: Path) -> list[dict[str, Any]]:
    """What the examples of a translation say of themselves."""
    return [read(EXAMPLES / read(path)[side] / "example.toml") for side in ("source", "target")]


def needs_database(path: Path) -> bool:
    return any("connections" in example for example in descriptions(path))


FILES = [path for path in translation_files(EXAMPLES) if needs_database(path)]
RIGHT = [path for path in FILES if read(path)["verdict"] == "equivalent"]
THROUGH_THE_FLOW = [*RIGHT, *(path for path in FILES if path.stem in ("mongodb-loses-nulls", "neo4j-inner-join"))]
WRONG = [path for path in FILES if path not in THROUGH_THE_FLOW]


def by_name(path: Path) -> str:
    return path.stem


@pytest.fixture(scope="session")
def sources() -> dict[str, ValidationResult]:
    """What the programs that were translated computed: framework → result. They are the same ones every time."""
    return {}


@pytest.fixture
def translation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Translation:
    """A translation whose two programs find their databases by the variables that the examples name."""
    path: Path = request.param
    for kind, variable in VARIABLES.items():
        if any(kind in example["connections"][0]["kind"] for example in descriptions(path)):
            monkeypatch.setenv(variable, request.getfixturevalue(kind).url)
    found = load_translation(path)
    assert found.missing == ()
    return found


def check(path: Path, translation: Translation, result: TranslationResult) -> None:
    """Holds a verdict against the description: the outcome, each query's status, and all paths that differ."""
    assert not translation.faults(result), result.text()
    assert result.comparison is not None
    found = {query.name: [item.path for item in query.differences] for query in result.queries if query.differences}
    assert found == read(path).get("paths", {})
    for name in found:
        assert name in result.feedback(1500)


@pytest.mark.parametrize(
    ("translation", "path"),
    [(path, path) for path in THROUGH_THE_FLOW],
    ids=map(by_name, THROUGH_THE_FLOW),
    indirect=["translation"],
)
@pytest.mark.usefixtures("prefect_server")
async def test_the_flow_gives_the_verdict(path: Path, translation: Translation, workbench: Workbench) -> None:
    for side in (translation.source, translation.target):
        await workbench.profile(side.profile, framework=side.framework)
    result = await validate_translation(
        translation.source, translation.target, rules=translation.rules, credentials=workbench.credentials
    )
    check(path, translation, result)


@pytest.mark.parametrize(
    ("translation", "path"), [(path, path) for path in WRONG], ids=map(by_name, WRONG), indirect=["translation"]
)
async def test_a_wrong_one_differs_where_it_must(
    path: Path, translation: Translation, workbench: Workbench, sources: dict[str, ValidationResult]
) -> None:
    source, target = sides_of(translation.source, translation.target)
    framework = str(source.framework)
    if framework not in sources:
        sources[framework] = await workbench.validate(source)
    result = conclude_translation(sources[framework], await workbench.validate(target), rules=translation.rules)
    assert result.outcome is TranslationOutcome.DIFFERENT, result.text()
    check(path, translation, result)


def test_right_and_wrong_ones_lead_to_both_databases() -> None:
    assert {"efcore-to-mongodb", "efcore-to-neo4j"} <= {path.stem for path in RIGHT}
    for database in ("mongodb", "neo4j"):
        assert sum(path.stem.startswith(f"{database}-") and path not in RIGHT for path in FILES) >= 5
