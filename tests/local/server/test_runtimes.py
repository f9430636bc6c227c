"""Which runtime a platform has, and that its data belongs to one of them; no Docker engine is needed here."""

from __future__ import annotations

import sys

import pytest

from sandbox.local import service
from sandbox.local.diagnosis import diagnose
from sandbox.local.runtime.errors import RuntimeUnavailableError
from sandbox.local.server import LocalPlatform
from sandbox.local.service import ServiceError
from sandbox.local.settings import DEFAULT_DOCKER_IMAGE, Settings, SettingsError
from tests.local.platforms import scratch_home

NO_ENGINE = "unix:///no/such/engine.sock"


async def test_the_data_of_one_runtime_is_refused_by_another() -> None:
    async with scratch_home() as home:
        async with LocalPlatform(Settings(home=home)):
            pass
        with pytest.raises(RuntimeUnavailableError, match="UOM_RUNTIME=bubblewrap and cannot be used with docker"):
            await LocalPlatform(Settings(home=home, runtime="docker", docker_host=NO_ENGINE)).start()
        (home / "platform/runtime.name").unlink()
        with pytest.raises(RuntimeUnavailableError, match="UOM_RUNTIME=bubblewrap"):
            await LocalPlatform(Settings(home=home, runtime="docker", docker_host=NO_ENGINE)).start()


async def test_without_an_engine_the_platform_says_so() -> None:
    async with scratch_home() as home:
        with pytest.raises(RuntimeUnavailableError, match=r"/no/such/engine\.sock"):
            await LocalPlatform(Settings(home=home, runtime="docker", docker_host=NO_ENGINE)).start()


async def test_without_the_package_the_platform_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiodocker", None)
    for name in ("docker", "docker_engine"):
        monkeypatch.delitem(sys.modules, f"sandbox.local.runtime.{name}", raising=False)
    async with scratch_home() as home:
        with pytest.raises(RuntimeUnavailableError, match=r"needs the package aiodocker: pip install .*\[docker\]"):
            await LocalPlatform(Settings(home=home, runtime="docker", docker_host=NO_ENGINE)).start()


def test_doctor_and_reset_tell_of_a_missing_engine(home: object) -> None:
    from pathlib import Path

    assert isinstance(home, Path)
    settings = Settings(home=home / "with-docker", runtime="docker", docker_host=NO_ENGINE)
    settings.home.mkdir()
    checks = {check.name: check for check in diagnose(settings)}
    assert not checks["docker"].ok
    assert "unset UOM_RUNTIME" in checks["docker"].remedy
    assert not checks["sandbox"].ok
    (settings.platform_directory / "docker").mkdir(parents=True)
    with pytest.raises(ServiceError, match="the Docker engine keeps sandboxes"):
        service.reset(settings)
    assert settings.platform_directory.exists()


def test_the_settings_of_docker() -> None:
    plain = Settings.from_environment({"UOM_SANDBOX_HOME": "/x", "DOCKER_HOST": "unix:///y"})
    assert (plain.docker_host, plain.docker_image) == (None, DEFAULT_DOCKER_IMAGE)
    environment = {"UOM_SANDBOX_HOME": "/x", "UOM_RUNTIME": "docker", "UOM_DOCKER_IMAGE": "a:1"}
    given = Settings.from_environment({**environment, "DOCKER_HOST": "unix:///y"})
    assert (given.runtime, given.docker_host, given.docker_image) == ("docker", "unix:///y", "a:1")
    own = Settings.from_environment({**environment, "DOCKER_HOST": "unix:///y", "UOM_DOCKER_HOST": "unix:///z"})
    assert own.docker_host == "unix:///z"
    assert Settings.from_environment(own.to_environment()) == own
    with pytest.raises(SettingsError, match="UOM_DOCKER_HOST"):
        Settings.from_environment({**environment, "UOM_DOCKER_HOST": "tcp://far.example:2375"})
