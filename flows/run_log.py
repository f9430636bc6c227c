"""The run's log in Prefect: output of programs as few, readable, searchable records.

A record per line would cost about half a millisecond each and flood the database. Chunks are joined for a moment, cut
at line ends, and each line carries its stream; a phase that prints without end is shown with its beginning and end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final, Literal
from uuid import UUID

from prefect.logging.handlers import APILogHandler

from flows.plain_text import HeadAndTail, printable
from sandbox.events import PHASE_FINISHED, PHASE_STARTED, SANDBOX_STATE, Event

FLUSH_SECONDS: Final = 0.1
RECORD_CHARACTERS: Final = 12_000
"""Prefect Cloud takes 25 kB a record, and a character may need several bytes."""

PHASE_CHARACTERS: Final = 16_000_000
"""What one stream of one phase may send as it comes; from there on only its end follows. Some 1,400 records."""

TAIL_CHARACTERS: Final = 32_000

Stream = Literal["stdout", "stderr", "snapshot"]


def output_logger() -> logging.Logger:
    """Returns the logger whose records go to Prefect's API only: the console shows the output live, not as log."""
    logger = logging.getLogger("uom_sandbox.run_log")
    if not logger.handlers:
        logger.addHandler(APILogHandler())
        logger.propagate = False
        logger.setLevel(logging.INFO)
    return logger


def stream_of(type_: str) -> Stream | None:
    """Returns which output an event type carries, ``None`` for other events."""
    if type_.endswith("_command_execution_stdout"):
        return "stdout"
    if type_.endswith("_command_execution_stderr"):
        return "stderr"
    return "snapshot" if type_.endswith("_snapshot_creation") else None


class _Stream:
    """Text of one stream on its way into records."""

    def __init__(self, name: Stream) -> None:
        self.name = name
        self.waiting: list[str] = []
        self.waiting_size = 0
        self.sent = 0
        self.rest: HeadAndTail | None = None

    def add(self, text: str) -> None:
        if self.rest is None and self.sent + self.waiting_size >= PHASE_CHARACTERS:
            self.rest = HeadAndTail(head=0, tail=TAIL_CHARACTERS)
        if self.rest is not None:
            self.rest.add(text)
            return
        self.waiting.append(text)
        self.waiting_size += len(text)

    def take(self, *, all_of_it: bool) -> str:
        text = "".join(self.waiting)
        end = len(text) if all_of_it else text.rfind("\n") + 1
        if not end and len(text) >= RECORD_CHARACTERS:
            end = len(text)
        self.waiting = [text[end:]] if end < len(text) else []
        self.waiting_size = len(text) - end
        self.sent += end
        return text[:end]


class RunLog:
    """A sink of events that writes the run's log.

    Args:
        flow_run_id: The run.
    """

    def __init__(self, *, flow_run_id: UUID) -> None:
        self._extra: dict[str, object] = {"flow_run_id": str(flow_run_id)}
        self._logger = output_logger()
        self._streams: dict[Stream, _Stream] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, event: Event) -> None:
        """Takes an event; output is written at the latest ``FLUSH_SECONDS`` later."""
        data = event["data"]
        stream = stream_of(event["type"])
        if stream is not None:
            if isinstance(data, str):
                self._add(stream, data)
            return
        if event["type"] in (PHASE_STARTED, PHASE_FINISHED):
            self.flush()
        if isinstance(data, dict) and (line := _line(event["type"], event["phase"], data)):
            self._logger.info(line, extra=self._extra)

    def belongs_to(self, task_run_id: UUID | None) -> None:
        """Attaches what follows to a task run, or to the flow run alone."""
        self.flush()
        self._extra.pop("task_run_id", None)
        if task_run_id is not None:
            self._extra["task_run_id"] = str(task_run_id)

    def flush(self) -> None:
        """Writes everything that waits, the ends of cut streams included."""
        self._stop_timer()
        for stream in self._streams.values():
            self._write(stream.name, stream.take(all_of_it=True))
            if stream.rest is not None and stream.rest.total:
                self._write(stream.name, stream.rest.text())
        self._streams.clear()

    close = flush

    def _add(self, name: Stream, text: str) -> None:
        stream = self._streams.setdefault(name, _Stream(name))
        stream.add(text)
        if stream.waiting_size >= RECORD_CHARACTERS:
            self._write(name, stream.take(all_of_it=False))
        if stream.waiting_size and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._on_timer, False)

    def _on_timer(self, lines_waited: bool) -> None:
        self._timer = None
        waiting = False
        for stream in self._streams.values():
            self._write(stream.name, stream.take(all_of_it=lines_waited))
            waiting = waiting or stream.waiting_size > 0
        if waiting:
            # A line without its end: a prompt, or a program at work. It is shown a moment later as it is.
            self._timer = asyncio.get_running_loop().call_later(10 * FLUSH_SECONDS, self._on_timer, True)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _write(self, name: Stream, text: str) -> None:
        prefix = f"[{name}] "
        record: list[str] = []
        size = 0
        for line in printable(text).splitlines():
            parts = [line[at : at + RECORD_CHARACTERS] for at in range(0, len(line), RECORD_CHARACTERS)] or [""]
            for number, part in enumerate(parts):
                mark = "… " if number else ""
                if size and size + len(part) > RECORD_CHARACTERS:
                    self._logger.info("\n".join(record), extra=self._extra)
                    record, size = [], 0
                record.append(f"{prefix}{mark}{part}")
                size += len(record[-1]) + 1
        if record:
            self._logger.info("\n".join(record), extra=self._extra)


def _line(type_: str, phase: str | None, data: Mapping[str, object]) -> str | None:
    """One line about an event that is not output."""
    facts = " ".join(f"{name}={value}" for name, value in data.items() if isinstance(value, str | int | float | bool))
    facts = printable(facts).replace("\n", " ")
    if type_ in (PHASE_STARTED, PHASE_FINISHED):
        word = "started" if type_ == PHASE_STARTED else "finished"
        return f"[{phase}] {word} {facts}"[:2000]
    return f"[sandbox] {facts}"[:2000] if type_ == SANDBOX_STATE else None
