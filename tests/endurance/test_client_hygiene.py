"""A process that validates for a long time holds no more than after its first runs.

``UOM_HYGIENE`` says how many runs (``make soak``: 500).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from sandbox.connection import Credentials

RUNS = int(os.environ.get("UOM_HYGIENE", "20"))
ROOT = Path(__file__).parents[2]
MEMORY_KIB = 20 * 1024
"""Room for what an allocator keeps, in the second half of the runs.

In the first half Prefect's sender of events fills up: it keeps the last 700 that it sent (measured, 7 a run).
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", ["core", "flow"])
async def test_many_runs_leave_a_process_as_it_was(way: str, credentials: Credentials, prefect_server: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.endurance.counting_client", way, str(RUNS)),
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PREFECT_API_URL": prefect_server,
            "PREFECT_LOGGING_LEVEL": "CRITICAL",
            "DAYTONA_API_URL": credentials.api_url,
            "DAYTONA_API_KEY": credentials.api_key.get_secret_value(),
        },
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0
    before, middle, after = json.loads(printed)
    print(f"\n{way}, {RUNS} runs: {before} -> {middle} -> {after}")
    assert after["sockets"] <= before["sockets"] + 1, (before, after)
    assert after["descriptors"] <= before["descriptors"] + 2, (before, after)
    assert after["tasks"] == before["tasks"], (before, after)
    assert after["threads"] <= before["threads"] + 1, (before, after)
    assert after["kib"] <= middle["kib"] + MEMORY_KIB, (middle, after)
