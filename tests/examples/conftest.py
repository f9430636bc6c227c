from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.examples.workbench import Workbench, open_workbench


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def workbench() -> AsyncIterator[Workbench]:
    """One platform and one snapshot per profile for all tests of this folder."""
    async with open_workbench() as opened:
        yield opened
