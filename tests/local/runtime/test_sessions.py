"""Shell sessions: what persists, and that every way to end is reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from sandbox.local.runtime.box import BubblewrapBox
from sandbox.local.runtime.errors import SessionEndedError
from sandbox.local.runtime.interface import EndReason
from sandbox.local.runtime.sessions import BoxSession

from .conftest import BoxMaker
from .driving import command, drain, finish


@pytest.fixture
async def session(box: BubblewrapBox) -> AsyncIterator[BoxSession]:
    opened = await box.open_session()
    yield opened
    await opened.delete()


async def test_state_persists_between_commands(session: BoxSession) -> None:
    await command(session, "cd /tmp; X=1; export Y=2; f() { echo f$1; }; umask 027; set -- p q; exec 7>/tmp/seven")
    outcome = await command(session, "pwd; echo $X $Y $1 $2; f 3; umask; echo seven >&7; cat /tmp/seven")
    assert outcome.stdout == "/tmp\n1 2 p q\nf3\n0027\nseven\n"


async def test_each_command_has_its_own_streams(session: BoxSession) -> None:
    first = await command(session, "echo one; echo uno >&2")
    second = await command(session, "echo two; echo due >&2")
    assert (first.stdout, first.stderr, second.stdout, second.stderr) == ("one\n", "uno\n", "two\n", "due\n")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("true", 0),
        ("false", 1),
        ("(exit 5)", 5),
        ("return 7", 7),
        ("no-such-program", 127),
        ("/etc/passwd", 126),
        ("sh -c 'kill -9 $$'", 137),
        ("sh -c 'kill -SEGV $$'", 139),
        ("", 0),
        ("# nothing", 0),
    ],
)
async def test_exit_codes(session: BoxSession, text: str, code: int) -> None:
    assert (await command(session, text)).exit_code == code
    assert not session.ended


@pytest.mark.parametrize("text", ["if", "echo 'unclosed", "case x in", ")", "f() {"])
async def test_a_syntax_error_does_not_end_the_session(session: BoxSession, text: str) -> None:
    outcome = await command(session, text)
    assert outcome.exit_code == 2
    assert "syntax error" in outcome.stderr or "unexpected EOF" in outcome.stderr
    assert (await command(session, "echo alive")).stdout == "alive\n"


@pytest.mark.parametrize(
    ("text", "code", "signal"),
    [
        ("exit 5", 5, None),
        ("exit", 0, None),
        ("exec true", 0, None),
        ("exec sh -c 'exit 9'", 9, None),
        ("set -e; false; echo not reached", 1, None),
        ("kill -9 $$", 137, 9),
        ("kill -TERM $$; sleep 60", 143, 15),
        ("trap 'echo trapped; exit 6' EXIT; exit 3", 6, None),
    ],
)
async def test_what_ends_the_shell_ends_the_command_with_a_code(
    session: BoxSession, text: str, code: int, signal: int | None
) -> None:
    outcome = await command(session, f"echo before; {text}")
    assert outcome.stdout.startswith("before\n")
    assert (outcome.exit_code, outcome.status.signal) == (code, signal)
    assert session.ended
    with pytest.raises(SessionEndedError):
        await session.start("true", stdin=False)


async def test_set_e_survives_commands_that_succeed(session: BoxSession) -> None:
    await command(session, "set -euo pipefail")
    assert (await command(session, "echo fine")).stdout == "fine\n"
    assert not session.ended


async def test_noclobber_tracing_and_a_changed_separator_do_not_disturb(session: BoxSession) -> None:
    await command(session, "set -o noclobber; IFS=x; set -x")
    outcome = await command(session, "echo fine")
    assert outcome.stdout == "fine\n"
    assert not session.ended


async def test_stdin_stays_open_until_it_is_closed(session: BoxSession) -> None:
    running = await session.start("read a; echo got $a; read b; echo got $b; cat", stdin=True)
    assert running.stdin is not None
    await running.stdin.write(b"one\n")
    assert await running.stdout.read() == b"got one\n"
    await running.stdin.write(b"two\nrest")
    running.stdin.close()
    outcome = await finish(running)
    assert outcome.stdout == "got two\nrest"
    assert outcome.exit_code == 0


async def test_stdin_left_open_does_not_reach_the_next_command(session: BoxSession) -> None:
    running = await session.start("read first; echo $first", stdin=True)
    assert running.stdin is not None
    await running.stdin.write(b"taken\nleft over\n")
    assert (await finish(running)).stdout == "taken\n"
    running.stdin.close()
    assert (await command(session, "cat; echo end")).stdout == "end\n"


async def test_a_background_child_holds_the_pipe_but_not_the_end_of_the_command(session: BoxSession) -> None:
    running = await session.start("mkfifo /tmp/gate; { read line </tmp/gate; echo late; } & echo now", stdin=False)
    assert (await running.wait()).exit_code == 0
    assert await running.stdout.read() == b"now\n"
    assert (await command(session, "echo go >/tmp/gate")).exit_code == 0
    assert await drain(running.stdout) == b"late\n"
    running.stderr.close()


async def test_a_redirected_background_child_lives_on_and_streams_end(session: BoxSession) -> None:
    outcome = await command(session, "sleep 1000 >/dev/null 2>&1 & echo $!")
    pid = outcome.stdout.strip()
    assert (await command(session, f"kill -0 {pid} && echo alive")).stdout == "alive\n"


async def test_text_of_any_length_and_any_character(session: BoxSession) -> None:
    long = "x" * 3_000_000
    outcome = await command(session, f": '{long}'; printf '%s' 'ä€😀\t\\'")
    assert outcome.stdout == "ä€😀\t\\"
    here = await command(session, "cat <<'END'\n$HOME `id`\nEND")
    assert here.stdout == "$HOME `id`\n"


async def test_many_commands_leave_no_descriptors(box: BubblewrapBox, session: BoxSession) -> None:
    for _ in range(30):
        await command(session, "true")
    outcome = await command(session, "ls /proc/$PPID/fd | wc -l")
    assert int(outcome.stdout) < 20


async def test_one_command_at_a_time(session: BoxSession) -> None:
    running = await session.start("read line", stdin=True)
    with pytest.raises(RuntimeError):
        await session.start("true", stdin=False)
    assert running.stdin is not None
    running.stdin.close()
    await finish(running)


async def test_a_report_can_only_be_forged_by_the_command_itself(session: BoxSession) -> None:
    """A sourced text finds the driver's saved descriptors closed, and a stray number is not taken for an answer."""
    outcome = await command(session, "for n in 8 9 40 41; do echo '999 0' 2>/dev/null >&$n; done; exit 3")
    assert outcome.exit_code == 3


async def test_sessions_are_independent(box: BubblewrapBox) -> None:
    first, second = await asyncio.gather(box.open_session(), box.open_session())
    await command(first, "cd /tmp; X=1")
    assert (await command(second, "pwd; echo [$X]")).stdout == "/home/sandbox\n[]\n"
    await first.delete()
    assert (await command(second, "echo alive")).stdout == "alive\n"
    await second.delete()


async def test_delete_ends_a_running_command(box: BubblewrapBox) -> None:
    session = await box.open_session()
    running = await session.start("sleep 1000", stdin=False)
    await session.delete()
    outcome = await finish(running)
    assert (outcome.exit_code, outcome.status.reason) == (137, EndReason.KILLED)
    await session.delete()


async def test_no_terminal_and_no_start_files(make_box: BoxMaker) -> None:
    box = await make_box()
    await box.files.write(".bashrc", _chunk(b"echo from bashrc\n"))
    await box.files.write(".profile", _chunk(b"echo from profile\n"))
    session = await box.open_session()
    outcome = await command(session, "test -t 0 || test -t 1 || echo none; case $- in *i*) echo interactive;; esac")
    assert outcome.stdout == "none\n"
    await session.delete()


async def _chunk(data: bytes) -> AsyncIterator[bytes]:
    yield data
