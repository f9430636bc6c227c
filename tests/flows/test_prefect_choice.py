"""Which Prefect API is configured, without importing Prefect."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.prefect_choice import configured_api_url

PROFILES = """
active = "mine"

[profiles.mine]
PREFECT_API_URL = "http://profile/api"

[profiles.other]
PREFECT_API_URL = "http://other/api"

[profiles.empty]
"""


@pytest.fixture
def prefect_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.delenv("PREFECT_PROFILE", raising=False)
    return tmp_path


def test_nothing_is_configured_on_a_fresh_machine(prefect_home: Path) -> None:
    assert configured_api_url() is None


def test_the_active_profile_is_read(prefect_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (prefect_home / "profiles.toml").write_text(PROFILES)
    assert configured_api_url() == "http://profile/api"
    monkeypatch.setenv("PREFECT_PROFILE", "other")
    assert configured_api_url() == "http://other/api"
    monkeypatch.setenv("PREFECT_PROFILE", "empty")
    assert configured_api_url() is None


def test_the_environment_wins(prefect_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (prefect_home / "profiles.toml").write_text(PROFILES)
    monkeypatch.setenv("PREFECT_API_URL", "http://environment/api")
    assert configured_api_url() == "http://environment/api"


def test_a_broken_file_is_as_none(prefect_home: Path) -> None:
    (prefect_home / "profiles.toml").write_text("not toml [")
    assert configured_api_url() is None
