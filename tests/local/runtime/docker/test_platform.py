"""The whole platform over containers: snapshots of real images, the unmodified SDK, one whole validation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from daytona import (
    AsyncDaytona,
    CreateSandboxFromSnapshotParams,
    CreateSnapshotParams,
    DaytonaError,
    Image,
)

from sandbox.events import EventStream
from sandbox.local import service
from sandbox.local.diagnosis import diagnose
from sandbox.local.runtime.errors import RuntimeUnavailableError
from sandbox.local.server import LocalPlatform
from sandbox.local.settings import Settings
from sandbox.models import ValidationRequest, ValidationResult
from sandbox.profiles import builtin_profile
from sandbox.validation import Validation
from tests.local.platforms import scratch_home, sdk

from .engines import engine, of_owner

PROGRAM = """
import json, os, pathlib, sqlite3
database = sqlite3.connect(":memory:")
print(database.execute("select 'žluťoučký'").fetchone()[0], flush=True)
result = {"users": {"count": 2, "uid": os.getuid(), "first": pathlib.Path("/proc/1/comm").read_text().strip()}}
pathlib.Path(os.environ["UOM_RESULT_FILE"]).write_text(json.dumps(result))
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def platform(image: str) -> AsyncIterator[LocalPlatform]:
    """A platform with the Docker runtime, and nothing left in the engine after it."""
    async with scratch_home() as home:
        settings = Settings(home=home, runtime="docker", docker_image=image)
        async with LocalPlatform(settings) as running:
            yield running
        data = settings.platform_directory / "docker"
        assert {state for _, state in await of_owner(data)} <= {"exited", "created"}
        await _reset(settings)
        assert await of_owner(data) == []


async def _reset(settings: Settings) -> None:
    await asyncio.to_thread(service.reset, settings)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def daytona(platform: LocalPlatform) -> AsyncIterator[AsyncDaytona]:
    async with sdk(platform) as client:
        yield client


async def validate(daytona: AsyncDaytona, image: str, program: str) -> ValidationResult:
    profile = builtin_profile("python").model_copy(update={"image": image})
    request = ValidationRequest(profile="python", files={"main.py": program}).identified()
    async with EventStream(run_id=str(request.run_id), thread_id=str(request.thread_id)) as events:
        return await Validation(request, profile=profile, client=daytona, events=events).run()


async def test_a_whole_validation(daytona: AsyncDaytona, image: str) -> None:
    result = await validate(daytona, image, PROGRAM)
    assert result.outcome == "passed", result.message
    assert result.result == {"users": {"count": 2, "uid": 1000, "first": "ld-linux-x86-64"[:15]}}
    again = await validate(daytona, image, "print('x'\n")
    assert again.outcome == "compile_error"


async def test_a_sandbox_stops_starts_and_keeps_its_files(daytona: AsyncDaytona) -> None:
    sandbox = await daytona.create(CreateSandboxFromSnapshotParams(auto_stop_interval=0))
    try:
        await sandbox.fs.upload_file(b"kept", "file")
        assert (await sandbox.process.exec("cat file; id -u")).result == "kept1000\n"
        await sandbox.stop()
        await sandbox.start()
        assert (await sandbox.process.exec("cat file")).result == "kept"
    finally:
        await sandbox.delete()


async def test_a_build_runs_as_root_in_the_image_and_its_log_is_live(daytona: AsyncDaytona, image: str) -> None:
    lines: list[str] = []
    definition = (
        Image.base(image)
        .dockerfile_commands(['ENV GREETING="hello $FROM_IMAGE"'])
        .run_commands("id -u && echo installed > /usr/bin/marker && mkdir -p /opt/own")
        .workdir("/app")
    )
    snapshot = await daytona.snapshot.create(CreateSnapshotParams(name="built", image=definition), on_logs=lines.append)
    assert snapshot.state.value == "active"
    text = "\n".join(lines)
    assert f"FROM {image}" in text
    assert "toolchains in place of the image" not in text
    sandbox = await daytona.create(CreateSandboxFromSnapshotParams(snapshot="built"))
    try:
        answer = await sandbox.process.exec(
            'id -u; pwd; cat /usr/bin/marker; echo "$GREETING"; touch /app/x /opt/own/x'
        )
        assert (answer.exit_code, answer.result) == (0, "1000\n/app\ninstalled\nhello a b\n")
    finally:
        await sandbox.delete()
        await daytona.snapshot.delete(snapshot)


async def test_a_snapshot_of_a_plain_image_is_that_image(daytona: AsyncDaytona, image: str) -> None:
    snapshot = await daytona.snapshot.create(CreateSnapshotParams(name="plain", image=image))
    sandbox = await daytona.create(CreateSandboxFromSnapshotParams(snapshot="plain"))
    try:
        assert (await sandbox.process.exec("echo $FROM_IMAGE")).result == "a b\n"
    finally:
        await sandbox.delete()
        await daytona.snapshot.delete(snapshot)


async def test_an_image_that_cannot_be_had_fails_the_build_by_name(daytona: AsyncDaytona) -> None:
    with pytest.raises(DaytonaError, match=r"has no image registry\.invalid/none:1 and cannot fetch it"):
        await daytona.snapshot.create(CreateSnapshotParams(name="none", image="registry.invalid/none:1"))


async def test_snapshots_and_files_survive_a_restart(image: str) -> None:
    async with scratch_home() as home:
        settings = Settings(home=home, runtime="docker", docker_image=image)
        try:
            async with LocalPlatform(settings) as first, sdk(first) as client:
                definition = Image.base(image).run_commands("echo built > /opt/file")
                await client.snapshot.create(CreateSnapshotParams(name="lasting", image=definition))
                sandbox = await client.create(CreateSandboxFromSnapshotParams(snapshot="lasting", name="stays"))
                await sandbox.process.exec("echo own > file")
            async with LocalPlatform(settings) as second, sdk(second) as client:
                found = await client.get("stays")
                await found.start()
                assert (await found.process.exec("cat /opt/file file")).result == "built\nown\n"
            with pytest.raises(RuntimeUnavailableError, match="UOM_RUNTIME=docker"):
                await LocalPlatform(Settings(home=home)).start()
        finally:
            await _reset(settings)


async def test_the_doctor_knows_the_engine(image: str) -> None:
    async with engine(), scratch_home() as home:
        checks = await asyncio.to_thread(diagnose, Settings(home=home, runtime="docker", docker_image=image))
    found = {check.name: check for check in checks}
    assert all(check.ok for check in checks), checks
    assert {"docker", "sandbox", "default image"} <= found.keys()
    assert not {"bubblewrap", "cgroups", "java"} & found.keys()
