"""How many validations of a profile run at a time, over all processes that report to one Prefect server.

The limit is a global concurrency limit of that server with the name ``uom-sandbox-<profile>``; without one there is
none, at the price of one request. A place is held under a lease that this process renews: it is free at once when the
run ends, and when the process dies, after ``LEASE_SECONDS`` and the server's next look (every 15 s).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import ConcurrencyLeaseHolder
from prefect.concurrency.asyncio import (
    AcquireConcurrencySlotTimeoutError,
    ConcurrencySlotAcquisitionError,
    concurrency,
)
from prefect.exceptions import ObjectNotFound

from sandbox.errors import CapacityError, PlatformUnavailableError
from sandbox.events import EventStream
from sandbox.heartbeat import Heartbeat
from sandbox.slots import QUEUE_SECONDS

LEASE_SECONDS: Final = 60.0
"""The shortest lease that Prefect grants."""


def limit_name(profile: str) -> str:
    """Returns the name of the global concurrency limit for the sandboxes of a profile."""
    return f"uom-sandbox-{profile}"


@asynccontextmanager
async def place_within_limit(profile: str, *, flow_run_id: UUID, events: EventStream) -> AsyncIterator[None]:
    """Waits for a place under the profile's limit, and holds it for the block.

    Args:
        profile: Name of the profile.
        flow_run_id: Who holds the place.
        events: Told that we wait.

    Raises:
        CapacityError: None became free within ``QUEUE_SECONDS``.
        PlatformUnavailableError: The Prefect server refused.
    """
    name = limit_name(profile)
    async with get_client() as api:
        try:
            limit = await api.read_global_concurrency_limit_by_name(name)
        except ObjectNotFound:
            limit = None
    if limit is None or not limit.active:
        yield
        return
    # Not strict: a limit that is deleted meanwhile, or a lease that cannot be renewed, is no reason to end a run.
    place = concurrency(
        name,
        timeout_seconds=QUEUE_SECONDS,
        lease_duration=LEASE_SECONDS,
        holder=ConcurrencyLeaseHolder(type="flow_run", id=flow_run_id),
        raise_on_lease_renewal_failure=False,
    )
    async with AsyncExitStack() as held:
        try:
            async with Heartbeat(events, subject="sandbox", name=name, limit=QUEUE_SECONDS) as beat:
                if limit.active_slots >= limit.limit:
                    beat.saw(f"waiting for one of {limit.limit} places")
                await held.enter_async_context(place)
        except AcquireConcurrencySlotTimeoutError:
            raise CapacityError(
                f"no place became free within {QUEUE_SECONDS:g} s ({limit.limit} runs at a time)", sandbox=name
            ) from None
        except ConcurrencySlotAcquisitionError as error:
            raise PlatformUnavailableError(
                f"no place under the concurrency limit {name!r}: {error}",
                remedy=f"See `prefect gcl inspect {name}`.",
            ) from error
        yield
