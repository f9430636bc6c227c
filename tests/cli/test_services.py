"""``up``, first use and ``down`` on a machine where nothing runs yet, with services of their own."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.cli.conftest import Run
from tests.scratch import scratch_directory


@pytest_asyncio.fixture
async def fresh(alone: Run) -> AsyncIterator[dict[str, str]]:
    """The environment of a fresh machine; whatever was started on it is stopped."""
    home = scratch_directory()
    environment = {"UOM_SANDBOX_HOME": str(home)}
    yield environment
    await alone("down", environment=environment)
    await alone("platform", "reset", environment=environment)
    shutil.rmtree(home)


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_the_first_validation_on_a_fresh_machine_starts_what_it_needs(
    alone: Run, fresh: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "main.py"
    path.write_bytes(b"print('hello')")
    first = await alone("validate", path, "--profile", "python", environment=fresh)
    assert (first.code, first.output) == (0, "hello\n"), first.errors
    assert "starting the Prefect server, once, about 30 s" in first.errors

    again = await alone("validate", path, "--profile", "python", environment=fresh)
    assert again.code == 0
    assert "starting the Prefect server" not in again.errors

    status = await alone("platform", "status", environment=fresh)
    assert status.code == 0
    up = await alone("up", environment=fresh)
    assert up.code == 0
    assert "Prefect UI      http://127.0.0.1:" in up.output
    doctor = await alone("doctor", environment=fresh)
    assert "background server, UI at its root" in doctor.output
    assert (await alone("platform", "logs", environment=fresh)).code == 0

    down = await alone("down", environment=fresh)
    assert down.output == "local platform: stopped\nPrefect server: stopped\n"
    assert (await alone("platform", "status", environment=fresh)).code == 1
