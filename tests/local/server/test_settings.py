from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from sandbox.local.settings import Settings, SettingsError, allowed_values

ROOT = Path(__file__).parents[3]


def test_the_default_home_is_the_system_s_for_root_and_the_user_s_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert Settings.from_environment({}).home == Path("/var/lib/uom-sandbox")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert Settings.from_environment({"HOME": "/home/u"}).home == Path("/home/u/.local/share/uom-sandbox")
    assert Settings.from_environment({"XDG_DATA_HOME": "/data"}).home == Path("/data/uom-sandbox")
    given = Settings.from_environment({"UOM_SANDBOX_HOME": "/x", "XDG_DATA_HOME": "/data"})
    assert (given.home, given.platform_directory) == (Path("/x"), Path("/x/platform"))


def test_values_go_round(tmp_path: Path) -> None:
    settings = Settings.from_environment(
        {
            "UOM_SANDBOX_HOME": "/x",
            "UOM_PLATFORM_PORT": "3986",
            "UOM_TOOLCHAINS": f"{tmp_path}:{tmp_path}:",
            "UOM_EXTRA_PUBLIC_CIDRS": "10.1.0.0/16, 192.168.0.0/24",
            "UOM_TOTAL_MEMORY_GIB": "12",
            "UOM_MAX_SANDBOXES": "7",
            "UOM_FAULT_CONTROL": "1",
        }
    )
    assert settings.fault_control is True
    assert settings.toolchains == (tmp_path,)
    assert settings.extra_public_cidrs == ("10.1.0.0/16", "192.168.0.0/24")
    assert (settings.port, settings.total_memory_gib, settings.max_sandboxes) == (3986, 12, 7)
    assert Settings.from_environment(settings.to_environment()) == settings


def test_toolchains_are_found_outside_usr_only(tmp_path: Path) -> None:
    (tmp_path / "sdk").mkdir()
    dotnet = tmp_path / "sdk" / "dotnet"
    dotnet.write_text("#!/bin/sh\n")
    dotnet.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dotnet").symlink_to(dotnet)
    (tmp_path / "jdk").mkdir()
    environment = {"UOM_SANDBOX_HOME": "/x", "PATH": f"/usr/bin:{tmp_path}/bin", "JAVA_HOME": str(tmp_path / "jdk")}
    assert Settings.from_environment(environment).toolchains == (tmp_path / "jdk", tmp_path / "sdk")
    assert Settings.from_environment(environment | {"UOM_TOOLCHAINS": ""}).toolchains == ()
    assert Settings.from_environment({"UOM_SANDBOX_HOME": "/x", "JAVA_HOME": "/usr/lib"}).toolchains == ()
    assert Settings.from_environment({"UOM_SANDBOX_HOME": "/x", "DOTNET_ROOT": "/not/there"}).toolchains == ()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "UOM_SANDBOX_HOME",
            "relative/path",
            "must be an absolute path, not 'relative/path': unset it for the default",
        ),
        ("UOM_PLATFORM_PORT", "http", "must be a whole number from 0 to 65535, not 'http': unset it for 0"),
        ("UOM_PLATFORM_PORT", "65536", "must be a whole number from 0 to 65535"),
        ("UOM_RUNTIME", "podman", "must be bubblewrap or docker, not 'podman': unset it for bubblewrap"),
        ("UOM_DOCKER_HOST", "tcp://far.example:2375", "must be a socket of this machine"),
        ("UOM_TOOLCHAINS", "/does/not/exist", "must hold paths of existing directories"),
        ("UOM_TOOLCHAINS", "relative", "must hold paths of existing directories"),
        ("UOM_EXTRA_PUBLIC_CIDRS", "10.0.0.0/8,example.org", "must hold IPv4 networks"),
        ("UOM_TOTAL_MEMORY_GIB", "0", "must be a whole number from 1 to 1000000"),
        ("UOM_MAX_SANDBOXES", "-1", "must be a whole number from 1 to 100000"),
        ("UOM_BUILD_SECONDS", "0", "must be a number above 0 to 86400"),
        ("UOM_FAULT_CONTROL", "perhaps", "must be 1 or 0, not 'perhaps': unset it for 0"),
        ("UOM_HOLD_SECONDS", "nan", "must be a number from 0 to 3600"),
    ],
)
def test_a_wrong_value_is_told_with_its_variable_and_the_remedy(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({name: value})
    assert str(caught.value).startswith(f"{name} {said}")
    assert "unset it for " in str(caught.value)


def test_all_wrong_values_are_told_at_once() -> None:
    with pytest.raises(SettingsError, match=r"UOM_RUNTIME must .*; UOM_MAX_CPU must "):
        Settings.from_environment({"UOM_RUNTIME": "podman", "UOM_MAX_CPU": "many"})


def test_where_values_come_from(tmp_path: Path) -> None:
    environment = {
        "XDG_DATA_HOME": "/data",
        "JAVA_HOME": str(tmp_path),
        "UOM_RUNTIME": "docker",
        "DOCKER_HOST": "unix:///y",
        "UOM_MAX_SANDBOXES": " ",
    }
    origins = Settings.origins(environment)
    assert origins["UOM_RUNTIME"] == "environment"
    assert origins["UOM_DOCKER_HOST"] == "DOCKER_HOST"
    assert origins["UOM_TOOLCHAINS"] == "JAVA_HOME"
    assert origins["UOM_MAX_SANDBOXES"] == origins["UOM_PLATFORM_PORT"] == "default"
    assert Settings.from_environment(environment).max_sandboxes == 500
    assert set(origins) == set(Settings.variables()) == set(Settings.from_environment(environment).to_environment())


@pytest.mark.parametrize("variable", sorted(Settings.variables()))
def test_every_setting_has_help_bounds_and_a_row_in_the_readme(variable: str) -> None:
    field = Settings.variables()[variable]
    assert (field.description or "").endswith(".")
    annotation = str(field.annotation)
    assert bool(allowed_values(field)) == any(word in annotation for word in ("bool", "int", "float", "Literal"))
    assert f"`{variable}`" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_nobody_else_reads_a_setting() -> None:
    reading = re.compile(r"""environ(?:\.get\(|\[)\s*["']UOM_""")
    files = [path for package in ("flows", "blocks", "sandbox") for path in (ROOT / package).rglob("*.py")]
    assert [path for path in files if reading.search(path.read_text(encoding="utf-8"))] == []
