"""Program output as records of the run's log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from flows.run_log import PHASE_CHARACTERS, RECORD_CHARACTERS, RunLog, output_logger
from sandbox.events import Event


class Records(logging.Handler):
    """Collects what would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.arrived = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.arrived.set()

    @property
    def texts(self) -> list[str]:
        return [record.getMessage() for record in self.records]


@pytest.fixture
def records() -> Iterator[Records]:
    logger = output_logger()
    kept = logger.handlers[:]
    handler = Records()
    logger.handlers[:] = [handler]
    yield handler
    logger.handlers[:] = kept


def output(text: str, stream: str = "stdout") -> Event:
    return event(f"java_sandbox_command_execution_{stream}", text)


def event(type_: str, data: Any) -> Event:
    return Event(type=type_, data=data, seq=1, at="", run_id="r", thread_id="t", phase="run")


async def test_lines_are_joined_and_carry_their_stream(records: Records) -> None:
    log = RunLog(flow_run_id=uuid4())
    for number in range(3):
        log(output(f"line {number}\n"))
    log(output("trouble\n", "stderr"))
    async with asyncio.timeout(5):
        await records.arrived.wait()
    log.close()
    assert records.texts == ["[stdout] line 0\n[stdout] line 1\n[stdout] line 2", "[stderr] trouble"]


async def test_records_belong_to_the_run_and_to_the_task(records: Records) -> None:
    run, task = uuid4(), uuid4()
    log = RunLog(flow_run_id=run)
    log.belongs_to(task)
    log(output("in the task\n"))
    log.belongs_to(None)
    log(output("after it\n"))
    log.close()
    first, second = records.records
    assert first.__dict__["flow_run_id"] == str(run)
    assert first.__dict__["task_run_id"] == str(task)
    assert "task_run_id" not in second.__dict__


async def test_a_line_without_end_is_shown_in_the_end(records: Records) -> None:
    log = RunLog(flow_run_id=uuid4())
    log(output("no end"))
    log.close()
    assert records.texts == ["[stdout] no end"]


async def test_a_prompt_is_shown_while_the_program_waits(records: Records) -> None:
    log = RunLog(flow_run_id=uuid4())
    log(output("name? "))
    async with asyncio.timeout(10):
        await records.arrived.wait()
    assert records.texts == ["[stdout] name? "]
    log.close()


async def test_a_huge_line_comes_whole_in_marked_parts(records: Records) -> None:
    log = RunLog(flow_run_id=uuid4())
    line = "".join(chr(97 + number % 26) for number in range(5 * RECORD_CHARACTERS))
    log(output(line + "\n"))
    log.close()
    parts = [part for text in records.texts for part in text.split("\n")]
    assert all(len(text) < 25_000 for text in records.texts)
    assert "".join(part.removeprefix("[stdout] ").removeprefix("… ") for part in parts) == line
    assert all(part.startswith("[stdout] … ") for part in parts[1:])


async def test_a_flood_ends_with_its_end_and_what_was_left_out(records: Records) -> None:
    log = RunLog(flow_run_id=uuid4())
    chunk = "".join(f"{number:07}\n" for number in range(1000))
    for _ in range(PHASE_CHARACTERS // len(chunk) + 100):
        log(output(chunk))
    log.close()
    size = sum(len(text) for text in records.texts)
    assert size < 3 * PHASE_CHARACTERS
    assert "characters left out" in "\n".join(records.texts)
    assert records.texts[-1].endswith("[stdout] 0000999")
    assert len(records.texts) < 3 * PHASE_CHARACTERS / RECORD_CHARACTERS


async def test_a_hundred_thousand_lines_are_few_records(records: Records) -> None:
    log = RunLog(flow_run_id=uuid4())
    for number in range(100_000):
        log(output(f"{number}\n"))
    log.close()
    lines = "\n".join(records.texts).split("\n")
    assert lines == [f"[stdout] {number}" for number in range(100_000)]
    assert len(records.texts) < 500


async def test_other_events_are_one_line_each(records: Records) -> None:
    log = RunLog(flow_run_id=uuid4())
    log(event("phase_started", {"phase": "run", "command": "java\nMain"}))
    log(event("java_sandbox_snapshot_creation", "Step 1\n"))
    log(event("sandbox_state", {"sandbox": "s", "state": "started"}))
    log(event("phase_finished", {"exit_code": 0}))
    log.close()
    assert records.texts == [
        "[run] started phase=run command=java Main",
        "[sandbox] sandbox=s state=started",
        "[snapshot] Step 1",
        "[run] finished exit_code=0",
    ]
