"""Snapshots through the SDK."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from daytona import (
    AsyncDaytona,
    CreateSnapshotParams,
    DaytonaConflictError,
    DaytonaError,
    DaytonaNotFoundError,
    Image,
    Resources,
)
from daytona.common.snapshot import Snapshot

from tests.contract.conftest import BASE_IMAGE


def image(*commands: str) -> Image:
    """A definition that was never built before."""
    return Image.base(BASE_IMAGE).run_commands(f"echo {uuid.uuid4()}", *commands)


async def until_gone(daytona: AsyncDaytona, name: str) -> None:
    async with asyncio.timeout(120):
        while True:
            try:
                assert (await daytona.snapshot.get(name)).state == "removing"
            except DaytonaNotFoundError:
                return


async def test_found_by_name_and_id_and_listed(daytona: AsyncDaytona, snapshot: Snapshot) -> None:
    assert (await daytona.snapshot.get(snapshot.name)).id == snapshot.id
    assert (await daytona.snapshot.get(snapshot.id)).name == snapshot.name
    page = await daytona.snapshot.list(page=1, limit=100)
    assert snapshot.name in {item.name for item in page.items}
    assert page.page == 1
    assert page.total >= 1
    assert str(uuid.UUID(snapshot.id)) == snapshot.id


async def test_a_name_is_taken_until_it_is_gone(daytona: AsyncDaytona) -> None:
    name = f"taken-{uuid.uuid4()}"
    definition = image()
    first = await daytona.snapshot.create(CreateSnapshotParams(name=name, image=definition), timeout=600)
    with pytest.raises(DaytonaConflictError):
        await daytona.snapshot.create(CreateSnapshotParams(name=name, image=definition))
    await daytona.snapshot.delete(name)
    await until_gone(daytona, name)
    second = await daytona.snapshot.create(CreateSnapshotParams(name=name, image=definition), timeout=600)
    assert second.id != first.id
    await daytona.snapshot.delete(second.id)
    await until_gone(daytona, name)


async def test_a_failing_step(daytona: AsyncDaytona) -> None:
    name = f"failing-{uuid.uuid4()}"
    logs: list[str] = []
    definition = image("echo the reason why >&2; exit 5")
    with pytest.raises(DaytonaError):
        await daytona.snapshot.create(
            CreateSnapshotParams(name=name, image=definition), on_logs=logs.append, timeout=600
        )
    assert "the reason why" in "\n".join(logs)
    found = await daytona.snapshot.get(name)
    assert found.state in ("build_failed", "error")
    assert found.error_reason
    await daytona.snapshot.delete(found)
    await until_gone(daytona, name)


async def test_resources_are_kept(daytona: AsyncDaytona) -> None:
    made = await daytona.snapshot.create(
        CreateSnapshotParams(name=f"sized-{uuid.uuid4()}", image=image(), resources=Resources(cpu=2, memory=2, disk=4)),
        timeout=600,
    )
    assert (made.cpu, made.mem, made.disk) == (2, 2, 4)
    await daytona.snapshot.delete(made)


@pytest.mark.usefixtures("local_only")
async def test_an_equal_definition_is_there_at_once(daytona: AsyncDaytona) -> None:
    definition = image("sleep 1")
    first = await daytona.snapshot.create(CreateSnapshotParams(name=f"a-{uuid.uuid4()}", image=definition), timeout=60)
    logs: list[str] = []
    second = await daytona.snapshot.create(
        CreateSnapshotParams(name=f"b-{uuid.uuid4()}", image=definition), on_logs=logs.append, timeout=60
    )
    assert [first.state, second.state] == ["active", "active"]
    assert not any("building" in line.lower() for line in logs)
    for made in (first, second):
        await daytona.snapshot.delete(made)


@pytest.mark.usefixtures("local_only")
async def test_an_image_name_stands_for_this_machine_s_tools(daytona: AsyncDaytona) -> None:
    made = await daytona.snapshot.create(CreateSnapshotParams(name=f"named-{uuid.uuid4()}", image=BASE_IMAGE))
    assert (made.state, made.image_name) == ("active", BASE_IMAGE)
    await daytona.snapshot.delete(made)


@pytest.mark.usefixtures("local_only")
async def test_a_context_cannot_be_uploaded_and_that_is_said(daytona: AsyncDaytona) -> None:
    definition = Image.base(BASE_IMAGE).add_local_file(__file__, "/opt/file")
    with pytest.raises(DaytonaError, match="here-document"):
        await daytona.snapshot.create(CreateSnapshotParams(name=f"context-{uuid.uuid4()}", image=definition))


async def test_what_is_not_there(daytona: AsyncDaytona) -> None:
    for name in ("no-such-snapshot", str(uuid.uuid4())):
        with pytest.raises(DaytonaNotFoundError):
            await daytona.snapshot.get(name)
        with pytest.raises(DaytonaNotFoundError):
            await daytona.snapshot.delete(name)
