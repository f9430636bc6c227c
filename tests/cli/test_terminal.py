"""What a person sees, and what untrusted output cannot do to the terminal."""

from __future__ import annotations

import io

import pytest

from flows.cli.terminal import Console, TerminalFilter, one_line, summary
from sandbox.events import Event
from sandbox.models import Diagnostic, Outcome, PhaseResult, Severity, ValidationResult


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Pipe(io.StringIO):
    encoding = "utf-8"


def event(type_: str, data: str) -> Event:
    return Event(type=type_, data=data, seq=1, at="", run_id="r", thread_id="t", phase="run")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m\x1b[K", "\x1b[1;31mred\x1b[0m\x1b[K"),
        ("\x1b]0;owned\x07text", "text"),
        ("\x1b]52;c;ZXZpbA==\x1b\\text", "text"),
        ("\x1b[2J\x1b[H\x1b[?1049hfake", "fake"),
        ("\x1bPq...\x1b\\text", "text"),
        ("\x1bctext", "text"),
        ("50%\r100%\n", "50%\r100%\n"),
        ("bell\x07null\x00\x9b31m", "bellnull31m"),
    ],
)
def test_a_terminal_keeps_colours_and_loses_the_rest(raw: str, shown: str) -> None:
    assert TerminalFilter().feed(raw) == shown
    whole = TerminalFilter()
    assert "".join(whole.feed(character) for character in raw) == shown


async def test_streams_keep_apart_and_pipes_get_what_was_printed() -> None:
    output, errors = Pipe(), Pipe()
    console = Console(output=output, errors=errors)
    await console.on_event(event("python_sandbox_command_execution_stdout", "out\x1b]0;x\x07\n"))
    await console.on_event(event("python_sandbox_command_execution_stderr", "err\n"))
    assert output.getvalue() == "out\x1b]0;x\x07\n"
    assert errors.getvalue() == "err\n"


async def test_the_terminal_is_filtered_and_our_lines_begin_at_the_start() -> None:
    screen = Terminal()
    console = Console(output=screen, errors=screen)
    await console.on_event(event("python_sandbox_command_execution_stdout", "no end\x1b]0;x\x07"))
    console.line("verdict")
    assert screen.getvalue() == "no end\nverdict\n"


async def test_shown_lines_can_be_limited_per_program() -> None:
    output = Pipe()
    console = Console(output=output, errors=Pipe(), live_lines=2)
    for _ in range(2):
        console.begin()
        for number in range(5):
            await console.on_event(event("python_sandbox_command_execution_stdout", f"{number}\n"))
    assert output.getvalue() == "0\n1\n… further output is not shown here\n" * 2


async def test_a_reader_that_has_gone_does_not_end_the_run() -> None:
    class Closed(Pipe):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    console = Console(output=Closed(), errors=Pipe())
    for _ in range(2):
        await console.on_event(event("python_sandbox_command_execution_stdout", "x"))


def test_the_summary_tells_verdict_phases_and_findings() -> None:
    result = ValidationResult(
        outcome=Outcome.COMPILE_ERROR,
        message="javac refused it\x1b]0;x\x07",
        profile="java",
        framework="plain",
        thread_id="t",
        run_id="r",
        phases=(PhaseResult(name="build", command="x", exit_code=1, seconds=1.5, outcome=Outcome.COMPILE_ERROR),),
        diagnostics=tuple(
            Diagnostic(severity=Severity.ERROR, message="no\nsymbol", path="M.java", line=n, code="c", tool="javac")
            for n in range(12)
        ),
    )
    lines = summary(result, Console(output=Pipe(), errors=Pipe()))
    assert lines[0] == "✘ compile_error  javac refused it"
    assert "  build      1.50 s  exit 1  compile_error" in lines
    assert "  M.java:0: error c: no symbol" in lines
    assert "  … and 2 more findings" in lines


def test_one_line_is_one_line() -> None:
    assert one_line("a\nb\x1b[31mc\x00\r") == "a bc"
