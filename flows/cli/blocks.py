"""``uom-sandbox blocks register``."""

from __future__ import annotations

import argparse
import sys

from flows.cli.running import quiet_prefect
from flows.cli.running import run as run_to_end


def run(options: argparse.Namespace) -> int:
    """Registers the block types and stores the built-in profiles."""
    quiet_prefect()
    return run_to_end(_register(overwrite=options.overwrite))


async def _register(*, overwrite: bool) -> int:
    from blocks import register_blocks
    from flows.prefect_connection import prefect_api

    def progress(text: str) -> None:
        print(text, file=sys.stderr)

    async with prefect_api(progress=progress) as url:
        for done in await register_blocks(overwrite=overwrite):
            hint = " (edited; --overwrite replaces it)" if done.action == "kept" else ""
            print(f"{done.action:<10} {done.name}{hint}")
        print(f"Prefect API: {url}", file=sys.stderr)
    return 0
