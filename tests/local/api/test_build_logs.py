"""Builds seen through their logs, and what becomes of readers, equal texts and failures."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import aiohttp
import pytest

from sandbox.local.server import LocalPlatform
from tests.local.platforms import Answer, RawClient


def definition(*steps: str) -> str:
    """A definition that no other test has, so that no other build stands in for it."""
    return "\n".join(["FROM base:1", f"# {uuid.uuid4()}", *steps]) + "\n"


async def build(raw: RawClient, text: str, **fields: Any) -> Answer:
    body = {"name": f"s-{uuid.uuid4()}", "buildInfo": {"dockerfileContent": text, "contextHashes": []}} | fields
    return await raw("POST", "/snapshots", body)


async def log_of(raw: RawClient, snapshot: dict[str, Any], *, follow: bool = True) -> str:
    url = (await raw("GET", f"/snapshots/{snapshot['id']}/build-logs-url")).body["url"]
    assert "?" not in url
    answer = await raw("GET", f"/snapshots/{snapshot['id']}/build-logs?follow={str(follow).lower()}")
    assert answer.status == 200
    text: str = answer.body.decode()
    return text


async def finished(raw: RawClient, snapshot: dict[str, Any]) -> dict[str, Any]:
    """Waits for the build by following its log, which ends after the new state can be seen."""
    await log_of(raw, snapshot)
    body: dict[str, Any] = (await raw("GET", f"/snapshots/{snapshot['name']}")).body
    assert body["state"] != "building"
    return body


async def remove(raw: RawClient, *snapshots: dict[str, Any]) -> None:
    for snapshot in snapshots:
        assert (await raw("DELETE", f"/snapshots/{snapshot['id']}")).status == 204
        async with asyncio.timeout(10):
            while (await raw("GET", f"/snapshots/{snapshot['id']}")).status != 404:
                pass


async def test_a_build_from_start_to_end(platform: LocalPlatform, raw: RawClient) -> None:
    text = definition(
        "ARG GREETING=hello",
        'ENV WORD=world PATH="/opt/tools:$PATH"',
        "WORKDIR /work/deep",
        'RUN echo "$GREETING $WORD" && pwd && echo to-stderr >&2',
        'RUN ["sh", "-c", "echo exec form; mkdir -p /opt/tools"]',
        "RUN <<EOF",
        "printf '#!/bin/sh\\necho from the tool\\n' > /opt/tools/tool",
        "chmod +x /opt/tools/tool",
        "EOF",
        "RUN tool && cat <<EOF > /work/deep/file",
        "line in a file",
        "EOF",
    )
    answer = await build(raw, text, cpu=2, memory=2, disk=4)
    assert answer.status == 200
    assert (answer.body["state"], answer.body["size"]) == ("building", None)
    log = await log_of(raw, answer.body)
    snapshot = (await raw("GET", f"/snapshots/{answer.body['id']}")).body
    assert (snapshot["state"], snapshot["cpu"], snapshot["mem"], snapshot["disk"]) == ("active", 2, 2, 4)
    assert snapshot["size"] > 0
    assert snapshot["entrypoint"] == ["sleep", "infinity"]
    assert snapshot["buildInfo"]["dockerfileContent"] == text
    assert snapshot["ref"] == snapshot["buildInfo"]["snapshotRef"]
    lines = log.splitlines()
    assert lines[0] == "[1/6] FROM base:1"
    assert "toolchains" in lines[1]
    assert "[2/6] WORKDIR /work/deep" in lines
    for line in ("hello world", "/work/deep", "to-stderr", "exec form", "from the tool"):
        assert line in lines
    assert any(line.startswith("[6/6] done in ") for line in lines)
    assert await log_of(raw, snapshot) == log, "a log can be read again"

    sandbox = (await raw("POST", "/sandbox", {"snapshot": snapshot["name"], "env": {"OWN": "1"}})).body
    assert (sandbox["cpu"], sandbox["memory"], sandbox["disk"]) == (2, 2, 4)
    toolbox = f"{sandbox['toolboxProxyUrl']}/{sandbox['id']}"
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {platform.api_key}"}) as session:
        command = {"command": 'tool; pwd; cat file; echo "$WORD$OWN${GREETING:-gone}"'}
        async with session.post(f"{toolbox}/process/execute", json=command) as response:
            assert (await response.json())["result"].splitlines() == [
                "from the tool",
                "/work/deep",
                "line in a file",
                "world1gone",
            ]
    await raw("DELETE", f"/sandbox/{sandbox['id']}")
    await remove(raw, snapshot)


async def test_a_step_that_fails(raw: RawClient) -> None:
    text = definition("RUN echo fine", "RUN echo the reason is here >&2; exit 7", "RUN echo never")
    snapshot = await finished(raw, (await build(raw, text)).body)
    assert snapshot["state"] == "build_failed"
    assert "[3/4]" in snapshot["errorReason"]
    assert "exit code 7" in snapshot["errorReason"]
    assert "line 4" in snapshot["errorReason"]
    assert "the reason is here" in snapshot["errorReason"]
    log = await log_of(raw, snapshot)
    assert log.splitlines()[-1].startswith("ERROR: [3/4] RUN echo the reason")
    assert "never" not in log.replace("RUN echo never", "")
    answer = await raw("POST", "/sandbox", {"snapshot": snapshot["name"]})
    assert answer.status == 400
    assert "build_failed" in answer.message
    again = await build(raw, text)
    assert again.body["state"] == "building", "a failure is not remembered as the result of its text"
    assert (await build(raw, text, name=snapshot["name"])).status == 409
    await finished(raw, again.body)
    await remove(raw, snapshot, again.body)


async def test_a_program_that_is_not_there(raw: RawClient) -> None:
    snapshot = await finished(raw, (await build(raw, definition('RUN ["no-such-program"]'))).body)
    assert snapshot["state"] == "build_failed"
    assert "exit code 127" in snapshot["errorReason"]
    await remove(raw, snapshot)


async def test_equal_texts_share_one_build(platform: LocalPlatform, raw: RawClient) -> None:
    text = definition("RUN echo once; sleep 0.2; date +%N > /opt/stamp")
    first, second = await asyncio.gather(build(raw, text), build(raw, text))
    await finished(raw, first.body)
    third = await build(raw, text)
    assert third.body["state"] == "active"
    records = [platform.plane.snapshots.get(answer.body["id"]) for answer in (first, second, third)]
    assert len({record.build_id for record in records}) == 1
    layers = platform.plane.builds.get(str(records[0].build_id))
    assert layers is not None
    layer = layers.id

    sandbox = (await raw("POST", "/sandbox", {"snapshot": third.body["id"]})).body
    await remove(raw, first.body, second.body, third.body)
    assert platform.plane.builds.get(layer) is not None, "a sandbox stands on it"
    assert (await build(raw, text)).body["state"] == "active"
    rest = [record for record in platform.plane.snapshots.all() if record.build_id == layer]
    await remove(raw, *[{"id": record.id} for record in rest])
    await raw("DELETE", f"/sandbox/{sandbox['id']}")
    async with asyncio.timeout(10):
        while platform.plane.builds.get(layer) is not None:
            await raw("GET", "/health")


async def test_a_reader_that_leaves_hurts_nobody(platform: LocalPlatform, raw: RawClient) -> None:
    snapshot = (await build(raw, definition("RUN for i in $(seq 30); do echo line $i; sleep 0.02; done"))).body
    headers = {"Authorization": f"Bearer {platform.api_key}"}
    url = f"{platform.api_url}/snapshots/{snapshot['id']}/build-logs?follow=true"
    async with aiohttp.ClientSession(headers=headers) as session:
        response = await session.get(url)
        assert await response.content.readline()
        response.close()
    log = await log_of(raw, snapshot)
    assert [line for line in log.splitlines() if line.startswith("line ")] == [f"line {n}" for n in range(1, 31)]
    assert (await raw("GET", f"/snapshots/{snapshot['id']}")).body["state"] == "active"
    await remove(raw, snapshot)


async def test_chunks_are_whole_lines_also_of_output_that_has_none(platform: LocalPlatform, raw: RawClient) -> None:
    steps = "RUN printf 'ä%.0s' $(seq 9000); printf 'part'; sleep 0.1; printf ' two\\n'; printf 'no end'"
    snapshot = (await build(raw, definition(steps))).body
    url = f"{platform.api_url}/snapshots/{snapshot['id']}/build-logs?follow=true"
    headers = {"Authorization": f"Bearer {platform.api_key}"}
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as response:
        chunks = [chunk async for chunk, _ in response.content.iter_chunks()]
    assert all(chunk.endswith(b"\n") for chunk in chunks if chunk)
    lines = b"".join(chunks).decode("utf-8", "replace").splitlines()
    assert "part two" in lines[-4]
    assert lines[-3] == "no end"
    await remove(raw, snapshot)


async def test_deleting_a_snapshot_ends_its_build(platform: LocalPlatform, raw: RawClient) -> None:
    snapshot = (await build(raw, definition("RUN echo begun; sleep 600"))).body
    build_id = platform.plane.snapshots.get(snapshot["id"]).build_id
    reader = asyncio.create_task(log_of(raw, snapshot))
    async with asyncio.timeout(20):
        while "begun" not in await log_of(raw, snapshot, follow=False):
            pass
        await remove(raw, snapshot)
        assert "begun" in await reader
    assert build_id not in [record.id for record in await platform.plane.store.builds()]
    assert build_id not in {entry.stem for entry in (platform.settings.platform_directory / "builds").iterdir()}


async def test_background_processes_of_a_step_end_with_it(raw: RawClient) -> None:
    async with asyncio.timeout(20):
        snapshot = await finished(raw, (await build(raw, definition("RUN sleep 600 & echo left one running"))).body)
    assert snapshot["state"] == "active"
    await remove(raw, snapshot)


async def test_a_text_beyond_the_limit_of_one_argument(raw: RawClient) -> None:
    body = "".join(f"{number:06} {'x' * 100}\n" for number in range(3000))
    text = definition(f"RUN cat > /opt/large <<'EOF'\n{body}EOF", f'RUN test "$(wc -c < /opt/large)" = {len(body)}')
    snapshot = await finished(raw, (await build(raw, text)).body)
    assert snapshot["state"] == "active", snapshot["errorReason"]
    await remove(raw, snapshot)


async def test_a_step_without_network(raw: RawClient) -> None:
    probe = (
        "env | grep -c -i http_proxy; python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 3128), 1)'"
    )
    text = definition(f"RUN --network=none {probe} || echo closed", "RUN echo after")
    snapshot = (await build(raw, text)).body
    log = await log_of(raw, snapshot)
    assert "after" in log.splitlines()
    assert (await raw("GET", f"/snapshots/{snapshot['id']}")).body["state"] == "active"
    await remove(raw, snapshot)


async def test_what_cannot_be_built_is_refused_at_once(raw: RawClient) -> None:
    answer = await build(raw, definition("COPY a b"))
    assert answer.status == 400
    assert "line 3" in answer.message
    assert "COPY" in answer.message
    assert (await build(raw, "FROM a\n", contextHashes=[])).status == 200
    answer = await build(raw, "FROM a\n", imageName="python:3.12")
    assert answer.status == 400


async def test_definitions_without_files_are_there_at_once(raw: RawClient) -> None:
    answer = await build(raw, definition('ENTRYPOINT ["sleep", "5"]', "LABEL a=b"))
    snapshot = await finished(raw, answer.body)
    assert snapshot["state"] == "active"
    assert snapshot["entrypoint"] == ["sleep", "5"]
    await remove(raw, snapshot)


@pytest.mark.parametrize(
    ("fields", "status", "named"),
    [
        ({"name": "a b", "imageName": "python:3"}, 400, "name"),
        ({"name": "a//b", "imageName": "python:3"}, 400, "name"),
        ({"name": "default2", "imageName": "python"}, 400, "tag"),
        ({"name": "default2", "imageName": "python:latest"}, 400, "latest"),
        ({"name": "default2", "imageName": "registry:5000/python"}, 400, "tag"),
        ({"name": "default2"}, 400, "imageName or buildInfo"),
        ({"name": "default2", "imageName": "python:3", "cpu": 5}, 400, "cpu"),
        ({"name": "default2", "imageName": "python:3", "memory": 9}, 400, "memory"),
        ({"name": "default2", "imageName": "python:3", "disk": 11}, 400, "disk"),
        ({"name": "default2", "imageName": "python:3", "regionId": "eu"}, 404, "region"),
        ({"name": "default2", "imageName": "python:3", "gpu": 1}, 400, "gpu"),
    ],
)
async def test_snapshots_that_are_refused(raw: RawClient, fields: dict[str, Any], status: int, named: str) -> None:
    answer = await raw("POST", "/snapshots", fields)
    assert answer.status == status
    assert named in answer.message


async def test_names_ids_and_the_default_snapshot(raw: RawClient) -> None:
    created = await raw("POST", "/snapshots", {"name": "team/base:1", "imageName": "python:3.12", "entrypoint": ["a"]})
    assert created.status == 200
    snapshot = created.body
    assert (snapshot["state"], snapshot["imageName"], snapshot["entrypoint"]) == ("active", "python:3.12", ["a"])
    assert str(uuid.UUID(snapshot["id"])) == snapshot["id"]
    assert (await raw("GET", "/snapshots/team%2Fbase:1")).body["id"] == snapshot["id"]
    assert (await raw("DELETE", "/snapshots/team%2Fbase:1")).status == 400
    assert (await raw("GET", f"/snapshots/{snapshot['id']}/build-logs-url")).status == 404
    assert (await raw("POST", f"/snapshots/{snapshot['id']}/activate")).status == 400
    assert (await raw("POST", f"/snapshots/{snapshot['id']}/deactivate")).status == 204
    assert (await raw("POST", "/sandbox", {"snapshot": "team/base:1"})).status == 400
    assert (await raw("POST", f"/snapshots/{snapshot['id']}/activate")).body["state"] == "active"
    page = (await raw("GET", "/snapshots?name=TEAM&limit=1")).body
    assert [item["name"] for item in page["items"]] == ["team/base:1"]
    assert (page["total"], page["page"], page["totalPages"]) == (1, 1, 1)
    assert (await raw("GET", "/snapshots?limit=201")).status == 400
    await remove(raw, snapshot)
    default = (await raw("GET", "/snapshots/default")).body
    assert default["general"] is True
    assert (await raw("DELETE", f"/snapshots/{default['id']}")).status == 403
    assert (await raw("GET", f"/snapshots/{uuid.uuid4()}")).status == 404
