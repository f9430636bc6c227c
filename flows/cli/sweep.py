"""``uom-sandbox sweep``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from flows.cli.running import quiet_prefect
from flows.cli.running import run as run_to_end
from flows.outcomes import EXIT_INFRASTRUCTURE, EXIT_PASSED
from sandbox.errors import PlatformUnavailableError, SandboxError

if TYPE_CHECKING:
    from sandbox.sweep import Swept


def run(options: argparse.Namespace) -> int:
    """Removes what no live run owns and tells what became of each sandbox."""
    quiet_prefect()
    done = run_to_end(_sweep(options.owner, dry_run=options.dry_run))
    for one in done:
        ended = f"; {one.sessions_ended} abandoned sessions ended" if one.sessions_ended else ""
        print(f"{one.sandbox}  {f'failed: {one.error}' if one.error else one.action.value} ({one.reason}{ended})")
    if not done:
        print("there are no sandboxes of ours")
    return EXIT_INFRASTRUCTURE if any(one.error for one in done) else EXIT_PASSED


async def _sweep(owners: list[str], *, dry_run: bool) -> list[Swept]:
    import httpx
    from prefect.exceptions import PrefectException

    from flows.prefect_connection import prefect_api
    from flows.sweep import sweep_sandboxes

    def progress(text: str) -> None:
        print(text, file=sys.stderr)

    async with prefect_api(progress=progress):
        try:
            state = await sweep_sandboxes(owners=owners, dry_run=dry_run, return_state=True)
            found: Any = await state.aresult(raise_on_failure=False)
        except (httpx.HTTPError, PrefectException) as error:
            raise PlatformUnavailableError(f"the Prefect API failed: {type(error).__name__}: {error}") from error
    if isinstance(found, SandboxError):
        raise found
    if isinstance(found, BaseException):
        raise PlatformUnavailableError(str(found)) from found
    return [*found]
