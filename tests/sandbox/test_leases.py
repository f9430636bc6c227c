"""Who owns a sandbox until when; and who renews that."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from daytona import AsyncDaytona, AsyncSandbox

import sandbox.leases as leases
from sandbox.leases import LEASE_SECONDS, kept_seconds, last_use, lease_end, new_lease
from sandbox.models import Isolation
from sandbox.naming import LEASE_END
from sandbox.profiles import Profile
from tests.sandbox.conftest import Faulty
from tests.sandbox.fault_proxy import Harm
from tests.sandbox.shell_profile import Recorded, shell_profile, validate

STAY = {"STAY": "8"}
LABELS = r"PUT /api/sandbox/[^/]+/labels$"


@pytest_asyncio.fixture(loop_scope="session")
async def profile(daytona: AsyncDaytona) -> AsyncIterator[Profile]:
    """A profile with a sandbox of its own, which is removed in the end."""
    made = shell_profile("echo here-we-are; sleep ${STAY:-0}", type=f"lease-{uuid.uuid4().hex[:8]}")
    yield made
    async for box in daytona.list():
        if box.name.startswith(made.sandbox_name):
            await daytona.delete(box)


async def set_lease(sandbox: AsyncSandbox, text: str) -> None:
    await sandbox.set_labels({**sandbox.labels, LEASE_END: text})


async def leased_until(sandbox: AsyncSandbox, moment: float) -> None:
    """Waits for a lease beyond a moment."""
    async with asyncio.timeout(10):
        while (lease_end(sandbox.labels) or 0) <= moment:
            await asyncio.sleep(0.05)
            await sandbox.refresh_data()


@pytest.mark.parametrize(
    ("text", "end"), [("1700000000", 1.7e9), ("none", None), ("", None), ("-5", None), ("١٢", None), ("1e9", None)]
)
def test_only_a_number_is_the_end_of_a_lease(text: str, end: float | None) -> None:
    assert lease_end({LEASE_END: text}) == end
    assert lease_end({}) is None


@pytest.mark.parametrize(
    ("auto_stop", "auto_delete", "seconds"),
    [(60, 1440, 90_000.0), (60, 0, 3600.0), (60, -1, 3600.0), (0, 1440, None), (None, None, None)],
)
def test_a_shared_sandbox_is_kept_as_long_as_its_intervals_say(
    auto_stop: float | None, auto_delete: float | None, seconds: float | None
) -> None:
    assert kept_seconds(auto_stop, auto_delete) == seconds
    lease = new_lease(Isolation.THREAD, auto_stop_minutes=auto_stop, auto_delete_minutes=auto_delete)
    end = lease_end({LEASE_END: lease})
    if seconds is None:
        assert end is None
        assert lease == "none"
    else:
        assert end is not None
        assert 0 <= time.time() + seconds - end < 5


async def test_a_run_renews_the_lease_of_its_own_sandbox_while_it_lives(
    faulty: Faulty, profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.1)
    sink = Recorded()
    running = asyncio.create_task(validate(faulty.daytona, profile, isolation="run", sink=sink, environment=STAY))
    async with asyncio.timeout(30):
        await sink.until("here-we-are\n")
    (box,) = [box async for box in faulty.daytona.list() if box.name.startswith(profile.sandbox_name)]
    before = dict(box.labels)
    await set_lease(box, str(int(time.time()) + 5))
    await leased_until(box, time.time() + LEASE_SECONDS - 30)
    assert {**box.labels, LEASE_END: ""} == {**before, LEASE_END: ""}, "the other labels stay"
    assert (await running).passed


async def test_a_run_renews_the_old_lease_of_a_shared_sandbox_and_no_young_one(
    faulty: Faulty, profile: Profile
) -> None:
    assert (await validate(faulty.daytona, profile)).passed
    assert (await validate(faulty.daytona, profile)).passed
    assert faulty.proxy.count(LABELS) == 0
    box = await faulty.daytona.get(profile.sandbox_name)
    for old in (str(int(time.time()) + 60), "none"):
        await set_lease(box, old)
        assert (await validate(faulty.daytona, profile)).passed
        await box.refresh_data()
        used = last_use(box)
        assert used is not None
        assert abs(time.time() - used) < 30


async def test_a_lease_that_cannot_be_renewed_ends_no_run_and_is_tried_again(
    faulty: Faulty, daytona: AsyncDaytona, profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.1)
    faulty.proxy.harms = [Harm(LABELS, status=503, times=2)]
    sink = Recorded()
    running = asyncio.create_task(validate(faulty.daytona, profile, isolation="run", sink=sink, environment=STAY))
    async with asyncio.timeout(30):
        await sink.until("here-we-are\n")
    (box,) = [box async for box in faulty.daytona.list() if box.name.startswith(profile.sandbox_name)]
    direct = await daytona.get(box.name)
    await set_lease(direct, "1")
    await leased_until(direct, time.time())
    assert (await running).passed
    assert faulty.proxy.count(LABELS) >= 3


async def test_somebody_elses_sandbox_is_not_labelled(faulty: Faulty, profile: Profile) -> None:
    assert (await validate(faulty.daytona, profile)).passed
    box = await faulty.daytona.get(profile.sandbox_name)
    theirs = {"team": "other"}
    await box.set_labels(theirs)
    before = faulty.proxy.count(LABELS)
    assert (await validate(faulty.daytona, profile)).passed
    await box.refresh_data()
    assert "team" in box.labels
    assert LEASE_END not in box.labels
    assert faulty.proxy.count(LABELS) == before
