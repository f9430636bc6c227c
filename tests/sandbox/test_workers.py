"""Workers that know nothing of each other want the same snapshot and the same sandbox at once."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from daytona import AsyncDaytona

import sandbox.lifecycle as lifecycle
from sandbox.connection import Credentials, client
from sandbox.local.faults import Fault
from sandbox.models import ValidationResult
from sandbox.profiles import Profile
from tests.sandbox.conftest import Faulty, credentials_of
from tests.sandbox.fault_proxy import Harm
from tests.sandbox.shell_profile import shell_profile, validate

PROFILE = shell_profile("true", type="workers", setup=["echo step one; sleep 2"])
CREATE = "POST /api/sandbox$"
BUILD = "POST /api/snapshots$"

WORKER = """
    import asyncio, json, sys
    from pydantic import SecretStr
    from sandbox.connection import Credentials, client
    from sandbox.events import EventStream
    from sandbox.profiles import Profile
    from sandbox.snapshots import ensure_snapshot

    async def main():
        key, url, profile = sys.stdin.read().split("\\n", 2)
        credentials = Credentials(api_key=SecretStr(key), api_url=url, target="local")
        async with client(credentials) as daytona, EventStream(run_id="r", thread_id="t", sinks=()) as events:
            print("ready", flush=True)
            made = await ensure_snapshot(
                daytona, Profile.model_validate_json(profile), events=events, environment={}
            )
            print(json.dumps([made.snapshot_id, made.built]))

    asyncio.run(main())
"""


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def _left_as_found(daytona: AsyncDaytona, faulty: Faulty) -> AsyncIterator[None]:
    yield
    faulty.platform.faults.clear()
    for box in [one async for one in daytona.list() if one.name.startswith(PROFILE.sandbox_name)]:
        await daytona.delete(box)
    await daytona.snapshot.delete(PROFILE.snapshot_name)


def proxied(faulty: Faulty) -> Credentials:
    return credentials_of(faulty.platform).model_copy(update={"api_url": f"{faulty.proxy.url}/api"})


async def worker(faulty: Faulty, directory: Path) -> list[Any]:
    """One process as on a machine of its own: it shares no lock file with the others."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        textwrap.dedent(WORKER),
        env={**os.environ, "TMPDIR": str(directory)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    key = credentials_of(faulty.platform).api_key.get_secret_value()
    given = "\n".join((key, f"{faulty.proxy.url}/api", PROFILE.model_dump_json()))
    out, err = await process.communicate(given.encode())
    assert process.returncode == 0, err.decode()
    answer: list[Any] = json.loads(out.decode().splitlines()[-1])
    return answer


@pytest.mark.slow
async def test_four_workers_on_four_machines_build_once(faulty: Faulty, tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / str(number)).mkdir()
    ended = await asyncio.gather(*(worker(faulty, tmp_path / str(number)) for number in range(4)))
    assert len({snapshot_id for snapshot_id, _ in ended}) == 1
    assert [built for _, built in ended].count(True) == 1
    page = await faulty.daytona.snapshot.list()
    assert [one.name for one in page.items].count(PROFILE.snapshot_name) == 1


async def test_an_answer_to_a_build_that_was_lost_is_recovered_by_looking(faulty: Faulty) -> None:
    faulty.platform.faults.add(Fault(kind="lose_answer", method="POST", path="/api/snapshots"))
    result = await validate(faulty.daytona, PROFILE)
    assert result.passed
    assert faulty.proxy.count(BUILD) == 1
    assert sum("to prepare the snapshot failed" in line for line in result.recoveries) == 1


async def test_racing_creators_end_with_the_same_sandbox(faulty: Faulty) -> None:
    await validate(faulty.daytona, PROFILE)
    await faulty.daytona.delete(await faulty.daytona.get(PROFILE.sandbox_name))
    faulty.proxy.seen.clear()
    # All of them see that there is none, and ask for one.
    faulty.proxy.harms = [Harm("GET /api/sandbox/[^/]+$", status=404, times=4)]

    def apart() -> ValidationResult:
        async def main() -> ValidationResult:
            async with client(proxied(faulty)) as daytona:
                return await validate(daytona, PROFILE)

        return asyncio.run(main())

    results = await asyncio.gather(*(asyncio.to_thread(apart) for _ in range(4)))
    assert all(result.passed for result in results)
    assert len({result.sandbox.sandbox_id for result in results if result.sandbox is not None}) == 1
    assert faulty.proxy.count(CREATE) == 4
    assert [box.name async for box in faulty.daytona.list()].count(PROFILE.sandbox_name) == 1


@pytest.mark.parametrize("kind", ["lose_answer", "hold_answer"])
async def test_a_created_sandbox_whose_answer_never_comes_is_adopted(
    faulty: Faulty, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "CREATE_SECONDS", 1.5)
    await validate(faulty.daytona, PROFILE)
    await faulty.daytona.delete(await faulty.daytona.get(PROFILE.sandbox_name))
    faulty.proxy.seen.clear()
    faulty.platform.faults.add(Fault(kind=kind, method="POST", path="/api/sandbox"))
    result = await validate(faulty.daytona, PROFILE)
    assert result.passed
    assert faulty.proxy.count(CREATE) == 1
    boxes = [box async for box in faulty.daytona.list() if box.name == PROFILE.sandbox_name]
    assert result.sandbox is not None
    assert [box.id for box in boxes] == [result.sandbox.sandbox_id]


async def test_a_definition_changed_by_one_worker_is_noticed_by_the_other(faulty: Faulty) -> None:
    first = await validate(faulty.daytona, PROFILE)
    changed: Profile = PROFILE.model_copy(update={"setup": ("echo another",)})
    second = await validate(faulty.daytona, changed)
    assert faulty.proxy.count(BUILD) == 2
    assert first.sandbox is not None
    assert second.sandbox is not None
    assert first.sandbox.sandbox_id != second.sandbox.sandbox_id
    assert any("was made from a former snapshot; it was replaced" in line for line in second.recoveries)
