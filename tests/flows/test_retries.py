"""What the flow tries again, as Prefect sees it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

import flows.validation as flow_module
from flows import validate
from sandbox import ValidationRequest
from sandbox.connection import Credentials
from sandbox.errors import RateLimitedError
from sandbox.local.faults import Fault
from sandbox.local.server import LocalPlatform
from sandbox.retry import ATTEMPTS

REQUEST = ValidationRequest(profile="python", files={"main.py": "print(1)"})

pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def _healthy(platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(flow_module, "ensure_snapshot", flow_module.ensure_snapshot.with_options(retry_delay_seconds=0))
    yield
    platform.faults.clear()


async def test_the_time_a_platform_asks_for_is_waited_and_told(
    platform: LocalPlatform, credentials: Credentials
) -> None:
    told = {"retry-after-authenticated": "0.4"}
    platform.faults.add(Fault(kind="fail", path="/api/snapshots/.*", status=429, times=2, headers=told))
    begun = time.monotonic()
    result = await validate(REQUEST, credentials=credentials)
    assert result.passed
    assert time.monotonic() - begun >= 0.8
    assert sum("asks to wait 0.4 s" in line for line in result.recoveries) == 2


async def test_a_platform_that_is_always_busy_is_asked_so_many_times(
    platform: LocalPlatform, credentials: Credentials
) -> None:
    busy = platform.faults.add(
        Fault(kind="fail", path="/api/snapshots/.*", status=429, times=None, headers={"Retry-After": "0"})
    )
    with pytest.raises(RateLimitedError, match="ensure_snapshot"):
        await validate(REQUEST, credentials=credentials)
    assert busy.seen == ATTEMPTS
