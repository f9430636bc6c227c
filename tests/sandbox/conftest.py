"""A local platform for the session, and profiles small enough to be built in a moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest_asyncio
from daytona import AsyncDaytona
from pydantic import SecretStr

from sandbox.connection import Credentials, client
from sandbox.local.server import LocalPlatform
from tests.local.platforms import running_platform
from tests.sandbox.fault_proxy import FaultProxy, fault_proxy


def credentials_of(platform: LocalPlatform) -> Credentials:
    return Credentials(api_key=SecretStr(platform.api_key), api_url=platform.api_url, target="local")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def platform() -> AsyncIterator[LocalPlatform]:
    """One platform for all tests that leave it as they found it."""
    async with running_platform() as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def daytona(platform: LocalPlatform) -> AsyncIterator[AsyncDaytona]:
    """Our client in front of ``platform``, kept open for the session."""
    async with client(credentials_of(platform)) as opened:
        yield opened


@dataclass
class Faulty:
    """A platform that can be harmed: the proxy, and our client that speaks through it."""

    proxy: FaultProxy
    daytona: AsyncDaytona
    platform: LocalPlatform


@pytest_asyncio.fixture(loop_scope="session")
async def faulty(platform: LocalPlatform) -> AsyncIterator[Faulty]:
    """``platform`` behind a proxy that does harm on demand."""
    target = platform.api_url.removesuffix("/api")
    async with fault_proxy(target) as proxy:
        credentials = credentials_of(platform).model_copy(update={"api_url": f"{proxy.url}/api"})
        async with client(credentials) as daytona:
            yield Faulty(proxy, daytona, platform)
