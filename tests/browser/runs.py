"""Validations to look at, and what the server has of them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterTags,
    LogFilter,
    LogFilterFlowRunId,
)

from tests.conftest import send_what_waits
from tests.flows.hostile import HOSTILE

PASSES = """\
import json, os
print("hello from the program")
orders = [{"id": n, "customer": f"c{n % 3}", "total": n * 1.5} for n in range(30)]
report = {"count": 30, "firstSample": orders[0], "lastSample": orders[-1]}
json.dump({"orders": orders, "report": report}, open(os.environ["UOM_RESULT_FILE"], "w"))
"""

FAILS = f"""\
import sys
TEXT = {HOSTILE!a}
print(TEXT.encode("utf-8", "replace").decode())
sys.stdout.flush()
sys.stdout.buffer.write(bytes(range(256)) * 4 + b"\\n" + b"x" * 300_000 + b"\\n")
sys.stdout.flush()
print("the end of the output")
raise ValueError(TEXT)  # <img src=http://evil.example/excerpt.png> ![i](http://evil.example/e.png) | **b**
"""

WAITS = """\
import time
for number in range(1000):
    print(f"still at it: {number}", flush=True)
    time.sleep(0.3)
"""


async def artifacts_of(run_id: UUID, *, wanted: Collection[str] = ()) -> dict[str, UUID]:
    """Ids of a run's artifacts by key, once the wanted ones are there."""
    async with asyncio.timeout(60), get_client() as api:
        while True:
            of_the_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run_id]))
            found = {item.key or "": item.id for item in await api.read_artifacts(artifact_filter=of_the_run)}
            if set(wanted) <= set(found):
                return found
            await asyncio.sleep(0.2)


async def everything_is_there(run_id: UUID, *, tasks: int) -> None:
    """Waits until the server has what a finished run sent: the pages ask once, then after half a minute."""
    await asyncio.to_thread(send_what_waits)
    async with asyncio.timeout(60), get_client() as api:
        of_the_run = FlowRunFilter(id=FlowRunFilterId(any_=[run_id]))
        while True:
            if len(await api.read_task_runs(flow_run_filter=of_the_run)) >= tasks:
                return
            await asyncio.sleep(0.2)


async def running_with_log(thread_id: str, text: str) -> UUID:
    """Id of the run of a thread, once its log has the text."""
    async with asyncio.timeout(60), get_client() as api:
        of_the_thread = FlowRunFilter(tags=FlowRunFilterTags(all_=[f"thread:{thread_id}"]))
        while True:
            for run in await api.read_flow_runs(flow_run_filter=of_the_thread):
                of_the_run = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run.id]))
                if any(text in record.message for record in await api.read_logs(log_filter=of_the_run)):
                    return run.id
            await asyncio.sleep(0.2)
