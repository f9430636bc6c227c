"""Intervals in minutes, counted by a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from sandbox.local.server import LocalPlatform
from tests.local.platforms import Answer, RawClient, SteppedClock, raw_client, running_platform

Place = tuple[LocalPlatform, RawClient, SteppedClock]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place() -> AsyncIterator[Place]:
    clock = SteppedClock()
    async with running_platform(clock=clock) as platform, raw_client(platform) as raw:
        yield platform, raw, clock


async def swept(place: Place, name: str, *, minutes: float) -> str:
    """Moves the clock, lets the janitor go round, and returns where the sandbox comes to rest."""
    platform, raw, clock = place
    clock.forward(minutes=minutes)
    await platform.plane.janitor.sweep()
    async with asyncio.timeout(20):
        while True:
            answer = await raw("GET", f"/sandbox/{name}")
            if answer.status == 404:
                return "gone"
            if answer.body["state"] not in ("stopping", "destroying", "archiving"):
                return str(answer.body["state"])


async def make(place: Place, name: str, **fields: object) -> Answer:
    answer = await place[1]("POST", "/sandbox", {"name": name} | fields)
    assert answer.status == 200, answer.body
    return answer


async def test_an_idle_sandbox_stops_and_an_active_one_does_not(place: Place) -> None:
    await make(place, "idle", autoStopInterval=10)
    _, raw, clock = place
    assert await swept(place, "idle", minutes=9.9) == "started"
    sandbox = (await raw("GET", "/sandbox/idle")).body
    assert (await raw("POST", f"/sandbox/{sandbox['id']}/last-activity")).status == 201
    assert await swept(place, "idle", minutes=9.9) == "started", "looking at it did not count, the activity did"
    assert await swept(place, "idle", minutes=0.2) == "stopped"
    assert (await raw("GET", "/sandbox/idle")).body["desiredState"] == "stopped"
    assert clock.now() > 0


async def test_the_default_is_a_quarter_of_an_hour_and_zero_is_off(place: Place) -> None:
    await make(place, "default")
    await make(place, "tireless", autoStopInterval=0)
    assert await swept(place, "default", minutes=14.9) == "started"
    assert await swept(place, "default", minutes=0.2) == "stopped"
    assert await swept(place, "tireless", minutes=60 * 24 * 30) == "started"


async def test_a_use_of_the_toolbox_is_activity(place: Place) -> None:
    sandbox = (await make(place, "used", autoStopInterval=5)).body
    platform, _, clock = place
    clock.forward(minutes=4)
    await platform.plane.janitor.sweep()
    platform.plane.sandboxes.toolbox(sandbox["id"])
    assert await swept(place, "used", minutes=4) == "started"
    assert await swept(place, "used", minutes=1.1) == "stopped"


async def test_a_stopped_sandbox_is_archived_then_deleted(place: Place) -> None:
    sandbox = (await make(place, "old", autoStopInterval=1, autoArchiveInterval=30, autoDeleteInterval=60)).body
    assert await swept(place, "old", minutes=1.1) == "stopped"
    assert await swept(place, "old", minutes=29) == "stopped"
    assert await swept(place, "old", minutes=1.1) == "archived"
    assert await swept(place, "old", minutes=59) == "archived"
    assert await swept(place, sandbox["id"], minutes=1.1) == "gone"


async def test_an_ephemeral_sandbox_goes_when_it_is_idle(place: Place) -> None:
    sandbox = (await make(place, "brief", autoStopInterval=1, autoDeleteInterval=0)).body
    assert await swept(place, sandbox["id"], minutes=1.1) == "gone"
    assert sandbox["id"] not in place[0].plane.boxes.on_disk()


async def test_a_lifetime_ends_whatever_the_sandbox_does(place: Place) -> None:
    first = (await make(place, "mortal", autoStopInterval=0, ttlMinutes=20)).body
    assert first["autoDestroyAt"] > first["createdAt"]
    second = (await make(place, "later", autoStopInterval=0)).body
    _, raw, _ = place
    assert (await raw("POST", f"/sandbox/{second['id']}/ttl/30")).status == 200
    assert await swept(place, first["id"], minutes=20.1) == "gone"
    assert (await raw("POST", f"/sandbox/{second['id']}/ttl/0")).status == 200
    assert await swept(place, second["id"], minutes=60) == "started"
    assert (await raw("POST", f"/sandbox/{second['id']}/ttl/1")).status == 200
    assert await swept(place, second["id"], minutes=1.1) == "gone"
