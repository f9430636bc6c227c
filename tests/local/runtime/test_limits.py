"""What a box may use: memory, disk, processes, open files; and that the reason of a death is told."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.local.runtime.box import BubblewrapBox
from sandbox.local.runtime.bubblewrap import BubblewrapRuntime
from sandbox.local.runtime.interface import GIB, MIB, BoxSpec, EndReason

from .conftest import BoxMaker
from .driving import command, run, shell

EATER = """
import os
blocks = []
while True:
    block = bytearray(16 * 1024 * 1024)
    for at in range(0, len(block), 4096): block[at] = 1
    blocks.append(block)
"""
# Several processes, each below the limit of one.
FAMILY = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        block = bytearray(100 * 1024 * 1024)
        for at in range(0, len(block), 4096): block[at] = 1
        time.sleep(1000)
for _ in range(6):
    _, status = os.wait()
    if status: os.kill(os.getpid(), 9)
"""


async def test_eating_memory_is_a_death_for_memory(make_box: BoxMaker) -> None:
    box = await make_box(memory=256 * MIB)
    outcome = await run(box, "python3", "-c", EATER)
    if outcome.exit_code == 1:
        # Without a cgroup the limit of one process's data can be first; the program then sees it itself.
        assert "MemoryError" in outcome.stderr
    else:
        assert (outcome.exit_code, outcome.status.reason) == (137, EndReason.MEMORY)
    assert (await shell(box, "echo alive")).stdout == "alive\n"


async def test_a_shell_that_survives_the_death_of_its_child_tells_the_reason(make_box: BoxMaker) -> None:
    box = await make_box(memory=256 * MIB)
    session = await box.open_session()
    outcome = await command(session, f"python3 -c '{EATER}'")
    assert outcome.exit_code in {1, 137}
    if outcome.exit_code == 137:
        assert outcome.status.reason is EndReason.MEMORY
    assert not session.ended
    assert (await command(session, "sh -c 'kill -9 $$'")).status.reason is EndReason.EXIT
    await session.delete()


async def test_processes_are_added_up(make_box: BoxMaker) -> None:
    box = await make_box(memory=384 * MIB)
    assert await _end_of_family(box) == (137, EndReason.MEMORY)


async def _end_of_family(box: BubblewrapBox) -> tuple[int | None, EndReason]:
    process = await box.run(["python3", "-c", FAMILY])
    status = await process.wait()
    await process.kill()
    process.close_pipes()
    return status.exit_code, status.reason


async def test_a_kill_by_the_program_itself_is_no_death_for_memory(box: BubblewrapBox) -> None:
    outcome = await shell(box, "kill -9 $$")
    assert (outcome.exit_code, outcome.status.reason) == (137, EndReason.KILLED)


async def test_the_agent_watches_memory_where_the_kernel_does_not(
    runtime: BubblewrapRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "_cgroups", None)
    box = await runtime.start(BoxSpec(box_id="watched", memory=384 * MIB))
    try:
        assert await _end_of_family(box) == (137, EndReason.MEMORY)
        # Pages that forks share are counted once: forty children of a program of 60 MB do not make 2.4 GB.
        shared = (
            "import os\nblock = bytearray(60 * 1024 * 1024)\nfor at in range(0, len(block), 4096): block[at] = 1\n"
            "import time\nfor _ in range(40):\n if os.fork() == 0:\n  time.sleep(0.5); os._exit(0)\n"
            "for _ in range(40): os.wait()\n"
        )
        assert (await run(box, "python3", "-c", shared)).exit_code == 0
    finally:
        await box.stop(force=True)
        await runtime.remove_box("watched")


async def test_tmp_has_a_size_and_is_no_way_around_the_memory_limit(make_box: BoxMaker) -> None:
    box = await make_box(memory=256 * MIB)
    for path in ("/tmp", "/dev/shm", "/run"):
        outcome = await shell(box, f"head -c 1000000000 /dev/zero >{path}/fill; echo $?; rm {path}/fill")
        assert "No space left" in outcome.stderr
    assert await box.alive()


async def test_filling_the_disk_is_a_death_for_disk(make_box: BoxMaker) -> None:
    box = await make_box(disk=64 * MIB)
    session = await box.open_session()
    text = "i=0; while :; do head -c 8000000 /dev/zero >fill$i || exit 1; i=$((i+1)); sleep 0.02; done"
    outcome = await command(session, text)
    assert (outcome.exit_code, outcome.status.reason) == (137, EndReason.DISK)
    assert session.ended
    assert (await box.usage()).disk > 64 * MIB
    # What makes room again can run, although there is still too much.
    assert (await shell(box, "rm fill*; echo alive")).stdout == "alive\n"
    assert (await box.usage()).disk < 64 * MIB
    await session.delete()


async def test_one_file_cannot_be_larger_than_the_disk(make_box: BoxMaker) -> None:
    box = await make_box(disk=32 * MIB)
    outcome = await run(box, "head", "-c", "100000000", "/dev/zero")
    assert outcome.exit_code == 0
    outcome = await shell(box, "exec head -c 100000000 /dev/zero >/tmp/../home/sandbox/large")
    assert outcome.exit_code in {153, 137}
    if outcome.exit_code == 137:
        assert outcome.status.reason is EndReason.DISK


async def test_a_hidden_directory_is_measured(make_box: BoxMaker) -> None:
    box = await make_box()
    before = (await box.usage()).disk
    await shell(box, "mkdir hidden; head -c 9000000 /dev/zero >hidden/file; chmod 000 hidden")
    assert (await box.usage()).disk >= before + 9_000_000


async def test_usage_counts_memory_and_processes(box: BubblewrapBox) -> None:
    idle = await box.usage()
    assert idle.processes == 0
    text = (
        "block = bytearray(80 * 1024 * 1024)\nfor at in range(0, len(block), 4096): block[at] = 1\n"
        "print(1, flush=True)\ninput()"
    )
    process = await box.run(["python3", "-c", text], stdin=True)
    await process.stdout.read()
    busy = await box.usage()
    assert busy.processes == 1
    assert 80 * MIB < busy.memory - idle.memory < 160 * MIB
    await process.kill()
    process.close_pipes()


async def test_open_files_and_core_dumps(box: BubblewrapBox) -> None:
    outcome = await shell(box, "ulimit -n; ulimit -c; ulimit -Hc")
    assert outcome.stdout.split() == ["4096", "0", "0"]


async def test_a_java_program_starts_under_the_limits(make_box: BoxMaker) -> None:
    box = await make_box(memory=GIB)
    if (await shell(box, "command -v java")).exit_code != 0:
        pytest.skip("no Java on this machine")
    outcome = await run(box, "java", "-version")
    assert outcome.exit_code == 0


async def test_boxes_do_not_share_their_number_of_processes(make_box: BoxMaker) -> None:
    first, second = await asyncio.gather(make_box(), make_box())
    process = await first.run(["/bin/sh", "-c", "bomb() { bomb | bomb & }; bomb; sleep 1000"], merge_stderr=True)
    async with asyncio.timeout(30):
        while b"fork" not in await process.stdout.read():
            pass
    other = await second.run(["/bin/sh", "-c", "for i in $(seq 200); do sleep 1000 & done; echo all; wait"])
    assert await other.stdout.read() == b"all\n"
    await other.kill()
    other.close_pipes()
    await process.kill()
    process.close_pipes()
