"""Faults on demand do what they say, and to nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from daytona import (
    AsyncDaytona,
    CreateSandboxFromSnapshotParams,
    DaytonaConnectionError,
    DaytonaInternalServerError,
    DaytonaRateLimitError,
)

from sandbox.local.faults import Fault
from sandbox.local.server import LocalPlatform
from tests.local.platforms import RawClient


@pytest_asyncio.fixture(loop_scope="session")
async def faulty(platform: LocalPlatform) -> AsyncIterator[LocalPlatform]:
    yield platform
    platform.faults.clear()


async def test_an_error_for_a_number_of_requests(faulty: LocalPlatform, daytona: AsyncDaytona) -> None:
    fault = faulty.faults.add(
        Fault(
            kind="fail",
            method="POST",
            path="/api/sandbox",
            status=429,
            message="slow down",
            headers={"retry-after-sandbox-create": "2"},
            after=1,
        )
    )
    await (await daytona.create()).delete()
    with pytest.raises(DaytonaRateLimitError, match="slow down") as caught:
        await daytona.create()
    assert caught.value.headers is not None
    assert caught.value.headers["retry-after-sandbox-create"] == "2"
    await (await daytona.create()).delete()
    assert fault.seen == 3


async def test_an_answer_that_is_lost_has_still_been_carried_out(faulty: LocalPlatform, daytona: AsyncDaytona) -> None:
    faulty.faults.add(Fault(kind="lose_answer", method="POST", path="/api/sandbox"))
    with pytest.raises(DaytonaConnectionError):
        await daytona.create(CreateSandboxFromSnapshotParams(name="lost"))
    found = await daytona.get("lost")
    assert found.state == "started"
    await found.delete()


async def test_a_connection_that_is_cut_has_done_nothing(faulty: LocalPlatform, daytona: AsyncDaytona) -> None:
    faulty.faults.add(Fault(kind="cut", method="POST", path="/api/sandbox"))
    with pytest.raises(DaytonaConnectionError):
        await daytona.create(CreateSandboxFromSnapshotParams(name="never"))
    assert "never" not in {sandbox.name async for sandbox in daytona.list()}


async def test_one_error_during_a_poll(faulty: LocalPlatform, daytona: AsyncDaytona) -> None:
    sandbox = await daytona.create()
    faulty.faults.add(Fault(kind="fail", method="GET", path=f"/api/sandbox/{sandbox.id}", status=500))
    with pytest.raises(DaytonaInternalServerError):
        await sandbox.stop()
    await sandbox.wait_for_sandbox_stop()
    assert sandbox.state == "stopped", "the error hid the state, it did not change it"
    await sandbox.delete()


async def test_a_request_that_hangs_until_the_faults_are_cleared(faulty: LocalPlatform, raw: RawClient) -> None:
    fault = faulty.faults.add(Fault(kind="hang", path="/api/health", times=None))
    request = asyncio.create_task(raw("POST", "/health"))  # a GET would be sent again by the client
    async with asyncio.timeout(10):
        while not fault.seen:
            await raw("GET", "/volumes")
    assert not request.done()
    faulty.faults.clear()
    with pytest.raises(aiohttp.ClientError):
        await request
    assert (await raw("GET", "/health")).status == 200


async def test_a_delay_goes_on_afterwards(faulty: LocalPlatform, raw: RawClient) -> None:
    faulty.faults.add(Fault(kind="delay", path="/api/health", seconds=0.01))
    assert (await raw("GET", "/health")).status == 200
