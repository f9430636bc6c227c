"""One-shot execution, and Python code."""

from __future__ import annotations

import asyncio

import pytest
from daytona.common.errors import DaytonaProcessExecutionTimeoutError

from sandbox.local.runtime.interface import MIB

from .conftest import Place, PlaceMaker

EXECUTE = "/process/execute"
CODE_RUN = "/process/code-run"


async def test_output_is_combined_in_the_order_written(place: Place) -> None:
    body = {"command": "echo a; echo b >&2; echo c; exit 3"}
    assert await place.call("POST", EXECUTE, status=200, json=body) == {"exitCode": 3, "result": "a\nb\nc\n"}
    answer = await place.sandbox.process.exec("echo é; false")
    assert (answer.exit_code, answer.result) == (1, "é\n")


async def test_directory_and_environment(place: Place) -> None:
    answer = await place.sandbox.process.exec("pwd; echo $COLOUR", cwd="/tmp", env={"COLOUR": "a 'b' \"c\""})
    assert answer.result == "/tmp\na 'b' \"c\"\n"


async def test_the_command_is_the_shells_input(place: Place) -> None:
    answer = await place.call("POST", EXECUTE, status=200, json={"command": "cat\nthis is printed"})
    assert answer["result"] == "this is printed\n"
    text = "x" * 900_000
    answer = await place.call("POST", EXECUTE, status=200, json={"command": f": {text}; echo fine"})
    assert answer["result"] == "fine\n"


async def test_a_directory_that_is_not_there(place: Place) -> None:
    answer = await place.call("POST", EXECUTE, status=200, json={"command": "true", "cwd": "/no/such"})
    assert answer["exitCode"] == -1
    assert "/no/such" in answer["result"]


async def test_the_body_is_checked(place: Place) -> None:
    await place.fail("POST", EXECUTE, status=400, code="BAD_REQUEST", json={"command": "  "})
    await place.fail("POST", EXECUTE, status=400, code="INVALID_REQUEST_BODY", json={})
    await place.fail("POST", EXECUTE, status=400, code="INVALID_REQUEST_BODY", json={"command": "true", "cwd": 1})
    await place.fail("POST", EXECUTE, status=400, code="INVALID_REQUEST_BODY", json={"command": "true", "timeout": -1})
    body: dict[str, object] = {"command": "true", "envs": {"1A": "hidden"}}
    assert "hidden" not in await place.fail("POST", EXECUTE, status=400, code="BAD_REQUEST", json=body)
    body = {"command": "true", "envs": {"A": 1}}
    await place.fail("POST", EXECUTE, status=400, code="INVALID_REQUEST_BODY", json=body)


async def test_a_timeout_kills_the_whole_tree(place: Place) -> None:
    body = {"command": "sleep 999 & setsid sleep 999 & echo started; wait", "timeout": 1}
    message = await place.fail("POST", EXECUTE, status=408, code="PROCESS_EXECUTION_TIMEOUT", json=body)
    assert "1 s" in message
    listed = await place.call("POST", EXECUTE, status=200, json={"command": "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"})
    assert "sleep 999" not in listed["result"]
    with pytest.raises(DaytonaProcessExecutionTimeoutError):
        await place.sandbox.process.exec("sleep 999", timeout=1)


async def test_large_output(place: Place) -> None:
    answer = await place.sandbox.process.exec("seq 300000")
    assert answer.result == "".join(f"{number}\n" for number in range(1, 300001))


async def test_bytes_that_are_not_text(place: Place) -> None:
    answer = await place.sandbox.process.exec(r"printf 'a\377b\342\202'")
    assert answer.result == "a\ufffdb\ufffd"


async def test_many_at_once(place: Place) -> None:
    answers = await asyncio.gather(*(place.sandbox.process.exec(f"echo {number}") for number in range(20)))
    assert [answer.result for answer in answers] == [f"{number}\n" for number in range(20)]


async def test_output_beyond_the_disk_limit_kills_the_command(make_place: PlaceMaker) -> None:
    place = await make_place(disk=8 * MIB)
    answer = await place.call("POST", EXECUTE, status=200, json={"command": "yes"})
    assert answer["exitCode"] == 137
    assert "output limit reached" in answer["result"][-200:]
    assert list(place.log_directory.iterdir()) == []


async def test_stopping_the_toolbox_ends_what_runs(place: Place) -> None:
    marker = asyncio.create_task(place.call("POST", EXECUTE, status=200, json={"command": "echo hi; sleep 999"}))
    while not place.toolbox.executor.running:
        await place.call("GET", "/version", status=200)
    await place.toolbox.close()
    assert (await marker)["exitCode"] == 137


async def test_python_code_runs_as_main_with_arguments(place: Place) -> None:
    code = "import sys, os\nprint(__name__, sys.argv[1:], os.environ['COLOUR'], sys.stdin.read() == '')\nprint('é')"
    body = {"code": code, "language": "python", "argv": ["a b", "c"], "envs": {"COLOUR": "green"}}
    answer = await place.call("POST", CODE_RUN, status=200, json=body)
    assert answer == {"exitCode": 0, "result": "__main__ ['a b', 'c'] green True\né\n"}
    assert (await place.sandbox.process.code_run("print(6 * 7)")).result == "42\n"


async def test_python_errors_show_the_line(place: Place) -> None:
    answer = await place.sandbox.process.code_run("def f():\n    return 1 / 0\nf()\n")
    assert answer.exit_code == 1
    assert "return 1 / 0" in answer.result
    assert "ZeroDivisionError" in answer.result
    answer = await place.sandbox.process.code_run("this is no python\n")
    assert answer.exit_code == 1
    assert "SyntaxError" in answer.result


async def test_python_code_sees_nothing_of_the_loader(place: Place) -> None:
    answer = await place.sandbox.process.code_run("print(sorted(n for n in globals() if not n.startswith('__')))")
    assert answer.result == "[]\n"


async def test_python_code_has_a_time_limit(place: Place) -> None:
    body = {"code": "while True: pass", "language": "python", "timeout": 1}
    await place.fail("POST", CODE_RUN, status=408, code="PROCESS_EXECUTION_TIMEOUT", json=body)


async def test_other_languages_are_refused_plainly(place: Place) -> None:
    body = {"code": "1", "language": "typescript"}
    message = await place.fail("POST", CODE_RUN, status=501, code="NOT_IMPLEMENTED", json=body)
    assert "typescript" in message
    await place.fail("POST", CODE_RUN, status=400, code="INVALID_REQUEST_BODY", json={"language": "python"})
