"""What the flow tries again or brings back to life, as Prefect sees it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

import flows.validation as flow_module
import sandbox.lifecycle as lifecycle
from flows import validate
from sandbox import ValidationRequest
from sandbox.connection import Credentials
from sandbox.errors import RateLimitedError
from sandbox.events import SANDBOX_STATE, Event
from sandbox.local.faults import Fault
from sandbox.local.forced_states import ForcedState
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


@pytest.mark.parametrize(
    ("word", "told"), [("restoring", ""), ("a state of tomorrow", ""), ("error", "was in state error (on fire)")]
)
async def test_a_flow_gets_over_a_state_and_says_so(
    platform: LocalPlatform, credentials: Credentials, monkeypatch: pytest.MonkeyPatch, word: str, told: str
) -> None:
    monkeypatch.setattr(lifecycle, "ZOMBIE_PAUSE_SECONDS", 0.0)
    first = await validate(REQUEST, credentials=credentials)
    assert first.sandbox is not None
    platform.faults.force(
        ForcedState(
            kind="sandbox",
            target=first.sandbox.sandbox_id,
            state=word,
            reads=None if told else 3,
            fields={"errorReason": "on fire", "recoverable": False} if told else {},
        )
    )
    events: list[Event] = []
    second = await validate(REQUEST, on_event=events.append, credentials=credentials)
    assert second.passed
    assert second.sandbox is not None
    assert (second.sandbox.sandbox_id == first.sandbox.sandbox_id) == (not told)
    assert any(told in line for line in second.recoveries) == bool(told)
    shown = word if " " not in word else "unknown_default_open_api"
    states = [event["data"] for event in events if event["type"] == SANDBOX_STATE]
    assert any(isinstance(data, dict) and data["state"] == shown for data in states)
