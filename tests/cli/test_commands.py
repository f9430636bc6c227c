"""Commands that need no service, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flows.outcomes import OUTCOMES, exit_code_table
from sandbox.models import Outcome
from tests.cli.conftest import Run


def test_every_outcome_has_a_row_and_its_own_exit_code() -> None:
    assert set(OUTCOMES) == set(Outcome)
    codes = [row.exit_code for row in OUTCOMES.values()]
    assert len(set(codes)) == len(codes)
    assert not set(codes) & {1, 2, 64, 70, 130}
    table = exit_code_table()
    assert all(outcome.value in table for outcome in Outcome)


async def test_help_names_the_commands_and_exit_codes(alone: Run) -> None:
    done = await alone("--help")
    assert done.code == 0
    for word in ("validate", "demo", "profiles", "doctor", "config", "platform", "up", "down", "blocks", "version"):
        assert word in done.output
    assert exit_code_table() in (await alone("validate", "--help")).output


async def test_profiles_lists_and_shows(alone: Run) -> None:
    listed = await alone("profiles")
    assert listed.code == 0
    assert "python: " in listed.output
    shown = await alone("profiles", "show", "python")
    assert json.loads(shown.output)["type"] == "python-3-sandbox"
    unknown = await alone("profiles", "show", "cobol")
    assert unknown.code == 64
    assert "cobol" in unknown.errors


async def test_doctor_tells_facts_and_remedies(alone: Run) -> None:
    done = await alone("doctor", "--json")
    document = json.loads(done.output)
    checks = [check for section in document.values() for check in section]
    assert {"packages", "platform", "Prefect API", "bubblewrap"} <= {check["name"] for check in checks}
    assert all(check["ok"] or check["remedy"] for check in checks)
    assert done.code == 0, [check for check in checks if not check["ok"]]
    assert "✔ packages" in (await alone("doctor")).output


async def test_doctor_names_a_wrong_variable(alone: Run) -> None:
    done = await alone("doctor", environment={"DAYTONA_API_KEY": "key", "DAYTONA_API_URL": "nonsense"})
    assert done.code == 1
    assert "DAYTONA_API_URL" in done.output


@pytest.mark.parametrize("word", ["version", "--version"])
async def test_version_names_what_we_stand_on(alone: Run, word: str) -> None:
    done = await alone(word)
    assert done.code == 0
    assert "prefect 3" in done.output
    assert "daytona 0" in done.output


async def test_status_of_what_does_not_run(alone: Run, tmp_path: Path) -> None:
    nothing = {"UOM_SANDBOX_HOME": str(tmp_path / "home")}
    assert (await alone("platform", "status", environment=nothing)).code == 1
    stopped = await alone("platform", "stop", environment=nothing)
    assert (stopped.code, stopped.output) == (0, "not running\n")
    down = await alone("down", environment=nothing)
    assert down.code == 0
    assert down.output == "local platform: not running\nPrefect server: not running\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "COMMAND"),
        (("validate",), "PATH"),
        (("validate", "x.py"), "--profile"),
        (("validate", "x.py", "--profile", "python", "--timeout", "soon"), "--timeout"),
        (("validate", "x.py", "--profile", "python", "--env", "NOVALUE"), "NAME=VALUE"),
        (("validate", "missing.py", "--profile", "python"), "missing.py does not exist"),
        (("validate", __file__, "--profile", "python", "--secret-env", "UNSET_HERE"), "UNSET_HERE"),
        (("validate", __file__, "--profile", "python", "--expected", "none.json"), "none.json"),
        (("demo", "no-such-example"), "no-such-example"),
    ],
)
async def test_wrong_usage_ends_with_64_and_says_what(words: tuple[str, ...], said: str, alone: Run) -> None:
    done = await alone(*words)
    assert done.code == 64
    assert said in done.errors
    assert "Traceback" not in done.errors


async def test_a_relative_home_is_refused(alone: Run) -> None:
    for words in (("up",), ("down",), ("platform", "start")):
        done = await alone(*words, environment={"UOM_SANDBOX_HOME": "relative"})
        assert done.code == 64, words
        assert "UOM_SANDBOX_HOME" in done.errors
