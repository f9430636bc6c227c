"""The real command in a process of its own, against the session's platform and Prefect server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from sandbox.connection import Credentials
from tests.java import java_25 as java_25

ROOT = Path(__file__).parents[2]
SECONDS = 100.0


@dataclass(frozen=True, kw_only=True)
class Done:
    """A command that has ended."""

    code: int
    output: str
    errors: str


class Start(Protocol):
    """Starts the command; the process is killed at the end of the block if it still runs."""

    def __call__(
        self, *words: str | Path, environment: Mapping[str, str] = ...
    ) -> contextlib.AbstractAsyncContextManager[asyncio.subprocess.Process]: ...


class Run(Protocol):
    """Runs the command to its end."""

    async def __call__(self, *words: str | Path, environment: Mapping[str, str] = ...) -> Done: ...


@contextlib.asynccontextmanager
async def command(
    *words: str | Path, environment: Mapping[str, str], cwd: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "flows.cli", *map(str, words)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        cwd=cwd,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()


async def ended(process: asyncio.subprocess.Process) -> Done:
    output, errors = await asyncio.wait_for(process.communicate(), SECONDS)
    assert process.returncode is not None
    return Done(code=process.returncode, output=output.decode(), errors=errors.decode())


@pytest.fixture
def alone(tmp_path: Path, home: Path) -> Run:
    """The command on a machine where nothing is configured, for what needs no service."""

    async def run(*words: str | Path, environment: Mapping[str, str] = {}) -> Done:
        async with command(*words, environment={"UOM_SANDBOX_HOME": str(home), **environment}, cwd=tmp_path) as process:
            return await ended(process)

    return run


@pytest.fixture
def start(tmp_path: Path, home: Path, prefect_server: str, credentials: Credentials) -> Start:
    """The command with the session's services."""
    services = {
        "UOM_SANDBOX_HOME": str(home),
        "PREFECT_API_URL": prefect_server,
        "DAYTONA_API_URL": credentials.api_url,
        "DAYTONA_API_KEY": credentials.api_key.get_secret_value(),
    }

    def begin(
        *words: str | Path,
        environment: Mapping[str, str] = {},
    ) -> contextlib.AbstractAsyncContextManager[asyncio.subprocess.Process]:
        return command(*words, environment={**services, **environment}, cwd=tmp_path)

    return begin


@pytest.fixture
def run(start: Start) -> Run:
    """The command with the session's services, to its end."""

    async def to_the_end(*words: str | Path, environment: Mapping[str, str] = {}) -> Done:
        async with start(*words, environment=environment) as process:
            return await ended(process)

    return to_the_end
