"""Watching from elsewhere: how late it is, and what it costs the runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
import uuid
from collections.abc import AsyncIterator
from unittest.mock import patch
from uuid import UUID, uuid4

from daytona import AsyncDaytona
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterTags

from flows import prefect_api, validate, watch
from flows.background import Job
from flows.event_relay import EventRelay
from sandbox.events import Event
from tests.bench.figures import Figure
from tests.bench.validations import EMPTY, core

PRINTS_TIMES = """\
import time
time.sleep(3)
for _ in range(150):
    print(time.time_ns(), flush=True)
    time.sleep(0.07)
"""
STDOUT = "python_sandbox_command_execution_stdout"


async def latency(client: AsyncDaytona) -> list[Figure]:
    """From a write in the sandbox of a run in another process until a watcher here has it; one clock."""
    assert (await core(EMPTY, client)).passed
    thread = f"watched-{uuid.uuid4().hex[:8]}"
    async with prefect_api() as url:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _VALIDATE, thread),
            stdin=asyncio.subprocess.PIPE,
            env={**os.environ, "PREFECT_API_URL": url},
        )
        running = asyncio.create_task(process.communicate(PRINTS_TIMES.encode()))
        run = await _flow_run(thread)
        samples: list[float] = []
        begun = ""
        async with asyncio.timeout(120):
            async for event in watch(run):
                now = time.time_ns()
                if event["type"] == STDOUT:
                    *lines, begun = (begun + str(event["data"])).split("\n")
                    samples += [(now - int(line)) / 1e6 for line in lines]
        await running
        assert process.returncode == 0
        assert len(samples) == 150
    return [Figure(name="byte written to watcher in another process", samples=samples, target="p50 <= 300")]


_VALIDATE = """
import asyncio, sys
from flows import validate
request = {"profile": "python", "files": {"main.py": sys.stdin.read()}, "thread_id": sys.argv[1]}
sys.exit(0 if asyncio.run(validate(request)).passed else 1)
"""


async def _flow_run(thread: str) -> UUID:
    wanted = FlowRunFilter(tags=FlowRunFilterTags(all_=[f"thread:{thread}"]))
    async with asyncio.timeout(60), get_client() as api:
        while not (found := await api.read_flow_runs(flow_run_filter=wanted)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return UUID(str(found[0].id))


async def relay_cost(client: AsyncDaytona, *, rounds: int = 30) -> list[Figure]:
    """What the relay adds to an empty run, by leaving it out every other time; and to a chunk of output."""

    @contextlib.asynccontextmanager
    async def nobody(**_: object) -> AsyncIterator[object]:
        yield lambda event: None

    assert (await core(EMPTY, client)).passed
    with_relay: list[float] = []
    without: list[float] = []
    async with prefect_api():
        assert (await validate(EMPTY)).passed
        for _ in range(rounds):
            for samples, relay in (
                (with_relay, contextlib.nullcontext()),
                (without, patch("flows.validation.relayed", nobody)),
            ):
                with relay:
                    start = time.perf_counter()
                    assert (await validate(EMPTY)).passed
                    samples.append(time.perf_counter() - start)
    return [
        Figure(name="empty program, with the relay", samples=with_relay, unit="s"),
        Figure(name="empty program, without it", samples=without, unit="s"),
        await _taking(),
    ]


async def _taking(*, events: int = 20_000) -> Figure:
    """Microseconds that a chunk of output takes in the loop of the run."""
    jobs: list[Job] = []
    relay = EventRelay(flow_run_id=uuid4(), attempt=1, put=jobs.append)
    line = "a line of the output of a program, as long as lines commonly are\n"
    samples = []
    for seq in range(events):
        event = Event(type=STDOUT, data=line, seq=seq, at="now", run_id="run", thread_id="thread", phase="run")
        start = time.perf_counter()
        relay(event)
        samples.append((time.perf_counter() - start) * 1e6)
    return Figure(name="relay takes a chunk of output", samples=samples, unit="us")
