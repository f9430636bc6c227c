"""Noticing that Prefect was asked to cancel a run.

A worker signals the process of its run; nobody signals a process that called the flow itself, so a run that is
cancelled in the UI or by the API would go on to its end. Each run therefore reads its own state every few seconds, and
one that had ended before it looked again is told to Prefect as cancelled, which else would wait for that for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.exceptions import CancelledRun, PrefectException, UnfinishedRun
from prefect.flows import Flow
from prefect.states import Cancelled

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 3.0
"""Time between two looks at the run's state: one small request each."""

ASKED: Final = frozenset({StateType.CANCELLING, StateType.CANCELLED})


ENDED_AS_CANCELLED: Final = (CancelledRun, UnfinishedRun)
"""What a caller gets from Prefect whose run was cancelled; the second one when it had ended all the same."""


class RunCancelledError(Exception):
    """Somebody cancelled the run in Prefect; what it did has been ended."""


@asynccontextmanager
async def ended_when_cancelled(flow_run_id: UUID) -> AsyncIterator[None]:
    """Cancels the block when Prefect has the run as cancelled or to be cancelled.

    Args:
        flow_run_id: The run.

    Raises:
        RunCancelledError: The block was cancelled so, and has cleaned up.
    """
    owner = asyncio.current_task()
    if owner is None:
        raise RuntimeError("the flow body runs outside a task")
    asked = False

    async def watch() -> None:
        nonlocal asked
        await _until_asked(flow_run_id)
        asked = True
        owner.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
        if asked:  # too late: something in the block has swallowed it at its very end
            owner.uncancel()
    except (asyncio.CancelledError, Exception) as error:
        # Others may have cancelled us, too (Ctrl-C, a time limit): then theirs goes on.
        if asked and owner.uncancel() == 0:
            raise RunCancelledError("The run was cancelled in Prefect") from error
        raise
    finally:
        watcher.cancel()
        await asyncio.wait({watcher})


async def tell_that_it_ended(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Hook for runs in this process: makes a run ``Cancelled`` that Prefect would leave ``Cancelling`` for ever.

    Args:
        flow: The flow.
        flow_run: The run, which has ended.
        state: Its state at the server.
    """
    if state.is_cancelling():
        async with get_client() as api:
            await api.set_flow_run_state(flow_run.id, Cancelled(message="It had ended when it was cancelled."))


async def _until_asked(flow_run_id: UUID) -> None:
    await asyncio.sleep(LOOK_SECONDS)  # before a client is made: most runs have ended by then
    async with get_client() as api:
        while True:
            try:
                state = (await api.read_flow_run(flow_run_id)).state
            except (httpx.HTTPError, PrefectException) as error:
                # A server that is away for a while is no reason to end a run; the next look may succeed.
                logger.debug("the state of the run could not be read: %s", error)
            else:
                if state is not None and state.type in ASKED:
                    return
            await asyncio.sleep(LOOK_SECONDS)
