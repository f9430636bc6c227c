from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox.local.settings import Settings, SettingsError


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
        }
    )
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
    ("name", "value"),
    [
        ("UOM_SANDBOX_HOME", "relative/path"),
        ("UOM_PLATFORM_PORT", "http"),
        ("UOM_PLATFORM_PORT", "65536"),
        ("UOM_RUNTIME", "podman"),
        ("UOM_TOOLCHAINS", "/does/not/exist"),
        ("UOM_TOOLCHAINS", "relative"),
        ("UOM_EXTRA_PUBLIC_CIDRS", "10.0.0.0/8,example.org"),
        ("UOM_TOTAL_MEMORY_GIB", "0"),
        ("UOM_MAX_SANDBOXES", "-1"),
    ],
)
def test_a_wrong_value_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        Settings.from_environment({name: value})
