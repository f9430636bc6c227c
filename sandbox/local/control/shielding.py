"""Clean-up that is carried through while its caller is being cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

_log = logging.getLogger(__name__)


async def carried_through(work: Coroutine[Any, Any, None], *, seconds: float = 30.0) -> None:
    """Awaits ``work`` to its end even if the caller is cancelled meanwhile; the cancellation is raised afterwards.

    A failure of ``work`` is logged, not raised: the error that led to the clean-up is the one to report.

    Args:
        work: The clean-up.
        seconds: Limit after which it is cancelled.
    """
    task = asyncio.create_task(_logged(work, seconds=seconds))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                continue
        raise


async def _logged(work: Coroutine[Any, Any, None], *, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        _log.error("clean-up took longer than %g s", seconds)
    except Exception:
        _log.exception("clean-up failed")
