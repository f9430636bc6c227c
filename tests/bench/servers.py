"""What a Prefect server costs a validation: on SQLite and on PostgreSQL, alone and several at once."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from daytona import AsyncDaytona
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows import prefect_api, validate
from flows.event_relay import SENDER
from flows.prefect_server import PrefectServer
from flows.publisher import PUBLISHER
from sandbox.profiles import builtin_profile
from tests.bench.figures import Figure
from tests.bench.validations import EMPTY, by_hand, core
from tests.databases.postgresql import programs, running_postgresql
from tests.scratch import scratch_directory

AT_ONCE = {1: 30, 8: 4, 20: 2}
"""Runs at once → rounds: at least 30 runs of each."""

TARGET = "p50 <= 0.4, p95 <= 0.8"


async def overhead(client: AsyncDaytona, server: str, url: str | None) -> list[Figure]:
    """The empty Python program, warm: ``validate`` beyond the same calls made by hand, as many at once.

    Args:
        client: Of the platform.
        server: The name of the Prefect server, for the table.
        url: Its address; ``None`` where it cannot be started.
    """
    if url is None:
        print(f"{server}: not measured: its programs are not on this machine", flush=True)
        return []
    assert (await core(EMPTY, client)).passed
    with temporary_settings({PREFECT_API_URL: url}):
        async with prefect_api():
            figures = await _overhead(client, server)
            # Before the server ends: who still has something to tell it would try for minutes.
            await asyncio.to_thread(_send_what_waits)
            return figures


async def _overhead(client: AsyncDaytona, server: str) -> list[Figure]:
    profile = builtin_profile("python")

    async def hand() -> None:
        await by_hand(client, profile)

    async def flow() -> None:
        result = await validate(EMPTY)
        assert result.passed, result.message

    await flow()
    figures = []
    for count, rounds in AT_ONCE.items():
        bare: list[float] = []
        ours: list[float] = []
        for _ in range(rounds):
            bare += await _timed(hand, count)
            ours += await _timed(flow, count)
        base = statistics.median(bare)
        figures += [
            Figure(name=f"{server}, {count} at once: calls by hand", samples=bare, unit="s"),
            Figure(
                name=f"{server}, {count} at once: validate() beyond them",
                samples=[sample - base for sample in ours],
                unit="s",
                target=TARGET if count == 1 and server == "SQLite" else "",
            ),
        ]
    return figures


def _send_what_waits() -> None:
    for sender in (PUBLISHER, SENDER):
        assert sender.flush(60)
    APILogWorker.drain_all(timeout=60)
    EventsWorker.drain_all(timeout=60)


async def _timed(work: Callable[[], Awaitable[None]], count: int) -> list[float]:
    async def one() -> float:
        start = time.perf_counter()
        await work()
        return time.perf_counter() - start

    return list(await asyncio.gather(*(one() for _ in range(count))))


@asynccontextmanager
async def sqlite() -> AsyncIterator[str | None]:
    """A new server as ``uom-sandbox up`` starts it; yields its address."""
    async with _server({}) as url:
        yield url


@asynccontextmanager
async def postgresql() -> AsyncIterator[str | None]:
    """The same server on a new database of PostgreSQL; ``None`` where that is not installed."""
    directory = programs()
    if directory is None:
        yield None
        return
    scratch = scratch_directory()
    scratch.chmod(0o711)
    os.environ.setdefault("UOM_TEST_SESSION", uuid.uuid4().hex)
    async with AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        database = await stack.enter_async_context(running_postgresql(directory, scratch=scratch))
        url = database.url.replace("postgresql://", "postgresql+asyncpg://")
        yield await stack.enter_async_context(_server({"PREFECT_SERVER_DATABASE_CONNECTION_URL": url}))


@asynccontextmanager
async def _server(settings: dict[str, str]) -> AsyncIterator[str]:
    home = scratch_directory()
    server = PrefectServer(home, extra_settings=settings)
    try:
        yield (await server.start()).api_url
    finally:
        await server.stop()
        shutil.rmtree(home, ignore_errors=True)
