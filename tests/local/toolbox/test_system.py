"""What a sandbox says about itself, and what the toolbox does not have."""

from __future__ import annotations

import pytest
from daytona.common.errors import DaytonaError, DaytonaNotFoundError

from sandbox.local.runtime.interface import MIB

from .conftest import Place, PlaceMaker


async def test_directories_and_version(make_place: PlaceMaker) -> None:
    place = await make_place(workdir="/tmp/work here")
    assert await place.call("GET", "/work-dir", status=200) == {"dir": "/tmp/work here"}
    home = {"dir": place.box.home}
    assert await place.call("GET", "/user-home-dir", status=200) == home
    assert await place.call("GET", "/project-dir", status=200) == home
    assert await place.sandbox.get_work_dir() == "/tmp/work here"
    assert await place.sandbox.get_user_home_dir() == place.box.home
    assert (await place.sandbox.process.exec("pwd")).result == "/tmp/work here\n"
    assert list(await place.call("GET", "/version", status=200)) == ["version"]


async def test_without_a_work_directory_it_is_the_home(place: Place) -> None:
    assert await place.call("GET", "/work-dir", status=200) == {"dir": place.box.home}


async def test_listening_ports(place: Place) -> None:
    code = (
        "import socket, time\ns = socket.socket()\ns.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "s.bind(('127.0.0.1', 4567))\ns.listen()\nprint('up', flush=True)\ntime.sleep(1000)"
    )
    await place.sandbox.fs.upload_file(code.encode(), "listen.py")
    command = await place.start(await place.session(), "python3 listen.py")
    async with place.client.ws_connect(f"{place.url}{command}/logs?follow=true") as socket:
        await socket.receive_bytes()
    assert 4567 in (await place.call("GET", "/port", status=200))["ports"]
    assert await place.call("GET", "/port/4567/in-use", status=200) == {"isInUse": True}
    assert await place.call("GET", "/port/4568/in-use", status=200) == {"isInUse": False}


@pytest.mark.parametrize("port", ["2999", "10000", "http", "-1"])
async def test_ports_outside_the_range_are_refused(place: Place, port: str) -> None:
    await place.fail("GET", f"/port/{port}/in-use", status=400, code="BAD_REQUEST")


async def test_environment_for_what_starts_later(make_place: PlaceMaker) -> None:
    place = await make_place(env={"OLD": "old", "GONE": "gone"})
    before = await place.session()
    assert (
        await place.call("POST", "/env", status=200, json={"set": {"OLD": "new", "MORE": "x"}, "unset": ["GONE"]}) == {}
    )
    text = 'echo "$OLD [$GONE] $MORE"'
    assert (await place.run(await place.session(), text))["stdout"] == "new [] x\n"
    assert (await place.sandbox.process.exec(text)).result == "new [] x\n"
    assert (await place.run(before, text))["stdout"] == "old [gone] \n"
    await place.fail("POST", "/env", status=400, code="BAD_REQUEST", json={"set": {"a b": "x"}})
    await place.fail("POST", "/env", status=400, code="INVALID_REQUEST_BODY", json={"set": ["a"]})
    await place.fail("POST", "/env", status=501, code="NOT_IMPLEMENTED", json={"unsetValuePrefix": "x"})


async def test_metrics(make_place: PlaceMaker) -> None:
    place = await make_place(cpu=2, memory=512 * MIB, disk=256 * MIB)
    await place.start(await place.session(), "sleep 1000")  # without cgroups, memory is what living programs hold
    first = await place.call("GET", "/system/metrics", status=200)
    assert first["cpuUsedPct"] == 0
    await place.sandbox.process.exec("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
    second = await place.call("GET", "/system/metrics", status=200)
    assert 0 < second["cpuUsedPct"] <= 100
    assert (second["cpuCount"], second["memTotal"], second["diskTotal"]) == (2, 512 * MIB, 256 * MIB)
    assert second["memUsed"] > 0
    assert second["diskUsed"] + second["diskFree"] == 256 * MIB
    assert second["timestamp"].endswith("Z")
    assert isinstance(second["timestampUnix"], int)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/process/pty"),
        ("POST", "/process/pty"),
        ("GET", "/process/pty/create-connect?id=x"),
        ("POST", "/process/interpreter/context"),
        ("POST", "/git/clone"),
        ("GET", "/git/status?path=x"),
        ("POST", "/lsp/start"),
        ("GET", "/computeruse/screenshot"),
        ("POST", "/files/upload-v2?path=x"),
    ],
)
async def test_what_is_not_there_says_so(place: Place, method: str, path: str) -> None:
    assert "does not offer" in await place.fail(method, path, status=501, code="NOT_IMPLEMENTED")


async def test_git_through_the_sdk_is_a_plain_error(place: Place) -> None:
    with pytest.raises(DaytonaError, match="does not offer git") as raised:
        await place.sandbox.git.status("/tmp")
    assert raised.value.status_code == 501


async def test_unknown_routes_and_methods(place: Place) -> None:
    await place.fail("GET", "/nothing/here", status=404, code="NOT_FOUND")
    await place.fail("PUT", "/process/session", status=405, code="METHOD_NOT_ALLOWED")


async def test_an_unknown_sandbox(place: Place) -> None:
    url = place.url.rpartition("/")[0]
    async with place.client.get(f"{url}/none/version") as answer:
        error = await answer.json()
        assert (answer.status, error["code"], error["source"]) == (404, "NOT_FOUND", "DAYTONA_PROXY")
    with pytest.raises(DaytonaNotFoundError):
        await place.sandbox.fs.get_file_info("/no/such/file")
