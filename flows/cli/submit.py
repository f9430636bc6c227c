"""``uom-sandbox submit``."""

from __future__ import annotations

import argparse
import sys

import orjson

from flows.cli.request import request_from
from flows.cli.running import quiet_prefect
from flows.cli.running import run as run_to_end
from flows.cli.terminal import Console
from flows.cli.watch import show
from sandbox.models import ValidationRequest


def run(options: argparse.Namespace) -> int:
    """Hands one program to a worker; with ``--watch`` returns the exit code of its outcome."""
    request = request_from(options)
    quiet_prefect()
    return run_to_end(_submit(request, options))


async def _submit(request: ValidationRequest, options: argparse.Namespace) -> int:
    from flows.prefect_connection import prefect_api
    from flows.submission import submit

    console = Console(live=True)
    async with prefect_api(progress=console.status):
        run = await submit(
            request,
            deployment=options.deployment,
            secret_blocks=options.secret_block,
            connection_blocks=options.connection,
            credentials_block=options.credentials,
        )
        if options.watch:
            return await show(run, console)
    console.status(f"{run.name}  {run.url}")
    if options.json:
        sys.stdout.write(orjson.dumps({"id": str(run.id), "name": run.name, "url": run.url}).decode() + "\n")
    else:
        sys.stdout.write(f"{run.id}\n")
    return 0
