"""SIGKILL at each request of a validation, before and after the platform has done it; and of the platform, any time."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
from pydantic import SecretStr

from sandbox import abandoned
from sandbox.connection import Credentials, client
from sandbox.errors import SandboxError
from sandbox.events import EventStream
from sandbox.local import service
from sandbox.local.faults import Fault
from sandbox.local.server import LocalPlatform
from sandbox.local.settings import Settings
from sandbox.models import Isolation, ValidationRequest, ValidationResult
from sandbox.profiles import builtin_profile
from sandbox.validation import Validation
from tests.endurance import killed_client
from tests.endurance.processes import command_lines, until
from tests.endurance.test_kills import ROOT, marked, own_home
from tests.local.platforms import running_platform, sdk

__all__ = ["own_home"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """
import subprocess
subprocess.run(["sh", "-c", "setsid sleep {marker} & exec sleep {marker}"])
"""
QUICK = "print(input())"
MOST_REQUESTS = 40


@pytest.fixture(scope="module")
def spawner() -> Iterator[multiprocessing.context.ForkServerContext]:
    """Starts clients quickly: their modules are imported once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([killed_client.__name__])
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", str(ROOT))  # what it imports, it looks for like any other interpreter
        multiprocessing.forkserver.ensure_running()
    yield context
    multiprocessing.forkserver._forkserver._stop()  # type: ignore[attr-defined]
    multiprocessing.resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own_platform() -> AsyncIterator[LocalPlatform]:
    """A platform whose requests are counted, with the snapshot ready."""
    async with running_platform() as platform:
        assert (await _validate(credentials_of(platform), QUICK)).passed
        yield platform


def credentials_of(platform: LocalPlatform) -> Credentials:
    return Credentials(api_key=SecretStr(platform.api_key), api_url=platform.api_url)


async def _validate(credentials: Credentials, source: str, *, limit: float = 20) -> ValidationResult:
    request = ValidationRequest.model_validate(
        {"profile": "python", "files": {"main.py": source}, "stdin": "one\n", "limits": {"total_seconds": limit}}
    ).identified()
    async with (
        client(credentials) as daytona,
        EventStream(run_id=str(request.run_id), thread_id=str(request.thread_id)) as events,
    ):
        return await Validation(request, profile=builtin_profile("python"), client=daytona, events=events).run()


async def kill_at(
    context: multiprocessing.context.ForkServerContext,
    platform: LocalPlatform,
    request: ValidationRequest,
    *,
    after: int,
    kind: Literal["hang", "hold_answer"],
) -> bool:
    """Kills a client while its request number ``after`` is under way; False when it made fewer requests than that."""
    fault = platform.faults.add(Fault(kind=kind, path=".*", after=after))
    process: ForkServerProcess = context.Process(
        target=killed_client.run, args=(request, platform.api_url, platform.api_key)
    )
    process.start()
    ended = asyncio.create_task(asyncio.to_thread(process.join, 60))
    struck = asyncio.create_task(fault.struck.wait())
    await asyncio.wait((ended, struck), return_when=asyncio.FIRST_COMPLETED)
    reached = fault.struck.is_set()
    struck.cancel()
    if reached:
        process.kill()
    await ended
    # A WebSocket is done when the client has closed it, which may be the last thing it does.
    assert process.exitcode == -signal.SIGKILL or (process.exitcode == 0 and (kind == "hold_answer" or not reached))
    process.close()
    platform.faults.clear()
    return reached


@pytest.mark.parametrize("kind", ["hang", "hold_answer"])
@pytest.mark.parametrize("isolation", [Isolation.SHARED, Isolation.RUN])
async def test_a_client_killed_at_any_request_leaves_nothing(
    spawner: multiprocessing.context.ForkServerContext,
    own_platform: LocalPlatform,
    kind: Literal["hang", "hold_answer"],
    isolation: Isolation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marker = marked()
    request = killed_client.request(PROGRAM.format(marker=marker), isolation)
    kills = 0
    for after in range(MOST_REQUESTS):
        if not await kill_at(spawner, own_platform, request, after=after, kind=kind):
            break
        kills += 1
    assert 10 <= kills < MOST_REQUESTS, kills
    assert await until(lambda: not command_lines(marker), seconds=10), "limits inside the sandboxes end the programs"

    # The leases of the killed clients are over; the next run ends what they left.
    credentials = credentials_of(own_platform)
    assert (await _validate(credentials, QUICK)).passed
    later = time.time() + abandoned.LEASE_MARGIN_SECONDS + 60
    monkeypatch.setattr("sandbox.abandoned.time.time", lambda: later)
    async with sdk(own_platform) as daytona:
        shared = await daytona.get(builtin_profile("python").sandbox_name)
        await shared.process.exec(f"find {abandoned.MARKS} -type f -exec touch -d '-10 minutes' {{}} +")
        assert (await _validate(credentials, QUICK)).passed
        assert await shared.process.list_sessions() == []
        left = [item async for item in daytona.list() if item.name != shared.name]
        if isolation is Isolation.SHARED:
            assert left == []
        for item in left:
            # Made for a run whose client is gone: the platform ends them by themselves.
            assert item.labels["uom-owner"] == "killed"
            assert item.auto_stop_interval
            assert item.auto_delete_interval == 0
            await daytona.delete(item)


async def test_a_platform_killed_at_any_moment_takes_everything_along(own_home: Path) -> None:
    settings = Settings(home=own_home)
    for moment in (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 1.0):
        marker = marked()
        platform = await asyncio.to_thread(service.start, settings)
        credentials = Credentials(api_key=SecretStr(platform.api_key), api_url=platform.api_url)
        if moment == 0.0:
            assert (await _validate(credentials, QUICK)).passed  # builds the snapshot
        validation = asyncio.create_task(_validate(credentials, PROGRAM.format(marker=marker), limit=1.2))
        await asyncio.sleep(moment)  # the moment is what is tested
        os.kill(platform.pid, signal.SIGKILL)
        assert await until(lambda: not command_lines(marker), seconds=10)  # noqa: B023
        assert await until(lambda: not command_lines(str(own_home)), seconds=10), command_lines(str(own_home))
        # The client goes on asking until its patience is at an end; see the tests of retries for that.
        validation.cancel()
        with contextlib.suppress(asyncio.CancelledError, SandboxError):
            await asyncio.wait_for(validation, 60)
    platform = await asyncio.to_thread(service.start, settings)
    credentials = Credentials(api_key=SecretStr(platform.api_key), api_url=platform.api_url)
    assert (await _validate(credentials, QUICK)).passed
