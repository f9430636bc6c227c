"""The few calls of the platform for which the SDK has no public method, and the bound on every other one.

``AsyncDaytona.snapshot.create`` is not used. It sleeps a fixed second before and between its looks, opens the
build log only if the first answer is not ``pending``, strips the line ends of the log's chunks, ends a build log after
aiohttp's default of five minutes, fails a build that succeeded when the log stream breaks, waits for ever when the
snapshot becomes ``inactive`` or ``removing``, and tells the reason of a failure in the text only. The generated client
below it is complete, so the calls are made there (all observed with daytona 0.226.1).
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import aiohttp
from daytona_api_client_async import CreateBuildInfo, CreateSnapshot, SnapshotDto, SnapshotsApi

if TYPE_CHECKING:
    from daytona import AsyncDaytona

    from sandbox.profiles import Resources

REQUEST_SECONDS: Final = 30.0
"""Longest wait for one answer of the control plane or a toolbox; a call without it would wait for ever."""

HOLD_SECONDS: Final = 60.0
"""The same for calls that the platform answers late on purpose (build log address: up to 30 s)."""

T = TypeVar("T")


async def bounded(call: Awaitable[T], seconds: float = REQUEST_SECONDS) -> T:
    """Awaits one call of the SDK for at most ``seconds``.

    Some methods of the SDK take no timeout of their own, and none of them has one by default.

    Raises:
        TimeoutError: There was no answer in time.
    """
    async with asyncio.timeout(seconds):
        return await call


async def create_snapshot(
    client: AsyncDaytona, *, name: str, dockerfile: str, resources: Resources, region: str | None
) -> SnapshotDto:
    """Asks for a snapshot built from a definition and returns at once, with the build under way."""
    return await bounded(
        _api(client).create_snapshot(
            CreateSnapshot(
                name=name,
                build_info=CreateBuildInfo(dockerfile_content=dockerfile, context_hashes=[]),
                cpu=resources.cpu,
                memory=resources.memory,
                disk=resources.disk,
                region_id=region,
            )
        ),
        HOLD_SECONDS,
    )


async def build_log(client: AsyncDaytona, snapshot_id: str) -> AsyncIterator[str]:
    """Yields the build log of a snapshot from its beginning, as text in arbitrary pieces, until the platform ends it.

    Raises:
        aiohttp.ClientError: The stream was refused or broke.
    """
    url = (await bounded(_api(client).get_snapshot_build_logs_url(snapshot_id), HOLD_SECONDS)).url
    api: Any = client._api_client
    session: aiohttp.ClientSession = client._shared_session.require_session()
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_SECONDS)
    async with session.get(f"{url}?follow=true", headers=dict(api.default_headers), timeout=timeout) as answer:
        answer.raise_for_status()
        async for chunk in answer.content.iter_any():
            yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)


def _api(client: AsyncDaytona) -> SnapshotsApi:
    return SnapshotsApi(client._api_client)
