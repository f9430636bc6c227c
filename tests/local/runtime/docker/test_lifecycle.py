"""How a runtime of containers begins and ends, and what is left of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox.local.runtime.docker import DockerRuntime
from sandbox.local.runtime.docker_box import DockerBox
from sandbox.local.runtime.docker_purge import purge
from sandbox.local.runtime.errors import BoxFileError, BoxLostError, RuntimeUnavailableError
from sandbox.local.runtime.interface import BoxSpec, EndReason
from tests.local.runtime.test_lifecycle import (  # noqa: F401 - collected here, run against containers
    test_a_cancelled_start_of_a_process_leaves_nothing,
    test_listening_ports,
    test_many_boxes_at_once,
    test_stopping_twice_and_together,
)
from tests.scratch import scratch_directory

from ..driving import descriptors, finish, host_processes, mounts, names_in, shell, until
from .conftest import BoxMaker
from .engines import engine, of_owner

SERVER = """
import asyncio, sys
from pathlib import Path
from sandbox.local.runtime.docker import DockerRuntime
from sandbox.local.runtime.interface import BoxSpec

async def main():
    runtime = DockerRuntime(data_directory=Path(sys.argv[1]), default_image=sys.argv[2])
    await runtime.prepare()
    box = await runtime.start(BoxSpec(box_id="orphan"))
    session = await box.open_session()
    running = await session.start("echo kept >file; setsid sleep 918273560 & echo on; sleep 918273560", stdin=False)
    await running.stdout.read()
    process = await box.run(["sh", "-c", "trap '' TERM HUP; while :; do sleep 918273560; done"])
    print("ready", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


@pytest.fixture
async def root(image: str) -> AsyncIterator[Path]:
    made = scratch_directory()
    yield made
    await purge(made, host=None)
    shutil.rmtree(made)


async def test_closing_leaves_nothing_that_runs(root: Path, image: str) -> None:
    before = (descriptors(), mounts())
    tasks = asyncio.all_tasks()
    runtime = DockerRuntime(data_directory=root, default_image=image)
    await runtime.prepare()
    boxes = await asyncio.gather(*(runtime.start(BoxSpec(box_id=f"box-{number}")) for number in range(3)))
    # Everything here is left open on purpose.
    await boxes[0].run(["sleep", "918273561"], stdin=True)
    session = await boxes[1].open_session()
    await session.start("sleep 918273561", stdin=True)
    stream = boxes[2].files.read("/etc/passwd")
    await anext(aiter(stream))
    await runtime.remove_layer("none-such")
    await runtime.close()
    await stream.aclose()  # type: ignore[attr-defined]
    await runtime.close()
    assert host_processes("918273561") == []
    assert (descriptors(), mounts()) == before
    assert asyncio.all_tasks() - tasks == set()
    assert names_in(root / "trash") == []
    assert [state for _, state in await of_owner(root)] == ["exited"] * 3


async def test_a_killed_server_leaves_nothing_and_the_next_one_finds_the_files(root: Path, image: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[4]), *sys.path])}
    server = subprocess.Popen(  # noqa: ASYNC220 - killed and reaped by hand below
        [sys.executable, "-c", SERVER, str(root), image],
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    try:
        assert server.stdout is not None
        assert await asyncio.to_thread(server.stdout.readline) == b"ready\n"
        assert len(host_processes("918273560")) >= 3
    finally:
        server.send_signal(signal.SIGKILL)
        server.communicate()
    await until(lambda: host_processes("918273560") == [])
    runtime = DockerRuntime(data_directory=root, default_image=image)
    await runtime.prepare()
    try:
        assert runtime.boxes_on_disk() == ["orphan"]
        box = await runtime.start(BoxSpec(box_id="orphan"))
        assert (await shell(box, "cat file")).stdout == "kept\n"
    finally:
        await runtime.close()


async def test_what_a_killed_server_has_left_running_or_half_made_is_ended(root: Path, image: str) -> None:
    runtime = DockerRuntime(data_directory=root, default_image=image)
    await runtime.prepare()
    await runtime.start(BoxSpec(box_id="stays"))
    await runtime.close()
    (name, _) = (await of_owner(root))[0]
    async with engine() as found:
        config = (await found.inspect(name) or {})["Config"]
        left = {**config, "Entrypoint": ["/usr/bin/sleep"], "Cmd": ["918273562"]}
        await found.create(f"{name}-left", left)
        await found.start(f"{name}-left")
        scratch = {**left, "Labels": {**config["Labels"], "uom-sandbox.role": "scratch"}}
        await found.create(f"{name}-scratch", scratch)
    again = DockerRuntime(data_directory=root, default_image=image)
    await again.prepare()
    await again.close()
    assert host_processes("918273562") == []
    assert await of_owner(root) == [(name, "exited"), (f"{name}-left", "exited")]


async def test_one_server_for_a_data_directory(runtime: DockerRuntime) -> None:
    second = DockerRuntime(data_directory=runtime._places.root, default_image="none")
    with pytest.raises(RuntimeUnavailableError, match="another server"):
        await second.prepare()


@pytest.mark.parametrize("host", ["unix:///no/such/docker.sock", "tcp://127.0.0.1:9", "nonsense"])
async def test_without_an_engine_the_text_says_what_to_do(tmp_path: Path, host: str) -> None:
    with pytest.raises(RuntimeUnavailableError, match="socket"):
        await DockerRuntime(data_directory=tmp_path, default_image="none", host=host).prepare()


async def test_a_container_that_dies_is_noticed(make_box: BoxMaker, runtime: DockerRuntime) -> None:
    box = await make_box()
    process = await box.run(["sleep", "918273563"])
    session = await box.open_session()
    running = await session.start("sleep 918273563", stdin=False)
    waiting = asyncio.create_task(box.wait())
    async with engine() as found:
        await found.kill(box._container)
    assert await waiting
    assert host_processes("918273563") == []
    for outcome in (await finish(process), await finish(running)):
        assert (outcome.exit_code, outcome.status.reason) == (None, EndReason.BOX_LOST)
    assert not await box.alive()
    with pytest.raises(BoxLostError):
        await box.run(["true"])
    with pytest.raises((BoxLostError, BoxFileError)):
        await box.files.stat(".")
    await session.delete()
    await process.kill()
    await box.stop()


async def test_an_agent_that_does_not_come_up_is_told_with_its_words(
    runtime: DockerRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    words = (*runtime._kit.python, "-c", "raise SystemExit('no luck today')")
    monkeypatch.setattr(runtime, "_kit", replace(runtime._kit, command=words))
    with pytest.raises(RuntimeUnavailableError, match="no luck today"):
        await runtime.start(BoxSpec(box_id="luckless"))
    await runtime.remove_box("luckless")


async def test_a_cancelled_start_of_a_box_leaves_nothing(runtime: DockerRuntime) -> None:
    for turns in (0, 1, 5, 40):
        starting = asyncio.create_task(runtime.start(BoxSpec(box_id="cancelled")))
        for _ in range(turns):
            await asyncio.sleep(0.004)
        starting.cancel()
        try:
            box: DockerBox = await starting
        except asyncio.CancelledError:
            continue
        await box.stop(force=True)
    await runtime.remove_box("cancelled")
    await runtime.settle()
    assert "cancelled" not in runtime._boxes
    assert not [name for name, _ in await of_owner(runtime._places.root) if name.endswith("-cancelled")]


async def test_a_box_made_by_an_earlier_version_starts_with_today_s_agent(root: Path, image: str) -> None:
    runtime = DockerRuntime(data_directory=root, default_image=image)
    await runtime.prepare()
    box = await runtime.start(BoxSpec(box_id="old"))
    await shell(box, "echo kept >file")
    await runtime.close()
    (made,) = (root / "kit").iterdir()
    made.rename(made.with_name("0123456789abcdef"))
    again = DockerRuntime(data_directory=root, default_image=image)
    await again.prepare()
    try:
        assert (await shell(await again.start(BoxSpec(box_id="old")), "cat file")).stdout == "kept\n"
    finally:
        await again.close()
    assert [path.name for path in (root / "kit").iterdir()] == [made.name]
