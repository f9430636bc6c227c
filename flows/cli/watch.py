"""``uom-sandbox watch``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import orjson

from flows.cli.running import quiet_prefect
from flows.cli.running import run as run_to_end
from flows.cli.terminal import Console, one_line, summary
from flows.outcomes import EXIT_INFRASTRUCTURE, OUTCOMES
from sandbox.errors import SandboxError
from sandbox.events import OUTCOME
from sandbox.models import Outcome

if TYPE_CHECKING:
    from flows.submission import SubmittedRun


def run(options: argparse.Namespace) -> int:
    """Shows the events of a run until it ends, and returns the exit code of its outcome."""
    quiet_prefect()
    return run_to_end(_watch(options))


async def _watch(options: argparse.Namespace) -> int:
    from flows.prefect_connection import prefect_api
    from flows.submission import submitted

    console = Console(live=not options.json)
    async with prefect_api(progress=console.status):
        run = await submitted(options.run)
        return await show(run, console, from_seq=options.from_seq, as_json=options.json)


async def show(run: SubmittedRun, console: Console, *, from_seq: int = 1, as_json: bool = False) -> int:
    """Shows a run to its end; returns the exit code of its outcome.

    Args:
        run: The run.
        console: Where lines and the program's output go.
        from_seq: The first event to show.
        as_json: Whether standard output gets the events as JSON instead.
    """
    told: dict[str, object] = {}
    console.status(f"{run.name}  {run.url}")
    async for event in run.watch(from_seq=from_seq):
        if as_json:
            sys.stdout.write(orjson.dumps(event).decode() + "\n")
            sys.stdout.flush()
        else:
            await console.on_event(event)
        if event["type"] == OUTCOME and isinstance(event["data"], dict):
            told = dict(event["data"])
    try:
        result = await run.result()
    except SandboxError as error:
        if "outcome" not in told:
            console.line(f"uom-sandbox: {error}")
            return EXIT_INFRASTRUCTURE
        # A run in its caller's own process: the verdict itself is there, and its word is here.
        outcome = Outcome(str(told["outcome"]))
        if not as_json:
            console.line(f"{outcome.value}: {one_line(str(told.get('message', '')))}")
        return OUTCOMES[outcome].exit_code
    if not as_json:
        for line in summary(result, console, links=[run.url]):
            console.line(line)
    return OUTCOMES[result.outcome].exit_code
