"""``uom-sandbox warm``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from flows.cli.running import quiet_prefect
from flows.cli.running import run as run_to_end
from flows.outcomes import EXIT_INFRASTRUCTURE, EXIT_PASSED
from sandbox.errors import PlatformUnavailableError, SandboxError

if TYPE_CHECKING:
    from sandbox.warming import WarmSnapshot


def run(options: argparse.Namespace) -> int:
    """Makes the snapshots ready and tells what became of each."""
    quiet_prefect()
    done = run_to_end(_warm(options.profiles))
    for one in done:
        what = f"failed: {one.error}" if one.error else f"{'built' if one.built else 'ready'} in {one.seconds:.1f} s"
        print(f"{one.snapshot}  {what}")
    return EXIT_INFRASTRUCTURE if any(one.error for one in done) else EXIT_PASSED


async def _warm(profiles: list[str]) -> list[WarmSnapshot]:
    import httpx
    from prefect.exceptions import PrefectException

    from flows.prefect_connection import prefect_api
    from flows.warm import warm_snapshots

    def progress(text: str) -> None:
        print(text, file=sys.stderr)

    async with prefect_api(progress=progress):
        try:
            state = await warm_snapshots(profiles, return_state=True)
            found: Any = await state.aresult(raise_on_failure=False)
        except (httpx.HTTPError, PrefectException) as error:
            raise PlatformUnavailableError(f"the Prefect API failed: {type(error).__name__}: {error}") from error
    if isinstance(found, SandboxError):
        raise found
    if isinstance(found, BaseException):
        raise PlatformUnavailableError(str(found)) from found
    return [*found]
