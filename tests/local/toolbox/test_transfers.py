"""Uploads and downloads: any name, any size, errors in their place."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import logging
import os
from collections.abc import AsyncIterator

import aiohttp
import pytest
from daytona import FileDownloadRequest, FileUpload
from daytona.common.errors import (
    DaytonaBadRequestError,
    DaytonaError,
    DaytonaFileAccessDeniedError,
    DaytonaFileNotFoundError,
    DaytonaInvalidFilePathError,
)

from .conftest import Place

UPLOAD = "/files/bulk-upload"
DOWNLOAD = "/files/bulk-download"
NAMES = ["plain", "a b/c d", "quote'\"x", "back\\slash", "ünïcödé €.txt", "semi;name=x", "per%2Fcent%20"]


def form(boundary: str, *parts: tuple[str, bytes]) -> bytes:
    """A multipart body written by hand."""
    body = b""
    for disposition, content in parts:
        body += f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode() + content + b"\r\n"
    return body + f"--{boundary}--\r\n".encode()


async def upload(place: Place, *parts: tuple[str, bytes], status: int) -> dict[str, list[object]]:
    headers = {"Content-Type": "multipart/form-data; boundary=frontier"}
    async with place.client.post(place.url + UPLOAD, data=form("frontier", *parts), headers=headers) as answer:
        assert answer.status == status
        result: dict[str, list[object]] = await answer.json()
        return result


@pytest.mark.parametrize("name", NAMES)
async def test_any_name_goes_up_and_comes_down(place: Place, name: str) -> None:
    path = f"/tmp/up/{name}"
    content = os.urandom(1000) + b"\r\n--\r\n"
    await place.sandbox.fs.upload_file(content, path)
    assert await place.sandbox.fs.download_file(path) == content


async def test_relative_paths_start_in_the_work_directory(place: Place) -> None:
    await place.sandbox.fs.upload_file(b"x", "some/where.txt")
    assert await place.sandbox.fs.download_file(f"{place.box.home}/some/where.txt") == b"x"
    assert await place.sandbox.fs.download_file("some/where.txt") == b"x"


async def test_several_files_in_one_request(place: Place) -> None:
    files = [FileUpload(source=f"content {number}".encode(), destination=f"/tmp/m/{number}") for number in range(30)]
    await place.sandbox.fs.upload_files(files)
    requests = [FileDownloadRequest(source=file.destination) for file in files]
    results = await place.sandbox.fs.download_files(requests)
    assert [(result.source, result.result) for result in results] == [(file.destination, file.source) for file in files]


async def test_empty_files(place: Place) -> None:
    await place.sandbox.fs.upload_file(b"", "/tmp/empty")
    assert await place.sandbox.fs.download_file("/tmp/empty") == b""


async def test_an_upload_truncates_and_keeps_lines_of_the_form(place: Place) -> None:
    await place.sandbox.fs.upload_file(b"long" * 1000, "/tmp/f")
    await place.sandbox.fs.upload_file(b"\r\n--frontier--\r\n", "/tmp/f")
    assert await place.sandbox.fs.download_file("/tmp/f") == b"\r\n--frontier--\r\n"


async def test_what_an_upload_answers(place: Place) -> None:
    answer = await upload(
        place, ('name="files[0].path"', b" /tmp/a\n"), ('name="files[0].file"; filename="lie"', b"12345"), status=200
    )
    assert answer == {"files": [{"path": "/tmp/a", "bytes": 5}]}


async def test_what_can_be_written_is_written_when_others_fail(place: Place) -> None:
    answer = await upload(
        place,
        ('name="files[0].path"', b"/tmp/first"),
        ('name="files[0].file"; filename="x"', b"1"),
        ('name="files[1].path"', b"/proc/no/such"),
        ('name="files[1].file"; filename="x"', b"2" * 300_000),
        ('name="files[2].path"', b"  "),
        ('name="files[2].file"; filename="x"', b"3"),
        ('name="files[3].file"; filename="/tmp/fourth"', b"4"),
        ('name="other"', b"5"),
        ('name="files[5].path"', b"/tmp/last"),
        ('name="files[5].file"; filename="x"', b"6"),
        ('name="files[6].path"', b"/tmp/alone"),
        status=400,
    )
    assert answer["files"] == [{"path": "/tmp/first", "bytes": 1}, {"path": "/tmp/last", "bytes": 1}]
    assert len(answer["errors"]) == 5
    assert "/proc/no/such" in str(answer["errors"][0])
    assert await place.sandbox.fs.download_file("/tmp/last") == b"6"
    await place.fail("GET", "/files/info?path=/tmp/fourth", status=404, code="FILE_NOT_FOUND")


async def test_forms_that_are_none(place: Place) -> None:
    assert (await place.call("POST", UPLOAD, status=400, data=b"nothing"))["errors"]
    assert (await upload(place, status=400))["errors"]
    headers = {"Content-Type": "multipart/form-data; boundary=frontier"}
    for body in (b"nonsense", b"--frontier\r\n", form("frontier", ('name="files[0].path"', b"/tmp/a"))[:-20], b""):
        async with place.client.post(place.url + UPLOAD, data=body, headers=headers) as answer:
            assert answer.status == 400
            assert (await answer.json())["errors"]
    assert await place.call("GET", "/version", status=200)


async def test_a_form_that_breaks_off_is_an_error(place: Place) -> None:
    whole = form("frontier", ('name="files[0].path"', b"/tmp/cut"), ('name="files[0].file"', b"x" * 1000))
    headers = {"Content-Type": "multipart/form-data; boundary=frontier"}
    async with place.client.post(place.url + UPLOAD, data=whole[:-300], headers=headers) as answer:
        assert answer.status == 400
        assert (await answer.json())["errors"]


async def test_upload_errors_through_the_sdk(place: Place) -> None:
    with pytest.raises(DaytonaError, match="/proc/no/such") as raised:
        await place.sandbox.fs.upload_file(b"x", "/proc/no/such")
    assert raised.value.status_code == 400


async def test_uploads_are_streamed(place: Place) -> None:
    size = 80 * 1024 * 1024
    block = os.urandom(1024 * 1024)

    async def blocks() -> AsyncIterator[bytes]:
        for _ in range(size // len(block)):
            yield block

    await place.sandbox.fs.upload_file_stream(blocks(), "/tmp/large")
    digest = hashlib.sha256(block * (size // len(block))).hexdigest()
    assert (await place.sandbox.process.exec("sha256sum < /tmp/large")).result.split()[0] == digest
    received = hashlib.sha256()
    async for chunk in await place.sandbox.fs.download_file_stream("/tmp/large"):
        received.update(chunk)
    assert received.hexdigest() == digest


async def test_uploads_from_open_files(place: Place) -> None:
    content = os.urandom(3_000_000)
    await place.sandbox.fs.upload_file_stream(io.BytesIO(content), "/tmp/from file")
    assert await place.sandbox.fs.download_file("/tmp/from file") == content


async def test_download_errors_are_typed_and_stand_in_their_place(place: Place) -> None:
    await place.sandbox.process.exec("echo 1 > /tmp/1; echo 2 > /tmp/2; chmod 0 /tmp/2; mkdir /tmp/3; echo 4 > /tmp/4")
    paths = ["/tmp/1", "/tmp/2", "/tmp/3", "/tmp/none", "/tmp/4"]
    results = await place.sandbox.fs.download_files([FileDownloadRequest(source=path) for path in paths])
    assert [result.result for result in results] == [b"1\n", None, None, None, b"4\n"]
    errors = {
        "/tmp/2": DaytonaFileAccessDeniedError,
        "/tmp/3": DaytonaInvalidFilePathError,
        "/tmp/none": DaytonaFileNotFoundError,
    }
    for path, kind in errors.items():
        with pytest.raises(kind):
            await place.sandbox.fs.download_file(path)


async def test_parts_of_a_download(place: Place) -> None:
    await place.sandbox.process.exec("printf '{}' > '/tmp/é.json'")
    body = {"paths": ["/tmp/é.json", "", "/tmp/none"]}
    async with place.client.post(place.url + DOWNLOAD, json=body) as answer:
        assert answer.status == 200
        assert answer.content_type == "multipart/form-data"
        reader = aiohttp.MultipartReader.from_response(answer)
        found = []
        while (part := await reader.next()) is not None:
            assert isinstance(part, aiohttp.BodyPartReader)
            found.append((part.name, part.filename, part.headers["Content-Type"], json.loads(await part.read())))
    assert found[0] == ("file", "/tmp/é.json", "application/json", {})
    assert [(name, filename) for name, filename, _, _ in found[1:]] == [("error", ""), ("error", "/tmp/none")]
    errors = [error for _, _, _, error in found[1:]]
    assert [(error["statusCode"], error["code"]) for error in errors] == [
        (400, "INVALID_FILE_PATH"),
        (404, "FILE_NOT_FOUND"),
    ]
    assert {error["source"] for error in errors} == {"DAYTONA_DAEMON"}


async def test_files_without_a_size_come_whole(place: Place) -> None:
    content = await place.sandbox.fs.download_file("/proc/version")
    assert content.startswith(b"Linux")


async def test_what_is_no_regular_file_is_refused_at_once(place: Place) -> None:
    await place.sandbox.process.exec("mkfifo /tmp/pipe")
    with pytest.raises(DaytonaInvalidFilePathError):
        await place.sandbox.fs.download_file("/tmp/pipe")
    with pytest.raises(DaytonaInvalidFilePathError):
        await place.sandbox.fs.download_file("/dev/zero")


async def test_a_download_names_its_files(place: Place) -> None:
    await place.fail("POST", DOWNLOAD, status=400, code="BAD_REQUEST", json={"paths": []})
    await place.fail("POST", DOWNLOAD, status=400, code="INVALID_REQUEST_BODY", json={"paths": "x"})


async def test_a_single_file_as_the_body(place: Place) -> None:
    await place.sandbox.fs.upload_file(b"content", "/tmp/one.txt")
    async with place.client.get(f"{place.url}/files/download?path=/tmp/one.txt") as answer:
        assert (answer.status, answer.content_type, await answer.read()) == (200, "text/plain", b"content")
        assert answer.content_length == 7
    await place.fail("GET", "/files/download?path=/tmp/none", status=404, code="FILE_NOT_FOUND")
    await place.fail("GET", "/files/download?path=/tmp", status=400, code="INVALID_FILE_PATH")


async def test_a_file_in_the_way_is_an_error(place: Place) -> None:
    await place.sandbox.fs.upload_file(b"x", "/tmp/file")
    with pytest.raises(DaytonaError):
        await place.sandbox.fs.upload_file(b"x", "/tmp/file/below")
    with pytest.raises(DaytonaBadRequestError):
        await place.sandbox.fs.list_files("/tmp/file")


async def test_a_client_that_leaves_during_a_transfer_is_no_error_of_ours(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    whole = form("frontier", ('name="files[0].path"', b"/tmp/cut"), ('name="files[0].file"', b"x" * 500_000))
    host, port = place.url.split("/")[2].split(":")
    path = "/" + place.url.split("/", 3)[3]
    _, writer = await asyncio.open_connection(host, int(port))
    head = f"POST {path}{UPLOAD} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(whole)}\r\n"
    writer.write(head.encode() + b"Content-Type: multipart/form-data; boundary=frontier\r\n\r\n" + whole[:400_000])
    await writer.drain()
    while not (await place.sandbox.fs.search_files("/tmp", "cut")).files:
        pass
    writer.transport.abort()
    await place.sandbox.process.exec("head -c 50000000 /dev/zero > big")
    async with place.client.post(place.url + DOWNLOAD, json={"paths": ["big"]}) as answer:
        await answer.content.readany()
    async with place.client.get(f"{place.url}/files/download?path=big") as answer:
        await answer.content.readany()
    await place.sandbox.fs.upload_file(b"fine", "/tmp/cut")
    assert await place.sandbox.fs.download_file("/tmp/cut") == b"fine"
    await place.toolbox.close()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
