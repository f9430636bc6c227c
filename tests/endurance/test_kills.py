"""SIGKILL of the command (client and flow in one) and of the platform: nothing stays, and the next run works."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sandbox.local import service
from sandbox.local.settings import Settings
from tests.endurance.processes import command_lines, until
from tests.scratch import scratch_directory

ROOT = Path(__file__).parents[2]
PROGRAM = """
import subprocess, sys
print("started", flush=True)
subprocess.run(["sh", "-c", "setsid sleep {marker} & exec sleep {marker}"])
"""


@pytest.fixture
def own_home() -> Iterator[Path]:
    home = scratch_directory()
    yield home
    service.reset(Settings(home=home))
    shutil.rmtree(home)


@contextlib.asynccontextmanager
async def validating(
    source: str, *options: str, home: Path, prefect: str, directory: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """``uom-sandbox validate`` in a process of its own, on a local platform of its own."""
    program = directory / "main.py"
    program.write_text(source)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "UOM_SANDBOX_HOME": str(home), "PREFECT_API_URL": prefect}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "flows.cli", "validate", str(program), "--profile", "python", *options),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def marked() -> str:
    """A number of seconds that no other process sleeps for."""
    return f"9{uuid.uuid4().int % 10**9:09d}"


async def passes(home: Path, prefect: str, directory: Path) -> None:
    async with validating("print('fine')", home=home, prefect=prefect, directory=directory) as process:
        output, _ = await process.communicate()
        assert (process.returncode, output) == (0, b"fine\n")


async def started(process: asyncio.subprocess.Process) -> None:
    assert process.stdout
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"started\n"


@pytest.mark.slow
async def test_a_killed_client_leaves_nothing(own_home: Path, prefect_server: str, tmp_path: Path) -> None:
    marker = marked()
    source = PROGRAM.format(marker=marker)
    async with validating(
        source, "--timeout", "6", home=own_home, prefect=prefect_server, directory=tmp_path
    ) as client:
        await started(client)
        assert await until(lambda: len(command_lines(f"sleep {marker}")) >= 2, seconds=10)
        client.send_signal(signal.SIGKILL)
    assert await until(lambda: not command_lines(marker), seconds=20), "the limit inside the sandbox ends the program"
    await passes(own_home, prefect_server, tmp_path)


@pytest.mark.slow
async def test_a_killed_platform_takes_its_sandboxes_along(own_home: Path, prefect_server: str, tmp_path: Path) -> None:
    marker = marked()
    async with validating(
        PROGRAM.format(marker=marker), home=own_home, prefect=prefect_server, directory=tmp_path
    ) as client:
        await started(client)
        assert await until(lambda: len(command_lines(f"sleep {marker}")) >= 2, seconds=10)
        connection = service.status(Settings(home=own_home)).connection
        assert connection
        os.kill(connection.pid, signal.SIGKILL)
        assert await until(lambda: not command_lines(marker), seconds=5)
        assert await until(lambda: not command_lines(str(own_home)), seconds=5), command_lines(str(own_home))
        await asyncio.wait_for(client.wait(), 60)
        assert client.returncode == 70, "no verdict, and said so"
    await passes(own_home, prefect_server, tmp_path)
