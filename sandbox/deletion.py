"""The end of a sandbox that belongs to one run."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from sandbox.faults import fault, is_missing
from sandbox.retry import Pace, told_wait

if TYPE_CHECKING:
    from daytona import AsyncSandbox

logger = logging.getLogger(__name__)

LONGEST_PAUSE: Final = 5.0
"""Longest pause between two attempts: whoever cleans up has seconds."""


async def delete_sandbox(sandbox: AsyncSandbox) -> None:
    """Deletes a sandbox, in up to three attempts; what then remains of it ends at its lifetime's end."""
    pace = Pace(0.2, longest=2.0)
    for last in (False, False, True):
        try:
            await sandbox.delete(timeout=30)
        except Exception as error:
            meant = fault(error, step="close", sandbox=sandbox.name)
            if meant is None:
                raise
            if is_missing(error):
                return
            if last:
                logger.warning("the sandbox could not be deleted; the platform will, at its lifetime's end: %s", meant)
                return
            await asyncio.sleep(max(pace.next(), min(told_wait(meant), LONGEST_PAUSE)))
        else:
            return
