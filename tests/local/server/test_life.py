"""Starting, stopping and starting again: what stays, what goes, what is left behind."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from daytona import AsyncSandbox, CreateSandboxFromSnapshotParams, CreateSnapshotParams, Image

from sandbox.local.control.records import SandboxRecord
from sandbox.local.control.states import DesiredState, SandboxState
from sandbox.local.control.store import Store, StoreError
from sandbox.local.directory import DirectoryBusyError
from sandbox.local.server import LocalPlatform
from sandbox.local.settings import Settings
from tests.local.platforms import raw_client, running_platform, scratch_home, sdk


async def output(sandbox: AsyncSandbox, command: str) -> str:
    answer = await sandbox.process.exec(command)
    assert answer.exit_code == 0, answer.result
    return str(answer.result)


async def test_what_a_restart_keeps_and_what_it_does_not() -> None:
    async with scratch_home() as home:
        settings = Settings(home=home)
        image = Image.base("base:1").run_commands("echo from the snapshot > /opt/file")
        async with LocalPlatform(settings) as first, sdk(first) as daytona:
            key = first.api_key
            await daytona.snapshot.create(CreateSnapshotParams(name="kept", image=image))
            keeper = await daytona.create(
                CreateSandboxFromSnapshotParams(name="keeper", snapshot="kept", labels={"a": "b"})
            )
            await output(keeper, "echo mine > ~/file; echo gone > /tmp/file; nohup sleep 600 > /dev/null 2>&1 &")
            await daytona.create(CreateSandboxFromSnapshotParams(name="passing", ephemeral=True))
            archived = await daytona.create(CreateSandboxFromSnapshotParams(name="archived"))
            await archived.stop()
            await archived.archive()
        async with LocalPlatform(settings) as second, sdk(second) as daytona:
            assert second.api_key == key
            states = {sandbox.name: sandbox.state async for sandbox in daytona.list()}
            assert states == {"keeper": "stopped", "archived": "archived"}
            assert (await daytona.snapshot.get("kept")).state == "active"
            keeper = await daytona.get("keeper")
            assert keeper.labels["a"] == "b"
            await keeper.start()
            assert (
                await output(keeper, "cat ~/file /opt/file; ls /tmp; pgrep sleep || true")
                == "mine\nfrom the snapshot\n"
            )
            archived = await daytona.get("archived")
            await archived.start()
            assert archived.state == "started"


async def test_a_stopped_platform_leaves_no_descriptor_and_no_child() -> None:
    def descriptors() -> dict[str, str]:
        return {entry.name: str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.exists()}

    def children() -> set[str]:
        return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}

    async with running_platform() as platform, sdk(platform) as daytona:
        await (await daytona.create()).delete()  # whatever is opened once for the process is open now
    before, before_children = descriptors(), children()
    async with running_platform() as platform, sdk(platform) as daytona:
        await daytona.create()
        await daytona.create()
    assert children() <= before_children
    assert set(descriptors().values()) - set(before.values()) == set()


async def test_one_directory_one_platform() -> None:
    async with scratch_home() as home, LocalPlatform(Settings(home=home)) as first:
        with pytest.raises(DirectoryBusyError, match="another platform uses"):
            await LocalPlatform(Settings(home=home)).start()
        async with raw_client(first) as raw:
            assert (await raw("GET", "/health/ready")).status == 200


async def test_a_port_that_is_taken_is_named() -> None:
    async with running_platform() as first, scratch_home() as home:
        port = int(first.api_url.split(":")[2].split("/")[0])
        with pytest.raises(OSError, match=f"{port}.*UOM_PLATFORM_PORT"):
            await LocalPlatform(Settings(home=home, port=port)).start()


def _record(state: SandboxState, **changes: Any) -> SandboxRecord:
    made = SandboxRecord(
        id=str(uuid.uuid4()),
        name=f"was-{state.value}",
        state=state,
        desired_state=DesiredState.STARTED,
        created_at=1.0,
        updated_at=1.0,
        last_activity_at=1.0,
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


async def test_every_state_a_killed_platform_left_is_resolved() -> None:
    """The records are written as a platform that was killed in that state would have left them."""
    records = [_record(state) for state in SandboxState]
    ephemeral = _record(SandboxState.STARTED, name="ephemeral", auto_delete=0)
    async with scratch_home() as home:
        settings = Settings(home=home)
        async with LocalPlatform(settings):
            pass
        orphan = settings.platform_directory / "runtime" / "boxes" / str(uuid.uuid4())
        store = Store(settings.platform_directory / "state.sqlite")
        await store.open()
        await store.save(*records, ephemeral)
        await store.close()
        async with LocalPlatform(settings) as platform, raw_client(platform) as raw:
            boxes = platform.plane.boxes.on_disk()
            assert orphan.name not in boxes
            states = {record.name: record.state for record in platform.plane.sandboxes.all()}
            assert "ephemeral" not in states
            assert "was-destroying" not in states
            assert states["was-building_snapshot"] is SandboxState.BUILD_FAILED
            assert states["was-creating"] is SandboxState.STOPPED
            assert states["was-archiving"] is SandboxState.ARCHIVED
            assert states["was-error"] is SandboxState.ERROR
            failed = (await raw("GET", "/sandbox/was-pending_build")).body
            assert (failed["state"], "interrupted" in failed["errorReason"]) == ("build_failed", True)
            started = (await raw("POST", "/sandbox/was-started/start")).body
            assert started["state"] == "started"
            assert started["desiredState"] == "started"


async def test_files_that_belong_to_no_sandbox_go() -> None:
    async with scratch_home() as home:
        settings = Settings(home=home)
        async with LocalPlatform(settings) as platform, raw_client(platform) as raw:
            sandbox = (await raw("POST", "/sandbox", {})).body
            assert sandbox["id"] in platform.plane.boxes.on_disk()
        store = Store(settings.platform_directory / "state.sqlite")
        await store.open()
        for record in await store.sandboxes():
            await store.remove(record)
        await store.close()
        async with LocalPlatform(settings) as platform:
            assert platform.plane.boxes.on_disk() == []


async def test_a_build_that_the_end_of_the_platform_interrupts_has_failed() -> None:
    text = "FROM base:1\nRUN echo begun; sleep 600\n"
    async with scratch_home() as home:
        settings = Settings(home=home)
        async with LocalPlatform(settings) as platform, raw_client(platform) as raw:
            body = {"name": "cut", "buildInfo": {"dockerfileContent": text}}
            snapshot = (await raw("POST", "/snapshots", body)).body
            image = (
                await raw("POST", "/sandbox", {"name": "from-image", "buildInfo": {"dockerfileContent": text}})
            ).body
            assert (snapshot["state"], image["state"]) == ("building", "pending_build")
            while b"begun" not in (await raw("GET", f"/snapshots/{snapshot['id']}/build-logs")).body:
                pass
        async with LocalPlatform(settings) as platform, raw_client(platform) as raw:
            snapshot = (await raw("GET", "/snapshots/cut")).body
            assert snapshot["state"] == "build_failed"
            assert "interrupted" in snapshot["errorReason"]
            assert b"begun" in (await raw("GET", f"/snapshots/{snapshot['id']}/build-logs?follow=true")).body
            sandbox = (await raw("GET", "/sandbox/from-image")).body
            assert sandbox["state"] == "build_failed"
            assert platform.plane.boxes.on_disk() == []
            assert (await raw("DELETE", f"/sandbox/{sandbox['id']}")).status == 200


async def test_a_snapshot_whose_files_have_gone_says_so() -> None:
    async with scratch_home() as home:
        settings = Settings(home=home)
        image = Image.base("base:1").run_commands("echo x > /opt/x")
        async with LocalPlatform(settings) as platform, sdk(platform) as daytona:
            await daytona.snapshot.create(CreateSnapshotParams(name="hollow", image=image))
            record = platform.plane.snapshots.get("hollow")
        store = Store(settings.platform_directory / "state.sqlite")
        await store.open()
        for build in await store.builds():
            assert build.id == record.build_id
            await store.remove(build)
        await store.close()
        async with LocalPlatform(settings) as platform, raw_client(platform) as raw:
            found = (await raw("GET", "/snapshots/hollow")).body
            assert found["state"] == "error"
            assert "create it again" in found["errorReason"]


async def test_a_state_file_that_is_none_is_named() -> None:
    async with scratch_home() as home:
        settings = Settings(home=home)
        async with LocalPlatform(settings):
            pass
        for path in settings.platform_directory.glob("state.sqlite*"):
            path.unlink()
        (settings.platform_directory / "state.sqlite").write_bytes(b"not a database, by any means" * 100)
        with pytest.raises(StoreError, match=r"state\.sqlite"):
            await LocalPlatform(settings).start()


async def test_a_state_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.sqlite")
    await store.open()
    await store.close()
    import sqlite3

    connection = sqlite3.connect(tmp_path / "state.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    store = Store(tmp_path / "state.sqlite")
    with pytest.raises(StoreError, match="newer version"):
        await store.open()
    await store.close()


async def test_other_toolchains_make_another_build(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "FROM base:1\nRUN echo x > /opt/x\n"
    async with scratch_home() as home:
        settings = Settings(home=home)
        async with LocalPlatform(settings) as platform, raw_client(platform) as raw:

            async def active(name: str) -> str:
                await raw("GET", f"/snapshots/{name}/build-logs?follow=true")
                assert (await raw("GET", f"/snapshots/{name}")).body["state"] == "active"
                return str(platform.plane.snapshots.get(name).build_id)

            first = (await raw("POST", "/snapshots", {"name": "first", "buildInfo": {"dockerfileContent": text}})).body
            old = await active("first")
            monkeypatch.setattr(type(platform.plane.builds._runtime), "fingerprint", "other")
            await raw("POST", "/snapshots", {"name": "second", "buildInfo": {"dockerfileContent": text}})
            new = await active("second")
            assert new != old
            assert (await raw("POST", f"/snapshots/{first['id']}/deactivate")).status == 204
            assert (await raw("POST", f"/snapshots/{first['id']}/activate")).body["state"] == "active"
            assert await active("first") == new
            assert platform.plane.builds.get(old) is None, "nothing stands on the former build any more"
