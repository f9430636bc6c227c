from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from daytona import FileUpload
from pydantic import SecretStr

from sandbox.connection import CLOUD_URL, Credentials, client, platform_credentials, resolve_credentials
from sandbox.errors import ClientClosedError, ConfigurationError
from sandbox.faults import translated
from sandbox.local.server import LocalPlatform
from tests.local.platforms import scratch_home
from tests.sandbox.conftest import credentials_of


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        ({}, {}, None),
        ({}, {"DAYTONA_API_URL": "http://x/api"}, None),
        ({}, {"DAYTONA_API_KEY": " "}, None),
        ({}, {"DAYTONA_API_KEY": "k"}, ("k", CLOUD_URL, None)),
        (
            {},
            {"DAYTONA_API_KEY": "k", "DAYTONA_API_URL": "http://x:1/api/", "DAYTONA_TARGET": "eu"},
            ("k", "http://x:1/api", "eu"),
        ),
        (
            {"api_key": "a", "api_url": "https://y/api", "target": "us"},
            {"DAYTONA_API_KEY": "k", "DAYTONA_API_URL": "http://x/api", "DAYTONA_TARGET": "eu"},
            ("a", "https://y/api", "us"),
        ),
        ({"api_key": SecretStr("s")}, {}, ("s", CLOUD_URL, None)),
    ],
)
def test_arguments_win_over_the_environment(
    arguments: dict[str, str], environment: dict[str, str], expected: tuple[str, str, str | None] | None
) -> None:
    found = resolve_credentials(environment=environment, **arguments)
    if found is None:
        assert expected is None
    else:
        assert (found.api_key.get_secret_value(), found.api_url, found.target) == expected
        assert "'k'" not in repr(found)


@pytest.mark.parametrize("url", ["ftp://x", "x/api", "http://", "http://u:p@x/api", "http://x/api?a=1"])
def test_a_wrong_address_names_its_origin(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_credentials(environment={"DAYTONA_API_KEY": "k", "DAYTONA_API_URL": url})
    assert caught.value.field == "DAYTONA_API_URL"
    with pytest.raises(ConfigurationError) as caught:
        resolve_credentials(api_key="k", api_url=url, environment={})
    assert caught.value.field == "api_url"


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:1/api", True),
        ("http://localhost/api", True),
        ("http://[::1]:2/api", True),
        ("https://app.daytona.io/api", False),
        ("http://10.0.0.1/api", False),
    ],
)
def test_loopback_addresses_are_known(url: str, local: bool) -> None:
    assert Credentials(api_key=SecretStr("k"), api_url=url).on_this_machine is local


async def test_the_cloud_needs_a_key() -> None:
    with pytest.raises(ConfigurationError) as caught:
        await platform_credentials("cloud")
    assert caught.value.field == "DAYTONA_API_KEY"
    assert (await platform_credentials("auto", api_key="k")).api_url == CLOUD_URL


async def test_one_client_for_all_users_of_a_loop_closed_by_the_last(platform: LocalPlatform) -> None:
    credentials = credentials_of(platform).model_copy(
        update={"api_url": platform.api_url.replace("127.0.0.1", "localhost")}
    )
    async with client(credentials) as first:
        async with client(credentials) as second:
            assert first is second
        assert (await first.snapshot.get("default")).name == "default"
    async with client(credentials) as third:
        assert third is not first


def test_each_loop_has_its_own_and_leaves_no_socket(platform: LocalPlatform) -> None:
    seen: list[object] = []

    async def use() -> None:
        async with client(Credentials(api_key=SecretStr("k"), api_url="http://127.0.0.1:9/api")) as daytona:
            seen.append(daytona)

    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            runner.run(use())
    assert len({id(one) for one in seen}) >= 1
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2


async def test_use_after_close_is_our_own_error(platform: LocalPlatform) -> None:
    credentials = credentials_of(platform).model_copy(update={"target": "local-after-close"})
    async with client(credentials_of(platform)) as keeper:
        sandbox = await keeper.create()
        try:
            async with client(credentials) as daytona:
                mine = await daytona.get(sandbox.id)
            for call in (
                lambda: daytona.get(sandbox.id),
                lambda: daytona.snapshot.get("default"),
                lambda: mine.process.exec("true"),
                lambda: mine.fs.upload_files([FileUpload(b"", "/tmp/x")]),
                lambda: mine.fs.download_file("/etc/hostname"),
            ):
                with pytest.raises(ClientClosedError), translated("x"):
                    await call()
        finally:
            await keeper.delete(sandbox)


async def test_proxies_of_the_environment_do_not_swallow_the_local_platform(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    async with client(credentials_of(platform).model_copy(update={"target": "local-proxies"})) as daytona:
        assert (await daytona.snapshot.get("default")).name == "default"
    assert dict(os.environ) == before


async def test_a_cancelled_user_still_closes_the_client(platform: LocalPlatform) -> None:
    credentials = credentials_of(platform).model_copy(update={"target": "local-cancelled"})
    inside = asyncio.Event()
    got = []

    async def use() -> None:
        async with client(credentials) as daytona:
            got.append(daytona)
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(use())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ClientClosedError), translated("x"):
        await got[0].snapshot.get("default")


async def test_without_a_key_the_local_platform_is_started_and_reused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from sandbox.local import service

    async with scratch_home() as home:
        monkeypatch.setenv("UOM_SANDBOX_HOME", str(home))
        try:
            first = await platform_credentials("auto")
            assert first.on_this_machine
            assert await platform_credentials("local") == first
            assert "other values" not in caplog.text
            monkeypatch.setenv("UOM_EXTRA_PUBLIC_CIDRS", "10.9.8.0/24")
            assert await platform_credentials("local") == first
            assert "started with other values of UOM_EXTRA_PUBLIC_CIDRS" in caplog.text
            async with client(first) as daytona:
                assert (await daytona.snapshot.get("default")).name == "default"
        finally:
            await asyncio.to_thread(service.stop)


async def test_a_local_platform_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UOM_PLATFORM_PORT", "many")
    with pytest.raises(ConfigurationError, match="UOM_PLATFORM_PORT"):
        await platform_credentials("local")
