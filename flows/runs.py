"""Flow runs by id or name, as the Prefect API knows them."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

import httpx
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound, PrefectException

from sandbox.errors import ConfigurationError, PlatformUnavailableError


class HasId(Protocol):
    """What ``submit`` returns, among others."""

    @property
    def id(self) -> UUID:
        """Id of the flow run."""


AnyRun = HasId | UUID | str
"""A run, its id, or its name."""


async def find_run(client: PrefectClient, run: AnyRun) -> FlowRun:
    """Returns a flow run; of several with the same name, the newest.

    Raises:
        ConfigurationError: There is none.
        PlatformUnavailableError: The Prefect API does not answer.
    """
    wanted = run if isinstance(run, UUID | str) else run.id
    if isinstance(wanted, str):
        try:
            wanted = UUID(wanted)
        except ValueError:
            return await _by_name(client, str(wanted))
    return await read_run(client, wanted)


async def read_run(client: PrefectClient, flow_run_id: UUID) -> FlowRun:
    """Returns a flow run as it is now; raises as ``find_run``."""
    try:
        return await client.read_flow_run(flow_run_id)
    except ObjectNotFound:
        raise ConfigurationError(f"there is no flow run {flow_run_id}", field="run") from None
    except (httpx.HTTPError, PrefectException) as error:
        raise PlatformUnavailableError(f"the run {flow_run_id} could not be read: {error}") from error


async def _by_name(client: PrefectClient, name: str) -> FlowRun:
    wanted = FlowRunFilter(name=FlowRunFilterName(any_=[name]))
    try:
        found = await client.read_flow_runs(flow_run_filter=wanted, sort=FlowRunSort.START_TIME_DESC, limit=1)
    except (httpx.HTTPError, PrefectException) as error:
        raise PlatformUnavailableError(f"the run {name!r} could not be looked up: {error}") from error
    if not found:
        raise ConfigurationError(f"there is no flow run named {name!r}", field="run")
    return found[0]
