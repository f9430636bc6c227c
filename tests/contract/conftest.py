"""The contract with the ``daytona`` SDK, checked through the unmodified SDK against any Daytona API.

``UOM_CONTRACT_API_URL`` and ``UOM_CONTRACT_API_KEY`` name the API; without them a local platform is started.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from daytona import (
    AsyncDaytona,
    AsyncSandbox,
    CreateSandboxFromSnapshotParams,
    CreateSnapshotParams,
    DaytonaConfig,
    DaytonaError,
    Image,
)
from daytona.common.snapshot import Snapshot

from tests.local.platforms import running_platform

BASE_IMAGE = "python:3.12-slim"

MakeSandbox = Callable[..., Awaitable[AsyncSandbox]]


@dataclass(frozen=True)
class Target:
    """The API under test."""

    api_url: str
    api_key: str
    local: bool


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def target() -> AsyncIterator[Target]:
    url, key = os.environ.get("UOM_CONTRACT_API_URL"), os.environ.get("UOM_CONTRACT_API_KEY")
    if url and key:
        yield Target(url, key, local=False)
        return
    async with running_platform() as platform:
        yield Target(platform.api_url, platform.api_key, local=True)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def daytona(target: Target) -> AsyncIterator[AsyncDaytona]:
    async with AsyncDaytona(DaytonaConfig(api_url=target.api_url, api_key=target.api_key)) as client:
        yield client


@pytest.fixture
def local_only(target: Target) -> None:
    if not target.local:
        pytest.skip("exact answers of the local platform")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def snapshot(daytona: AsyncDaytona) -> AsyncIterator[Snapshot]:
    """A small snapshot that all tests clone from."""
    image = Image.base(BASE_IMAGE).run_commands("mkdir -p /opt/contract && echo 1 > /opt/contract/version")
    made = await daytona.snapshot.create(
        CreateSnapshotParams(name=f"contract-{uuid.uuid4()}", image=image), timeout=600
    )
    yield made
    await daytona.snapshot.delete(made)


@pytest_asyncio.fixture(loop_scope="session")
async def make_sandbox(daytona: AsyncDaytona, snapshot: Snapshot) -> AsyncIterator[MakeSandbox]:
    """Creates sandboxes from the snapshot; what is left of them goes with the test."""
    made: list[AsyncSandbox] = []

    async def make(**fields: Any) -> AsyncSandbox:
        sandbox = await daytona.create(CreateSandboxFromSnapshotParams(**({"snapshot": snapshot.name} | fields)))
        made.append(sandbox)
        return sandbox

    yield make
    for sandbox in made:
        try:
            await sandbox.delete()
        except DaytonaError as error:
            if error.status_code not in (404, 409):  # the test has deleted it, or is deleting it
                raise


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sandbox(daytona: AsyncDaytona, snapshot: Snapshot) -> AsyncIterator[AsyncSandbox]:
    """One sandbox for the tests of a module that leave it running."""
    made = await daytona.create(CreateSandboxFromSnapshotParams(snapshot=snapshot.name))
    yield made
    await made.delete()
