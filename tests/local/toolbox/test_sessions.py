"""Process sessions: what they answer and how their shells behave."""

from __future__ import annotations

import asyncio

import pytest
from daytona import SessionExecuteRequest
from daytona.common.errors import (
    DaytonaCommandAlreadyCompletedError,
    DaytonaConflictError,
    DaytonaNotFoundError,
    DaytonaSessionEndedError,
)

from .conftest import Place, PlaceMaker


async def test_a_session_is_created_listed_and_deleted(place: Place) -> None:
    assert await place.call("GET", "/process/session", status=200) == []
    await place.session("one")
    await place.session("two")
    listed = await place.call("GET", "/process/session", status=200)
    assert listed == [{"sessionId": "one", "commands": []}, {"sessionId": "two", "commands": []}]
    assert await place.call("GET", "/process/session/one", status=200) == {"sessionId": "one", "commands": []}
    assert await place.call("DELETE", "/process/session/one", status=204) is None
    await place.fail("GET", "/process/session/one", status=404, code="NOT_FOUND")
    await place.fail("DELETE", "/process/session/one", status=404, code="NOT_FOUND")
    assert [item["sessionId"] for item in await place.call("GET", "/process/session", status=200)] == ["two"]


@pytest.mark.parametrize("session_id", ["a/b", "wéird id", "100%", "%2F", "{brace}", "a?b#c"])
async def test_any_session_id_works_through_the_sdk(place: Place, session_id: str) -> None:
    process = place.sandbox.process
    await process.create_session(session_id)
    answer = await process.execute_session_command(session_id, SessionExecuteRequest(command="echo hello"))
    assert answer.stdout == "hello\n"
    assert (await process.get_session(session_id)).session_id == session_id
    assert answer.cmd_id
    command = await process.get_session_command(session_id, answer.cmd_id)
    assert command.exit_code == 0
    await process.delete_session(session_id)


async def test_a_taken_id_is_a_conflict(place: Place) -> None:
    await place.session("one")
    await place.fail("POST", "/process/session", status=409, code="CONFLICT", json={"sessionId": "one"})
    with pytest.raises(DaytonaConflictError):
        await place.sandbox.process.create_session("one")


async def test_two_creations_at_once_make_one_session(place: Place) -> None:
    results = await asyncio.gather(
        *(place.sandbox.process.create_session("same") for _ in range(5)), return_exceptions=True
    )
    assert sum(result is None for result in results) == 1
    assert sum(isinstance(result, DaytonaConflictError) for result in results) == 4


async def test_creation_checks_its_body(place: Place) -> None:
    path = "/process/session"
    await place.fail("POST", path, status=400, code="BAD_REQUEST", json={"sessionId": "entrypoint"})
    await place.fail("POST", path, status=400, code="BAD_REQUEST", json={"sessionId": " "})
    await place.fail("POST", path, status=400, code="INVALID_REQUEST_BODY", json={})
    await place.fail("POST", path, status=400, code="INVALID_REQUEST_BODY", json={"sessionId": 7})
    await place.fail("POST", path, status=400, code="INVALID_REQUEST_BODY", json=["sessionId"])
    error = await place.call("POST", path, status=400, data=b"{")
    assert error["code"] == "INVALID_REQUEST_BODY"
    await place.fail("DELETE", f"{path}/entrypoint", status=400, code="BAD_REQUEST")


async def test_a_synchronous_command_answers_everything(place: Place) -> None:
    session_id = await place.session()
    answer = await place.run(session_id, "echo out; echo err >&2; (exit 5)")
    assert answer["exitCode"] == 5
    assert answer["stdout"] == "out\n"
    assert answer["stderr"] == "err\n"
    assert sorted(answer) == ["cmdId", "exitCode", "output", "stderr", "stdout"]
    assert "\x01\x01\x01out\n" in answer["output"]
    assert "\x02\x02\x02err\n" in answer["output"]
    command = await place.call("GET", f"/process/session/{session_id}/command/{answer['cmdId']}", status=200)
    assert command == {"id": answer["cmdId"], "command": "echo out; echo err >&2; (exit 5)", "exitCode": 5}


async def test_an_asynchronous_command_answers_202_and_shows_its_code_later(place: Place) -> None:
    session_id = await place.session()
    command = await place.start(session_id, "read line; echo got $line; (exit 3)")
    assert "exitCode" not in await place.call("GET", command, status=200)
    assert await place.call("POST", f"{command}/input", status=204, json={"data": "it"}) is None
    await place.follow(command)
    assert (await place.call("GET", command, status=200))["exitCode"] == 3


async def test_the_deprecated_flag_async_is_understood(place: Place) -> None:
    session_id = await place.session()
    body = {"command": "true", "async": True}
    assert list(await place.call("POST", f"/process/session/{session_id}/exec", status=202, json=body)) == ["cmdId"]


async def test_execution_checks_its_body(place: Place) -> None:
    path = f"/process/session/{await place.session()}/exec"
    await place.fail("POST", path, status=400, code="BAD_REQUEST", json={"command": " \n"})
    await place.fail("POST", path, status=400, code="INVALID_REQUEST_BODY", json={})
    await place.fail("POST", path, status=400, code="INVALID_REQUEST_BODY", json={"command": "true", "runAsync": 1})
    await place.fail("POST", "/process/session/none/exec", status=404, code="NOT_FOUND", json={"command": "true"})


async def test_directory_variables_and_functions_persist(place: Place) -> None:
    session_id = await place.session()
    await place.run(
        session_id, "mkdir -p /tmp/deep; cd /tmp/deep; export COLOUR=green; plain=7; greet() { echo hi $1; }"
    )
    answer = await place.run(session_id, 'pwd; sh -c "echo $COLOUR"; echo $plain; greet you')
    assert answer["stdout"] == "/tmp/deep\ngreen\n7\nhi you\n"


async def test_commands_of_one_session_queue(place: Place) -> None:
    session_id = await place.session()
    first = await place.start(session_id, "read line; echo first")
    second = await place.start(session_id, "echo second > /tmp/second")
    other = await place.run(await place.session(), "test -e /tmp/second; echo $?")
    assert other["stdout"] == "1\n"
    await place.call("POST", f"{first}/input", status=204, json={"data": "go"})
    await place.follow(second)
    assert (await place.run(session_id, "cat /tmp/second"))["stdout"] == "second\n"


async def test_commands_are_listed_in_the_order_they_came(place: Place) -> None:
    session_id = await place.session()
    texts = [f"true {number}" for number in range(20)]
    for text in texts:
        await place.start(session_id, text)
    described = await place.call("GET", f"/process/session/{session_id}", status=200)
    assert [command["command"] for command in described["commands"]] == texts


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("true", 0),
        ("false", 1),
        ("no-such-command-at-all", 127),
        ("(exit 5)", 5),
        ("return 7", 7),
        ("bash -c 'exit 9'", 9),
        ("if then", 2),
        ("bash -c 'kill -9 $$'", 137),
    ],
)
async def test_exit_codes_of_a_shell_that_lives_on(place: Place, text: str, code: int) -> None:
    session_id = await place.session()
    assert (await place.run(session_id, text))["exitCode"] == code
    assert (await place.run(session_id, "echo alive"))["stdout"] == "alive\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("exit 4", 4),
        ("echo bye; exit 0", 0),
        ("set -e; false; echo never", 1),
        ("exec sh -c 'exit 6'", 6),
        ("kill -9 $$", 137),
    ],
)
async def test_a_command_that_ends_the_shell_reports_its_code_and_ends_the_session(
    place: Place, text: str, code: int
) -> None:
    session_id = await place.session()
    answer = await place.run(session_id, text)
    assert answer["exitCode"] == code
    assert "never" not in answer["stdout"]
    path = f"/process/session/{session_id}/exec"
    await place.fail("POST", path, status=410, code="SESSION_ENDED", json={"command": "true"})
    with pytest.raises(DaytonaSessionEndedError):
        await place.sandbox.process.execute_session_command(session_id, SessionExecuteRequest(command="true"))
    listed = await place.call("GET", f"/process/session/{session_id}", status=200)
    assert [command["exitCode"] for command in listed["commands"]] == [code]
    await place.call("DELETE", f"/process/session/{session_id}", status=204)


async def test_commands_that_wait_when_the_shell_ends_are_answered(place: Place) -> None:
    session_id = await place.session()
    first = await place.start(session_id, "read line; exit 4")
    second = await place.start(session_id, "echo never")
    third = asyncio.create_task(
        place.sandbox.process.execute_session_command(session_id, SessionExecuteRequest(command="echo never"))
    )
    await place.until_commands(session_id, 3)
    await place.call("POST", f"{first}/input", status=204, json={"data": ""})
    out, err = await place.follow_by_sdk(second)
    assert out == ""
    assert "not started" in err
    assert (await place.call("GET", second, status=200))["exitCode"] == -1
    with pytest.raises(DaytonaSessionEndedError):
        await third


async def test_a_synchronous_command_reads_an_end_of_file(place: Place) -> None:
    assert (await place.run(await place.session(), "cat; echo done"))["stdout"] == "done\n"


async def test_input_gets_a_newline_if_it_has_none_and_is_echoed(place: Place) -> None:
    session_id = await place.session()
    command = await place.start(session_id, "read a; read b; echo $a-$b >&2")
    await place.call("POST", f"{command}/input", status=204, json={"data": "one"})
    await place.call("POST", f"{command}/input", status=204, json={"data": "two\n"})
    assert await place.follow_by_sdk(command) == ("one\ntwo\n", "one-two\n")


async def test_input_echo_can_be_suppressed(place: Place) -> None:
    command = await place.start(await place.session(), "read a; echo $a >&2", suppressInputEcho=True)
    await place.call("POST", f"{command}/input", status=204, json={"data": "secret"})
    assert await place.follow_by_sdk(command) == ("", "secret\n")


async def test_input_to_what_is_not_there(place: Place) -> None:
    session_id = await place.session()
    command = await place.start(session_id, "true")
    await place.follow(command)
    message = await place.fail(
        "POST", f"{command}/input", status=410, code="COMMAND_ALREADY_COMPLETED", json={"data": "x"}
    )
    assert "completed" in message
    with pytest.raises(DaytonaCommandAlreadyCompletedError):
        await place.sandbox.process.send_session_command_input(session_id, command.rpartition("/")[2], "x")
    path = f"/process/session/{session_id}/command/none"
    await place.fail("POST", f"{path}/input", status=404, code="NOT_FOUND", json={"data": "x"})
    await place.fail("GET", path, status=404, code="NOT_FOUND")
    await place.fail("GET", f"{path}/logs", status=404, code="NOT_FOUND")
    with pytest.raises(DaytonaNotFoundError):
        await place.sandbox.process.get_session_command(session_id, "none")


async def test_input_that_is_not_read_ends_with_the_command(place: Place) -> None:
    session_id = await place.session()
    command = await place.start(session_id, "until test -e /tmp/go; do sleep 0.01; done")
    pending = asyncio.create_task(place.call("POST", f"{command}/input", status=410, json={"data": "x" * 900_000}))
    await place.run(await place.session(), "touch /tmp/go")
    assert (await pending)["code"] == "COMMAND_ALREADY_COMPLETED"


async def test_a_background_child_that_keeps_the_output_delays_the_exit_code(place: Place) -> None:
    session_id = await place.session()
    command = await place.start(session_id, "(until test -e /tmp/go; do sleep 0.01; done; echo late) & echo early")
    async with place.client.ws_connect(f"{place.url}{command}/logs?follow=true") as socket:
        assert b"early" in await socket.receive_bytes()
        assert "exitCode" not in await place.call("GET", command, status=200)
        await place.run(await place.session(), "touch /tmp/go")
        assert b"late" in await socket.receive_bytes()
    await place.follow(command)
    assert (await place.call("GET", command, status=200))["exitCode"] == 0


async def test_a_background_child_without_the_output_outlives_its_command(place: Place) -> None:
    session_id = await place.session()
    await place.run(session_id, "sleep 1000 >/dev/null 2>&1 & echo $! > /tmp/child")
    assert (await place.run(session_id, "kill -0 $(cat /tmp/child) && echo alive"))["stdout"] == "alive\n"
    await place.call("DELETE", f"/process/session/{session_id}", status=204)
    answer = await place.run(await place.session(), "kill -0 $(cat /tmp/child) 2>/dev/null || echo gone")
    assert answer["stdout"] == "gone\n"


async def test_deleting_a_session_kills_its_tree_also_what_left_its_group(place: Place) -> None:
    session_id = await place.session()
    started = await place.start(session_id, "setsid sleep 1000 & setsid sleep 1000 & echo ready; trap '' TERM; wait")
    async with place.client.ws_connect(f"{place.url}{started}/logs?follow=true") as socket:
        assert b"ready" in await socket.receive_bytes()
        await place.call("DELETE", f"/process/session/{session_id}", status=204)
    answer = await place.run(await place.session(), "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")
    assert "sleep 1000" not in answer["stdout"].replace("tr \\0", "")


async def test_deleting_a_session_answers_the_request_that_waits_in_it(place: Place) -> None:
    session_id = await place.session()
    waiting = asyncio.create_task(
        place.call("POST", f"/process/session/{session_id}/exec", status=410, json={"command": "sleep 1000"})
    )
    await place.until_commands(session_id, 1)
    await place.call("DELETE", f"/process/session/{session_id}", status=204)
    assert (await waiting)["code"] == "SESSION_ENDED"


async def test_a_deleted_id_can_be_used_again(place: Place) -> None:
    await place.session("again")
    await place.run("again", "x=1")
    await place.call("DELETE", "/process/session/again", status=204)
    await place.session("again")
    assert (await place.run("again", "echo [$x]"))["stdout"] == "[]\n"


async def test_a_long_command_arrives_whole(place: Place) -> None:
    text = "x" * 900_000
    answer = await place.run(await place.session(), f": '{text}'; echo fine")
    assert answer["stdout"] == "fine\n"


async def test_sessions_run_side_by_side(place: Place) -> None:
    first, second = await place.session(), await place.session()
    waiting = await place.start(first, "until test -e /tmp/flag; do sleep 0.01; done; echo over")
    await place.run(second, "touch /tmp/flag")
    assert await place.follow_by_sdk(waiting) == ("over\n", "")


async def test_the_entrypoint_has_its_own_session(make_place: PlaceMaker) -> None:
    place = await make_place(entrypoint=["sh", "-c", "echo 'I am up'; echo warned >&2; exit 3"])
    session = await place.sandbox.process.get_entrypoint_session()
    assert session.session_id == "entrypoint"
    out: list[str] = []
    err: list[str] = []
    await place.sandbox.process.get_entrypoint_logs_async(out.append, err.append)
    assert ("".join(out), "".join(err)) == ("I am up\n", "warned\n")
    logs = await place.sandbox.process.get_entrypoint_logs()
    assert (logs.stdout, logs.stderr) == ("I am up\n", "warned\n")
    assert (await place.call("GET", "/process/session/entrypoint", status=200))["commands"][0]["exitCode"] == 3
    assert await place.call("GET", "/process/session", status=200) == []
    assert await place.call("GET", "/version", status=200)


async def test_without_an_entrypoint_there_is_none(place: Place) -> None:
    await place.fail("GET", "/process/session/entrypoint", status=404, code="NOT_FOUND")
    await place.fail("GET", "/process/session/entrypoint/logs", status=404, code="NOT_FOUND")
