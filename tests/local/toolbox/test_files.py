"""File operations other than transfers."""

from __future__ import annotations

import pytest
from daytona.common.errors import (
    DaytonaBadRequestError,
    DaytonaConflictError,
    DaytonaFileAccessDeniedError,
    DaytonaFileNotFoundError,
)

from .conftest import Place

NAMES = ["plain", "with space", "quote'\"", "back\\slash", "ünïcödé €", "semi;colon&?#%2F"]


@pytest.mark.parametrize("name", NAMES)
async def test_information_about_any_name(place: Place, name: str) -> None:
    path = f"/tmp/{name}"
    await place.sandbox.fs.upload_file(b"12345", path)
    info = await place.sandbox.fs.get_file_info(path)
    assert (info.name, info.size, info.is_dir) == (name, 5, False)
    assert info.mode == "-rw-r--r--"
    assert info.permissions == "0644"
    assert info.owner.isdigit()
    assert info.group.isdigit()


async def test_information_has_every_field(place: Place) -> None:
    await place.sandbox.process.exec("mkdir -m 750 /tmp/d; ln -s /tmp/d /tmp/link; ln -s nowhere /tmp/dangling")
    info = await place.call("GET", "/files/info?path=/tmp/link", status=200)
    assert (info["isDir"], info["mode"], info["permissions"]) == (True, "drwxr-x---", "0750")
    assert sorted(info) == sorted(
        ["name", "path", "isDir", "size", "mode", "permissions", "modTime", "modifiedAt", "owner", "group"]
    )
    assert info["modifiedAt"].endswith("Z")
    await place.fail("GET", "/files/info?path=/tmp/dangling", status=404, code="FILE_NOT_FOUND")


async def test_errors_of_information(place: Place) -> None:
    await place.fail("GET", "/files/info?path=/tmp/none", status=404, code="FILE_NOT_FOUND")
    await place.fail("GET", "/files/info", status=400, code="INVALID_FILE_PATH")
    with pytest.raises(DaytonaFileNotFoundError):
        await place.sandbox.fs.get_file_info("/tmp/none")


async def test_what_may_not_be_read(place: Place) -> None:
    await place.sandbox.process.exec("mkdir -p /tmp/closed/in; chmod 0 /tmp/closed")
    await place.fail("GET", "/files?path=/tmp/closed", status=403, code="FILE_ACCESS_DENIED")
    with pytest.raises(DaytonaFileAccessDeniedError):
        await place.sandbox.fs.get_file_info("/tmp/closed/in")


async def test_listing(place: Place) -> None:
    await place.sandbox.process.exec(
        "mkdir -p /tmp/l/sub/deep; touch /tmp/l/b /tmp/l/a /tmp/l/sub/c; ln -s no /tmp/l/x"
    )
    listed = await place.call("GET", "/files?path=/tmp/l", status=200)
    assert sorted(item["name"] for item in listed) == ["a", "b", "sub"]
    deeper = await place.sandbox.fs.list_files("/tmp/l", depth=2)
    assert sorted(item.path or "" for item in deeper) == [
        "/tmp/l/a",
        "/tmp/l/b",
        "/tmp/l/sub",
        "/tmp/l/sub/c",
        "/tmp/l/sub/deep",
    ]
    await place.sandbox.process.exec("touch here")
    assert "here" in [item["name"] for item in await place.call("GET", "/files", status=200)]
    await place.fail("GET", "/files?path=/tmp/l/a", status=400, code="INVALID_FILE_PATH")
    await place.fail("GET", "/files?path=/tmp/none", status=404, code="FILE_NOT_FOUND")
    await place.fail("GET", "/files?path=/tmp&depth=0", status=400, code="BAD_REQUEST")


async def test_folders(place: Place) -> None:
    assert await place.call("POST", "/files/folder?path=/tmp/p/q&mode=0700", status=201) is None
    assert (await place.sandbox.fs.get_file_info("/tmp/p/q")).permissions == "0700"
    assert await place.call("POST", "/files/folder?path=/tmp/p/q", status=201) is None
    await place.sandbox.fs.create_folder("relative/folder", "755")
    assert (await place.sandbox.fs.get_file_info(f"{place.box.home}/relative/folder")).is_dir
    await place.fail("POST", "/files/folder?path=/tmp/x&mode=rwx", status=400, code="BAD_REQUEST")
    await place.fail("POST", "/files/folder?path=/tmp/x&mode=17777", status=400, code="BAD_REQUEST")
    await place.fail("POST", "/files/folder?mode=755", status=400, code="INVALID_FILE_PATH")


async def test_deletion(place: Place) -> None:
    await place.sandbox.process.exec("mkdir -p /tmp/d/e; touch /tmp/d/f")
    assert await place.call("DELETE", "/files?path=/tmp/d/f", status=204) is None
    await place.fail("DELETE", "/files?path=/tmp/d/f", status=404, code="FILE_NOT_FOUND")
    with pytest.raises(DaytonaBadRequestError):
        await place.sandbox.fs.delete_file("/tmp/d")
    await place.sandbox.fs.delete_file("/tmp/d", recursive=True)
    await place.fail("GET", "/files/info?path=/tmp/d", status=404, code="FILE_NOT_FOUND")


async def test_moving(place: Place) -> None:
    await place.sandbox.process.exec("echo 1 > /tmp/one; echo 2 > /tmp/two")
    await place.fail("POST", "/files/move?source=/tmp/one&destination=/tmp/two", status=409, code="CONFLICT")
    with pytest.raises(DaytonaConflictError):
        await place.sandbox.fs.move_files("/tmp/one", "/tmp/two")
    path = "/files/move?source=/tmp/none&destination=/tmp/three"
    await place.fail("POST", path, status=404, code="FILE_NOT_FOUND")
    path = "/files/move?source=/tmp/one&destination=/tmp/no/such/place"
    await place.fail("POST", path, status=404, code="FILE_NOT_FOUND")
    await place.sandbox.fs.move_files("/tmp/one", "/tmp/three")
    assert (await place.sandbox.process.exec("cat /tmp/three; ls /tmp/one")).result.startswith("1\n")
    await place.fail("POST", "/files/move?source=/tmp/two", status=400, code="INVALID_FILE_PATH")


async def test_finding_text(place: Place) -> None:
    await place.sandbox.process.exec(
        r"mkdir -p /tmp/t/u; printf 'no\na.*b here\n' > /tmp/t/u/x; printf '\0a.*b' > /tmp/t/bin; echo aXb > /tmp/t/y"
    )
    found = await place.sandbox.fs.find_files("/tmp/t", "a.*b")
    assert [(match.file, match.line, match.content) for match in found] == [("/tmp/t/u/x", 2, "a.*b here")]
    assert await place.call("GET", "/files/find?path=/tmp/none&pattern=x", status=200) == []
    await place.fail("GET", "/files/find?path=/tmp", status=400, code="BAD_REQUEST")


async def test_searching_names(place: Place) -> None:
    await place.sandbox.process.exec("mkdir -p /tmp/s/dir.txt; touch /tmp/s/a.txt /tmp/s/dir.txt/b.txt /tmp/s/c.md")
    found = await place.sandbox.fs.search_files("/tmp/s", "*.txt")
    assert sorted(found.files) == ["/tmp/s/a.txt", "/tmp/s/dir.txt", "/tmp/s/dir.txt/b.txt"]
    assert await place.call("GET", "/files/search?path=/tmp/s&pattern=*.none", status=200) == {"files": []}


async def test_replacing(place: Place) -> None:
    await place.sandbox.process.exec("echo 'a.b axb a.b' > /tmp/r")
    results = await place.sandbox.fs.replace_in_files(["/tmp/r", "/tmp/none"], "a.b", r"\1")
    assert [(result.file, result.success) for result in results] == [("/tmp/r", True), ("/tmp/none", False)]
    assert results[1].error
    assert (await place.sandbox.process.exec("cat /tmp/r")).result == "\\1 axb \\1\n"
    body = {"files": [], "pattern": "", "newValue": "x"}
    await place.fail("POST", "/files/replace", status=400, code="BAD_REQUEST", json=body)


async def test_permissions(place: Place) -> None:
    await place.sandbox.process.exec("echo > /tmp/f")
    await place.sandbox.fs.set_file_permissions("/tmp/f", mode="600")
    info = await place.sandbox.fs.get_file_info("/tmp/f")
    assert info.permissions == "0600"
    await place.sandbox.fs.set_file_permissions("/tmp/f", owner=info.owner, group=info.group)
    path = "/files/permissions?path="
    await place.fail("POST", f"{path}/tmp/none&mode=600", status=404, code="FILE_NOT_FOUND")
    await place.fail("POST", f"{path}/tmp/f&mode=999", status=400, code="BAD_REQUEST")
    await place.fail("POST", f"{path}/tmp/f&owner=no-such-user", status=400, code="BAD_REQUEST")
