"""Local platforms for tests, each in a directory of its own that sandboxes' uid can pass through."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from daytona import AsyncDaytona, DaytonaConfig

from sandbox.local.control.clock import Clock
from sandbox.local.server import LocalPlatform
from sandbox.local.service import remove_tree
from sandbox.local.settings import Settings
from tests.scratch import scratch_directory


@asynccontextmanager
async def scratch_home() -> AsyncIterator[Path]:
    """A data directory of its own, removed with everything in it."""
    home = scratch_directory()
    try:
        yield home
    finally:
        await asyncio.to_thread(remove_tree, home)


@asynccontextmanager
async def running_platform(*, clock: Clock | None = None, **settings: Any) -> AsyncIterator[LocalPlatform]:
    """A platform with a directory of its own; ``settings`` are fields of ``Settings``; faults may be asked for."""
    settings = {"fault_control": True} | settings
    async with scratch_home() as home, LocalPlatform(Settings(home=home, **settings), clock=clock) as platform:
        yield platform


@asynccontextmanager
async def sdk(platform: LocalPlatform) -> AsyncIterator[AsyncDaytona]:
    """The unmodified SDK, speaking to the platform."""
    async with AsyncDaytona(DaytonaConfig(api_url=platform.api_url, api_key=platform.api_key)) as daytona:
        yield daytona


@dataclass(frozen=True)
class Answer:
    """An answer of the control plane."""

    status: int
    body: Any
    headers: Any

    @property
    def message(self) -> str:
        assert isinstance(self.body, dict), self.body
        return str(self.body["message"])


class RawClient:
    """Plain requests to the control plane, for what the SDK would not send or not show."""

    def __init__(self, session: aiohttp.ClientSession, platform: LocalPlatform) -> None:
        self._session = session
        self._platform = platform

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        key: str | None = "",
    ) -> Answer:
        """One request; ``key`` is the platform's by default, ``None`` for no key at all."""
        sent = dict(headers or {})
        if key is not None:
            sent["Authorization"] = f"Bearer {key or self._platform.api_key}"
        async with self._session.request(method, self._platform.api_url + path, json=body, headers=sent) as response:
            data = await response.read()
            parsed = await response.json() if data and response.content_type == "application/json" else data
            return Answer(response.status, parsed, response.headers)


@asynccontextmanager
async def raw_client(platform: LocalPlatform) -> AsyncIterator[RawClient]:
    async with aiohttp.ClientSession() as session:
        yield RawClient(session, platform)


class SteppedClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self.time = start

    def now(self) -> float:
        return self.time

    def forward(self, *, minutes: float) -> None:
        self.time += minutes * 60
