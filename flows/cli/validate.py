"""``uom-sandbox validate``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import orjson

from flows.cli.request import request_from
from flows.cli.running import quiet_prefect
from flows.cli.running import run as run_to_end
from flows.cli.terminal import Console, summary
from flows.connections import split_references
from flows.outcomes import OUTCOMES
from sandbox.models import ValidationRequest
from sandbox.profiles import Profile, load_profile_file


def run(options: argparse.Namespace) -> int:
    """Validates one program and returns the exit code of its outcome."""
    profile = load_profile_file(options.profile_file) if options.profile_file else None
    blocks, connections = split_references(options.connection, field="--connection")
    request = request_from(options, profile=profile, connections=connections)
    # With --json, standard output is the verdict's alone.
    console = Console(live=not options.quiet, output=sys.stderr if options.json else None)
    quiet_prefect()
    return run_to_end(_validate(request, blocks, profile, options, console))


async def _validate(
    request: ValidationRequest,
    blocks: Sequence[str],
    profile: Profile | None,
    options: argparse.Namespace,
    console: Console,
) -> int:
    from flows.api import validate
    from flows.prefect_connection import prefect_api

    async with prefect_api(progress=console.status) as api_url:
        result = await validate(
            request, on_event=console.on_event, connection_blocks=blocks, profile=profile, progress=console.status
        )
    if options.json:
        sys.stdout.write(orjson.dumps(result.model_dump(mode="json"), option=orjson.OPT_INDENT_2).decode() + "\n")
        sys.stdout.flush()
    if not options.quiet:
        links = [f"{api_url.removesuffix('/api')}/runs/flow-run/{result.flow_run_id}"] if result.flow_run_id else []
        for line in summary(result, console, links=links):
            console.line(line)
    return OUTCOMES[result.outcome].exit_code
