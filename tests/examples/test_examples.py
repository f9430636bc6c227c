"""Every example gets the verdict that its ``example.toml`` names, on the local platform."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import JsonValue

from sandbox.models import Outcome, RunLimits, ValidationRequest
from sandbox.profiles import builtin_profile
from tests.examples.workbench import Workbench

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
DIRECTORIES = sorted(path.parent for path in EXAMPLES.glob("*/example.toml"))
REQUIRED = {"title", "profile", "framework", "entry_point", "files", "verdict"}
OPTIONAL = {"expected_file", "limits", "diagnostics", "connections"}


def read(directory: Path) -> dict[str, Any]:
    return tomllib.loads((directory / "example.toml").read_text(encoding="utf-8"))


def request_of(directory: Path) -> ValidationRequest:
    example = read(directory)
    expected: JsonValue = None
    if "expected_file" in example:
        expected = orjson.loads((directory / example["expected_file"]).read_bytes())
    return ValidationRequest(
        profile=example["profile"],
        framework=example["framework"],
        entry_point=example["entry_point"],
        files={name: (directory / name).read_text(encoding="utf-8") for name in example["files"]},
        limits=RunLimits.model_validate(example.get("limits", {})),
        expected=expected,
    )


def slow_when_large(directory: Path) -> Any:
    """The snapshots of .NET and of Spring take most of a minute."""
    example = read(directory)
    own = builtin_profile(example["profile"]).framework(example["framework"])[1].snapshot == "own"
    marks = [pytest.mark.slow, pytest.mark.timeout(300)] if own or example["profile"] == "dotnet" else []
    return pytest.param(directory, marks=marks, id=directory.name)


# Those that talk to a database are in tests/databases.
ALONE = [path for path in DIRECTORIES if "connections" not in read(path)]


@pytest.mark.parametrize("directory", [slow_when_large(path) for path in ALONE])
async def test_gets_its_verdict(directory: Path, workbench: Workbench) -> None:
    example = read(directory)
    result = await workbench.validate(request_of(directory))
    assert result.outcome.value == example["verdict"], (result.message, result.phases)
    found = [item.model_dump(exclude_none=True) for item in result.diagnostics]
    for wanted in example.get("diagnostics", []):
        assert any(item.items() >= wanted.items() for item in found), f"{wanted} is not among {found}"
    if result.outcome is Outcome.PASSED:
        assert found == []


def test_there_is_one_for_every_kind_of_ending() -> None:
    assert {read(directory)["verdict"] for directory in DIRECTORIES} >= {
        "passed",
        "compile_error",
        "runtime_error",
        "timeout",
        "output_exceeded",
        "database_unreachable",
        "result_invalid",
    }


def test_all_programs_over_the_orders_must_give_one_result() -> None:
    orders = [path for path in DIRECTORIES if path.name.endswith("-orders")]
    assert len(orders) == 8
    assert {(path / read(path)["expected_file"]).resolve() for path in orders} == {EXAMPLES / "orders-expected.json"}
    answers = orjson.loads((EXAMPLES / "orders-expected.json").read_bytes())
    assert {name: answer["count"] for name, answer in answers.items()} == {
        "ordersByCustomer": 6,
        "revenueByCity": 4,
        "revenueByMonth": 4,
        "openOrders": 3,
        "customersWithoutOrders": 1,
        "productsInSeveralOrders": 5,
    }


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: path.name)
def test_its_description_is_complete(directory: Path) -> None:
    example = read(directory)
    assert example.keys() >= REQUIRED
    assert example.keys() <= REQUIRED | OPTIONAL
    Outcome(example["verdict"])
    builtin_profile(example["profile"]).framework(example["framework"])
    assert example["entry_point"] in example["files"]
    present = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    assert {path for path in present if "__pycache__" not in path} == {"example.toml", *example["files"]}


def test_the_readme_lists_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for directory in DIRECTORIES:
        assert f"`{directory.name}`" in text
