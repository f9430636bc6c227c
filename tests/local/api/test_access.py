"""Who gets in: the key's holder on this machine, and nobody else."""

from __future__ import annotations

import stat

import aiohttp
import pytest

from sandbox.local.server import LocalPlatform
from tests.local.platforms import RawClient


@pytest.mark.parametrize("path", ["/health", "/health/ready", "/config"])
async def test_what_needs_no_key(raw: RawClient, path: str) -> None:
    assert (await raw("GET", path, key=None)).status == 200


@pytest.mark.parametrize("path", ["/sandbox", "/snapshots", "/volumes", "/nothing/there"])
@pytest.mark.parametrize("key", [None, "wrong", "uom_" + "0" * 64])
async def test_no_answer_without_the_key(raw: RawClient, path: str, key: str | None) -> None:
    answer = await raw("GET", path, key=key)
    assert answer.status == 401
    assert answer.body["source"] == "DAYTONA_API"


async def test_toolboxes_need_the_key_too(platform: LocalPlatform) -> None:
    url = platform.api_url.removesuffix("/api") + "/toolbox/some-id/version"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.status == 401


async def test_a_scheme_in_any_case_and_a_key_in_its_own_only(raw: RawClient, platform: LocalPlatform) -> None:
    good = await raw("GET", "/volumes", key=None, headers={"Authorization": f"BEARER {platform.api_key}"})
    assert good.status == 200
    upper = await raw("GET", "/volumes", key=None, headers={"Authorization": f"Bearer {platform.api_key.upper()}"})
    assert upper.status == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "["])
async def test_other_host_names_are_refused(raw: RawClient, host: str) -> None:
    assert (await raw("GET", "/health", headers={"Host": host})).status == 403


async def test_loopback_names_are_served(raw: RawClient) -> None:
    assert (await raw("GET", "/health", headers={"Host": "localhost:1"})).status == 200
    assert (await raw("GET", "/health", headers={"Host": "[::1]:1"})).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_web_pages_are_refused(raw: RawClient, headers: dict[str, str]) -> None:
    assert (await raw("GET", "/health", headers=headers)).status == 403


async def test_key_and_state_are_for_their_owner_only(platform: LocalPlatform) -> None:
    directory = platform.settings.platform_directory
    for name in ("api-key", "state.sqlite", "platform.lock"):
        assert stat.S_IMODE((directory / name).stat().st_mode) == 0o600
    assert (directory / "api-key").read_text().strip() == platform.api_key
    assert len(platform.api_key) >= 64


async def test_double_slashes_are_one(raw: RawClient) -> None:
    assert (await raw("GET", "//sandbox?limit=1")).status == 200
    assert (await raw("GET", "//snapshots//default")).body["name"] == "default"
    assert (await raw("GET", "//health", key=None)).status == 200
    assert (await raw("GET", "//sandbox", key=None)).status == 401
    assert (await raw("GET", "//nothing")).status == 404
    assert (await raw("POST", "//sandbox", {"snapshot": "no-such-snapshot"})).status == 400


async def test_errors_have_the_whole_envelope(raw: RawClient) -> None:
    answer = await raw("GET", "/sandbox/no-such-sandbox?verbose=true")
    assert answer.status == 404
    assert {name: answer.body[name] for name in ("statusCode", "error", "code", "source", "path", "method")} == {
        "statusCode": 404,
        "error": "Not Found",
        "code": "NOT_FOUND",
        "source": "DAYTONA_API",
        "path": "/api/sandbox/no-such-sandbox",
        "method": "GET",
    }
    assert "no-such-sandbox" in answer.message
    assert answer.body["timestamp"].endswith("Z")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/sandbox/x/snapshot"),
        ("GET", "/sandbox/x/ports/3000/preview-url"),
        ("POST", "/sandbox/x/ssh-access"),
        ("GET", "/object-storage/push-access"),
        ("GET", "/secret/paginated"),
        ("POST", "/secret"),
        ("GET", "/warm-pools"),
        ("POST", "/volumes"),
    ],
)
async def test_what_is_not_offered_says_so(raw: RawClient, method: str, path: str) -> None:
    answer = await raw(method, path, {})
    assert answer.status == 501
    assert "does not offer" in answer.message


async def test_there_are_no_volumes(raw: RawClient) -> None:
    assert (await raw("GET", "/volumes")).body == []
    assert (await raw("GET", "/volumes/by-name/data")).status == 404


async def test_bodies_that_are_wrong_name_the_field_and_not_the_value(raw: RawClient) -> None:
    answer = await raw("POST", "/sandbox", {"env": {"TOKEN": 5}, "labels": {"a": "b"}})
    assert answer.status == 400
    assert "env.TOKEN" in answer.message
    answer = await raw("POST", "/snapshots", {"name": "x", "imageName": 7})
    assert answer.status == 400
    assert "imageName" in answer.message
    answer = await raw("POST", "/sandbox", [1, 2])
    assert answer.status == 400
