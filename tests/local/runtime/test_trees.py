"""Nothing that a process or a session has started survives its end, whatever it does."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.local.runtime.box import BubblewrapBox
from sandbox.local.runtime.interface import EndReason

from .conftest import BoxMaker
from .driving import command, drain, finish, host_processes, run, shell

# Leaves a process behind that is as far away as a program can get: its own session, its parent gone, deaf to signals.
ESCAPE = """
python3 -c '
import os, signal, sys, time
for number in (1, 2, 3, 15):
    signal.signal(number, signal.SIG_IGN)
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
null = os.open("/dev/null", os.O_RDWR)
for number in (0, 1, 2): os.dup2(null, number)
os.execv("/bin/sleep", ["sleep", "{mark}"])
'
"""


async def _until_running(box: BubblewrapBox, mark: str) -> None:
    async with asyncio.timeout(20):
        while (await shell(box, f"grep -qs {mark} /proc/[0-9]*/cmdline")).exit_code != 0:
            pass


async def test_killing_a_process_kills_what_escaped_from_it(box: BubblewrapBox) -> None:
    mark = "918273641"
    process = await box.run(["/bin/sh", "-c", ESCAPE.format(mark=mark) + "read line"], stdin=True)
    await _until_running(box, mark)
    await process.kill()
    assert host_processes(mark) == []
    status = await process.wait()
    assert (status.exit_code, status.reason) == (137, EndReason.KILLED)
    await process.kill()
    process.close_pipes()


async def test_killing_after_the_main_process_has_ended(box: BubblewrapBox) -> None:
    mark = "918273642"
    process = await box.run(["/bin/sh", "-c", ESCAPE.format(mark=mark)])
    assert (await finish(process)).exit_code == 0
    await _until_running(box, mark)
    await process.kill()
    assert host_processes(mark) == []
    assert (await process.wait()).exit_code == 0


async def test_deleting_a_session_kills_what_escaped_from_it_and_nothing_else(box: BubblewrapBox) -> None:
    mark, other_mark = "918273643", "918273644"
    session, other = await asyncio.gather(box.open_session(), box.open_session())
    await command(session, ESCAPE.format(mark=mark))
    await command(other, ESCAPE.format(mark=other_mark))
    await _until_running(box, mark)
    await _until_running(box, other_mark)
    await session.delete()
    assert host_processes(mark) == []
    assert host_processes(other_mark) != []
    assert (await command(other, "echo alive")).stdout == "alive\n"
    await other.delete()
    assert host_processes(other_mark) == []


async def test_killing_the_supervisor_ends_the_session_and_its_tree(box: BubblewrapBox) -> None:
    mark = "918273645"
    session = await box.open_session()
    await command(session, ESCAPE.format(mark=mark))
    await _until_running(box, mark)
    running = await session.start("kill -9 $PPID; sleep 1000", stdin=False)
    outcome = await finish(running)
    assert (outcome.exit_code, outcome.status.reason) == (137, EndReason.KILLED)
    assert session.ended
    await session.delete()
    assert host_processes(mark) == []
    assert await box.alive()


async def test_a_stopped_supervisor_does_not_save_its_tree(box: BubblewrapBox) -> None:
    mark = "918273646"
    process = await box.run(["/bin/sh", "-c", ESCAPE.format(mark=mark) + "kill -STOP $PPID; sleep 1000"])
    await _until_running(box, mark)
    await process.kill()
    assert host_processes(mark) == []
    assert (await process.wait()).exit_code == 137
    process.close_pipes()


async def test_killing_everything_one_may_kill_leaves_the_box_usable(box: BubblewrapBox) -> None:
    outcome = await run(box, "python3", "-c", "import os; os.kill(-1, 9)")
    assert outcome.exit_code == 137
    assert await box.alive()
    assert (await shell(box, "echo alive")).stdout == "alive\n"


async def test_orphans_leave_no_zombies(box: BubblewrapBox) -> None:
    text = "import os\nfor _ in range(50):\n if os.fork() == 0:\n  if os.fork() == 0: os._exit(0)\n  os._exit(0)\n"
    process = await box.run(["/bin/sh", "-c", f"python3 -c '{text}'; read line"], stdin=True)
    async with asyncio.timeout(20):
        while (await shell(box, "grep -ls '^State:.Z' /proc/[0-9]*/status")).stdout:
            pass
    await process.kill()
    process.close_pipes()


@pytest.mark.parametrize("where", ["process", "session"])
async def test_a_fork_bomb_is_contained_and_killed(make_box: BoxMaker, where: str) -> None:
    box = await make_box()
    bomb = "bomb() { bomb | bomb & }; bomb; sleep 1000"
    if where == "process":
        process = await box.run(["/bin/sh", "-c", bomb], merge_stderr=True)
        async with asyncio.timeout(30):
            while b"fork" not in await process.stdout.read():
                pass
        await process.kill()
        process.close_pipes()
    else:
        session = await box.open_session()
        running = await session.start(bomb, stdin=False)
        async with asyncio.timeout(30):
            while b"fork" not in await running.stderr.read():
                pass
        await session.delete()
        running.close_pipes()
    assert (await box.usage()).processes == 0
    assert (await shell(box, "echo alive")).stdout == "alive\n"


async def test_files_can_be_read_while_a_fork_bomb_burns(make_box: BoxMaker) -> None:
    box = await make_box()
    process = await box.run(["/bin/sh", "-c", "bomb() { bomb | bomb & }; bomb; sleep 1000"], merge_stderr=True)
    async with asyncio.timeout(30):
        while b"fork" not in await process.stdout.read():
            pass
    assert (await box.files.stat("/etc/passwd")).size > 0
    await box.stop(force=True)
    process.close_pipes()


async def test_stopping_kills_everything(make_box: BoxMaker) -> None:
    mark = "918273647"
    box = await make_box()
    session = await box.open_session()
    running = await session.start(ESCAPE.format(mark=mark) + "sleep 1000", stdin=False)
    await _until_running(box, mark)
    await box.stop(force=True)
    assert host_processes(mark) == []
    outcome = await finish(running)
    assert (outcome.exit_code, outcome.status.reason) == (None, EndReason.BOX_LOST)
    assert session.ended


async def test_a_gentle_stop_lets_programs_clean_up(make_box: BoxMaker) -> None:
    box = await make_box()
    process = await box.run(
        ["/bin/sh", "-c", "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done"]
    )
    assert await process.stdout.read() == b"ready\n"
    await box.stop()
    assert await drain(process.stdout) == b"cleaned\n"
    assert (await process.wait()).exit_code == 0
    process.stderr.close()
    assert await box.wait() == "the box was stopped"
