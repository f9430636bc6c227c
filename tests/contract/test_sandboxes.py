"""Sandboxes through the SDK: creating, finding, the verbs and what they refuse."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from daytona import (
    AsyncDaytona,
    CreateSandboxFromImageParams,
    CreateSandboxFromSnapshotParams,
    DaytonaBadRequestError,
    DaytonaConflictError,
    DaytonaError,
    DaytonaNotFoundError,
    Image,
    ListSandboxesQuery,
    Resources,
    SandboxState,
)
from daytona.common.snapshot import Snapshot

from tests.contract.conftest import BASE_IMAGE, MakeSandbox


async def test_defaults(daytona: AsyncDaytona, local_only: None) -> None:
    sandbox = await daytona.create()
    try:
        assert sandbox.name == sandbox.id
        assert sandbox.labels == {"code-toolbox-language": "python"}
        assert (sandbox.cpu, sandbox.memory, sandbox.disk) == (1, 1, 3)
        assert (sandbox.auto_stop_interval, sandbox.auto_archive_interval, sandbox.auto_delete_interval) == (
            15,
            10080,
            -1,
        )
        assert sandbox.state == "started"
        assert sandbox.error_reason is None
        assert not sandbox.public
    finally:
        await sandbox.delete()


async def test_environment_and_labels(make_sandbox: MakeSandbox, daytona: AsyncDaytona) -> None:
    sandbox = await make_sandbox(env_vars={"GREETING": "two words"}, labels={"team": "ü"}, language="typescript")
    assert (await sandbox.process.exec('echo "$GREETING"')).result == "two words\n"
    found = await daytona.get(sandbox.id)
    assert found.labels == {"team": "ü", "code-toolbox-language": "typescript"}
    await found.set_labels({"only": "this"})
    assert (await daytona.get(sandbox.id)).labels == {"only": "this"}


async def test_a_name_is_taken_until_its_sandbox_is_deleted(make_sandbox: MakeSandbox, daytona: AsyncDaytona) -> None:
    name = f"name-{uuid.uuid4()}"
    first = await make_sandbox(name=name)
    with pytest.raises(DaytonaConflictError):
        await make_sandbox(name=name)
    await first.stop()
    with pytest.raises(DaytonaConflictError):
        await make_sandbox(name=name)
    await first.delete()
    with pytest.raises(DaytonaNotFoundError):
        await daytona.get(name)
    second = await make_sandbox(name=name)
    assert second.id != first.id
    assert (await daytona.get(name)).id == second.id


async def test_what_cannot_be_created(daytona: AsyncDaytona, snapshot: Snapshot) -> None:
    with pytest.raises(DaytonaBadRequestError, match="no-such-snapshot"):
        await daytona.create(CreateSandboxFromSnapshotParams(snapshot="no-such-snapshot"))


@pytest.mark.usefixtures("local_only")
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"network_allow_list": "10.0.0.1"}, "10.0.0.1"),
        ({"network_allow_list": "10.0.0.0/8", "network_block_all": True}, "networkBlockAll"),
        ({"name": "<b>bold</b>"}, "name"),
        ({"name": "http://example.org"}, "name"),
        ({"name": "x" * 256}, "name"),
    ],
)
async def test_fields_that_are_refused(make_sandbox: MakeSandbox, fields: dict[str, object], named: str) -> None:
    with pytest.raises(DaytonaError, match=named):
        await make_sandbox(**fields)


async def test_stopping_and_starting(make_sandbox: MakeSandbox) -> None:
    sandbox = await make_sandbox()
    await sandbox.start()  # no harm in a started one
    assert sandbox.state == "started"
    await sandbox.process.exec("echo mine > ~/kept; echo gone > /tmp/gone")
    await sandbox.stop()
    assert sandbox.state == "stopped"
    with pytest.raises(DaytonaBadRequestError):
        await sandbox.stop()
    with pytest.raises(DaytonaBadRequestError):
        await sandbox.process.exec("true")
    await sandbox.start()
    assert (await sandbox.process.exec("cat ~/kept")).result == "mine\n"
    await sandbox.stop(force=True)
    assert sandbox.state == "stopped"


async def test_an_ephemeral_sandbox_is_gone_when_it_stops(make_sandbox: MakeSandbox, daytona: AsyncDaytona) -> None:
    sandbox = await make_sandbox(ephemeral=True)
    assert sandbox.auto_delete_interval == 0
    await sandbox.stop()
    assert sandbox.state == "destroyed"
    with pytest.raises(DaytonaNotFoundError):
        await daytona.get(sandbox.id)


async def test_deleting_and_waiting_for_it(make_sandbox: MakeSandbox, daytona: AsyncDaytona) -> None:
    sandbox = await make_sandbox()
    await daytona.delete(sandbox, wait=True)
    with pytest.raises(DaytonaNotFoundError):
        await daytona.get(sandbox.id)
    with pytest.raises(DaytonaNotFoundError):
        await sandbox.refresh_data()


async def test_archiving(make_sandbox: MakeSandbox) -> None:
    sandbox = await make_sandbox()
    with pytest.raises(DaytonaBadRequestError):
        await sandbox.archive()
    await sandbox.process.exec("echo mine > ~/kept")
    await sandbox.stop()
    await sandbox.archive()
    async with asyncio.timeout(300):
        while sandbox.state != "archived":
            await sandbox.refresh_data()
    await sandbox.start(timeout=300)
    assert (await sandbox.process.exec("cat ~/kept")).result == "mine\n"


async def test_intervals(make_sandbox: MakeSandbox, daytona: AsyncDaytona) -> None:
    sandbox = await make_sandbox()
    await sandbox.set_autostop_interval(0)
    await sandbox.set_auto_archive_interval(0)
    await sandbox.set_auto_delete_interval(90)
    await sandbox.refresh_activity()
    found = await daytona.get(sandbox.id)
    assert (found.auto_stop_interval, found.auto_archive_interval, found.auto_delete_interval) == (0, 43200, 90)
    await sandbox.set_auto_delete_interval(-1)
    assert (await daytona.get(sandbox.id)).auto_delete_interval == -1


async def test_network_settings(make_sandbox: MakeSandbox, daytona: AsyncDaytona) -> None:
    sandbox = await make_sandbox(network_allow_list="10.0.0.0/8,192.168.0.0/16")
    assert sandbox.network_allow_list == "10.0.0.0/8,192.168.0.0/16"
    await sandbox.update_network_settings(network_block_all=True)
    found = await daytona.get(sandbox.id)
    assert (found.network_block_all, found.network_allow_list or None) == (True, None)
    await sandbox.update_network_settings(network_block_all=False)
    assert not (await daytona.get(sandbox.id)).network_block_all
    with pytest.raises(DaytonaError, match="example"):
        await sandbox.update_network_settings(network_allow_list="example")


@pytest.mark.usefixtures("local_only")
async def test_resizing_a_stopped_sandbox(make_sandbox: MakeSandbox) -> None:
    sandbox = await make_sandbox()
    with pytest.raises(DaytonaBadRequestError, match="stop it first"):
        await sandbox.resize(Resources(cpu=2))
    await sandbox.stop()
    with pytest.raises(DaytonaBadRequestError, match="grow"):
        await sandbox.resize(Resources(disk=1))
    await sandbox.resize(Resources(cpu=2, memory=2, disk=4))
    assert (sandbox.cpu, sandbox.memory, sandbox.disk) == (2, 2, 4)
    with pytest.raises(DaytonaBadRequestError, match="already"):
        await sandbox.resize(Resources(cpu=2))
    await sandbox.start()
    assert sandbox.state == "started"


async def test_listing(make_sandbox: MakeSandbox, daytona: AsyncDaytona) -> None:
    mark = uuid.uuid4().hex
    made = [
        await make_sandbox(name=f"list-{mark}-{number}", labels={"mark": mark, "n": str(number)}) for number in range(5)
    ]
    await made[0].stop()

    async def names(**query: object) -> set[str]:
        fields = {"labels": {"mark": mark}, "limit": 2} | query
        found = [item.name async for item in daytona.list(ListSandboxesQuery(**fields))]  # type: ignore[arg-type]
        assert len(found) == len(set(found))
        return {name.removeprefix(f"list-{mark}-") for name in found}

    assert await names() == {"0", "1", "2", "3", "4"}
    assert await names(labels={"mark": mark, "n": "3"}) == {"3"}
    assert await names(states=[SandboxState.STOPPED]) == {"0"}
    assert await names(name=f"list-{mark}-1") == {"1"}
    assert await names(labels={"mark": "other"}) == set()
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    assert await names(created_at_after=hour_ago) == {"0", "1", "2", "3", "4"}
    assert await names(created_at_before=hour_ago) == set()


async def test_from_an_image_with_its_log(daytona: AsyncDaytona) -> None:
    logs: list[str] = []
    image = Image.base(BASE_IMAGE).run_commands(
        f"echo unique {uuid.uuid4()}; echo from the image > /opt/file; sleep 1.5"
    )
    sandbox = await daytona.create(
        CreateSandboxFromImageParams(image=image, resources=Resources(cpu=1, memory=2, disk=3)),
        timeout=600,
        on_snapshot_create_logs=logs.append,
    )
    try:
        assert sandbox.state == "started"
        assert sandbox.memory == 2
        assert "unique" in "\n".join(logs)
        assert (await sandbox.process.exec("cat /opt/file")).result == "from the image\n"
    finally:
        await sandbox.delete()


async def test_from_an_image_that_cannot_be_built(daytona: AsyncDaytona) -> None:
    name = f"broken-{uuid.uuid4()}"
    image = Image.base(BASE_IMAGE).run_commands(f"echo {uuid.uuid4()}; exit 9")
    with pytest.raises(DaytonaError):
        await daytona.create(CreateSandboxFromImageParams(name=name, image=image), timeout=600)
    found = await daytona.get(name)
    assert found.state in ("build_failed", "error")
    assert found.error_reason
    await found.delete()


async def test_from_a_plain_image_name(daytona: AsyncDaytona) -> None:
    sandbox = await daytona.create(CreateSandboxFromImageParams(image=BASE_IMAGE), timeout=600)
    assert (await sandbox.process.exec("python3 -c 'print(6 * 7)'")).result == "42\n"
    await sandbox.delete()


async def test_twenty_at_once(make_sandbox: MakeSandbox, local_only: None) -> None:
    made = await asyncio.gather(*(make_sandbox() for _ in range(20)))
    answers = await asyncio.gather(*(sandbox.process.exec("echo $$") for sandbox in made))
    assert all(answer.exit_code == 0 for answer in answers)
    assert len({sandbox.id for sandbox in made}) == 20
