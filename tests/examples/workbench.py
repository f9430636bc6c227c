"""Validations on a local platform of this session, with each profile's snapshot built once."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from daytona import AsyncDaytona
from pydantic import SecretStr

from sandbox.connection import Credentials
from sandbox.errors import SnapshotBuildError
from sandbox.events import EventStream
from sandbox.local.settings import Settings
from sandbox.models import ValidationRequest, ValidationResult
from sandbox.profiles import Network, Profile, builtin_profile
from sandbox.snapshots import ensure_snapshot
from sandbox.validation import Validation
from tests.databases.maven import repository_networks
from tests.local.platforms import running_platform, sdk

_TOOL_MISSING = re.compile(r".* is needed; found:.*|The (?:libraries|packages) of \S+ could not be fetched;.*")
NO_PACKAGES = "UOM_NUGET_SOURCE does not say where NuGet packages come from"


@dataclass
class Workbench:
    """Validates with the built-in profiles.

    Attributes:
        client: The SDK in front of the platform.
        credentials: Access to the platform.
        missing: Snapshot → why this machine cannot build it, ``None`` when it is built.
    """

    client: AsyncDaytona
    credentials: Credentials
    missing: dict[str, str | None] = field(default_factory=dict)

    async def profile(self, name: str, *, framework: str | None = None) -> Profile:
        """A profile whose snapshot is active; skips the test when its tools are not on this machine."""
        profile = builtin_profile(name)
        prepared = profile.prepared_for(framework)
        snapshot = prepared.snapshot_name
        if snapshot not in self.missing:
            self.missing[snapshot] = await self._why_not(prepared)
        reason = self.missing[snapshot]
        if reason is not None:
            pytest.skip(reason)
        return profile

    async def validate(self, request: ValidationRequest, *, network: Network | None = None) -> ValidationResult:
        """Validates a request; with a network policy, in place of the profile's."""
        request = request.identified()
        framework = builtin_profile(request.profile).framework_for(request)
        profile = await self.profile(request.profile, framework=framework)
        if network is not None:
            profile = profile.model_copy(update={"network": network})
        async with EventStream(run_id=str(request.run_id), thread_id=str(request.thread_id)) as events:
            return await Validation(request, profile=profile, client=self.client, events=events).run()

    async def _why_not(self, profile: Profile) -> str | None:
        if "UOM_NUGET_SOURCE" in profile.setup_variables and "UOM_NUGET_SOURCE" not in os.environ:
            return NO_PACKAGES
        async with EventStream(run_id="prepare", thread_id="prepare") as events:
            try:
                await ensure_snapshot(self.client, profile, events=events)
            except SnapshotBuildError as error:
                # Only the set-up's own words for a missing tool excuse a snapshot that cannot be built.
                said = next((line for line in error.log_tail if _TOOL_MISSING.fullmatch(line.strip())), None)
                if said is None:
                    raise
                return said.strip()
        return None


@asynccontextmanager
async def open_workbench() -> AsyncIterator[Workbench]:
    settings = Settings.from_environment()
    networks = settings.extra_public_cidrs or repository_networks()
    async with (
        running_platform(toolchains=settings.toolchains, extra_public_cidrs=networks) as platform,
        sdk(platform) as client,
    ):
        credentials = Credentials(api_key=SecretStr(platform.api_key), api_url=platform.api_url)
        yield Workbench(client, credentials)
