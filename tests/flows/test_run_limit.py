"""The limit on runs of a profile at a time, over processes: waits, slots that come back at once, leases of the dead."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from prefect.client.orchestration import PrefectClient, get_client

from flows import prefect_api, validate
from flows.run_limit import limit_name
from sandbox.connection import Credentials, client
from sandbox.errors import PlatformUnavailableError
from sandbox.events import SANDBOX_STATE, Event
from sandbox.models import ValidationRequest, ValidationResult

ROOT = Path(__file__).parents[2]

# Another process of the same user, as any program with this project: it says when its program runs.
OTHER = """
import asyncio, sys
from flows import validate

async def main():
    files = {"main.py": "import time\\nprint('here', flush=True)\\ntime.sleep(100)"}
    await validate({"profile": "python", "files": files}, on_event=tell)

def tell(event):
    if event["type"].endswith("stdout"):
        print("here", flush=True)

asyncio.run(main())
"""


@pytest_asyncio.fixture
async def api(prefect_server: str, credentials: Credentials) -> AsyncIterator[PrefectClient]:
    """A server on which one Python program may run at a time."""
    async with prefect_api(), client(credentials), get_client() as api:
        await api.upsert_global_concurrency_limit_by_name(limit_name("python"), 1)
        try:
            yield api
        finally:
            await api.delete_global_concurrency_limit_by_name(limit_name("python"))


async def taken(api: PrefectClient) -> int:
    return (await api.read_global_concurrency_limit_by_name(limit_name("python"))).active_slots


async def until_taken(api: PrefectClient, count: int) -> None:
    async with asyncio.timeout(60):
        while await taken(api) != count:  # noqa: ASYNC110 - it is the server's number
            await asyncio.sleep(0.1)


@asynccontextmanager
async def other_process(prefect_server: str, credentials: Credentials) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that holds the only place, with a program that never ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OTHER),
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PREFECT_API_URL": prefect_server,
            "DAYTONA_API_URL": credentials.api_url,
            "DAYTONA_API_KEY": credentials.api_key.get_secret_value(),
        },
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"here\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        # A killed process leaves its session in the sandbox that other tests use, too.
        async with client(credentials) as daytona:
            await (await daytona.get("validation-sandbox-python-3-sandbox")).delete(timeout=60)


def hello(heard: list[Event], credentials: Credentials) -> asyncio.Task[ValidationResult]:
    request = ValidationRequest(profile="python", files={"main.py": "print('hello')"})
    return asyncio.create_task(validate(request, on_event=heard.append, credentials=credentials))


def waits(heard: list[Event]) -> bool:
    return any(
        event["type"] == SANDBOX_STATE
        and isinstance(event["data"], dict)
        and event["data"]["state"] == "waiting for one of 1 places"
        for event in heard
    )


async def until_it_waits(heard: list[Event]) -> None:
    async with asyncio.timeout(30):
        while not waits(heard):  # noqa: ASYNC110 - a list tells nobody
            await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_a_place_is_free_at_once_when_the_run_of_another_process_ends(
    api: PrefectClient, prefect_server: str, credentials: Credentials
) -> None:
    heard: list[Event] = []
    async with other_process(prefect_server, credentials) as process:
        assert await taken(api) == 1
        waiting = hello(heard, credentials)
        await until_it_waits(heard)
        await asyncio.sleep(0.5)
        assert not waiting.done()
        assert not any(event["type"].endswith("stdout") for event in heard), "it ran beside the limit"
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            result = await waiting
    assert result.passed
    assert result.timings.queue > 0.5
    assert await taken(api) == 0


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_the_place_of_a_killed_process_comes_back_by_lease(
    api: PrefectClient, prefect_server: str, credentials: Credentials
) -> None:
    heard: list[Event] = []
    async with other_process(prefect_server, credentials) as process:
        process.kill()
        await process.wait()
        assert await taken(api) == 1
        # A lease of a minute, and the server's look every fifteen seconds.
        async with asyncio.timeout(150):
            assert (await hello(heard, credentials)).passed
    assert waits(heard)


async def test_a_cancelled_run_gives_its_place_back_and_one_that_waits_takes_none(
    api: PrefectClient, credentials: Credentials
) -> None:
    heard: list[Event] = []
    request = ValidationRequest(profile="python", files={"main.py": "import time\ntime.sleep(100)"})
    running = asyncio.create_task(validate(request, credentials=credentials))
    await until_taken(api, 1)
    waiting = hello(heard, credentials)
    await until_it_waits(heard)
    for task in (waiting, running):
        task.cancel()
    await asyncio.wait((waiting, running), timeout=60)
    assert waiting.cancelled()
    assert running.cancelled()
    await until_taken(api, 0)


async def test_a_limit_without_places_is_an_error_that_names_it(api: PrefectClient, credentials: Credentials) -> None:
    await api.upsert_global_concurrency_limit_by_name(limit_name("python"), 0)
    with pytest.raises(PlatformUnavailableError, match="uom-sandbox-python"):
        await hello([], credentials)
