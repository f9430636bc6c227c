"""``uom-sandbox watch``."""

from __future__ import annotations

import argparse
import sys

import orjson

from flows.cli.running import quiet_prefect
from flows.cli.running import run as run_to_end
from flows.cli.terminal import Console, one_line, summary
from flows.outcomes import EXIT_INFRASTRUCTURE, OUTCOMES
from sandbox.errors import SandboxError
from sandbox.events import OUTCOME
from sandbox.models import Outcome


def run(options: argparse.Namespace) -> int:
    """Shows the events of a run until it ends, and returns the exit code of its outcome."""
    quiet_prefect()
    return run_to_end(_watch(options))


async def _watch(options: argparse.Namespace) -> int:
    from flows.prefect_connection import prefect_api
    from flows.submission import submitted
    from flows.watching import watch

    console = Console(live=not options.json)
    told: dict[str, object] = {}
    async with prefect_api(progress=console.status):
        run = await submitted(options.run)
        console.status(f"{run.name}  {run.url}")
        async for event in watch(run, from_seq=options.from_seq):
            if options.json:
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
            if not options.json:
                console.line(f"{outcome.value}: {one_line(str(told.get('message', '')))}")
            return OUTCOMES[outcome].exit_code
    if not options.json:
        for line in summary(result, console, links=[run.url]):
            console.line(line)
    return OUTCOMES[result.outcome].exit_code
