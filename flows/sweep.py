"""The flow ``sweep-sandboxes``: removes the sandboxes of ours that no live run owns."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

from prefect import flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun, State
from prefect.states import Completed, Failed

from flows.artifact_keys import artifact_key
from flows.crash_detection import HEARTBEAT, SILENT_SECONDS
from flows.publisher import PUBLISHER, Artifact
from flows.validation import current_flow_run_id, is_transient, stored_credentials
from sandbox.connection import client, platform_credentials
from sandbox.sweep import Action, RunLife, Swept
from sandbox.sweep import sweep as sweep_platform

RUNS_AT_ONCE: Final = 100
OWN_CLEANUP_SECONDS: Final = 60.0
"""A run that has ended so lately may still be cleaning up."""


async def lives_of(flow_run_ids: Collection[str], *, silent_seconds: float) -> Mapping[str, RunLife]:
    """Asks Prefect which flow runs live.

    Args:
        flow_run_ids: Their ids, from labels; what is no id is left out.
        silent_seconds: A run without a heartbeat for longer gives no sign of life.
    """
    wanted = [found for text in sorted(flow_run_ids) if (found := _uuid(text)) is not None]
    lives: dict[str, RunLife] = {}
    async with get_client() as api:
        for start in range(0, len(wanted), RUNS_AT_ONCE):
            some = FlowRunFilter(id=FlowRunFilterId(any_=wanted[start : start + RUNS_AT_ONCE]))
            for run in await api.read_flow_runs(flow_run_filter=some):
                lives[str(run.id)] = await _life(api, run, silent_seconds)
    return lives


async def _life(api: PrefectClient, run: FlowRun, silent_seconds: float) -> RunLife:
    now = datetime.now(UTC)
    if run.state is not None and run.state.is_final():
        just_now = now - run.state.timestamp < timedelta(seconds=OWN_CLEANUP_SECONDS)
        return RunLife.LIVE if just_now else RunLife.ENDED
    since = (now - timedelta(seconds=silent_seconds)).isoformat()
    events = {
        "event": {"name": [HEARTBEAT]},
        "resource": {"id": [f"prefect.flow-run.{run.id}"]},
        "occurred": {"since": since},
    }
    answer = await api.request("POST", "/events/filter", json={"filter": events, "limit": 1})
    answer.raise_for_status()
    return RunLife.LIVE if answer.json()["events"] else RunLife.SILENT


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@task(
    name="remove_unowned",
    retries=4,
    retry_delay_seconds=[1, 2, 4, 8],
    retry_jitter_factor=0.3,
    retry_condition_fn=is_transient,
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def remove_unowned(
    credentials_block: str | None, owners: list[str], silent_seconds: float, dry_run: bool
) -> list[Swept]:
    """Asks platform and Prefect, and removes what no live run owns."""

    async def lives(flow_run_ids: Collection[str]) -> Mapping[str, RunLife]:
        return await lives_of(flow_run_ids, silent_seconds=silent_seconds)

    credentials = await stored_credentials(credentials_block) or await platform_credentials()
    async with client(credentials) as daytona:
        return await sweep_platform(daytona, lives=lives, owners=owners, dry_run=dry_run)


@flow(
    name="sweep-sandboxes",
    description="Removes the sandboxes of this project that no live run owns.",
    persist_result=False,
    result_storage=Path(tempfile.gettempdir()),  # see ``validate``
)
async def sweep_sandboxes(
    credentials_block: str | None = None,
    owners: list[str] = [],  # noqa: B006 - Prefect shows the default in the form; nobody changes it
    silent_seconds: float = SILENT_SECONDS,
    dry_run: bool = False,
) -> State[list[Swept]]:
    """Removes the sandboxes of this project that no live run owns.

    The sandbox of one run is deleted when its run has ended, or when its lease is over and its run sends no heartbeat.
    Shared ones are stopped and deleted at the times that their own intervals name, and sessions of killed clients in
    them are ended. Sandboxes without the label of this project are not touched.

    Args:
        credentials_block: Name of a DaytonaCredentials block; empty takes the environment of the worker.
        owners: Only sandboxes that these have made (label uom-owner, user@host); empty takes all of this project.
        silent_seconds: A run whose lease is over lives if it has sent a heartbeat within so many seconds.
        dry_run: Tell what would be done, and do nothing.

    Returns:
        A completed state ``Swept`` with what was found and done, or a failed one that names what could not be removed.
    """
    logger = get_run_logger()
    done = await remove_unowned(credentials_block, owners, silent_seconds, dry_run)
    for one in done:
        if one.action is not Action.KEEP or one.error is not None or one.sessions_ended:
            logger.info("%s: %s, because %s", one.sandbox, one.error or one.action.value, one.reason)
    artifact = Artifact(
        key=artifact_key("sweep-sandboxes"),
        type="table",
        description="What became of the sandboxes" if not dry_run else "What would become of the sandboxes",
        flow_run_id=current_flow_run_id(),
    )
    PUBLISHER.publish(artifact, lambda: json.dumps([one.model_dump(mode="json") for one in done]))
    failed = [one.sandbox for one in done if one.error is not None]
    if failed:
        return Failed(message=f"could not be removed: {', '.join(failed)}", data=done)
    counts = ", ".join(f"{sum(one.action is action for one in done)} {action.value}" for action in Action)
    return Completed(name="DryRun" if dry_run else "Swept", message=counts, data=done)
