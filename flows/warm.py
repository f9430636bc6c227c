"""The flow ``warm-snapshots``: builds, proves and refreshes snapshots, so that no validation waits for a build."""

from __future__ import annotations

import json
import tempfile
import uuid
from pathlib import Path
from typing import Final

from prefect import flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.artifact_keys import artifact_key
from flows.profile_choice import choose_profile
from flows.publisher import PUBLISHER, Artifact
from flows.run_log import RunLog
from flows.validation import current_flow_run_id, is_transient, stored_credentials
from sandbox.connection import client, platform_credentials
from sandbox.errors import SandboxError
from sandbox.events import EventStream
from sandbox.profiles import Profile, builtin_profile_names
from sandbox.warming import WarmSnapshot, frameworks_of_snapshots
from sandbox.warming import warm_snapshot as warm

ERROR_CHARACTERS: Final = 2_000


@task(
    name="warm_snapshot",
    task_run_name="warm_snapshot-{profile.name}-{framework}",
    retries=4,
    retry_delay_seconds=[1, 2, 4, 8],
    retry_jitter_factor=0.3,
    retry_condition_fn=is_transient,
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def warm_snapshot(profile: Profile, framework: str, credentials_block: str | None) -> WarmSnapshot:
    """Sees to it that one snapshot is active and that a sandbox starts from it."""
    credentials = await stored_credentials(credentials_block) or await platform_credentials()
    log = RunLog(flow_run_id=current_flow_run_id())
    try:
        async with (
            client(credentials) as daytona,
            EventStream(run_id=uuid.uuid4().hex, thread_id="warm-snapshots", sinks=(log,)) as events,
        ):
            return await warm(daytona, profile, framework=framework, events=events)
    finally:
        log.close()


@flow(
    name="warm-snapshots",
    description="Builds, proves and refreshes the snapshots of profiles ahead of need.",
    persist_result=False,
    result_storage=Path(tempfile.gettempdir()),  # see ``validate``
)
async def warm_snapshots(
    profiles: list[str] = [],  # noqa: B006 - Prefect shows the default in the form; nobody changes it
    credentials_block: str | None = None,
) -> State[list[WarmSnapshot]]:
    """Builds, proves and refreshes the snapshots of profiles ahead of need.

    A snapshot is built when it is missing, broken, or made from another definition than the profile has now. Each is
    proven by a sandbox that starts from it. One that fails does not keep the others from being made.

    Args:
        profiles: Names of profiles, stored or built in, or PROFILE/FRAMEWORK for one of their snapshots; empty takes
            all snapshots of the built-in profiles.
        credentials_block: Name of a DaytonaCredentials block; empty takes the environment of the worker.

    Returns:
        A completed state ``Warm`` with what became of each snapshot, or a failed one that names those that are
        not ready.

    Raises:
        ConfigurationError: There is no such profile or framework.
    """
    logger = get_run_logger()
    chosen: list[tuple[Profile, str]] = []
    for item in profiles or builtin_profile_names():
        name, _, framework = item.partition("/")
        profile = await choose_profile(name, logger=logger)
        names = (profile.framework(framework)[0],) if framework else frameworks_of_snapshots(profile)
        chosen += [(profile, one) for one in names]
    done: list[WarmSnapshot] = []
    # One after the other: each build takes what the machine has.
    for profile, framework in chosen:
        try:
            done.append(await warm_snapshot(profile, framework, credentials_block))
        except SandboxError as error:
            logger.warning("%s/%s is not ready: %s", profile.name, framework, error)
            snapshot = profile.prepared_for(framework).snapshot_name
            text = str(error)[-ERROR_CHARACTERS:]
            done.append(WarmSnapshot(profile=profile.name, framework=framework, snapshot=snapshot, error=text))
    artifact = Artifact(
        key=artifact_key("warm-snapshots"),
        type="table",
        description="Snapshots made ahead of need",
        flow_run_id=current_flow_run_id(),
    )
    PUBLISHER.publish(artifact, lambda: json.dumps([one.model_dump() for one in done]))
    cold = [one.snapshot for one in done if one.error is not None]
    if cold:
        return Failed(message=f"not ready: {', '.join(cold)}", data=done)
    return Completed(name="Warm", message=f"{len(done)} ready, {sum(one.built for one in done)} built now", data=done)
