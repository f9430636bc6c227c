"""A program that prints much: the whole of it reaches the run's log, and the run does not wait for that."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, LogFilter, LogFilterFlowRunId
from prefect.client.schemas.objects import Log
from prefect.client.schemas.sorting import LogSort

from flows import prefect_api, validate
from flows.console import CONSOLE_HEAD, CONSOLE_TAIL
from sandbox.connection import Credentials
from sandbox.models import ValidationRequest
from tests.conftest import send_what_waits

pytestmark = pytest.mark.usefixtures("prefect_server")

LINES = 100_000
PAGE = 200


async def log_of(run_id: UUID) -> list[Log]:
    found: list[Log] = []
    of_the_run = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run_id]))
    async with get_client() as api:
        while page := await api.read_logs(
            log_filter=of_the_run, limit=PAGE, offset=len(found), sort=LogSort.TIMESTAMP_ASC
        ):
            found += page
    return found


async def test_a_hundred_thousand_lines(credentials: Credentials) -> None:
    source = (
        f"import sys\nfor n in range({LINES}):\n    print(f'line {{n:06}}', 'of a program that prints very much' * 2)\n"
    )
    async with prefect_api():
        result = await validate(ValidationRequest(profile="python", files={"main.py": source}), credentials=credentials)
        assert result.passed, result.message
        run_id = UUID(result.flow_run_id)
        await asyncio.to_thread(send_what_waits)
        log = await log_of(run_id)
        async with get_client() as api:
            artifacts = await api.read_artifacts(
                artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run_id]))
            )
    printed = [line for record in log for line in record.message.split("\n") if line.startswith("[stdout] line ")]
    assert [int(line.split()[2]) for line in printed] == list(range(LINES))
    assert len(log) < LINES / 50
    (console,) = (str(item.data) for item in artifacts if item.key == "validation-console-python-plain-run")
    assert "complete" in console
    assert f"line {LINES - 1:06}" in console
    assert "left out in the middle" in console
    assert len(console) < CONSOLE_HEAD + CONSOLE_TAIL + 500
