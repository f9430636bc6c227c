"""The end of a sandbox that belongs to one run."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from sandbox.faults import fault, is_missing
from sandbox.platform_api import bounded
from sandbox.retry import Deadline, Pace, told_wait

if TYPE_CHECKING:
    from daytona import AsyncSandbox

logger = logging.getLogger(__name__)

DELETE_SECONDS: Final = 45.0

LONGEST_PAUSE: Final = 5.0
"""Longest pause between two attempts: whoever cleans up has seconds."""


async def delete_sandbox(sandbox: AsyncSandbox, *, within: Deadline | None = None) -> str | None:
    """Deletes a sandbox, in up to three attempts; what then remains of it ends at its lifetime's end.

    Args:
        sandbox: Which.
        within: Until when; ``DELETE_SECONDS`` by default.

    Returns:
        ``None`` when the platform has accepted it, or had none such; else why not.
    """
    within = within or Deadline(DELETE_SECONDS)
    pace = Pace(0.2, longest=2.0)
    for last in (False, False, True):
        try:
            await bounded(sandbox.delete(timeout=30), within.capped(30))
        except Exception as error:
            meant = fault(error, step="close", sandbox=sandbox.name)
            if meant is None:
                raise
            if is_missing(error):
                return None
            if last or within.expired:
                logger.warning("the sandbox could not be deleted; the platform will, at its lifetime's end: %s", meant)
                return str(meant)
            await asyncio.sleep(within.capped(max(pace.next(), min(told_wait(meant), LONGEST_PAUSE))))
        else:
            return None
    raise AssertionError("unreachable")
