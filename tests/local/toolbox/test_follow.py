"""The live log: complete, in order, byte for byte, for every follower, and closed with 1000."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
from pathlib import Path

import aiohttp
import pytest
from daytona.common.errors import DaytonaError

from sandbox.local.runtime.interface import MIB

from .conftest import Place, PlaceMaker


def entries(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def test_both_streams_arrive_through_the_sdk(place: Place) -> None:
    command = await place.start(await place.session(), "echo out; echo err >&2; printf 'no newline'")
    assert await place.follow_by_sdk(command) == ("out\nno newline", "err\n")


async def test_the_socket_starts_with_a_marker_and_closes_with_1000(place: Place) -> None:
    command = await place.start(await place.session(), "echo hello")
    received, code = await place.follow(command)
    assert received == b"\x01\x01\x01hello\n"
    assert code == 1000


async def test_a_command_without_output_closes_with_1000(place: Place) -> None:
    command = await place.start(await place.session(), "true")
    assert await place.follow(command) == (b"", 1000)
    assert (await place.call("GET", command, status=200))["exitCode"] == 0


async def test_a_follower_of_a_finished_command_gets_everything(place: Place) -> None:
    session_id = await place.session()
    answer = await place.run(session_id, "seq 1000; echo end >&2")
    command = f"/process/session/{session_id}/command/{answer['cmdId']}"
    numbers = "".join(f"{number}\n" for number in range(1, 1001))
    assert await place.follow_by_sdk(command) == (numbers, "end\n")
    assert (await place.follow(command))[1] == 1000


async def test_output_is_there_before_the_command_ends(place: Place) -> None:
    command = await place.start(await place.session(), "printf 'name? '; read name; echo $name")
    async with place.client.ws_connect(f"{place.url}{command}/logs?follow=true") as socket:
        assert await socket.receive_bytes() == b"\x01\x01\x01name? "
        assert "exitCode" not in await place.call("GET", command, status=200)
        await place.call("POST", f"{command}/input", status=204, json={"data": "me"})
        rest = b"".join([message.data async for message in socket])
    assert rest.replace(b"\x01\x01\x01", b"") == b"me\nme\n"


async def test_a_single_byte_is_handed_over_by_the_sdk_at_once(place: Place) -> None:
    session_id = await place.session()
    command = await place.start(session_id, "printf x; read go")
    seen = asyncio.Event()
    following = asyncio.create_task(
        place.sandbox.process.get_session_command_logs_async(
            session_id, command.rpartition("/")[2], lambda text: seen.set() if text == "x" else None, lambda _: None
        )
    )
    await asyncio.wait_for(seen.wait(), 20)
    await place.call("POST", f"{command}/input", status=204, json={"data": "go"})
    await following


async def test_the_exit_code_is_stored_when_the_socket_closes(place: Place) -> None:
    session_id = await place.session()
    for number in range(20):
        command = await place.start(session_id, f"seq 500; (exit {number})")
        await place.follow(command)
        assert (await place.call("GET", command, status=200))["exitCode"] == number


async def test_an_exit_code_means_that_the_log_is_complete(place: Place) -> None:
    session_id = await place.session()
    command = await place.start(session_id, "seq 200000")
    while "exitCode" not in await place.call("GET", command, status=200):
        pass
    logs = await place.call("GET", f"{command}/logs", status=200)
    assert logs["stdout"] == "".join(f"{number}\n" for number in range(1, 200001))


async def test_a_thousand_alternating_lines_keep_their_streams_and_order(place: Place) -> None:
    text = "for i in $(seq 1000); do echo o$i; echo e$i >&2; done"
    command = await place.start(await place.session(), text)
    out, err = await place.follow_by_sdk(command)
    assert out.split() == [f"o{number}" for number in range(1, 1001)]
    assert err.split() == [f"e{number}" for number in range(1, 1001)]


async def test_one_line_of_20_megabytes(place: Place) -> None:
    command = await place.start(await place.session(), "head -c 20000000 /dev/zero | tr '\\0' x")
    digest = hashlib.sha256()
    size = largest = 0
    async with place.client.ws_connect(f"{place.url}{command}/logs?follow=true") as socket:
        async for message in socket:
            largest = max(largest, len(message.data))
            payload = message.data.replace(b"\x01\x01\x01", b"")
            size += len(payload)
            digest.update(payload)
    assert size == 20_000_000
    assert largest <= 65536
    assert digest.digest() == hashlib.sha256(b"x" * 20_000_000).digest()


async def test_a_program_can_print_markers(place: Place) -> None:
    text = (
        r"printf 'a\001\001\001b\002\002\002c\002\002'; printf 'x\002\002\002y\001\001\001z\001\001' >&2;"
        r" printf '\002\n'; printf '\001\001\n' >&2"
    )
    session_id = await place.session()
    command = await place.start(session_id, text)
    out = "a\1\1\1b\2\2\2c\2\2\2\n"
    err = "x\2\2\2y\1\1\1z\1\1\1\1\n"
    assert await place.follow_by_sdk(command) == (out, err)
    logs = await place.call("GET", f"{command}/logs", status=200)
    assert (logs["stdout"], logs["stderr"]) == (out, err)


async def test_nul_return_and_invalid_bytes_are_kept(place: Place) -> None:
    command = await place.start(await place.session(), r"printf 'a\000b\rc\377\n'")
    assert await place.follow(command) == (b"\x01\x01\x01a\0b\rc\xff\n", 1000)
    assert (await place.follow_by_sdk(command))[0] == "a\0b\rc\ufffd\n"
    assert (await place.call("GET", f"{command}/logs", status=200))["stdout"] == "a\0b\rc\ufffd\n"


async def test_a_character_cut_by_the_other_stream_stays_whole(place: Place) -> None:
    command = await place.start(
        await place.session(),
        r"printf '\342\202'; read x; printf err >&2; read x; printf '\254'",
        suppressInputEcho=True,
    )
    async with place.client.ws_connect(f"{place.url}{command}/logs?follow=true") as socket:
        await socket.receive_bytes()
        await place.call("POST", f"{command}/input", status=204, json={"data": ""})
        await socket.receive_bytes()
        await place.call("POST", f"{command}/input", status=204, json={"data": ""})
        await socket.receive_bytes()
    assert await place.follow_by_sdk(command) == ("€", "err")
    assert (await place.call("GET", f"{command}/logs", status=200))["stdout"] == "€"


async def test_many_followers_all_get_everything(place: Place) -> None:
    command = await place.start(await place.session(), "read go; seq 20000; echo end >&2")
    followers = [asyncio.create_task(place.follow_by_sdk(command)) for _ in range(8)]
    await place.call("POST", f"{command}/input", status=204, json={"data": "go"})
    expected = ("go\n" + "".join(f"{number}\n" for number in range(1, 20001)), "end\n")
    assert await asyncio.gather(*followers) == [expected] * 8


async def test_a_follower_that_does_not_read_stops_neither_the_program_nor_others(place: Place) -> None:
    command = await place.start(await place.session(), "read go; head -c 30000000 /dev/zero | tr '\\0' y")
    async with place.client.ws_connect(f"{place.url}{command}/logs?follow=true") as lazy:
        await place.call("POST", f"{command}/input", status=204, json={"data": "go"})
        received, code = await place.follow(command)
        assert received.count(b"y") == 30_000_000
        assert code == 1000
        assert (await place.call("GET", command, status=200))["exitCode"] == 0
        assert sum([message.data.count(b"y") async for message in lazy]) == 30_000_000
        assert lazy.close_code == 1000


async def test_pings_are_answered_while_nothing_is_printed(place: Place) -> None:
    command = await place.start(await place.session(), "read go")
    url = f"{place.url}{command}/logs?follow=true"
    async with place.client.ws_connect(url, autoping=False) as socket:
        for number in range(3):
            await socket.ping(str(number).encode())
            message = await socket.receive(20)
            assert (message.type, bytes(message.data)) == (aiohttp.WSMsgType.PONG, str(number).encode())
        await place.call("POST", f"{command}/input", status=204, json={"data": "go"})


async def test_deleting_the_session_ends_its_followers_with_1000(place: Place) -> None:
    session_id = await place.session()
    command = await place.start(session_id, "echo before; sleep 1000")
    async with place.client.ws_connect(f"{place.url}{command}/logs?follow=true") as socket:
        assert await socket.receive_bytes() == b"\x01\x01\x01before\n"
        await place.call("DELETE", f"/process/session/{session_id}", status=204)
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        assert socket.close_code == 1000
    await place.fail("GET", f"{command}/logs", status=404, code="NOT_FOUND")


async def test_stopping_the_toolbox_ends_followers_and_removes_logs(place: Place) -> None:
    command = await place.start(await place.session(), "seq 300000; sleep 1000")
    async with place.client.ws_connect(f"{place.url}{command}/logs?follow=true") as socket:
        received = await socket.receive_bytes()
        while b"300000\n" not in received:
            received = received[-64:] + await socket.receive_bytes()
        assert entries(place.log_directory)
        await place.toolbox.close()
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        assert socket.close_code == 1000
    assert not place.log_directory.exists()
    assert (await place.call("GET", "/process/session", status=200)) == []


async def test_logs_of_a_deleted_session_leave_the_disk(place: Place) -> None:
    session_id = await place.session()
    await place.run(session_id, "head -c 3000000 /dev/zero >&2")
    assert [entry.stat().st_size > 2_900_000 for entry in entries(place.log_directory)] == [True]
    await place.call("DELETE", f"/process/session/{session_id}", status=204)
    assert entries(place.log_directory) == []


async def test_a_follower_that_left_costs_nothing(place: Place) -> None:
    session_id = await place.session()
    command = await place.start(session_id, "read go; seq 100000")
    async with place.client.ws_connect(f"{place.url}{command}/logs?follow=true") as socket:
        await place.call("POST", f"{command}/input", status=204, json={"data": "go"})
        await socket.receive_bytes()
    assert (await place.follow(command))[0].endswith(b"100000\n")
    await place.call("DELETE", f"/process/session/{session_id}", status=204)
    assert entries(place.log_directory) == []


@pytest.mark.parametrize("path", ["/process/session/none/command/x", "{session}/command/none"])
async def test_what_does_not_exist_is_refused_before_the_upgrade(place: Place, path: str) -> None:
    path = path.replace("{session}", f"/process/session/{await place.session()}")
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await place.client.ws_connect(f"{place.url}{path}/logs?follow=true")
    assert refused.value.status == 404
    with pytest.raises(DaytonaError, match="404"):
        await place.follow_by_sdk(path)


async def test_logs_as_json_have_all_three_members(place: Place) -> None:
    session_id = await place.session()
    answer = await place.run(session_id, "echo out; sleep 0.05; echo err >&2")
    path = f"/process/session/{session_id}/command/{answer['cmdId']}/logs"
    expected = {"output": "\1\1\1out\n\2\2\2err\n", "stdout": "out\n", "stderr": "err\n"}
    assert await place.call("GET", path, status=200) == expected
    assert await place.call("GET", f"{path}?follow=false", status=200) == expected
    by_sdk = await place.sandbox.process.get_session_command_logs(session_id, answer["cmdId"])
    assert (by_sdk.output, by_sdk.stdout, by_sdk.stderr) == tuple(expected.values())
    await place.fail("GET", f"{path}?follow=maybe", status=400, code="BAD_REQUEST")


async def test_logs_of_a_silent_and_of_a_running_command(place: Place) -> None:
    session_id = await place.session()
    answer = await place.run(session_id, "true")
    path = f"/process/session/{session_id}/command/{answer['cmdId']}/logs"
    assert await place.call("GET", path, status=200) == {"output": "", "stdout": "", "stderr": ""}
    command = await place.start(session_id, "echo so far; read go")
    async with place.client.ws_connect(f"{place.url}{command}/logs?follow=true") as socket:
        await socket.receive_bytes()
        assert (await place.call("GET", f"{command}/logs", status=200))["stdout"] == "so far\n"


async def test_large_logs_as_json(place: Place) -> None:
    answer = await place.run(await place.session(), 'for i in $(seq 60000); do echo "line \\"$i\\" é"; done; seq 9 >&2')
    lines = [f'line "{number}" é' for number in range(1, 60001)]
    assert answer["exitCode"] == 0
    assert answer["stdout"].splitlines() == lines
    assert answer["stderr"].split() == [str(number) for number in range(1, 10)]
    assert re.sub("\1\1\1|\2\2\2[^\1]*", "", answer["output"]).splitlines() == lines


async def test_following_without_an_upgrade_is_plain_text(place: Place) -> None:
    command = await place.start(await place.session(), "read go; echo out; echo err >&2", suppressInputEcho=True)
    async with place.client.get(f"{place.url}{command}/logs?follow=true") as answer:
        assert (answer.status, answer.content_type) == (200, "text/plain")
        await place.call("POST", f"{command}/input", status=204, json={"data": "go"})
        assert sorted((await answer.text()).split()) == ["err", "out"]


async def test_output_beyond_the_disk_limit_ends_the_session(make_place: PlaceMaker) -> None:
    place = await make_place(disk=8 * MIB)
    session_id = await place.session()
    command = await place.start(
        session_id, "trap '' PIPE; while true; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done"
    )
    received, code = await place.follow(command)
    assert 7 * MIB < len(received) < 9 * MIB
    assert b"output limit of 8388608 bytes reached" in received[-200:]
    assert code == 1000
    assert (await place.call("GET", command, status=200))["exitCode"] == 137
    body = {"command": "true"}
    await place.fail("POST", f"/process/session/{session_id}/exec", status=410, code="SESSION_ENDED", json=body)


async def test_a_log_that_cannot_be_stored_ends_the_session(place: Place) -> None:
    shutil.rmtree(place.log_directory)
    session_id = await place.session()
    command = await place.start(session_id, "yes")
    received, code = await place.follow(command)
    assert b"could not store more of this output: No such file" in received
    assert code == 1000
    assert (await place.call("GET", command, status=200))["exitCode"] == 137
    assert (await place.run(await place.session(), "echo fine"))["stdout"] == "fine\n"


async def test_a_follower_that_takes_nothing_after_the_end_is_told_so(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.local.toolbox.follow._FLUSH_SECONDS", 0.05)
    session_id = await place.session()
    command = await place.start(session_id, "head -c 60000000 /dev/zero")
    await place.follow(command)
    async with place.client.ws_connect(f"{place.url}{command}/logs?follow=true") as lazy:
        assert await lazy.receive_bytes()
        await place.call("DELETE", f"/process/session/{session_id}", status=204)
        while entries(place.log_directory):
            await place.call("GET", "/version", status=200)
        assert sum([len(message.data) async for message in lazy]) < 60_000_000
        assert lazy.close_code == 1011


async def test_a_sandbox_that_dies_ends_its_commands(place: Place) -> None:
    session_id = await place.session()
    command = await place.start(session_id, "echo before; sleep 1000")
    async with place.client.ws_connect(f"{place.url}{command}/logs?follow=true") as socket:
        assert await socket.receive_bytes() == b"\x01\x01\x01before\n"
        await place.box.stop(force=True)
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        assert socket.close_code == 1000
    assert (await place.call("GET", command, status=200))["exitCode"] == 137
    body = {"command": "true"}
    await place.fail("POST", f"/process/session/{session_id}/exec", status=410, code="SESSION_ENDED", json=body)
    for method, path in (("POST", "/process/session"), ("POST", "/process/execute"), ("GET", "/files/info?path=/tmp")):
        json = {"sessionId": "x", "command": "true"} if method == "POST" else None
        error = await place.call(method, path, status=400, json=json)
        assert error["source"] == "DAYTONA_PROXY"
        assert "is it started?" in error["message"]
    await place.toolbox.close()


async def test_every_request_counts_as_activity(place: Place) -> None:
    before = len(place.activity)
    await place.call("GET", "/version", status=200)
    await place.call("GET", "/process/session/none", status=404)
    assert len(place.activity) == before + 2
