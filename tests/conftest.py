"""Fixtures for every folder: the environment of a clean machine, and one Prefect server for the whole session."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
import pytest_asyncio

from tests.scratch import scratch_directory

if TYPE_CHECKING:
    from sandbox.connection import Credentials
    from sandbox.local.server import LocalPlatform
    from tests.examples.workbench import Workbench

T = TypeVar("T")

# Nothing of the developer's own set-up may decide a test.
for _name in [name for name in os.environ if name.startswith(("DAYTONA_", "PREFECT_", "UOM_SANDBOX_"))]:
    del os.environ[_name]
os.environ["PREFECT_HOME"] = str(scratch_directory())
os.environ["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"


def run_apart(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in a loop of its own, from a fixture that is not async."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(main)


def pytest_sessionfinish() -> None:
    shutil.rmtree(os.environ["PREFECT_HOME"], ignore_errors=True)


def send_what_waits() -> None:
    """Sends logs, events and artifacts that still wait in this process, as the end of a program would."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    from flows.event_relay import SENDER
    from flows.publisher import PUBLISHER

    assert PUBLISHER.flush(30)
    assert SENDER.flush(30)
    APILogWorker.drain_all(timeout=30)
    EventsWorker.drain_all(timeout=30)


@pytest.fixture(scope="session")
def home() -> Iterator[Path]:
    """A data directory for the session: what ``UOM_SANDBOX_HOME`` is for a user."""
    path = scratch_directory()
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def prefect_server(home: Path) -> Iterator[str]:
    """A real Prefect server, the one of ``uom-sandbox up``; yields its API address, which is the configured one."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from flows.prefect_server import PrefectServer

    server = PrefectServer(home)
    process = run_apart(server.start())
    with temporary_settings({PREFECT_API_URL: process.api_url}):
        yield process.api_url
        send_what_waits()
    run_apart(server.stop())


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def platform() -> AsyncIterator[LocalPlatform]:
    """One local platform in this process, for all tests that leave it as they found it."""
    from tests.local.platforms import running_platform

    async with running_platform() as running:
        yield running


@pytest.fixture(scope="session")
def credentials(platform: LocalPlatform) -> Credentials:
    """Access to ``platform``."""
    from pydantic import SecretStr

    from sandbox.connection import Credentials

    return Credentials(api_key=SecretStr(platform.api_key), api_url=platform.api_url)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def workbench() -> AsyncIterator[Workbench]:
    """One platform with the toolchains of this machine; each profile's snapshot is built once for all folders."""
    from tests.examples.workbench import open_workbench

    async with open_workbench() as opened:
        yield opened
