"""Whole validations: what ours costs beyond the same SDK calls made by hand, and twenty at once."""

from __future__ import annotations

import asyncio
import os
import time
import uuid

from daytona import AsyncDaytona, FileUpload, SessionExecuteRequest

from sandbox.events import EventStream
from sandbox.models import ValidationRequest, ValidationResult
from sandbox.profiles import Profile, builtin_profile
from sandbox.validation import Validation
from tests.bench.figures import Figure

EMPTY = ValidationRequest(profile="python", files={"main.py": ""})


async def core(request: ValidationRequest, client: AsyncDaytona) -> ValidationResult:
    """One validation without Prefect."""
    request = request.identified()
    async with EventStream(run_id=request.run_id or "", thread_id=request.thread_id or "") as events:
        profile = builtin_profile(request.profile)
        return await Validation(request, profile=profile, client=client, events=events).run()


async def by_hand(client: AsyncDaytona, profile: Profile) -> None:
    """What somebody would write with the SDK alone to run the empty program: no checks, no limits, no clean-up."""
    await client.snapshot.get(profile.snapshot_name)
    sandbox = await client.get(profile.sandbox_name)
    session, workspace = uuid.uuid4().hex, f"/sandbox/by-hand/{uuid.uuid4().hex}"
    await asyncio.gather(
        sandbox.process.create_session(session),
        sandbox.fs.upload_files([FileUpload(source=b"", destination=f"{workspace}/main.py")]),
    )
    settings = f"cd {workspace} && export UOM_BUILD_DIR={workspace}/.uom UOM_ENTRY_POINT=main.py"
    for command in ("/opt/uom/bin/python-build", "/opt/uom/bin/python-run"):
        started = await sandbox.process.execute_session_command(
            session, SessionExecuteRequest(command=f"({settings} && {command})", run_async=True)
        )
        assert started.cmd_id
        await sandbox.process.get_session_command_logs_async(session, started.cmd_id, lambda _: None, lambda _: None)
        ended = await sandbox.process.get_session_command(session, started.cmd_id)
        assert ended.exit_code == 0
    await sandbox.fs.list_files(workspace)
    await sandbox.process.delete_session(session)


async def overhead(client: AsyncDaytona, *, rounds: int = 30) -> list[Figure]:
    """The empty Python program, warm: by hand, by the core, by the flow in process."""
    from flows import validate

    profile = builtin_profile("python")
    assert (await core(EMPTY, client)).passed
    assert (await validate(EMPTY)).passed
    hand, plain, flow = [], [], []
    for _ in range(rounds):
        start = time.perf_counter()
        await by_hand(client, profile)
        hand.append(time.perf_counter() - start)
        start = time.perf_counter()
        assert (await core(EMPTY, client)).passed
        plain.append(time.perf_counter() - start)
        start = time.perf_counter()
        assert (await validate(EMPTY)).passed
        flow.append(time.perf_counter() - start)
    base = sorted(hand)[len(hand) // 2]
    return [
        Figure(name="empty program, SDK calls by hand", samples=hand, unit="s"),
        Figure(name="empty program, without Prefect", samples=plain, unit="s"),
        Figure(name="empty program, await validate()", samples=flow, unit="s"),
        Figure(
            name="validate() beyond the calls by hand",
            samples=[sample - base for sample in flow],
            unit="s",
            target="p50 <= 0.4, p95 <= 0.8",
        ),
    ]


async def twenty_at_once(client: AsyncDaytona) -> list[Figure]:
    """Twenty validations together, against what their programs alone need on these CPUs."""
    request = ValidationRequest(
        profile="python", files={"main.py": "sum(i * i for i in range(4_000_000))\nprint('done')\n"}
    )
    alone = await core(request, client)
    assert alone.passed, alone.message
    work = sum(alone.timings.phases.values()) * 20 / (os.cpu_count() or 1)
    start = time.perf_counter()
    results = await asyncio.gather(*(core(request, client) for _ in range(20)))
    seconds = time.perf_counter() - start
    assert all(result.passed for result in results), [result.message for result in results if not result.passed]
    return [
        Figure(name="20 at once, total", samples=[seconds], unit="s"),
        Figure(name="20 at once, total / work alone", samples=[seconds / work], unit="x", target="<= 1.3"),
    ]
