"""``uom-sandbox validate`` as a person and a script use it."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from sandbox.connection import Credentials, client
from tests.cli.conftest import Run, Start, ended

SANDBOX = "validation-sandbox-python-3-sandbox"


class Program:
    """The program of a test, a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, source: str) -> Path:
        self.path.write_text(source)
        return self.path


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "main.py")


async def test_output_verdict_and_exit_code_of_a_program_that_passes(run: Run, program: Program) -> None:
    path = program("import sys\nprint('to out')\nprint('to err', file=sys.stderr)\n")
    done = await run("validate", path, "--profile", "python")
    assert done.code == 0
    assert done.output == "to out\n"
    assert "to err\n" in done.errors
    assert "✔ passed" in done.errors
    assert "/runs/flow-run/" in done.errors


@pytest.mark.parametrize(
    ("source", "word", "code"),
    [("def broken(:\n", "compile_error", 10), ("raise SystemExit(3)", "runtime_error", 11)],
)
async def test_the_exit_code_is_the_outcome(run: Run, program: Program, source: str, word: str, code: int) -> None:
    path = program(source)
    done = await run("validate", path, "--profile", "python")
    assert done.code == code
    assert f"✘ {word}" in done.errors


async def test_json_is_the_verdict_alone_and_options_reach_the_program(
    run: Run, program: Program, tmp_path: Path
) -> None:
    path = program(
        "import json, os, sys, time\n"
        "print('noise', len(os.environ['TOKEN']))\n"
        "answer = [os.environ['GREETING'], sys.stdin.read()]\n"
        "json.dump(answer, open(os.environ['UOM_RESULT_FILE'], 'w'))\n"
    )
    (tmp_path / "in.txt").write_text("typed")
    (tmp_path / "expected.json").write_text('["hello", "typed"]')
    done = await run(
        *("validate", path, "--profile", "python", "--json", "--thread", "talk-7", "--isolation", "run"),
        *("--env", "GREETING=hello", "--secret-env", "TOKEN", "--timeout", "60"),
        *("--stdin", tmp_path / "in.txt", "--expected", tmp_path / "expected.json"),
        environment={"TOKEN": "tok-5c1d9e"},
    )
    assert done.code == 0, done.errors
    verdict = json.loads(done.output)
    assert verdict["outcome"] == "passed"
    assert verdict["thread_id"] == "talk-7"
    assert verdict["result"] == ["hello", "typed"]
    assert verdict["comparison"]["equal"] is True
    assert verdict["sandbox"]["isolation"] == "run"
    assert "noise 10" in done.errors
    assert "tok-5c1d9e" not in done.output + done.errors


async def test_quiet_is_the_exit_code_alone(run: Run, program: Program) -> None:
    path = program("print('x')\nraise ValueError\n")
    done = await run("validate", path, "--profile", "python", "--quiet")
    assert (done.code, done.output, done.errors) == (11, "", "")


async def test_a_profile_of_ones_own(run: Run, program: Program, tmp_path: Path) -> None:
    shown = await run("profiles", "show", "python")
    profile = json.loads(shown.output)
    profile |= {"name": "mine", "isolation": "run", "environment": profile["environment"] | {"MINE": "yes"}}
    (tmp_path / "mine.json").write_text(json.dumps(profile))
    path = program("import os; print(os.environ['MINE'])")
    done = await run("validate", path, "--profile-file", tmp_path / "mine.json")
    assert (done.code, done.output) == (0, "yes\n"), done.errors


async def test_no_verdict_is_exit_70_with_step_and_reason(run: Run, program: Program) -> None:
    path = program("print(1)")
    done = await run("validate", path, "--profile", "python", environment={"DAYTONA_API_KEY": "uom_wrong"})
    assert done.code == 70
    assert "ensure_snapshot" in done.errors
    assert "Traceback" not in done.errors


async def test_an_unreachable_prefect_api_is_exit_70(run: Run, program: Program) -> None:
    path = program("print(1)")
    done = await run("validate", path, "--profile", "python", environment={"PREFECT_API_URL": "http://127.0.0.1:9/api"})
    assert done.code == 70
    assert "PREFECT_API_URL" in done.errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_run_is_cleaned_up(
    number: signal.Signals, start: Start, program: Program, credentials: Credentials
) -> None:
    path = program("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
    async with start("validate", path, "--profile", "python") as process:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 90) == b"here\n"
        process.send_signal(number)
        done = await ended(process)
    assert done.code == 130
    assert "interrupted" in done.errors
    assert "Traceback" not in done.errors
    async with client(credentials) as daytona:
        sandbox = await daytona.get(SANDBOX)
        assert await sandbox.process.list_sessions() == []
        running = await sandbox.process.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "main.py" not in running.result


async def test_output_is_live(start: Start, program: Program) -> None:
    path = program("import time\nprint('first', flush=True)\ntime.sleep(600)\n")
    async with start("validate", path, "--profile", "python") as process:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 90) == b"first\n"
        assert process.returncode is None
        process.send_signal(signal.SIGINT)
        await ended(process)


async def test_a_reader_that_leaves_does_not_lose_the_verdict(start: Start, program: Program) -> None:
    path = program("for number in range(200_000): print(number)\n")
    async with start("validate", path, "--profile", "python") as process:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 90) == b"0\n"
        process.stdout._transport.close()  # type: ignore[attr-defined]
        assert await asyncio.wait_for(process.wait(), 90) == 0


async def test_blocks_are_registered(run: Run) -> None:
    done = await run("blocks", "register")
    assert done.code == 0, done.errors
    assert "sandbox-profile/python" in done.output


async def test_the_demo_compares_verdicts(run: Run, tmp_path: Path) -> None:
    for name, verdict in (("right", "passed"), ("wrong", "timeout")):
        folder = tmp_path / "examples" / name
        folder.mkdir(parents=True)
        (folder / "main.py").write_text("print('ran')")
        (folder / "example.toml").write_text(
            f'title = "{name}"\nprofile = "python"\nframework = "plain"\nentry_point = "main.py"\n'
            f'files = ["main.py"]\nverdict = "{verdict}"\n'
        )
    right = await run("demo", "right", "--examples", tmp_path / "examples")
    assert right.code == 0, right.errors
    both = await run("demo", "--examples", tmp_path / "examples")
    assert both.code == 1
    assert "passed instead of timeout" in both.output
