"""``uom-sandbox platform …``, ``up`` and ``down``: the background services of this machine."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable
from typing import TypeVar, cast

from flows.cli.running import run as run_to_end
from flows.prefect_choice import configured_api_url
from flows.prefect_server import PrefectServer
from sandbox.errors import ConfigurationError, PlatformUnavailableError
from sandbox.local import service
from sandbox.local.settings import SettingsError

T = TypeVar("T")
U = TypeVar("U")


def run(options: argparse.Namespace) -> int:
    """Does what the action says."""
    actions = {
        "up": _up,
        "down": _down,
        "platform start": _start,
        "platform stop": _stop,
        "platform status": _status,
        "platform logs": lambda: _logs(options.lines),
        "platform reset": _reset,
    }
    try:
        return actions[options.action]()
    except service.ServiceError as error:
        raise PlatformUnavailableError(str(error)) from error
    except SettingsError as error:
        raise ConfigurationError(str(error)) from error


def _start() -> int:
    connection = service.start()
    print(f"{'already running' if connection.reused else 'started'}: {connection.api_url} (process {connection.pid})")
    _tell_differences(connection)
    return 0


def _tell_differences(connection: service.Connection) -> None:
    if connection.differs:
        print(
            f"The local platform was started with other values of {', '.join(connection.differs)}: "
            "`uom-sandbox platform stop`, then start it, to apply yours.",
            file=sys.stderr,
        )


def _stop() -> int:
    print("stopped" if service.stop() else "not running")
    return 0


def _status() -> int:
    status = service.status()
    print(f"{status.detail}\ndata {status.directory}")
    return 0 if status.answers else 1


def _logs(lines: int) -> int:
    print(service.logs(lines=lines))
    return 0


def _reset() -> int:
    service.reset()
    print("removed all snapshots, sandboxes and logs of the local platform")
    return 0


def _up() -> int:
    return run_to_end(_start_both())


async def _start_both() -> int:
    configured = configured_api_url()
    server = PrefectServer()
    platform, prefect = await _both(
        asyncio.to_thread(service.start), _nothing() if configured else server.start(progress=_progress)
    )
    print(f"local platform  {platform.api_url}")
    _tell_differences(platform)
    if prefect is None:
        print(f"Prefect API     {configured} (configured; no server started)")
    else:
        print(f"Prefect API     {prefect.api_url}")
        print(f"Prefect UI      {prefect.ui_url}")
    return 0


def _down() -> int:
    return run_to_end(_stop_both())


async def _stop_both() -> int:
    platform, prefect = await _both(asyncio.to_thread(service.stop), PrefectServer().stop())
    for name, stopped in (("local platform", platform), ("Prefect server", prefect)):
        print(f"{name}: {'stopped' if stopped else 'not running'}")
    return 0


async def _both(first: Awaitable[T], second: Awaitable[U]) -> tuple[T, U]:
    """Awaits both to their ends, also when one fails; then the first fault is raised."""
    done = await asyncio.gather(first, second, return_exceptions=True)
    for answer in done:
        if isinstance(answer, BaseException):
            raise answer
    return cast("tuple[T, U]", done)


async def _nothing() -> None:
    """Takes the place of a server that need not be started."""


def _progress(text: str) -> None:
    print(text, file=sys.stderr)
