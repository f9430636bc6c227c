"""Runs watched from elsewhere: the same events, in order, complete or told; and how batches are put together."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from flows import validate, validate_sync, watch, watch_sync
from flows.background import Job
from flows.event_assembly import EventAssembly
from flows.event_relay import PIECE_CHARACTERS, EventRelay
from flows.submission import submit
from sandbox.connection import Credentials, client
from sandbox.errors import ConfigurationError
from sandbox.events import EVENTS_LEFT_OUT, OUTCOME, PHASE_FINISHED, Event
from sandbox.models import ValidationRequest, ValidationResult

STDOUT = "python_sandbox_command_execution_stdout"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def batch(first: int, texts: list[str], *, last: int | None = None, attempt: int = 1) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "attempt": attempt,
        "run_id": "run",
        "thread_id": "thread",
        "first": first,
        "events": [{"type": STDOUT, "data": text, "at": "now", "phase": "run"} for text in texts],
    }
    return payload if last is None else {**payload, "last": last}


def texts(events: list[Event]) -> list[Any]:
    return [event["data"] for event in events]


def test_batches_in_any_order_come_out_once_and_in_order() -> None:
    assembly = EventAssembly(from_seq=2, attempt=1)
    assembly.add(batch(3, ["c"], last=3), occurred=NOW + timedelta(seconds=1))
    assert assembly.take() == []
    assert assembly.incomplete
    for _ in range(2):
        assembly.add(batch(1, ["a", "b"]), occurred=NOW)
    assert texts(assembly.take()) == ["b", "c"]
    assert assembly.ended
    assert assembly.since == NOW + timedelta(seconds=1)


def test_what_is_missing_is_told_with_its_numbers() -> None:
    assembly = EventAssembly(from_seq=1, attempt=1)
    assembly.add(batch(1, ["a"]), occurred=NOW)
    assembly.add(batch(4, ["d"]), occurred=NOW)
    assert texts(assembly.take()) == ["a"]
    (gap,) = assembly.skip("lost", at="now")
    assert (gap["type"], gap["seq"], gap["data"]) == (EVENTS_LEFT_OUT, 3, {"first": 2, "last": 3, "reason": "lost"})
    assert texts(assembly.take()) == ["d"]
    assembly.add(batch(7, [], last=6), occurred=NOW)
    (gap,) = assembly.skip("lost", at="now")
    assert gap["data"] == {"first": 5, "last": 6, "reason": "lost"}
    assert assembly.ended


def test_a_flow_run_that_is_started_again_counts_anew() -> None:
    assembly = EventAssembly(from_seq=1, attempt=2)
    assembly.add(batch(1, ["former"], last=1), occurred=NOW)
    assert not assembly.take()
    assert not assembly.ended
    assembly.add(batch(1, ["new"], attempt=2), occurred=NOW)
    assert texts(assembly.take()) == ["new"]


class Api:
    """Takes batches in place of a Prefect API."""

    def __init__(self) -> None:
        self.assembly = EventAssembly(from_seq=1, attempt=1)

    def request(self, method: str, path: str, *, json: list[dict[str, Any]]) -> None:
        assert (method, path) == ("POST", "/events")
        self.assembly.add(json[0]["payload"], occurred=datetime.fromisoformat(json[0]["occurred"]))


def event(type_: str, data: Any) -> Event:
    return Event(type=type_, data=data, seq=1, at="now", run_id="run", thread_id="thread", phase="run")


async def test_a_relay_joins_cuts_and_tells_what_it_leaves_out() -> None:
    api = Api()
    jobs: deque[Job] = deque()
    relay = EventRelay(flow_run_id=uuid4(), attempt=1, run_characters=3 * PIECE_CHARACTERS, put=jobs.append)
    relay(event(STDOUT, "a"))
    relay(event(STDOUT, "\0" * (2 * PIECE_CHARACTERS)))
    relay(event(STDOUT, "b" * 10 * PIECE_CHARACTERS))
    relay(event(STDOUT, "the end"))
    relay(event(PHASE_FINISHED, {"phase": "run"}))
    relay.close()
    while jobs:
        jobs.popleft()(api)  # type: ignore[arg-type]
    events = api.assembly.take()
    assert api.assembly.ended
    gap = next(event for event in events if event["type"] == EVENTS_LEFT_OUT)
    output = "".join(str(event["data"]) for event in events if event["type"] == STDOUT)
    assert output.startswith("a" + "\0" * 2 * PIECE_CHARACTERS + "b")
    assert output.endswith("bthe end")
    assert isinstance(gap["data"], dict)
    assert len(output) + gap["data"]["characters"] == 1 + 12 * PIECE_CHARACTERS + len("the end")  # type: ignore[operator]
    assert events[-1]["type"] == PHASE_FINISHED


async def started(request: ValidationRequest, credentials: Credentials) -> tuple[str, asyncio.Task[ValidationResult]]:
    """Starts a run in process; returns its flow run once there is one."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterTags

    running = asyncio.create_task(validate(request, credentials=credentials))
    wanted = FlowRunFilter(tags=FlowRunFilterTags(all_=[f"thread:{request.thread_id}"]))
    async with asyncio.timeout(60), get_client() as api:
        while not (found := await api.read_flow_runs(flow_run_filter=wanted)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return str(found[0].id), running


async def test_a_run_is_watched_live_to_its_end_and_again_later(prefect_server: str, credentials: Credentials) -> None:
    go = f"/tmp/uom-watched-{uuid4().hex[:8]}"
    source = f"""
import os, sys, time
for n in range(3000): print('line', n)
sys.stdout.flush()
while not os.path.exists('{go}'): time.sleep(0.02)
os.unlink('{go}')
print('end\\0')
"""
    request = ValidationRequest(profile="python", files={"main.py": source}, thread_id=f"watched-{uuid4().hex[:8]}")
    run, running = await started(request, credentials)
    live: list[Event] = []
    told = False
    async with asyncio.timeout(60):
        async for event in watch(run):
            live.append(event)
            if event["type"] == STDOUT and not told:
                told = True  # the program waits for a watcher that has heard it
                async with client(credentials) as daytona:
                    sandbox = await daytona.get("validation-sandbox-python-3-sandbox")
                    await sandbox.process.exec(f"touch {go}")
    result = await running
    assert [event["seq"] for event in live] == list(range(1, len(live) + 1))
    output = "".join(str(event["data"]) for event in live if event["type"] == STDOUT)
    assert output == "".join(f"line {n}\n" for n in range(3000)) + "end\0\n"
    assert live[-1]["type"] == OUTCOME
    assert {event["run_id"] for event in live} == {result.run_id}
    # From a number on, and without a loop of one's own in charge: as a notebook does.
    async with asyncio.timeout(60):
        assert [event async for event in watch(run, from_seq=3)] == live[2:]
        assert list(watch_sync(run, from_seq=3)) == live[2:]


async def test_the_sync_twin_works_in_a_running_loop(prefect_server: str, credentials: Credentials) -> None:
    async def cell() -> ValidationResult:
        return validate_sync(
            ValidationRequest(profile="python", files={"main.py": "print(1)"}), credentials=credentials
        )

    # In a thread, since the platform of the tests lives in the loop of this one.
    assert (await asyncio.to_thread(lambda: asyncio.run(cell()))).passed


async def test_a_run_that_is_not_there(prefect_server: str) -> None:
    for wanted in (str(uuid4()), "no-such-run"):
        with pytest.raises(ConfigurationError, match="no flow run"):
            await anext(aiter(watch(wanted)))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"secrets": {"KEY": "hidden"}}, "secret_blocks"),
        ({"connections": [{"kind": "postgresql", "url": "postgresql://me:hidden@db/shop"}]}, "connection_blocks"),
        ({"files": {"main.py": "#" * 600_000}}, "flows.validate"),
        ({"profile": "cobol"}, "deploy --all"),
    ],
)
async def test_what_cannot_be_submitted(prefect_server: str, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named) as caught:
        await submit({"profile": "python", "files": {"main.py": "print(1)"}, **fields})
    assert "hidden" not in str(caught.value)
