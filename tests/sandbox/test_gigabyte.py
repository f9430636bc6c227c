"""A gigabyte of output, from the program through the platform and the SDK to the result, in bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from daytona import AsyncDaytona

from sandbox.events import Event, EventStream
from sandbox.models import Outcome, RunLimits, ValidationRequest
from sandbox.validation import Validation
from tests.sandbox.shell_profile import shell_profile

SIZE = 2**30
LINE = "0123456789abcdef" * 8 + "\n"
ALLOWED_MIB = 150
"""For client and platform, which are one process here; the output is seven times that."""


def resident_mib() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) // 1024


@contextmanager
def peak_of_memory() -> Iterator[list[int]]:
    """Measures beside the block; what it yields holds the largest value in the end."""
    peak, over = [resident_mib()], threading.Event()

    def measure() -> None:
        while not over.wait(0.02):
            peak[0] = max(peak[0], resident_mib())

    thread = threading.Thread(target=measure)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_gigabyte_of_output_passes_in_bounded_memory(daytona: AsyncDaytona) -> None:
    resources = {"cpu": 1, "memory": 1, "disk": 3}
    profile = shell_profile(
        f"yes {LINE.strip()} | head -c {SIZE}; echo end >&2", type="gigabyte-sandbox", resources=resources
    )
    request = ValidationRequest(
        profile="shell",
        files={"main.sh": ""},
        limits=RunLimits(output_bytes=2 * SIZE, phase_seconds={"one": 500}),
    ).identified()
    seen = 0

    def count(event: Event) -> None:
        nonlocal seen
        if event["type"].endswith("stdout"):
            seen += len(str(event["data"]))

    async with EventStream(run_id=str(request.run_id), thread_id=str(request.thread_id), sinks=(count,)) as events:
        validation = Validation(request, profile=profile, client=daytona, events=events)
        before = resident_mib()
        with peak_of_memory() as peak:
            result = await validation.run()
    grown = peak[0] - before
    print(f"1 GiB of output in {result.phases[0].seconds:.1f} s; memory grew by {grown} MiB at most")
    assert result.outcome is Outcome.PASSED, result.message
    stdout = result.phases[0].stdout
    assert stdout.total_bytes == SIZE
    assert stdout.truncated
    assert stdout.head.startswith(LINE)
    assert result.phases[0].stderr.text == "end\n"
    assert seen == SIZE
    assert grown < ALLOWED_MIB
    await daytona.delete(await daytona.get(profile.sandbox_name))
