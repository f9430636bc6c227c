"""One-shot processes: what they get, how they end, what is told about it."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.local.runtime.box import BubblewrapBox
from sandbox.local.runtime.errors import BoxSpawnError
from sandbox.local.runtime.interface import EndReason

from .conftest import BoxMaker
from .driving import drain, finish, run, shell


async def test_streams_and_exit_code(box: BubblewrapBox) -> None:
    outcome = await shell(box, "echo out; echo err >&2; exit 3")
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (3, "out\n", "err\n")
    assert outcome.status.reason is EndReason.EXIT


async def test_merged_streams_keep_the_order_of_writing(box: BubblewrapBox) -> None:
    process = await box.run(["/bin/sh", "-c", "echo 1; echo 2 >&2; echo 3; echo 4 >&2"], merge_stderr=True)
    outcome = await finish(process)
    assert outcome.stdout == "1\n2\n3\n4\n"
    assert outcome.stderr == ""


async def test_death_by_a_signal(box: BubblewrapBox) -> None:
    outcome = await shell(box, "kill -SEGV $$")
    assert (outcome.exit_code, outcome.status.signal, outcome.status.reason) == (139, 11, EndReason.KILLED)


async def test_stdin_reaches_the_program_and_ends(box: BubblewrapBox) -> None:
    process = await box.run(["cat"], stdin=True)
    assert process.stdin is not None
    payload = b"line\n" * 200_000
    reading = asyncio.create_task(drain(process.stdout))
    await process.stdin.write(payload)
    process.stdin.close()
    assert await reading == payload
    assert (await process.wait()).exit_code == 0
    process.stderr.close()


async def test_without_stdin_there_is_an_immediate_end_of_file(box: BubblewrapBox) -> None:
    assert (await run(box, "cat")).exit_code == 0


async def test_writing_to_a_program_that_has_ended_is_a_broken_pipe(box: BubblewrapBox) -> None:
    process = await box.run(["true"], stdin=True)
    assert process.stdin is not None
    await process.wait()
    with pytest.raises(BrokenPipeError):
        await process.stdin.write(b"x" * 1_000_000)
    process.close_pipes()


async def test_closing_the_reader_is_a_broken_pipe_for_the_writer(box: BubblewrapBox) -> None:
    process = await box.run(["yes"])
    await process.stdout.read()
    process.stdout.close()
    status = await process.wait()
    assert (status.exit_code, status.signal) == (141, 13)
    process.stderr.close()


async def test_a_flood_of_output_arrives_whole(box: BubblewrapBox) -> None:
    process = await box.run(["head", "-c", "200000000", "/dev/zero"])
    total = 0
    while chunk := await process.stdout.read():
        total += len(chunk)
    assert total == 200_000_000
    assert (await process.wait()).exit_code == 0
    process.stderr.close()


async def test_the_environment_is_complete_and_nothing_is_inherited(
    make_box: BoxMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_SECRET", "hunter2")
    box = await make_box(env={"FROM_SPEC": "a b", "SHARED": "spec"})
    outcome = await run(box, "env", env={"SHARED": "call", "MULTI": "x\ny"})
    assert "hunter2" not in outcome.stdout
    lines = outcome.stdout.splitlines()
    for expected in (
        "FROM_SPEC=a b",
        "SHARED=call",
        "HOME=/home/sandbox",
        "LANG=C.UTF-8",
        "TMPDIR=/tmp",
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "MULTI=x",
    ):
        assert expected in lines
    assert not any(line.startswith(("PYTHONHOME", "HTTP_PROXY", "LC_ALL")) for line in lines)


async def test_the_environment_can_be_changed_for_what_is_started_later(make_box: BoxMaker) -> None:
    box = await make_box(env={"OLD": "1"})
    box.update_env({"NEW": "2"}, unset=["OLD"])
    assert (await shell(box, 'echo "${OLD-none} $NEW"')).stdout == "none 2\n"


async def test_an_impossible_environment_is_refused_without_repeating_the_value(box: BubblewrapBox) -> None:
    with pytest.raises(BoxSpawnError) as caught:
        await box.run(["true"], env={"TOKEN": "se\0cret"})
    assert "TOKEN" in str(caught.value)
    assert "cret" not in str(caught.value)


async def test_work_directory(make_box: BoxMaker) -> None:
    box = await make_box(workdir="/sandbox/thread/run")
    assert (await run(box, "pwd")).stdout == "/sandbox/thread/run\n"
    assert (await run(box, "pwd", cwd="..")).stdout == "/sandbox/thread\n"
    assert (await run(box, "pwd", cwd="/tmp")).stdout == "/tmp\n"


@pytest.mark.parametrize(
    ("argv", "cwd", "code"),
    [
        (["no-such-program"], None, 127),
        (["/etc/passwd"], None, 126),
        (["/tmp"], None, 126),
        (["true"], "/no/such/directory", 127),
        (["true"], "/etc/passwd", 126),
        (["with\0nul"], None, 126),
        ([], None, 126),
    ],
)
async def test_what_cannot_start_says_why(box: BubblewrapBox, argv: list[str], cwd: str | None, code: int) -> None:
    with pytest.raises(BoxSpawnError) as caught:
        await box.run(argv, cwd=cwd)
    assert caught.value.exit_code == code
    assert str(caught.value)


async def test_children_keep_running_after_the_main_process_and_do_not_hold_wait(box: BubblewrapBox) -> None:
    process = await box.run(["/bin/sh", "-c", "exec 3<&0; (read line <&3; echo late) & exit 4"], stdin=True)
    assert (await process.wait()).exit_code == 4
    assert process.stdin is not None
    await process.stdin.write(b"go\n")
    assert await drain(process.stdout) == b"late\n"
    process.close_pipes()


async def test_many_at_once(box: BubblewrapBox) -> None:
    outcomes = await asyncio.gather(*(shell(box, f"echo {number}") for number in range(40)))
    assert [outcome.stdout for outcome in outcomes] == [f"{number}\n" for number in range(40)]


async def test_no_signal_is_ignored_or_blocked_in_a_program(box: BubblewrapBox) -> None:
    outcome = await run(box, "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    # glibc keeps 32 and 33 to itself, refuses to set them and leaks them ignored through posix_spawn, as under make.
    of_the_library = 1 << 31 | 1 << 32
    assert [int(line.split()[1], 16) & ~of_the_library for line in outcome.stdout.splitlines()] == [0, 0]


async def test_only_the_three_standard_descriptors_are_open(box: BubblewrapBox) -> None:
    outcome = await shell(box, "ls /proc/$$/fd")
    assert outcome.stdout.split() == ["0", "1", "2"]
