"""Snapshots made ahead of need: built or rebuilt where their definition asks for it, and proven by a sandbox."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sandbox.cleanup import to_the_end
from sandbox.frozen_model import Model
from sandbox.models import Isolation, ValidationRequest
from sandbox.validation import Validation

if TYPE_CHECKING:
    from daytona import AsyncDaytona

    from sandbox.events import EventStream
    from sandbox.profiles import Profile


class WarmSnapshot(Model):
    """What became of one snapshot.

    Attributes:
        profile: Name of the profile.
        framework: The framework that it was proven with.
        snapshot: Its name.
        built: Whether it was built now, because it was missing, broken, or made from another definition.
        seconds: How long that and the proof took.
        error: Why it is not ready; ``None`` when it is.
    """

    profile: str
    framework: str
    snapshot: str
    built: bool = False
    seconds: float = 0.0
    error: str | None = None


def frameworks_of_snapshots(profile: Profile) -> tuple[str, ...]:
    """Returns a framework for each snapshot the profile has: the default one, and each with one of its own."""
    found = {profile.prepared_for(name).snapshot_name: name for name in sorted(profile.frameworks, reverse=True)}
    found[profile.prepared_for(None).snapshot_name] = profile.default_framework
    return tuple(sorted(found.values()))


async def warm_snapshot(client: AsyncDaytona, profile: Profile, *, framework: str, events: EventStream) -> WarmSnapshot:
    """Makes one attempt to end with an active snapshot from which a sandbox starts that takes files.

    Args:
        client: The platform.
        profile: Whose snapshot.
        framework: Which of its snapshots.
        events: Told of states and of the build log.

    Raises:
        SandboxError: The snapshot could not be built, or no sandbox starts from it.
    """
    began = time.monotonic()
    request = ValidationRequest(
        profile=profile.name, framework=framework, files={"empty": ""}, entry_point="empty", isolation=Isolation.RUN
    )
    validation = Validation(request, profile=profile, client=client, events=events)
    try:
        snapshot = await validation.ensure_snapshot()
        await validation.reconcile_sandbox()
        await validation.open_session()
    finally:
        await to_the_end(validation.close())
    return WarmSnapshot(
        profile=profile.name,
        framework=framework,
        snapshot=snapshot.snapshot_name,
        built=snapshot.built,
        seconds=round(time.monotonic() - began, 3),
    )
