"""``uom-sandbox compare`` as a person and a script use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flows.outcomes import OUTCOMES, TRANSLATIONS, comparison_exit_code_table
from sandbox.comparison import TranslationOutcome
from sandbox.models import Outcome, ValidationResult
from tests.cli.conftest import Run

EXAMPLES = Path(__file__).parents[2] / "examples"
WRITES = "import json, os\nprint('{say}')\njson.dump({answer!r}, open(os.environ['UOM_RESULT_FILE'], 'w'))\n"


@pytest.fixture
def results(tmp_path: Path) -> tuple[Path, Path]:
    """Two result files that differ in spelling, order and kind."""
    source, target = tmp_path / "source.json", tmp_path / "target.json"
    source.write_text(json.dumps({"q": [{"OrderId": 1, "Total": "1.50"}, {"OrderId": 2, "Total": "2.50"}]}))
    target.write_text(json.dumps({"q": [{"order_id": 2, "total": 2.5}, {"order_id": 1, "total": 1.5}]}))
    return source, target


def test_every_outcome_has_a_row_and_its_own_exit_code() -> None:
    assert set(TRANSLATIONS) == set(TranslationOutcome)
    codes = [row.exit_code for row in TRANSLATIONS.values()]
    assert len(set(codes)) == len(codes)
    assert not (set(codes) - {0}) & {1, 2, 64, 70, 130, *(row.exit_code for row in OUTCOMES.values())}
    assert all(outcome.value in comparison_exit_code_table() for outcome in TranslationOutcome)


async def test_help_has_the_exit_codes(alone: Run) -> None:
    done = await alone("compare", "--help")
    assert done.code == 0
    assert comparison_exit_code_table() in done.output


async def test_result_files_without_any_service(alone: Run, results: tuple[Path, Path]) -> None:
    done = await alone("compare", "--results", *results)
    assert done.code == 30
    assert done.output.startswith("✘ different  0 of 1 queries are equivalent")
    assert "names in another spelling: OrderId / order_id, Total / total (rule names=words)" in done.output
    loose = ("--rule", "names=words", "--rule", "rows=unordered", "--rule", "numeric_text=true")
    done = await alone("compare", "--results", *results, *loose)
    assert done.code == 0, done.output
    assert "accepted by the rule names: 4" in done.output
    done = await alone("compare", "--results", *results, *loose, "--json")
    assert json.loads(done.output)["outcome"] == "equivalent"
    done = await alone("compare", "--results", *results, "--quiet")
    assert (done.code, done.output, done.errors) == (30, "", "")


async def test_feedback_for_a_model(alone: Run, results: tuple[Path, Path]) -> None:
    done = await alone("compare", "--results", *results, "--feedback", "300")
    assert done.code == 30
    assert len(done.output.rstrip("\n")) <= 300
    assert "names=words" in done.output


async def test_rules_of_a_file_and_single_ones_over_it(alone: Run, results: tuple[Path, Path], tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('names = "words"\nnumeric_text = true\n[dates]\nmidnight = true\n')
    done = await alone("compare", "--results", *results, "--rules", rules, "--json")
    assert done.code == 30
    done = await alone(
        "compare",
        "--results",
        *results,
        *("--rules", rules, "--json", "--rule", "rows=unordered", "--rule", "dates.naive=utc"),
        *("--rule", 'ignored=["$..at"]'),
    )
    assert done.code == 0
    used = json.loads(done.output)["rules"]
    assert (used["dates"]["midnight"], used["dates"]["naive"], used["ignored"]) == (True, "utc", ["$..at"])


async def test_verdicts_of_validate_as_result_files(alone: Run, tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "profile": "python",
        "framework": "plain",
        "thread_id": "t",
        "run_id": "r",
        "message": "It is so.",
    }
    passed = ValidationResult(outcome=Outcome.PASSED, result={"q": [1]}, result_path="/r.json", **fields)
    broken = ValidationResult(outcome=Outcome.COMPILE_ERROR, **fields)
    for name, text in (
        ("passed", passed.model_dump_json()),
        ("broken", broken.model_dump_json()),
        ("raw", '{"q": [1]}'),
    ):
        (tmp_path / f"{name}.json").write_text(text)
    assert (await alone("compare", "--results", tmp_path / "passed.json", tmp_path / "raw.json")).code == 0
    assert (await alone("compare", "--results", tmp_path / "passed.json", tmp_path / "passed.json")).code == 0
    done = await alone("compare", "--results", tmp_path / "passed.json", tmp_path / "broken.json")
    assert done.code == 32
    assert "compile_error" in done.output
    done = await alone("compare", "--results", tmp_path / "raw.json", tmp_path / "broken.json")
    assert done.code == 64
    assert "broken.json is the verdict compile_error" in done.errors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("missing.json", "missing.json", "--results"), "cannot read missing.json"),
        (("/dev/null", "/dev/null", "--results"), "the file is empty"),
        (("/dev/null", "/dev/null", "--results", "--rule", "row=unordered"), "there is no such rule"),
        (("/dev/null", "/dev/null", "--results", "--rule", "rows"), "NAME=VALUE"),
        (("/dev/null", "/dev/null", "--results", "--rule", "rows.a=1"), "--rule.rows"),
        (("/dev/null", "/dev/null", "--results", "--rules", "missing.toml"), "cannot read missing.toml"),
        (("/dev/null", "/dev/null", "--results", "--feedback", "10"), "at least 200"),
        (("/dev/null", "/dev/null", "--target-profile", "python"), "--source-profile"),
    ],
)
async def test_wrong_usage_ends_with_64_and_says_what(words: tuple[str, ...], said: str, alone: Run) -> None:
    done = await alone("compare", *words)
    assert done.code == 64
    assert said in done.errors
    assert "Traceback" not in done.errors


async def test_two_programs_are_run_and_compared(run: Run, tmp_path: Path) -> None:
    source, target = tmp_path / "source.py", tmp_path / "target.py"
    source.write_text(WRITES.format(say="I am the source", answer={"q": [1, 2], "p": 1}))
    target.write_text(WRITES.format(say="I am the target", answer={"q": [1, 3], "p": 1}))
    profiles = ("--source-profile", "python", "--target-profile", "python")
    done = await run("compare", source, target, *profiles)
    assert done.code == 30, done.errors
    assert "✘ different  1 of 2 queries are equivalent; 1 different." in done.output
    assert "$.q[1]: source 2, target 3" in done.output
    assert "source │ I am the source\n" in done.errors
    assert "target │ I am the target\n" in done.errors
    assert "I am" not in done.output
    assert "/runs/flow-run/" in done.errors

    target.write_text("def broken(:\n")
    done = await run("compare", source, target, *profiles, "--json", "--thread", "talk-9", "--isolation", "run")
    assert done.code == 32
    verdict = json.loads(done.output)
    assert verdict["outcome"] == "target_failed"
    assert verdict["source"]["thread_id"] == "talk-9"
    assert verdict["source"]["sandbox"]["isolation"] == "run"
    assert {query["name"]: query["status"] for query in verdict["queries"]} == {"q": "failed", "p": "failed"}


async def test_a_translation_from_python_to_java(java_25: None, run: Run, tmp_path: Path) -> None:
    sides = ("--source-profile", "python", "--target-profile", "java", "--quiet", "--json")
    source, right = EXAMPLES / "python-orders" / "main.py", EXAMPLES / "java-orders" / "Main.java"
    done = await run("compare", source, right, *sides)
    assert done.code == 0, done.output + done.errors
    verdict = json.loads(done.output)
    assert verdict["comparison"]["counts"] == {"equivalent": 6}
    assert verdict["comparison"]["rules"]["rows"] == "ordered"

    wrong = tmp_path / "Main.java"
    text = right.read_text(encoding="utf-8")
    found = ".sorted(Comparator.comparing(Order::placed).reversed())"
    assert text.count(found) == 1
    wrong.write_text(text.replace(found, ".sorted(Comparator.comparing(Order::placed))"), encoding="utf-8")
    done = await run("compare", source, wrong, *sides)
    assert done.code == 30, done.output + done.errors
    verdict = json.loads(done.output)
    assert verdict["comparison"]["counts"] == {"equivalent": 5, "different": 1}
    (different,) = [query for query in verdict["queries"] if query["status"] == "different"]
    assert different["name"] == "openOrders"
    assert different["differences"][0]["path"] == "$.openOrders.firstSample.orderId"
