"""A real box, the toolbox's real routes on a real server, and the unmodified SDK in front of them."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from daytona import AsyncDaytona, AsyncSandbox, DaytonaConfig

from sandbox.local.runtime.bubblewrap import BubblewrapRuntime
from sandbox.local.runtime.interface import MIB, Box, BoxSpec, Runtime
from sandbox.local.toolbox import Toolbox, toolbox_routes
from sandbox.local.wire_errors import WireError, error_middleware
from tests.scratch import scratch_directory


@dataclass
class Place:
    """One started sandbox as a client sees it."""

    box: Box
    toolbox: Toolbox
    log_directory: Path
    url: str
    client: aiohttp.ClientSession
    sandbox: AsyncSandbox
    activity: list[None] = field(default_factory=list)

    async def call(self, method: str, path: str, *, status: int, json: object = None, data: bytes | None = None) -> Any:
        """Makes one request, checks its status, returns the JSON in the answer or None."""
        async with self.client.request(method, self.url + path, json=json, data=data) as answer:
            body = await answer.read()
            assert answer.status == status, (answer.status, body[:500])
            if not body:
                return None
            assert answer.content_type == "application/json"
            return await answer.json()

    async def fail(self, method: str, path: str, *, status: int, code: str, json: object = None) -> str:
        """Makes a request that must fail, checks the whole envelope, returns its message."""
        error = await self.call(method, path, status=status, json=json)
        assert error["statusCode"] == status
        assert error["code"] == code
        assert error["source"] == "DAYTONA_DAEMON"
        assert error["method"] == method
        assert error["path"] == path.partition("?")[0]
        assert error["error"]
        assert error["timestamp"].endswith("Z")
        assert isinstance(error["message"], str)
        assert error["message"]
        return str(error["message"])

    async def session(self, session_id: str | None = None) -> str:
        session_id = session_id or str(uuid.uuid4())
        await self.call("POST", "/process/session", status=201, json={"sessionId": session_id})
        return session_id

    async def run(self, session_id: str, command: str) -> dict[str, Any]:
        """Runs a command to its end."""
        path = f"/process/session/{session_id}/exec"
        answer: dict[str, Any] = await self.call("POST", path, status=200, json={"command": command})
        return answer

    async def start(self, session_id: str, command: str, **options: object) -> str:
        """Starts a command and returns the path of its resource."""
        path = f"/process/session/{session_id}"
        answer = await self.call(
            "POST", f"{path}/exec", status=202, json={"command": command, "runAsync": True} | options
        )
        return f"{path}/command/{answer['cmdId']}"

    async def until_commands(self, session_id: str, count: int) -> None:
        """Asks until the session has that many commands."""
        while len((await self.call("GET", f"/process/session/{session_id}", status=200))["commands"]) < count:
            pass

    async def follow(self, command_path: str) -> tuple[bytes, int | None]:
        """Returns everything the log socket sends, and its close code."""
        received = bytearray()
        async with self.client.ws_connect(f"{self.url}{command_path}/logs?follow=true") as socket:
            async for message in socket:
                assert message.type is aiohttp.WSMsgType.BINARY
                received += message.data
            return bytes(received), socket.close_code

    async def follow_by_sdk(self, command_path: str) -> tuple[str, str]:
        """Returns stdout and stderr as the SDK hands them over."""
        _, _, _, session_id, _, command_id = command_path.split("/")
        out: list[str] = []
        err: list[str] = []
        await self.sandbox.process.get_session_command_logs_async(session_id, command_id, out.append, err.append)
        return "".join(out), "".join(err)


PlaceMaker = Callable[..., Coroutine[Any, Any, Place]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def runtime() -> AsyncIterator[Runtime]:
    root = scratch_directory()
    made = BubblewrapRuntime(data_directory=root)
    try:
        await made.prepare()
        yield made
    finally:
        await made.close()
        shutil.rmtree(root)


@pytest.fixture
async def make_place(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PlaceMaker]:
    """Starts sandboxes with the options of ``BoxSpec`` and an entrypoint; all of them end with the test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    places: list[Place] = []
    by_id: dict[str, Place] = {}
    scratch = scratch_directory()
    daytona: AsyncDaytona | None = None
    url = ""

    async def resolve(request: web.Request) -> Toolbox:
        place = by_id.get(request.match_info["sandboxId"])
        if place is None:
            raise WireError(404, "no such sandbox", source="DAYTONA_PROXY")
        return place.toolbox

    async def get_sandbox(request: web.Request) -> web.Response:
        return web.json_response(_sandbox(request.match_info["id"], toolbox_url=url))

    app = web.Application(middlewares=[error_middleware()])
    app.add_routes([web.get("/api/sandbox/{id}", get_sandbox)])
    app.add_routes([web.route(r.method, "/toolbox" + r.path, r.handler) for r in toolbox_routes(resolve)])
    runner = web.AppRunner(app, handle_signals=False)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    url = f"http://127.0.0.1:{port}/toolbox"
    daytona = AsyncDaytona(DaytonaConfig(api_key="key", api_url=f"http://127.0.0.1:{port}/api"))
    client = aiohttp.ClientSession()

    async def make(*, entrypoint: list[str] | None = None, **options: Any) -> Place:
        box_id = str(uuid.uuid4())
        box = await runtime.start(BoxSpec(box_id=box_id, **({"memory": 512 * MIB} | options)))
        activity: list[None] = []
        log_directory = scratch / box_id
        toolbox = Toolbox(
            box, log_directory=log_directory, entrypoint=entrypoint, on_activity=lambda: activity.append(None)
        )
        await toolbox.start()
        place = Place(
            box=box,
            toolbox=toolbox,
            log_directory=log_directory,
            url=f"{url}/{box_id}",
            client=client,
            sandbox=None,  # type: ignore[arg-type]
            activity=activity,
        )
        places.append(place)
        by_id[box_id] = place
        place.sandbox = await daytona.get(box_id)
        return place

    try:
        yield make
    finally:
        await client.close()
        await daytona.close()  # type: ignore[no-untyped-call]
        for place in places:
            await place.toolbox.close()
            await place.box.stop(force=True)
            await runtime.remove_box(place.box.spec.box_id)
        await runner.cleanup()
        shutil.rmtree(scratch)


@pytest.fixture
async def place(make_place: PlaceMaker) -> Place:
    return await make_place()


def _sandbox(sandbox_id: str, *, toolbox_url: str) -> dict[str, object]:
    return {
        "id": sandbox_id,
        "organizationId": "local",
        "name": sandbox_id,
        "user": "daytona",
        "env": {},
        "labels": {"code-toolbox-language": "python"},
        "public": False,
        "networkBlockAll": False,
        "kvm": False,
        "target": "local",
        "cpu": 1,
        "gpu": 0,
        "memory": 1,
        "disk": 3,
        "state": "started",
        "toolboxProxyUrl": toolbox_url,
    }
