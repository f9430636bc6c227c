"""Many validations, sixteen at a time, of mixed programs on a platform with random faults.

``UOM_SOAK`` says how many (``make soak``: 500), ``UOM_SOAK_SEED`` which faults.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from dataclasses import dataclass

import pytest
from daytona import AsyncDaytona

from sandbox.connection import client
from sandbox.errors import SandboxError
from sandbox.events import EventStream
from sandbox.local.faults import Fault, FaultKind
from sandbox.local.server import LocalPlatform
from sandbox.models import Outcome, RunLimits, ValidationRequest
from sandbox.profiles import builtin_profile
from sandbox.validation import Validation
from tests.local.platforms import running_platform
from tests.sandbox.conftest import credentials_of

RUNS = int(os.environ.get("UOM_SOAK", "40"))
SEED = int(os.environ.get("UOM_SOAK_SEED", "1"))
AT_ONCE = 16
FAULT_SECONDS = 0.15
"""Pause between two faults."""

PROGRAMS: tuple[tuple[str, Outcome], ...] = (
    (
        "import os, pathlib\nprint('fine')\npathlib.Path(os.environ['UOM_RESULT_FILE']).write_text('[1]')",
        Outcome.PASSED,
    ),
    ("print('unclosed", Outcome.COMPILE_ERROR),
    ("raise ValueError('thrown')", Outcome.RUNTIME_ERROR),
    ("while True: print('flood' * 1000)", Outcome.OUTPUT_EXCEEDED),
    ("import time\nprint('begun', flush=True)\ntime.sleep(4714)", Outcome.TIMEOUT),
    ("import os, pathlib\npathlib.Path(os.environ['UOM_RESULT_FILE']).write_text('[NaN')", Outcome.RESULT_INVALID),
)
FAULTS: tuple[tuple[FaultKind, str, str], ...] = (
    ("fail", "*", ".*"),
    ("delay", "*", ".*"),
    ("cut", "*", ".*"),
    ("cut", "GET", ".*/command/.*"),
    ("fail", "GET", ".*/command/.*"),
    ("lose_answer", "*", ".*"),
    ("lose_answer", "POST", ".*/exec"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """How one run ended."""

    wanted: Outcome
    word: str
    seconds: float
    recoveries: int


async def run(daytona: AsyncDaytona, number: int) -> Run:
    source, wanted = PROGRAMS[number % len(PROGRAMS)]
    request = ValidationRequest(
        profile="python",
        files={"main.py": source},
        limits=RunLimits(phase_seconds={"run": 2 if wanted is Outcome.TIMEOUT else 60}, output_bytes=1_000_000),
    ).identified()
    began = time.monotonic()
    try:
        async with EventStream(run_id=str(request.run_id), thread_id=str(request.thread_id)) as events:
            profile = builtin_profile("python")
            result = await Validation(request, profile=profile, client=daytona, events=events).run()
    except SandboxError as error:
        return Run(wanted, type(error).__name__, time.monotonic() - began, 0)
    assert result.outcome is wanted, result
    return Run(wanted, result.outcome.value, time.monotonic() - began, len(result.recoveries) + len(result.warnings))


async def harm(platform: LocalPlatform, chance: random.Random) -> None:
    while True:
        kind, method, path = chance.choice(FAULTS)
        status = chance.choice((500, 502, 503, 504))
        platform.faults.add(Fault(kind=kind, method=method, path=path, seconds=0.3, status=status))
        await asyncio.sleep(FAULT_SECONDS * 2 * chance.random())


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_soak() -> None:
    async with running_platform() as platform, client(credentials_of(platform)) as daytona:
        assert (await run(daytona, 0)).word == "passed"
        places = asyncio.Semaphore(AT_ONCE)

        async def placed(number: int) -> Run:
            async with places:
                return await run(daytona, number)

        began = time.monotonic()
        harming = asyncio.create_task(harm(platform, random.Random(SEED)))
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(placed(number)) for number in range(RUNS)]
        finally:
            harming.cancel()
            struck = sum(fault.struck.is_set() for fault in platform.faults._faults)
            platform.faults.clear()
        runs = [task.result() for task in tasks]
        took = time.monotonic() - began
        assert (await run(daytona, 0)).word == "passed"
        await left_nothing(daytona)

    assert struck
    times = sorted(one.seconds for one in runs)
    verdicts = sum(one.word == one.wanted.value for one in runs)
    print(
        f"\n{RUNS} runs, {AT_ONCE} at a time, seed {SEED}: {took:.1f} s, {RUNS / took:.1f}/s, {struck} faults, "
        f"p50 {times[len(times) // 2]:.2f} s, p95 {times[int(0.95 * (len(times) - 1))]:.2f} s, {verdicts} verdicts, "
        f"{sum(one.recoveries for one in runs)} recoveries\n{dict(Counter(one.word for one in runs))}"
    )
    # Errors have names, but most runs must survive single faults.
    assert verdicts >= RUNS * 3 // 4, Counter(one.word for one in runs)


async def left_nothing(daytona: AsyncDaytona) -> None:
    left = [sandbox async for sandbox in daytona.list()]
    assert [sandbox.name for sandbox in left] == [builtin_profile("python").sandbox_name]
    sandbox = await daytona.get(left[0].name)
    assert await sandbox.process.list_sessions() == []
    alive = (await sandbox.process.exec("ps -eo comm=")).result.split()
    assert set(alive) <= {"ld-linux-x86-64", "bash", "ps"}, alive
    kept = await sandbox.process.exec("find /tmp -maxdepth 1 -name 'uom-*'; find /sandbox -path '*/.uom/*' -maxdepth 4")
    assert kept.result.strip() == "", kept.result[:2000]
