"""The local platform through the unmodified SDK: creation, command round trip, latency and throughput of output."""

from __future__ import annotations

import resource
import time
import uuid

from daytona import AsyncDaytona, CreateSandboxFromSnapshotParams, SessionExecuteRequest
from daytona._async.sandbox import AsyncSandbox

from tests.bench.environment import bench_snapshot
from tests.bench.figures import Figure


def _milliseconds(start: float) -> float:
    return (time.perf_counter() - start) * 1000


async def creation(client: AsyncDaytona, *, rounds: int = 40) -> Figure:
    """From the create call until the first command has answered."""
    snapshot = await bench_snapshot(client)
    samples = []
    for _ in range(rounds):
        start = time.perf_counter()
        sandbox = await client.create(CreateSandboxFromSnapshotParams(snapshot=snapshot))
        await sandbox.process.exec("true")
        samples.append(_milliseconds(start))
        await client.delete(sandbox)
    return Figure(name="create from snapshot to first answer", samples=samples, target="p50 <= 90, p95 <= 200")


async def _session(sandbox: AsyncSandbox) -> str:
    session = uuid.uuid4().hex
    await sandbox.process.create_session(session)
    return session


async def round_trip(client: AsyncDaytona, *, rounds: int = 200) -> Figure:
    """A session command that does nothing."""
    sandbox = await client.create(CreateSandboxFromSnapshotParams(snapshot=await bench_snapshot(client)))
    session = await _session(sandbox)
    samples = []
    for _ in range(rounds):
        start = time.perf_counter()
        await sandbox.process.execute_session_command(session, SessionExecuteRequest(command="true"))
        samples.append(_milliseconds(start))
    await client.delete(sandbox)
    return Figure(name="session command round trip (true)", samples=samples, target="p50 <= 15")


PRINTS_TIMES = """python3 -c '
import time
for i in range(200):
    print(time.time_ns(), flush=True)
    time.sleep(0.02)
'"""


async def output_latency(client: AsyncDaytona) -> Figure:
    """From a write in the sandbox until the SDK's callback has it; both read the same clock."""
    sandbox = await client.create(CreateSandboxFromSnapshotParams(snapshot=await bench_snapshot(client)))
    session = await _session(sandbox)
    samples: list[float] = []

    def on_stdout(chunk: str) -> None:
        now = time.time_ns()
        samples.extend((now - int(line)) / 1e6 for line in chunk.split() if line.isdigit())

    command = await sandbox.process.execute_session_command(
        session, SessionExecuteRequest(command=PRINTS_TIMES, run_async=True)
    )
    assert command.cmd_id
    await sandbox.process.get_session_command_logs_async(session, command.cmd_id, on_stdout, lambda _: None)
    await client.delete(sandbox)
    return Figure(name="byte written to SDK callback", samples=samples, target="p50 <= 10, p95 <= 50")


async def throughput(client: AsyncDaytona, *, megabytes: int = 1024) -> list[Figure]:
    """A long log, followed live; how fast, and how much memory this process grew to."""
    sandbox = await client.create(CreateSandboxFromSnapshotParams(snapshot=await bench_snapshot(client, disk=3)))
    session = await _session(sandbox)
    received = 0

    def count(chunk: str) -> None:
        nonlocal received
        received += len(chunk)

    line = "all work and no play makes a log that is long enough to be worth following live"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    command = await sandbox.process.execute_session_command(
        session, SessionExecuteRequest(command=f"yes '{line}' | head -c {megabytes * 1_000_000}", run_async=True)
    )
    assert command.cmd_id
    await sandbox.process.get_session_command_logs_async(session, command.cmd_id, count, count)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await client.delete(sandbox)
    assert received == megabytes * 1_000_000, f"{received} of {megabytes * 1_000_000} bytes arrived"
    return [
        Figure(name=f"log of {megabytes} MB followed", samples=[megabytes / seconds], unit="MB/s", target=">= 50"),
        Figure(name="client memory growth meanwhile", samples=[(after - before) / 1024], unit="MB", target="< 100"),
    ]
