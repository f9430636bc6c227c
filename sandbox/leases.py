"""Until when a sandbox belongs to somebody: a label that whoever uses it renews.

The sandbox of one run is leased for a few minutes at a time; its run renews the lease while it lives. One that several
runs share is kept warm: leased from its last use on for as long as its intervals say that the platform keeps it, idle
first, then stopped. A lease that is over therefore means that no run uses the sandbox, whatever became of its client.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from sandbox.faults import fault, is_missing
from sandbox.models import Isolation
from sandbox.naming import ISOLATION, LEASE_END, MANAGED_BY, MANAGER
from sandbox.platform_api import bounded

if TYPE_CHECKING:
    from daytona import AsyncDaytona, AsyncSandbox

logger = logging.getLogger(__name__)

NO_END: Final = "none"
"""Lease of a shared sandbox that its profile never lets stop."""

LEASE_SECONDS: Final = 360.0
"""Lease of the sandbox of one run; longer than a run may send Prefect no heartbeat."""

RENEW_SECONDS: Final = 60.0
"""Time between two looks at the lease. A shared sandbox's is renewed when it is older than ``USE_SECONDS``."""

USE_SECONDS: Final = 300.0


def lease_end(labels: Mapping[str, str]) -> float | None:
    """Returns the end that a sandbox's labels tell, in seconds since the epoch; ``None`` when they tell none."""
    text = labels.get(LEASE_END, "")
    return float(text) if text.isdecimal() and text.isascii() else None


def kept_seconds(auto_stop_minutes: float | None, auto_delete_minutes: float | None) -> float | None:
    """Returns how long a shared sandbox is kept after its last use; ``None`` for ever.

    Args:
        auto_stop_minutes: Idle minutes until it stops; 0 or ``None`` never.
        auto_delete_minutes: Minutes it is kept stopped; negative or ``None`` for ever, which is no part of its lease.
    """
    if not auto_stop_minutes:
        return None
    return (auto_stop_minutes + max(auto_delete_minutes or 0.0, 0.0)) * 60


def new_lease(isolation: Isolation, *, auto_stop_minutes: float | None, auto_delete_minutes: float | None) -> str:
    """Returns the label of a lease that begins now.

    Args:
        isolation: Who shares the sandbox.
        auto_stop_minutes: See ``kept_seconds``.
        auto_delete_minutes: Likewise.
    """
    kept = LEASE_SECONDS if isolation is Isolation.RUN else kept_seconds(auto_stop_minutes, auto_delete_minutes)
    return NO_END if kept is None else str(int(time.time() + kept))


def last_use(sandbox: AsyncSandbox) -> float | None:
    """Returns when a run last used a shared sandbox, up to ``USE_SECONDS`` too early; ``None`` when nobody can tell."""
    end = lease_end(sandbox.labels)
    kept = kept_seconds(sandbox.auto_stop_interval, sandbox.auto_delete_interval)
    return None if end is None or kept is None else end - kept


async def renew(sandbox: AsyncSandbox) -> None:
    """Renews the lease of a sandbox of ours that is old enough for that; others are left alone.

    Args:
        sandbox: As read a moment ago: labels are replaced as a whole.
    """
    if sandbox.labels.get(MANAGED_BY) != MANAGER:
        return  # an older system made it, or somebody else
    isolation = Isolation.RUN if sandbox.labels.get(ISOLATION) == Isolation.RUN.value else Isolation.SHARED
    if isolation is not Isolation.RUN and not _old(sandbox):
        return
    label = new_lease(
        isolation, auto_stop_minutes=sandbox.auto_stop_interval, auto_delete_minutes=sandbox.auto_delete_interval
    )
    if label != sandbox.labels.get(LEASE_END):
        await bounded(sandbox.set_labels({**sandbox.labels, LEASE_END: label}))


def _old(sandbox: AsyncSandbox) -> bool:
    used = last_use(sandbox)
    return used is None or time.time() - used >= USE_SECONDS


class LeaseKeeper:
    """Renews the lease of one sandbox from ``start`` to ``stop``.

    Args:
        client: The platform.
        name: Name of the sandbox, which may be replaced meanwhile.
    """

    def __init__(self, client: AsyncDaytona, name: str) -> None:
        self._client = client
        self._name = name
        self._task: asyncio.Task[None] | None = None
        self._found: AsyncSandbox | None = None
        self._wake = asyncio.Event()

    def start(self) -> None:
        """Begins; may be called again."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep())

    def uses(self, sandbox: AsyncSandbox) -> None:
        """Takes a sandbox that was read just now; a shared one's old lease is renewed at once, in the background."""
        if sandbox.labels.get(ISOLATION) != Isolation.RUN.value and _old(sandbox):
            self._found = sandbox
            self._wake.set()

    async def stop(self) -> None:
        """Ends; may be called again."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _keep(self) -> None:
        while True:
            try:
                async with asyncio.timeout(RENEW_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            found, self._found = self._found, None
            try:
                await renew(found if found is not None else await bounded(self._client.get(self._name)))
            except Exception as error:
                meant = fault(error, step="lease", sandbox=self._name)
                if meant is None:
                    logger.exception("the lease of %s could not be renewed", self._name)
                elif not is_missing(error):  # not made yet, or being replaced
                    logger.warning("the lease could not be renewed: %s", meant)
