"""``uom-sandbox automations register``."""

from __future__ import annotations

import argparse
import sys

from flows.cli.running import quiet_prefect
from flows.cli.running import run as run_to_end
from flows.crash_detection import NAME, ensure_automation


def run(options: argparse.Namespace) -> int:
    """Makes the automation on the Prefect server in use, or brings it up to date."""
    quiet_prefect()
    return run_to_end(_register(silent_seconds=options.silent))


async def _register(*, silent_seconds: float) -> int:
    from prefect.client.orchestration import get_client

    from flows.prefect_connection import prefect_api

    def progress(text: str) -> None:
        print(text, file=sys.stderr)

    async with prefect_api(progress=progress) as url, get_client() as api:
        await ensure_automation(api, silent_seconds=silent_seconds)
        print(f"registered {NAME}")
        print(f"Prefect API: {url}", file=sys.stderr)
    return 0
