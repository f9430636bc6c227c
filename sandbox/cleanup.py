"""Clean-up that a cancellation does not interrupt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


async def to_the_end(clean_up: Awaitable[object]) -> None:
    """Awaits a clean-up to its end, also when the caller is cancelled meanwhile; the cancellation follows then.

    Args:
        clean_up: Must be bounded in time by itself.
    """
    task = asyncio.ensure_future(clean_up)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
