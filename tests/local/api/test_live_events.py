"""Live events: the packets, the key, the order of what is told and what is seen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from daytona import AsyncDaytona, CreateSandboxFromSnapshotParams

from sandbox.local.control.live_events import QUEUE_LIMIT, LiveEvents
from sandbox.local.server import LocalPlatform
from tests.local.platforms import RawClient

QUERY = "source=test&transport=websocket&EIO=4&t=1"


def url(platform: LocalPlatform) -> str:
    return f"{platform.api_url}/socket.io/?{QUERY}"


@asynccontextmanager
async def connected(
    platform: LocalPlatform, *, token: str | None = None
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with aiohttp.ClientSession() as session, session.ws_connect(url(platform)) as socket:
        opening = await socket.receive_str()
        assert opening.startswith("0")
        assert {"sid", "upgrades", "pingInterval", "pingTimeout", "maxPayload"} <= json.loads(opening[1:]).keys()
        await socket.send_str("40" + json.dumps({"token": platform.api_key if token is None else token}))
        yield socket


async def events_until(socket: aiohttp.ClientWebSocketResponse, sandbox_id: str, state: str) -> list[tuple[str, Any]]:
    found = []
    async with asyncio.timeout(20):
        while True:
            text = await socket.receive_str()
            if not text.startswith("42"):
                continue
            name, payload = json.loads(text[2:])
            if payload.get("id", payload.get("sandbox", {}).get("id")) == sandbox_id:
                found.append((name, payload))
                if payload.get("newState") == state:
                    return found


async def test_the_life_of_a_sandbox_is_told(platform: LocalPlatform, raw: RawClient) -> None:
    async with connected(platform) as socket:
        assert json.loads((await socket.receive_str()).removeprefix("40"))["sid"]
        sandbox = (await raw("POST", "/sandbox", {"labels": {"a": "b"}})).body
        told = await events_until(socket, sandbox["id"], "started")
        assert [name for name, _ in told] == ["sandbox.created", "sandbox.state.updated"]
        assert told[0][1]["labels"] == {"a": "b"}
        assert told[0][1]["kvm"] is False
        assert (told[1][1]["oldState"], told[1][1]["newState"]) == ("creating", "started")

        await raw("POST", f"/sandbox/{sandbox['id']}/stop?force=true")
        told = await events_until(socket, sandbox["id"], "stopped")
        assert [(p["oldState"], p["newState"]) for _, p in told] == [("started", "stopping"), ("stopping", "stopped")]

        await raw("DELETE", f"/sandbox/{sandbox['id']}")
        told = await events_until(socket, sandbox["id"], "destroyed")
        assert [p["newState"] for _, p in told] == ["destroying", "destroyed"]


async def test_a_state_is_visible_before_it_is_told(platform: LocalPlatform, raw: RawClient) -> None:
    async with connected(platform) as socket:
        sandbox = (await raw("POST", "/sandbox", {})).body
        await raw("POST", f"/sandbox/{sandbox['id']}/stop?force=true")
        await events_until(socket, sandbox["id"], "stopped")
        assert (await raw("GET", f"/sandbox/{sandbox['id']}")).body["state"] == "stopped"
        await raw("DELETE", f"/sandbox/{sandbox['id']}")


async def test_a_wrong_key_is_told_so_and_cut(platform: LocalPlatform) -> None:
    async with connected(platform, token="wrong") as socket:
        answer = await socket.receive_str()
        assert answer.startswith("44")
        assert "key" in json.loads(answer[2:])["message"]
        assert (await socket.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)


@pytest.mark.parametrize("first", ["40[1]", "40{", "41", "hello"])
async def test_a_first_message_that_is_none_is_cut(platform: LocalPlatform, first: str) -> None:
    async with aiohttp.ClientSession() as session, session.ws_connect(url(platform)) as socket:
        await socket.receive_str()
        await socket.send_str(first)
        async with asyncio.timeout(5):
            while (await socket.receive()).type is aiohttp.WSMsgType.TEXT:
                pass


async def test_a_ping_of_the_client_is_answered(platform: LocalPlatform) -> None:
    async with connected(platform) as socket:
        await socket.receive_str()
        await socket.send_str("2")
        assert await socket.receive_str() == "3"


async def test_polling_and_foreign_pages_are_refused(platform: LocalPlatform) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{platform.api_url}/socket.io/?transport=polling&EIO=4") as response:
            assert response.status == 400
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await session.ws_connect(url(platform), origin="https://evil.example")
        assert caught.value.status == 403


async def test_the_sdk_gets_its_events(daytona: AsyncDaytona) -> None:
    """``stop`` answers before the sandbox has stopped; without an event the SDK would poll once a second."""
    sandbox = await daytona.create(CreateSandboxFromSnapshotParams())
    dispatcher = daytona._event_dispatcher
    assert dispatcher is not None
    await sandbox.stop()
    assert sandbox.state == "stopped"
    assert dispatcher._connected
    await sandbox.delete()


async def test_a_listener_that_does_not_listen_is_cut_off_and_delays_nobody() -> None:
    events = LiveEvents()
    slow, quick = events.subscribe(), events.subscribe()
    for number in range(QUEUE_LIMIT + 5):
        events.emit("tick", {"number": number})
        assert json.loads(await quick.next() or "null") == ["tick", {"number": number}]
    received = []
    while (text := await slow.next()) is not None:
        received.append(json.loads(text)[1]["number"])
    assert received == list(range(QUEUE_LIMIT))
    events.unsubscribe(slow)
    events.close()
    assert await quick.next() is None
