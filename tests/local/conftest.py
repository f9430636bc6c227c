from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from daytona import AsyncDaytona

from sandbox.local.server import LocalPlatform
from tests.local.platforms import RawClient, raw_client, running_platform, sdk


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def platform() -> AsyncIterator[LocalPlatform]:
    """One platform for all tests that leave it as they found it."""
    async with running_platform() as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def daytona(platform: LocalPlatform) -> AsyncIterator[AsyncDaytona]:
    """The SDK in front of ``platform``."""
    async with sdk(platform) as client:
        yield client


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def raw(platform: LocalPlatform) -> AsyncIterator[RawClient]:
    """Plain requests to ``platform``."""
    async with raw_client(platform) as client:
        yield client
