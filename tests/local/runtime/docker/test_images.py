"""What a box takes over from its image, and what happens without one."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from sandbox.local.runtime.docker import DockerRuntime
from sandbox.local.runtime.docker_archive import Entry, image_archive, tree
from sandbox.local.runtime.errors import BoxSpawnError, RuntimeFault
from sandbox.local.runtime.interface import BoxSpec

from ..driving import chunks_of, run, shell
from .conftest import BoxMaker
from .engines import engine

# Would keep a Python or any dynamically linked program from starting, or from being what it is.
HOSTILE = {
    "PYTHONHOME": "/nowhere",
    "PYTHONPATH": "/nowhere",
    "PYTHONVERBOSE": "1",
    "LD_PRELOAD": "/no/such.so",
    "LD_LIBRARY_PATH": "/nowhere",
    "PATH": "/opt/first:/usr/bin",
    "HOME": "/nowhere",
    "LANG": "tlh",
}


@pytest.fixture
async def bare() -> AsyncIterator[str]:
    """An image without a single program, with an account of the sandbox's number and a hostile environment."""
    name = f"uom-test/bare:{uuid.uuid4().hex[:8]}"
    passwd = b"root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh"
    layer = tree([Entry("etc", 0o755), Entry("etc/passwd", 0o644, content=passwd)])
    async with engine() as found:
        await found.load(image_archive(name, layer, environment=HOSTILE))
        yield name
        await found.remove_image(name)


async def content(box: object, path: str) -> bytes:
    return b"".join([chunk async for chunk in box.files.read(path)])  # type: ignore[attr-defined]


async def test_an_image_without_programs_has_files_but_no_shell(make_box: BoxMaker, bare: str) -> None:
    box = await make_box(image=bare)
    await box.files.write("file", chunks_of(b"x"))
    assert await content(box, "/home/sandbox/file") == b"x"
    with pytest.raises(BoxSpawnError):
        await box.run(["/bin/sh"])
    with pytest.raises(BoxSpawnError):
        await box.open_session()


async def test_accounts_are_added_only_where_there_are_none(make_box: BoxMaker, bare: str) -> None:
    box = await make_box(image=bare)
    assert b"sandbox" not in await content(box, "/etc/passwd")
    assert await content(box, "/etc/group") == b"sandbox:x:1000:\n"
    other = await make_box()
    assert (await shell(other, "id; id -un; ls -ld ~ /sandbox")).stdout.count("sandbox") >= 4


async def test_the_image_s_environment_is_the_programs_and_never_the_agent_s(make_box: BoxMaker, bare: str) -> None:
    box = await make_box(image=bare, env={"LANG": "from the spec"})
    environment = box.environment({"PYTHONPATH": "from the call"})
    expected = {
        **HOSTILE,
        "HOME": "/home/sandbox",
        "LANG": "from the spec",
        "PYTHONPATH": "from the call",
        "TMPDIR": "/tmp",
    }
    assert environment == expected
    assert await box.alive()


async def test_the_environment_survives_layers_and_restarts(
    runtime: DockerRuntime, make_box: BoxMaker, layers: list[str]
) -> None:
    box = await make_box()
    assert "FROM_IMAGE=a b" in (await run(box, "env")).stdout.splitlines()
    await box.stop()
    again = await make_box(box_id=box.spec.box_id)
    assert "FROM_IMAGE=a b" in (await run(again, "env")).stdout.splitlines()
    await again.stop()
    layers.append("with-environment")
    await runtime.freeze(box.spec.box_id, "with-environment")
    above = await make_box(layers=("with-environment",))
    lines = (await run(above, "env")).stdout.splitlines()
    assert "FROM_IMAGE=a b" in lines
    assert not [line for line in lines if line.startswith("PYTHONHOME")]


async def test_an_image_that_cannot_be_had_is_told_by_name(runtime: DockerRuntime) -> None:
    with pytest.raises(RuntimeFault, match=r"no image registry\.invalid/none:1 and cannot fetch it"):
        await runtime.start(BoxSpec(box_id="without", image="registry.invalid/none:1"))
    assert "without" not in runtime.boxes_on_disk()


async def test_an_image_of_another_architecture_is_refused(
    runtime: DockerRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(RuntimeFault, match="this machine is linux/riscv64"):
        await runtime.start(BoxSpec(box_id="foreign"))
