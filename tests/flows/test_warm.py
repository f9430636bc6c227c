"""The flow ``warm-snapshots``: each snapshot on its own, what became of it as result and artifact."""

from __future__ import annotations

from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.client.schemas.objects import StateType

from blocks import SandboxProfile
from flows import prefect_api
from flows.publisher import PUBLISHER
from flows.warm import warm_snapshots
from sandbox.connection import Credentials, client
from sandbox.profiles import builtin_profile, builtin_profile_names
from sandbox.warming import frameworks_of_snapshots


def test_each_snapshot_of_a_profile_is_made_once() -> None:
    for name in builtin_profile_names():
        profile = builtin_profile(name)
        frameworks = frameworks_of_snapshots(profile)
        snapshots = [profile.prepared_for(framework).snapshot_name for framework in frameworks]
        assert sorted(set(snapshots)) == sorted(snapshots)
        assert set(snapshots) == {profile.prepared_for(framework).snapshot_name for framework in profile.frameworks}
        assert profile.default_framework in frameworks


@pytest.mark.slow
async def test_one_that_fails_stops_no_other(
    prefect_server: str, credentials: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYTONA_API_URL", credentials.api_url)
    monkeypatch.setenv("DAYTONA_API_KEY", credentials.api_key.get_secret_value())
    broken = builtin_profile("python").model_copy(
        update={"name": "warm-broken", "type": "warm-broken", "setup": ("echo no such luck; exit 3",)}
    )
    async with prefect_api(), client(credentials) as daytona, get_client() as api:
        block: Any = SandboxProfile.from_profile(broken)
        await block.save("warm-broken", overwrite=True)
        state = await warm_snapshots(["warm-broken", "python"], return_state=True)
        assert state.type is StateType.FAILED
        assert "validation-snapshot-warm-broken" in (state.message or "")
        found: Any = await state.aresult(raise_on_failure=False)
        failed, ready = found
        assert "no such luck" in failed.error
        assert (ready.snapshot, ready.error) == ("validation-snapshot-python-3-sandbox", None)
        assert (await daytona.snapshot.get(ready.snapshot)).state.value == "active"

        again = await warm_snapshots(["python/plain"], return_state=True)
        assert (again.type, again.name) == (StateType.COMPLETED, "Warm"), again.message
        made: Any = await again.aresult()
        assert [one.built for one in made] == [False]
        assert PUBLISHER.flush(30)
        key = ArtifactFilter(key=ArtifactFilterKey(any_=["validation-warm-snapshots"]))
        assert "warm-broken" in str([one.data for one in await api.read_artifacts(artifact_filter=key)])
        assert not [box async for box in daytona.list() if box.name.startswith("validation-sandbox-warm-broken")]
