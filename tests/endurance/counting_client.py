"""A process that validates again and again, and prints what it holds: ``counting_client.py WAY RUNS``.

It counts after a few runs, after half of RUNS more, and at the end.

WAY is ``core`` (no Prefect) or ``flow``. Between two runs nothing stays open, and every run opens a client of its own,
as a caller does who awaits one validation now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import sys
import threading
from itertools import pairwise
from pathlib import Path

from flows import validate
from sandbox.connection import client, platform_credentials
from sandbox.events import EventStream
from sandbox.models import Outcome, ValidationRequest
from sandbox.profiles import builtin_profile
from sandbox.validation import Validation

WARM = 15
"""Runs before the first count: imports, caches, pools that grow once."""

PROGRAMS = (
    ("print('fine')", Outcome.PASSED),
    ("print('unclosed", Outcome.COMPILE_ERROR),
    ("raise ValueError('thrown')", Outcome.RUNTIME_ERROR),
    ("print('x' * 300_000)", Outcome.PASSED),
)


async def core(request: ValidationRequest) -> Outcome:
    request = request.identified()
    async with (
        client(await platform_credentials()) as daytona,
        EventStream(run_id=str(request.run_id), thread_id=str(request.thread_id)) as events,
    ):
        profile = builtin_profile("python")
        return (await Validation(request, profile=profile, client=daytona, events=events).run()).outcome


async def flow(request: ValidationRequest) -> Outcome:
    return (await validate(request)).outcome


def held() -> dict[str, int]:
    """What this process has open now."""
    gc.collect()
    targets = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the listing itself
            targets.append(str(descriptor.readlink()))
    status = Path("/proc/self/status").read_text().split("VmRSS:")[1]
    return {
        "descriptors": len(targets),
        "sockets": sum(target.startswith("socket:") for target in targets),
        "tasks": len(asyncio.all_tasks()),
        "threads": threading.active_count(),
        "kib": int(status.split()[0]),
    }


async def main(way: str, runs: int) -> None:
    counts = []
    for first, last in pairwise((0, WARM, WARM + runs // 2, WARM + runs)):
        for number in range(first, last):
            source, wanted = PROGRAMS[number % len(PROGRAMS)]
            request = ValidationRequest(profile="python", files={"main.py": source})
            outcome = await {"core": core, "flow": flow}[way](request)
            assert outcome is wanted, (number, outcome)
        await asyncio.sleep(2)  # Prefect closes some of its own a little later
        counts.append(held())
    print(json.dumps(counts))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
