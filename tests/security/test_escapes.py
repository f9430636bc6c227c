"""A hostile Java program, validated like any other, reaches nothing of the host, the platform or other sandboxes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from daytona import AsyncDaytona

from sandbox.events import EventStream
from sandbox.local.server import LocalPlatform
from sandbox.models import Isolation, ValidationRequest, ValidationResult
from sandbox.profiles import builtin_profile
from sandbox.validation import Validation
from tests.local.platforms import running_platform, sdk

PROGRAM = Path(__file__).with_name("Escape.java")
HOST_SECRET = "the host's secret"


async def validated(client: AsyncDaytona, request: ValidationRequest) -> ValidationResult:
    identified = request.identified()
    assert identified.run_id
    assert identified.thread_id
    async with EventStream(run_id=identified.run_id, thread_id=identified.thread_id) as events:
        profile = builtin_profile(identified.profile)
        return await Validation(identified, profile=profile, client=client, events=events).run()


def files_below(directory: Path, name: str) -> list[Path]:
    return sorted(directory.rglob(name))


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_hostile_java_program_reaches_nothing(java_25: None, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text(HOST_SECRET)
    async with running_platform() as platform, sdk(platform) as client:
        neighbour = await validated(client, neighbour_request())
        assert neighbour.passed, neighbour.message
        [other] = files_below(platform.settings.home, "neighbour-secret.txt")
        assert other.read_text() == "only the neighbour may read this"

        hostile = await validated(client, hostile_request(platform, home=tmp_path, other=other))

    assert hostile.passed, hostile.message
    assert isinstance(hostile.result, dict)
    assert len(hostile.result) == len(re.findall(r"^\s+attempt\(", PROGRAM.read_text(), re.MULTILINE))
    succeeded = {name: told for name, told in hostile.result.items() if not str(told).startswith("refused: ")}
    assert not succeeded
    assert HOST_SECRET not in hostile.model_dump_json()


def neighbour_request() -> ValidationRequest:
    source = """
import os, pathlib
pathlib.Path(os.environ["UOM_WORKSPACE"], "neighbour-secret.txt").write_text("only the neighbour may read this")
"""
    return ValidationRequest(
        profile="python",
        thread_id="neighbour",
        run_id="neighbour",
        files={"main.py": source},
        isolation=Isolation.THREAD,
    )


def hostile_request(platform: LocalPlatform, *, home: Path, other: Path) -> ValidationRequest:
    targets = {
        "TARGET_HOME": str(home),
        "TARGET_KEY": str(key_file(platform)),
        "TARGET_DATA": str(platform.settings.platform_directory),
        "TARGET_OTHER": str(other),
        "TARGET_WORKSPACE": "/sandbox/neighbour",
        "TARGET_PORT": str(urlsplit(platform.api_url).port),
    }
    return ValidationRequest(profile="java", files={"Escape.java": PROGRAM.read_text()}, environment=targets)


def key_file(platform: LocalPlatform) -> Path:
    """The file that holds the key: what a program would have to read to own the platform."""
    holders: Callable[[Path], bool] = lambda path: path.is_file() and path.stat().st_size < 4096  # noqa: E731
    for path in filter(holders, platform.settings.platform_directory.iterdir()):
        if platform.api_key.encode() in path.read_bytes():
            assert path.stat().st_mode & 0o077 == 0
            return path
    pytest.fail("no file holds the platform's key")
