"""``uom-sandbox config``: values with their origins, nothing secret."""

from __future__ import annotations

import json
from pathlib import Path

from sandbox.local.settings import Settings
from tests.cli.conftest import Run

SECRETS = {
    "DAYTONA_API_KEY": "dtn_gehe1m",
    "PREFECT_API_KEY": "pnu_gehe1m",
    "PREFECT_API_AUTH_STRING": "me:gehe1m",
    "PREFECT_API_URL": "http://me:gehe1m@127.0.0.1:9/api",
    "UOM_MAVEN_MIRROR": "https://me:gehe1m@mirror.example/maven?token=gehe1m",
}


async def settings(run: Run, environment: dict[str, str]) -> dict[str, dict[str, str]]:
    done = await run("config", "--json", environment=environment)
    assert done.code == 0, done.errors
    return {row["variable"]: row for row in json.loads(done.output)}


async def test_each_setting_has_a_value_an_origin_and_help(alone: Run, tmp_path: Path) -> None:
    (tmp_path / "profiles.toml").write_text(
        'active = "mine"\n[profiles.mine]\nPREFECT_API_URL = "http://profile.example/api"\n'
    )
    given = {"PREFECT_HOME": str(tmp_path), "PREFECT_PROFILE": "", "UOM_MAX_SANDBOXES": "7"}
    found = await settings(alone, given)
    assert set(found) >= set(Settings.variables())
    assert all(row["value"] and row["origin"] and row["help"] for row in found.values())

    def told(name: str) -> tuple[str, str]:
        return found[name]["value"], found[name]["origin"]

    assert told("UOM_MAX_SANDBOXES") == ("7", "environment")
    assert told("UOM_MAX_CPU") == ("4", "default")
    assert told("UOM_NUGET_SOURCE")[1].endswith(("default of the profile dotnet", "environment"))
    assert told("PREFECT_API_URL") == ("http://profile.example/api", "Prefect profile mine")
    assert told("DAYTONA_API_KEY") == ("(not set)", "local platform")


async def test_secrets_are_hidden(alone: Run) -> None:
    for words in (("config",), ("config", "--json")):
        done = await alone(*words, environment=SECRETS)
        assert done.code == 0, done.errors
        assert "gehe1m" not in done.output + done.errors
        assert "http://(hidden)@127.0.0.1:9/api" in done.output
    found = await settings(alone, SECRETS)
    assert found["DAYTONA_API_KEY"]["value"] == found["PREFECT_API_KEY"]["value"] == "(hidden)"
    assert found["UOM_MAVEN_MIRROR"]["value"] == "https://(hidden)@mirror.example/maven?(hidden)"


async def test_a_wrong_value_is_wrong_usage_and_a_misspelt_name_is_told(alone: Run) -> None:
    wrong = await alone("config", environment={"UOM_RUNTIME": "podman", "UOM_MAX_CPU": "0"})
    assert wrong.code == 64
    assert "UOM_RUNTIME must be bubblewrap or docker" in wrong.errors
    assert "UOM_MAX_CPU must be a whole number from 1 to 1024" in wrong.errors
    misspelt = await alone("config", environment={"UOM_RUNTME": "docker"})
    assert misspelt.code == 0
    assert "UOM_RUNTME is set, but is no setting: is UOM_RUNTIME meant?" in misspelt.errors
