"""Whatever goes wrong, the client gets the whole envelope, and never the text of a fault that nobody foresaw."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import orjson
import pytest
from aiohttp import web

from sandbox.local.wire_errors import WireError, default_code, error_middleware, wire_timestamp

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[str]]]:
    runners: list[web.AppRunner] = []

    async def start(handler: Handler) -> str:
        app = web.Application(middlewares=[error_middleware()], client_max_size=1000)
        app.add_routes([web.post("/api/thing", handler), web.post("/toolbox/{id}/thing", handler)])
        runner = web.AppRunner(app)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    yield start
    for runner in runners:
        await runner.cleanup()


async def ask(url: str, *, method: str = "POST", data: bytes = b"") -> tuple[aiohttp.ClientResponse, dict[str, object]]:
    async with aiohttp.ClientSession() as client, client.request(method, url, data=data) as answer:
        assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
        return answer, await answer.json()


async def test_a_wire_error_leaves_as_it_was_raised(serve: Callable[[Handler], Awaitable[str]]) -> None:
    async def handler(_: web.Request) -> web.Response:
        headers = {"retry-after-sandbox-create": "7"}
        raise WireError(429, "slow down", code="BUSY", source="DAYTONA_PROXY", headers=headers, extra={"files": []})

    answer, body = await ask(await serve(handler) + "/api/thing?token=secret")
    assert answer.status == 429
    assert answer.headers["retry-after-sandbox-create"] == "7"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(body.pop("timestamp")))
    assert body == {
        "statusCode": 429,
        "error": "Too Many Requests",
        "message": "slow down",
        "code": "BUSY",
        "source": "DAYTONA_PROXY",
        "path": "/api/thing",
        "method": "POST",
        "files": [],
    }


async def test_faults_nobody_foresaw_show_their_kind_only(
    serve: Callable[[Handler], Awaitable[str]], caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_: web.Request) -> web.Response:
        raise RuntimeError("the password is swordfish")

    url = await serve(handler)
    for path, source in (("/api/thing", "DAYTONA_API"), ("/toolbox/x/thing", "DAYTONA_DAEMON")):
        answer, body = await ask(url + path)
        assert (answer.status, body["code"], body["source"]) == (500, "INTERNAL_SERVER_ERROR", source)
        assert "RuntimeError" in str(body["message"])
        assert "swordfish" not in json.dumps(body)
    assert "swordfish" in caplog.text


async def test_the_toolbox_shows_its_own_path(serve: Callable[[Handler], Awaitable[str]]) -> None:
    async def handler(_: web.Request) -> web.Response:
        raise WireError(404, "gone", source="DAYTONA_DAEMON")

    _, body = await ask(await serve(handler) + "/toolbox/some-id/thing")
    assert (body["path"], body["code"]) == ("/thing", "NOT_FOUND")


async def test_what_the_server_itself_refuses(serve: Callable[[Handler], Awaitable[str]]) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response(orjson.loads(await request.read()))

    url = await serve(handler)
    answer, body = await ask(url + "/api/none")
    assert (answer.status, body["code"], body["source"]) == (404, "NOT_FOUND", "DAYTONA_API")
    answer, body = await ask(url + "/toolbox/x/none")
    assert (answer.status, body["code"], body["source"]) == (404, "NOT_FOUND", "DAYTONA_DAEMON")
    answer, body = await ask(url + "/api/thing", method="DELETE")
    assert (answer.status, body["code"], answer.headers["Allow"]) == (405, "METHOD_NOT_ALLOWED", "POST")
    answer, body = await ask(url + "/api/thing", data=b"x" * 2000)
    assert (answer.status, body["code"]) == (413, "PAYLOAD_TOO_LARGE")
    answer, body = await ask(url + "/api/thing", data=b'{"a":')
    assert (answer.status, body["code"]) == (400, "INVALID_REQUEST_BODY")


async def test_redirects_are_no_errors(serve: Callable[[Handler], Awaitable[str]]) -> None:
    async def handler(_: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("/elsewhere")

    url = await serve(handler)
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{url}/api/thing", allow_redirects=False) as answer,
    ):
        assert (answer.status, answer.headers["Location"]) == (307, "/elsewhere")


async def test_an_answer_that_breaks_off_is_cut_and_not_continued(serve: Callable[[Handler], Awaitable[str]]) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half of it")
        raise WireError(500, "too late for this")

    url = await serve(handler)
    async with aiohttp.ClientSession() as client, client.post(f"{url}/api/thing") as answer:
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()


async def test_a_client_that_leaves_is_no_error_of_ours(
    serve: Callable[[Handler], Awaitable[str]], caplog: pytest.LogCaptureFixture
) -> None:
    left = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 100_000)
        finally:
            left.set()

    url = await serve(handler)
    async with aiohttp.ClientSession() as client, client.post(f"{url}/api/thing") as answer:
        await answer.content.readany()
    await asyncio.wait_for(left.wait(), 20)
    await asyncio.sleep(0)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_every_status_has_a_code() -> None:
    assert default_code(404) == "NOT_FOUND"
    assert default_code(418) == "BAD_REQUEST"
    assert default_code(599) == "INTERNAL_SERVER_ERROR"
    with pytest.raises(ValueError, match="200"):
        WireError(200, "fine")
    assert WireError(599, "odd").envelope(method="GET", path="/")["error"] == "Error"
    assert wire_timestamp().endswith("Z")
