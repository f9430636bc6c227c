"""Removes the sandboxes of ours that no live run owns.

The platform tells by labels what is ours, who uses it and until when; whoever knows about runs tells which of them
live. Neither age nor name decides. A sandbox of one run goes when its run has ended, or when its lease is over and its
run gives no sign of life. A shared one is stopped, and in the end deleted, at the times that its own intervals name:
the sweep looks into it for sessions of killed clients, which the platform takes for use.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from daytona import ListSandboxesQuery, SandboxState

from sandbox.abandoned import end_abandoned_sessions, is_in_use
from sandbox.deletion import delete_sandbox
from sandbox.faults import fault, is_missing, translated
from sandbox.frozen_model import Model
from sandbox.leases import NO_END, last_use, lease_end
from sandbox.models import Isolation
from sandbox.naming import FLOW_RUN, ISOLATION, LEASE_END, MANAGED_BY, MANAGER, OWNER, PROFILE
from sandbox.platform_api import REQUEST_SECONDS, bounded
from sandbox.retry import Deadline
from sandbox.sandbox_states import sandbox_state

if TYPE_CHECKING:
    from daytona import AsyncDaytona, AsyncSandbox

logger = logging.getLogger(__name__)

AT_ONCE: Final = 8
"""Sandboxes that are worked on at the same time."""

_GOING: Final = frozenset({SandboxState.DESTROYING, SandboxState.DESTROYED})


class RunLife(StrEnum):
    """What is known of the run that a sandbox belongs to."""

    LIVE = "live"
    """It has given a sign of life lately, or has ended just now and may still clean up."""
    SILENT = "silent"
    """It has not ended, and gives no sign of life."""
    ENDED = "ended"
    UNKNOWN = "unknown"
    """Nobody knows of it: it was no Prefect run, or one of another server."""


class Action(StrEnum):
    """What the sweep does with a sandbox."""

    KEEP = "kept"
    STOP = "stopped"
    DELETE = "deleted"


class Swept(Model):
    """What the sweep found and did.

    Attributes:
        sandbox: Name of the sandbox.
        sandbox_id: Its id.
        profile: Its profile.
        owner: Who made it.
        state: Its state before.
        lease_end: Until when it was leased, UTC; ``None`` without an end.
        flow_run_id: The run it belongs to, where it is of one run.
        run: What was known of that run.
        action: What was decided.
        reason: Why.
        sessions_ended: Sessions of killed clients that were ended in it.
        error: Why the action did not succeed; ``None`` when it did.
    """

    sandbox: str
    sandbox_id: str
    profile: str | None = None
    owner: str | None = None
    state: str
    lease_end: str | None = None
    flow_run_id: str | None = None
    run: RunLife = RunLife.UNKNOWN
    action: Action
    reason: str
    sessions_ended: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the decision about one sandbox rests on.

    Attributes:
        isolation: Who shares it, as its label says.
        state: Its state.
        lease: The label of its lease.
        lease_end: The same in seconds since the epoch; ``None`` when it names no time.
        last_use: When a shared one was last used; ``None`` when it is kept for ever, or nobody can tell.
        auto_stop_minutes: Its interval.
        auto_delete_minutes: Likewise; negative never.
        run: What is known of its run.
    """

    isolation: str | None
    state: SandboxState
    lease: str | None
    lease_end: float | None
    last_use: float | None
    auto_stop_minutes: float | None
    auto_delete_minutes: float | None
    run: RunLife


Lives = Callable[[Collection[str]], Awaitable[Mapping[str, RunLife]]]
"""Tells of runs, by id, whether they live."""


def decide(facts: Facts, *, now: float) -> tuple[Action, str]:
    """Returns what to do with a sandbox of ours, and why.

    Args:
        facts: What is known of it.
        now: Seconds since the epoch.
    """
    if facts.state in _GOING:
        return Action.KEEP, "it is being deleted"
    if facts.isolation == Isolation.RUN:
        return _decide_single(facts, now)
    if facts.isolation in (Isolation.SHARED, Isolation.THREAD):
        return _decide_shared(facts, now)
    return Action.KEEP, f"its label {ISOLATION} says {facts.isolation!r}, which is unknown"


def _decide_single(facts: Facts, now: float) -> tuple[Action, str]:
    if facts.run is RunLife.ENDED:
        return Action.DELETE, "its run has ended"
    if facts.lease_end is None:
        return Action.KEEP, "it carries no lease"
    if facts.lease_end >= now:
        return Action.KEEP, "its lease is not over"
    if facts.run is RunLife.LIVE:
        return Action.KEEP, "its lease is over, but its run gives signs of life"
    return Action.DELETE, f"its lease is over since {now - facts.lease_end:.0f} s, and its run is {facts.run.value}"


def _decide_shared(facts: Facts, now: float) -> tuple[Action, str]:
    if facts.lease == NO_END:
        return Action.KEEP, "it is shared and kept for ever"
    if facts.lease_end is None or facts.last_use is None:
        return Action.KEEP, "it carries no lease"
    idle = (now - facts.last_use) / 60
    if facts.lease_end < now and (facts.auto_delete_minutes or 0) >= 0:
        return Action.DELETE, f"it is shared and was not used for {idle:.0f} min"
    if facts.state is SandboxState.STARTED and facts.auto_stop_minutes and idle >= facts.auto_stop_minutes:
        return Action.STOP, f"it is shared and was idle for {idle:.0f} min"
    return Action.KEEP, "it is shared and kept warm"


async def sweep(
    client: AsyncDaytona, *, lives: Lives, owners: Collection[str] = (), dry_run: bool = False
) -> list[Swept]:
    """Removes what no live run owns; one that fails does not keep the others from being removed.

    Args:
        client: The platform.
        lives: Asked about the runs of sandboxes.
        owners: Only sandboxes of these owners (``user@host``); empty takes all that this project made.
        dry_run: Decide and tell only.

    Raises:
        SandboxError: The platform could not be asked what there is.
    """
    with translated("sweep"):
        found = [
            sandbox
            async for sandbox in client.list(ListSandboxesQuery(labels={MANAGED_BY: MANAGER}))
            # Asked again of what came: the label is all that stands between us and other people's sandboxes.
            if sandbox.labels.get(MANAGED_BY) == MANAGER and (not owners or sandbox.labels.get(OWNER) in owners)
        ]
    known = await lives({sandbox.labels[FLOW_RUN] for sandbox in found if FLOW_RUN in sandbox.labels})
    places = asyncio.Semaphore(AT_ONCE)

    async def one(sandbox: AsyncSandbox) -> Swept:
        async with places:
            return await _sweep_one(sandbox, known.get(sandbox.labels.get(FLOW_RUN, ""), RunLife.UNKNOWN), dry_run)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(sandbox)) for sandbox in found]
    return [task.result() for task in tasks]


async def _sweep_one(sandbox: AsyncSandbox, run: RunLife, dry_run: bool) -> Swept:
    action, reason = decide(_facts(sandbox, run), now=time.time())
    before = sandbox_state(sandbox.state)
    sessions, error = 0, None
    if not dry_run:
        try:
            if action is not Action.KEEP:
                # Somebody may have begun to use it since the list was made.
                await bounded(sandbox.refresh_data())
                action, reason = decide(_facts(sandbox, run), now=time.time())
            sessions, action, reason, error = await _do(sandbox, action, reason)
        except Exception as failure:
            if is_missing(failure):
                action, reason = Action.KEEP, "it was gone by itself"
            else:
                meant = fault(failure, step="sweep", sandbox=sandbox.name)
                if meant is None:
                    raise
                error = str(meant)
    end = lease_end(sandbox.labels)
    return Swept(
        sandbox=sandbox.name,
        sandbox_id=sandbox.id,
        profile=sandbox.labels.get(PROFILE),
        owner=sandbox.labels.get(OWNER),
        state=before.value,
        lease_end=None if end is None else datetime.fromtimestamp(end, UTC).isoformat(timespec="seconds"),
        flow_run_id=sandbox.labels.get(FLOW_RUN),
        run=run,
        action=action,
        reason=reason,
        sessions_ended=sessions,
        error=error,
    )


async def _do(sandbox: AsyncSandbox, action: Action, reason: str) -> tuple[int, Action, str, str | None]:
    if action is Action.DELETE:
        return 0, action, reason, await delete_sandbox(sandbox)
    if action is Action.STOP:
        if await is_in_use(sandbox):
            return 0, Action.KEEP, "a program may still run in it", None
        await bounded(sandbox.stop(timeout=60), 90)
        return 0, action, reason, None
    shared = sandbox.labels.get(ISOLATION) in (Isolation.SHARED, Isolation.THREAD)
    started = sandbox_state(sandbox.state) is SandboxState.STARTED
    # One that we would not stop ourselves is left idle, so that the platform does.
    ends = last_use(sandbox) is not None or not sandbox.auto_stop_interval
    if not (shared and started and ends):
        return 0, action, reason, None
    return await end_abandoned_sessions(sandbox, within=Deadline(REQUEST_SECONDS)), action, reason, None


def _facts(sandbox: AsyncSandbox, run: RunLife) -> Facts:
    return Facts(
        isolation=sandbox.labels.get(ISOLATION),
        state=sandbox_state(sandbox.state),
        lease=sandbox.labels.get(LEASE_END),
        lease_end=lease_end(sandbox.labels),
        last_use=last_use(sandbox),
        auto_stop_minutes=sandbox.auto_stop_interval,
        auto_delete_minutes=sandbox.auto_delete_interval,
        run=run,
    )
