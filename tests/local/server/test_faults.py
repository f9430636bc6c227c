"""Boxes that die, hang or do not start; room that is not there."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sandbox.local.control import states, transitions
from sandbox.local.runtime.errors import RuntimeFault
from sandbox.local.server import LocalPlatform
from tests.local.platforms import RawClient, raw_client, running_platform

Place = tuple[LocalPlatform, RawClient]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place() -> AsyncIterator[Place]:
    async with platform_and_raw() as made:
        yield made


@asynccontextmanager
async def platform_and_raw(**settings: Any) -> AsyncIterator[tuple[LocalPlatform, RawClient]]:
    async with running_platform(**settings) as platform, raw_client(platform) as raw:
        yield platform, raw


async def at_rest(raw: RawClient, sandbox_id: str, *, leaving: str) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while True:
            body: dict[str, Any] = (await raw("GET", f"/sandbox/{sandbox_id}")).body
            if body["state"] not in (leaving, "starting", "stopping", "creating"):
                return body


def boxes_of_this_process() -> list[int]:
    """The processes that hold boxes: the direct children whose program is bwrap."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if any(part.endswith(b"bwrap") for part in command[:12]):
                found.append(int(pid))
    return found


async def test_a_box_that_is_killed_is_an_error_that_can_be_recovered(place: Place) -> None:
    platform, raw = place
    before = set(boxes_of_this_process())
    sandbox = (await raw("POST", "/sandbox", {"name": "hit"})).body
    (pid,) = set(boxes_of_this_process()) - before
    await platform.plane.boxes._running[sandbox["id"]].box.files.write("/home/sandbox/kept", _bytes(b"data"))
    os.kill(pid, signal.SIGKILL)
    lost = await at_rest(raw, "hit", leaving="started")
    assert (lost["state"], lost["recoverable"]) == ("error", True)
    assert "ended unexpectedly" in lost["errorReason"]
    assert (await raw("POST", f"/sandbox/{sandbox['id']}/start")).status == 400
    assert (await raw("POST", f"/sandbox/{sandbox['id']}/stop")).status == 400
    back = await raw("POST", f"/sandbox/{sandbox['id']}/recover")
    assert (back.status, back.body["state"], back.body["recoverable"]) == (200, "started", False)
    assert "errorReason" not in back.body
    stat = await platform.plane.boxes._running[sandbox["id"]].box.files.stat("/home/sandbox/kept")
    assert stat.size == 4
    assert (await raw("POST", f"/sandbox/{sandbox['id']}/recover")).status == 400


async def _bytes(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def test_a_recovery_may_leave_it_stopped(place: Place) -> None:
    _, raw = place
    before = set(boxes_of_this_process())
    sandbox = (await raw("POST", "/sandbox", {})).body
    (pid,) = set(boxes_of_this_process()) - before
    os.kill(pid, signal.SIGKILL)
    await at_rest(raw, sandbox["id"], leaving="started")
    back = await raw("POST", f"/sandbox/{sandbox['id']}/recover?skipStart=true")
    assert back.body["state"] == "stopped"


async def test_a_box_that_does_not_start(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    platform, raw = place

    async def refuse(_spec: object) -> None:
        raise RuntimeFault("the layer is missing")

    monkeypatch.setattr(platform.plane.boxes._runtime, "start", refuse)
    answer = await raw("POST", "/sandbox", {"name": "unlucky"})
    assert answer.status == 400
    assert "the layer is missing" in answer.message
    failed = (await raw("GET", "/sandbox/unlucky")).body
    assert (failed["state"], failed["recoverable"]) == ("error", False)
    assert (await raw("POST", f"/sandbox/{failed['id']}/recover")).status == 400
    assert (await raw("POST", "/sandbox", {"name": "unlucky"})).status == 409
    monkeypatch.undo()
    assert (await raw("DELETE", f"/sandbox/{failed['id']}")).status == 200
    assert (await raw("POST", "/sandbox", {"name": "unlucky"})).body["state"] == "started"


async def test_a_box_that_hangs_while_it_starts_is_given_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = dict(states.DEADLINES) | {states.SandboxState.STARTING: 0.2}
    monkeypatch.setattr(transitions, "DEADLINES", limits)
    platform, raw = place
    sandbox = (await raw("POST", "/sandbox", {})).body
    await raw("POST", f"/sandbox/{sandbox['id']}/stop?force=true")
    await at_rest(raw, sandbox["id"], leaving="started")
    hanging = asyncio.Event()

    async def hang(_spec: object) -> None:
        hanging.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(platform.plane.boxes._runtime, "start", hang)
        request = asyncio.create_task(raw("POST", f"/sandbox/{sandbox['id']}/start"))
        await hanging.wait()
        assert (await raw("POST", f"/sandbox/{sandbox['id']}/start")).status == 409
        assert (await raw("DELETE", f"/sandbox/{sandbox['id']}")).status == 409
        answer = await request
    assert answer.status == 400
    assert "longer than 0.2 s" in answer.message
    failed = (await raw("GET", f"/sandbox/{sandbox['id']}")).body
    assert (failed["state"], failed["recoverable"]) == ("error", True)
    monkeypatch.undo()
    assert (await raw("POST", f"/sandbox/{sandbox['id']}/recover")).body["state"] == "started"


async def test_a_start_beyond_the_holding_time_answers_the_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    async with platform_and_raw(hold_seconds=0.05) as (platform, raw):
        runtime = platform.plane.boxes._runtime
        start, release = runtime.start, asyncio.Event()

        async def slow(spec: Any) -> Any:
            await release.wait()
            return await start(spec)

        monkeypatch.setattr(runtime, "start", slow)
        answer = await raw("POST", "/sandbox", {"name": "slow"})
        assert (answer.status, answer.body["state"]) == (200, "creating")
        assert (await raw("DELETE", f"/sandbox/{answer.body['id']}")).status == 409
        release.set()
        assert (await at_rest(raw, "slow", leaving="creating"))["state"] == "started"


async def test_files_that_cannot_be_deleted_are_tried_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    platform, raw = place
    sandbox = (await raw("POST", "/sandbox", {"name": "sticky"})).body

    async def refuse(_box_id: str) -> None:
        raise RuntimeFault("device busy")

    with monkeypatch.context() as patch:
        patch.setattr(platform.plane.boxes._runtime, "remove_box", refuse)
        await raw("DELETE", f"/sandbox/{sandbox['id']}")
        async with asyncio.timeout(10):
            while (await raw("GET", f"/sandbox/{sandbox['id']}")).status != 404:
                pass
    this_one = f"/sandbox?id={sandbox['id']}"
    assert (await raw("GET", this_one)).body["items"] == []
    hidden = (await raw("GET", f"{this_one}&includeErroredDeleted=true")).body["items"]
    assert [item["desiredState"] for item in hidden] == ["destroyed"]
    await platform.plane.janitor.sweep()
    async with asyncio.timeout(10):
        while (await raw("GET", f"{this_one}&includeErroredDeleted=true")).body["items"]:
            pass
    assert sandbox["id"] not in platform.plane.boxes.on_disk()


async def test_room_for_so_many_and_no_more() -> None:
    async with platform_and_raw(max_sandboxes=2, total_memory_gib=2) as (_, raw):
        first = (await raw("POST", "/sandbox", {})).body
        second = (await raw("POST", "/sandbox", {})).body
        answer = await raw("POST", "/sandbox", {})
        assert answer.status == 400
        assert "UOM_MAX_SANDBOXES" in answer.message
        await raw("POST", f"/sandbox/{second['id']}/stop?force=true")
        await at_rest(raw, second["id"], leaving="started")
        assert (await raw("POST", f"/sandbox/{second['id']}/resize", {"memory": 2})).body["memory"] == 2
        answer = await raw("POST", f"/sandbox/{second['id']}/start")
        assert answer.status == 400
        assert "UOM_TOTAL_MEMORY_GIB" in answer.message
        await raw("DELETE", f"/sandbox/{first['id']}")
        async with asyncio.timeout(10):
            while (await raw("GET", f"/sandbox/{first['id']}")).status != 404:
                pass
        assert (await raw("POST", f"/sandbox/{second['id']}/start")).body["state"] == "started"


async def test_a_platform_that_is_stopping_takes_nothing_new(place: Place) -> None:
    platform, raw = place
    platform.plane.closing = True
    answer = await raw("POST", "/sandbox", {})
    assert answer.status == 503
    assert answer.body["source"] == "DAYTONA_API"
