"""The end of a run: nothing of it is left, whatever the platform answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sandbox.abandoned import end_abandoned_sessions
from sandbox.deletion import delete_sandbox
from sandbox.retry import Deadline

if TYPE_CHECKING:
    from daytona import AsyncSandbox

    from sandbox.attempt import Attempt


async def end_run(attempt: Attempt | None, sandbox: AsyncSandbox | None, *, alone: bool, within: Deadline) -> None:
    """Ends whatever runs and deletes its session; faults are logged.

    A sandbox of one run is deleted, and so is one whose disk is full.

    Args:
        attempt: What ran last, if anything did.
        sandbox: Where, if there is one.
        alone: Whether the sandbox belongs to the run alone.
        within: Until when, whatever the platform answers.
    """
    if attempt is not None and alone:
        await attempt.forget()
    elif attempt is not None:
        # Where the sandbox is deleted after this, some time is left for that.
        ending = within.sooner(within.remaining * 2 / 3)
        await asyncio.gather(
            attempt.end(tidy=True, within=ending), end_abandoned_sessions(attempt.sandbox, within=ending)
        )
    full = attempt is not None and attempt.disk_full
    if (full or alone) and sandbox is not None:
        await delete_sandbox(sandbox, within=within)
