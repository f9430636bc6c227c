"""The local platform as a server: one process, one port on 127.0.0.1."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import shutil
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from .api.application import API_PREFIX, TOOLBOX_PREFIX, build_application
from .control.clock import Clock, LeadingClock, SystemClock
from .control.plane import ControlPlane
from .control.records import SandboxRecord
from .control.views import Views
from .directory import (
    DOCKER_DIRECTORY,
    LOCK_FILE,
    RUNTIME_FILE,
    STATE_FILE,
    DirectoryLock,
    make_directory,
    read_key,
    write_private,
)
from .fault_control import fault_control
from .faults import Faults
from .forced_states import ForcedViews
from .runtime.errors import RuntimeUnavailableError
from .runtime.interface import Box, Runtime
from .settings import LOOPBACK, Settings
from .toolbox.toolbox import Toolbox
from .version import platform_version

_log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 75.0
"""Longer than the 30 s for which the SDK keeps idle connections, so that it never writes into one being closed."""

SHUTDOWN_SECONDS = 3.0

_SHELL_TEXT = re.compile(r"[\s;&|<>$`\"'()]")


class LocalPlatform:
    """A platform in this process; an async context manager.

    Attributes:
        settings: What it was made with.
        plane: Its control plane, once started; tests look into it.

    Args:
        settings: Limits, directories, port.
        clock: The time that intervals are counted by; tests replace it.
        preferred_port: Taken if it is free and the settings ask for a free one.
    """

    plane: ControlPlane

    def __init__(self, settings: Settings, *, clock: Clock | None = None, preferred_port: int | None = None) -> None:
        self.settings = settings
        faults = Faults() if settings.fault_control else None
        self._faults = faults
        self._preferred_port = preferred_port
        self._clock = clock or SystemClock()
        if faults is not None:
            self._clock = LeadingClock(self._clock, lead=lambda: faults.clock_lead)
        self._stack = contextlib.AsyncExitStack()
        self._api_url: str | None = None
        self._api_key: str | None = None

    @property
    def api_url(self) -> str:
        """Address for ``DaytonaConfig(api_url=…)``."""
        if self._api_url is None:
            raise RuntimeError("the platform has not been started")
        return self._api_url

    @property
    def api_key(self) -> str:
        """Key for ``DaytonaConfig(api_key=…)``."""
        if self._api_key is None:
            raise RuntimeError("the platform has not been started")
        return self._api_key

    @property
    def faults(self) -> Faults:
        """What is to go wrong; only where the settings ask for fault control."""
        if self._faults is None:
            raise RuntimeError("the platform has no fault control: set Settings.fault_control (UOM_FAULT_CONTROL=1)")
        return self._faults

    async def start(self) -> None:
        """Starts everything; when this returns, requests are answered.

        Raises:
            DirectoryBusyError: Another platform uses the directory.
            RuntimeUnavailableError: This machine cannot isolate, or the data was made by another runtime.
            StoreError: The state on disk cannot be used.
            OSError: The port is taken, or the directory cannot be written.
        """
        async with contextlib.AsyncExitStack() as stack:
            await self._start(stack)
            self._stack = stack.pop_all()

    async def close(self) -> None:
        """Stops every sandbox, keeps their files, and leaves no process, mount or descriptor. May be called twice."""
        self._api_url = None
        stack, self._stack = self._stack, contextlib.AsyncExitStack()
        await stack.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        directory = self.settings.platform_directory
        sessions = directory / "sessions"
        await asyncio.to_thread(_prepare, directory)
        stack.enter_context(DirectoryLock(directory / LOCK_FILE))
        await asyncio.to_thread(_claim, directory, self.settings.runtime)
        await asyncio.to_thread(_clear, sessions)
        self._api_key = await asyncio.to_thread(read_key, directory)
        listener = stack.enter_context(_listen(self.settings.port, preferred=self._preferred_port))
        base_url = f"http://{LOOPBACK}:{listener.getsockname()[1]}"

        runtime = _runtime(self.settings, own_port=listener.getsockname()[1])
        stack.push_async_callback(runtime.close)
        await runtime.prepare()

        version = platform_version()
        self.plane = ControlPlane(
            settings=self.settings,
            runtime=runtime,
            clock=self._clock,
            directory=directory,
            views=self._views(base_url + TOOLBOX_PREFIX, version),
            open_toolbox=lambda record, box: self._toolbox(record, box, sessions),
        )
        stack.push_async_callback(self.plane.close)
        await self.plane.start()

        app = build_application(self.plane, key=self._api_key, base_url=base_url, version=version, faults=self._faults)
        runner = web.AppRunner(
            app, access_log=None, keepalive_timeout=KEEP_ALIVE_SECONDS, shutdown_timeout=SHUTDOWN_SECONDS
        )
        # On the way down the plane closes first: followers and live events end by themselves, with proper close codes.
        stack.push_async_callback(runner.cleanup)
        stack.push_async_callback(self.plane.close)
        if self._faults is not None:
            await stack.enter_async_context(fault_control(self.plane, self._faults, directory))
            stack.callback(self._faults.clear)
        await runner.setup()
        await web.SockSite(runner, listener).start()
        self._api_url = base_url + API_PREFIX
        _log.info("serving %s with the %s runtime, data in %s", self._api_url, runtime.name, directory)

    def _views(self, toolbox_url: str, version: str) -> Views:
        faults = self._faults
        if faults is None:
            return Views(toolbox_url=toolbox_url, version=version)
        return ForcedViews(toolbox_url=toolbox_url, version=version, forced=lambda: faults.states)

    def _toolbox(self, record: SandboxRecord, box: Box, sessions: Path) -> Toolbox:
        return Toolbox(
            box,
            log_directory=sessions / record.id,
            entrypoint=_entrypoint(record.recipe.entrypoint),
            on_activity=lambda: self.plane.sandboxes.active(record.id),
        )


def _entrypoint(argv: list[str] | None) -> list[str] | None:
    """Returns the program of an entrypoint; the shell form is stored as one string, as Daytona shows it."""
    if argv is not None and len(argv) == 1 and _SHELL_TEXT.search(argv[0]):
        return ["/bin/sh", "-c", argv[0]]
    return argv


def _claim(directory: Path, name: str) -> None:
    """Notes which runtime has made what is in the directory; no other one can use it.

    Raises:
        RuntimeUnavailableError: Another one has.
    """
    path = directory / RUNTIME_FILE
    if path.exists():
        owner = path.read_text(encoding="ascii").strip()
    else:
        # There was only one before the file was.
        owner = "bubblewrap" if (directory / STATE_FILE).exists() else name
    if owner != name:
        raise RuntimeUnavailableError(
            f"the sandboxes and snapshots in {directory} were made with UOM_RUNTIME={owner} and cannot be used with "
            f"{name}: set UOM_SANDBOX_HOME to another directory, or reset this one (uom-sandbox platform reset)"
        )
    write_private(path, name + "\n")


def _runtime(settings: Settings, *, own_port: int) -> Runtime:
    if settings.runtime == "docker":
        try:
            from .runtime.docker import DockerRuntime
        except ModuleNotFoundError as error:
            raise RuntimeUnavailableError(
                f"UOM_RUNTIME=docker needs the package {error.name}: pip install 'uom-sandbox[docker]'"
            ) from error
        return DockerRuntime(
            data_directory=settings.platform_directory / DOCKER_DIRECTORY,
            default_image=settings.docker_image,
            host=settings.docker_host,
            extra_public_cidrs=settings.extra_public_cidrs,
            own_port=own_port,
        )
    from .runtime.bubblewrap import BubblewrapRuntime

    return BubblewrapRuntime(
        data_directory=settings.platform_directory / "runtime",
        toolchains=settings.toolchains,
        extra_public_cidrs=settings.extra_public_cidrs,
        own_port=own_port,
    )


def _prepare(directory: Path) -> None:
    for path in (directory.parent, directory, directory / "runtime", directory / "builds"):
        make_directory(path)


def _clear(sessions: Path) -> None:
    """Session logs belong to running sandboxes; what a killed predecessor left is of no use."""
    shutil.rmtree(sessions, ignore_errors=True)
    sessions.mkdir(mode=0o700, exist_ok=True)


def _listen(port: int, *, preferred: int | None) -> socket.socket:
    if port == 0 and preferred is not None:
        with contextlib.suppress(OSError):
            return _bound(preferred)
    try:
        return _bound(port)
    except OSError as error:
        text = f"cannot listen on {LOOPBACK}:{port}: {error.strerror}; UOM_PLATFORM_PORT sets the port"
        raise OSError(error.errno, text) from error


def _bound(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen(512)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener
