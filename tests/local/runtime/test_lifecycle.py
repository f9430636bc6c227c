"""The life of runtimes and boxes: what is told, and that nothing is left."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.local.runtime.box import BubblewrapBox
from sandbox.local.runtime.bubblewrap import BubblewrapRuntime
from sandbox.local.runtime.errors import BoxFileError, BoxLostError, RuntimeFault, RuntimeUnavailableError
from sandbox.local.runtime.interface import BoxSpec, EndReason
from tests.scratch import scratch_directory

from .conftest import BoxMaker
from .driving import descriptors, exists, finish, host_processes, lines_of, mounts, names_in, run, shell, until

SERVER = """
import asyncio, sys
from pathlib import Path
from sandbox.local.runtime.bubblewrap import BubblewrapRuntime
from sandbox.local.runtime.interface import BoxSpec

async def main():
    runtime = BubblewrapRuntime(data_directory=Path(sys.argv[1]))
    await runtime.prepare()
    box = await runtime.start(BoxSpec(box_id="orphan"))
    session = await box.open_session()
    running = await session.start("echo kept >file; setsid sleep 918273660 & echo on; sleep 918273660", stdin=False)
    await running.stdout.read()
    process = await box.run(["sh", "-c", "trap '' TERM HUP; while :; do sleep 918273660; done"])
    print("ready", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


@pytest.fixture
def root() -> Iterator[Path]:
    made = scratch_directory()
    yield made
    shutil.rmtree(made)


async def test_closing_leaves_nothing(root: Path) -> None:
    before = (descriptors(), mounts())
    tasks = asyncio.all_tasks()
    runtime = BubblewrapRuntime(data_directory=root)
    await runtime.prepare()
    boxes = await asyncio.gather(*(runtime.start(BoxSpec(box_id=f"box-{number}")) for number in range(3)))
    # Everything here is left open on purpose.
    await boxes[0].run(["sleep", "918273661"], stdin=True)
    session = await boxes[1].open_session()
    await session.start("sleep 918273661", stdin=True)
    stream = boxes[2].files.read("/etc/passwd")
    await anext(aiter(stream))
    await runtime.remove_layer("none-such")
    await runtime.close()
    await stream.aclose()  # type: ignore[attr-defined]
    await runtime.close()
    assert host_processes("918273661") == []
    assert (descriptors(), mounts()) == before
    assert asyncio.all_tasks() - tasks == set()
    assert names_in(root / "trash") == []
    assert not [name for name in names_in(root / "state") if name.endswith(".json")]


async def test_a_killed_server_leaves_nothing_and_the_next_one_finds_the_files(root: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])}
    server = subprocess.Popen(  # noqa: ASYNC220 - killed and reaped by hand below
        [sys.executable, "-c", SERVER, str(root)], stdout=subprocess.PIPE, env=environment, start_new_session=True
    )
    try:
        assert server.stdout is not None
        assert await asyncio.to_thread(server.stdout.readline) == b"ready\n"
        assert len(host_processes("918273660")) >= 3
    finally:
        server.send_signal(signal.SIGKILL)
        server.communicate()
    await until(lambda: host_processes("918273660") == [])
    groups = lines_of(root / "state/cgroups")
    runtime = BubblewrapRuntime(data_directory=root)
    await runtime.prepare()
    try:
        assert "orphan" in runtime.boxes_on_disk()
        box = await runtime.start(BoxSpec(box_id="orphan"))
        assert (await shell(box, "cat file")).stdout == "kept\n"
    finally:
        await runtime.close()
    assert not any(exists(group) for group in groups)


async def test_one_server_for_a_data_directory(runtime: BubblewrapRuntime) -> None:
    second = BubblewrapRuntime(data_directory=runtime._places.root)
    with pytest.raises(RuntimeUnavailableError, match="another server"):
        await second.prepare()


async def test_the_base_and_the_kit_are_used_again(root: Path) -> None:
    first = BubblewrapRuntime(data_directory=root)
    await first.prepare()
    await first.close()
    made = {path: path.stat().st_ino for path in (*(root / "base").iterdir(), *(root / "kit").iterdir())}
    second = BubblewrapRuntime(data_directory=root)
    await second.prepare()
    await second.close()
    assert second.fingerprint == first.fingerprint
    assert {path: path.stat().st_ino for path in (*(root / "base").iterdir(), *(root / "kit").iterdir())} == made


async def test_a_box_that_dies_is_noticed(make_box: BoxMaker) -> None:
    box = await make_box()
    process = await box.run(["sleep", "918273662"])
    session = await box.open_session()
    running = await session.start("sleep 918273662", stdin=False)
    waiting = asyncio.create_task(box.wait())
    os.kill(box._process.pid, signal.SIGKILL)
    assert await waiting
    assert host_processes("918273662") == []
    for outcome in (await finish(process), await finish(running)):
        assert (outcome.exit_code, outcome.status.reason) == (None, EndReason.BOX_LOST)
    assert not await box.alive()
    with pytest.raises(BoxLostError):
        await box.run(["true"])
    with pytest.raises(BoxLostError):
        await box.open_session()
    with pytest.raises((BoxLostError, BoxFileError)):
        await box.files.stat(".")
    await session.delete()
    await process.kill()
    await box.stop()


async def test_a_cancelled_start_of_a_process_leaves_nothing(box: BubblewrapBox) -> None:
    starting = asyncio.create_task(box.run(["sleep", "918273663"]))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await until(lambda: host_processes("918273663") == [])
    assert (await shell(box, "echo alive")).stdout == "alive\n"


async def test_a_cancelled_start_of_a_box_leaves_nothing(runtime: BubblewrapRuntime) -> None:
    for turns in range(12):
        starting = asyncio.create_task(runtime.start(BoxSpec(box_id="cancelled")))
        for _ in range(turns):
            await asyncio.sleep(0.002)
        starting.cancel()
        try:
            box = await starting
        except asyncio.CancelledError:
            continue
        await box.stop(force=True)
    await runtime.remove_box("cancelled")
    assert not [box_id for box_id in runtime._boxes if box_id == "cancelled"]


async def test_an_impossible_work_directory(runtime: BubblewrapRuntime) -> None:
    with pytest.raises(RuntimeFault, match="/usr/nowhere"):
        await runtime.start(BoxSpec(box_id="misplaced", workdir="/usr/nowhere"))
    await runtime.remove_box("misplaced")


async def test_stopping_twice_and_together(make_box: BoxMaker) -> None:
    box = await make_box()
    await asyncio.gather(box.stop(), box.stop(force=True), box.stop())
    await box.stop()
    assert await box.wait() == "the box was stopped"


async def test_many_boxes_at_once(make_box: BoxMaker) -> None:
    boxes = await asyncio.gather(*(make_box() for _ in range(12)))
    outcomes = await asyncio.gather(*(run(box, "sh", "-c", f"echo {n} >n; cat n") for n, box in enumerate(boxes)))
    assert [outcome.stdout for outcome in outcomes] == [f"{number}\n" for number in range(12)]


async def test_listening_ports(box: BubblewrapBox) -> None:
    assert await box.listening_ports() == []
    script = "import socket; s = socket.create_server(('127.0.0.1', 8765)); print(1, flush=True); input()"
    process = await box.run(["python3", "-c", script], stdin=True)
    await process.stdout.read()
    assert await box.listening_ports() == [8765]
    await process.kill()
    process.close_pipes()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops to another uid")
async def test_a_data_directory_that_the_dropped_uid_cannot_reach(root: Path) -> None:
    closed = root / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(RuntimeUnavailableError, match="may search"):
        await BubblewrapRuntime(data_directory=closed / "data").prepare()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops to another uid")
async def test_a_changed_uid_is_refused(root: Path) -> None:
    first = BubblewrapRuntime(data_directory=root, host_uid=64400)
    await first.prepare()
    await first.close()
    with pytest.raises(RuntimeUnavailableError, match="64400"):
        await BubblewrapRuntime(data_directory=root, host_uid=64401).prepare()


@pytest.mark.parametrize(
    ("complaint", "advice"),
    [
        ("bwrap: No permissions to create new namespace, likely because ...", "user namespaces"),
        ("bwrap: Can't make overlay mount on /newroot/ ...: Invalid argument", "overlay"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "container"),
        ("bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded", "sysctl"),
        ("something new", "something new"),
    ],
)
def test_refusals_say_what_to_do(complaint: str, advice: str) -> None:
    from sandbox.local.runtime.probe import unavailable_text

    text = unavailable_text(complaint, data_directory=Path("/data"))
    assert advice in text
    assert complaint in text
    assert "/data" in text
