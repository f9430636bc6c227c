"""What the background process runs: ``python -m sandbox.local serve``."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import json
import logging
import logging.handlers
import os
import queue
import signal
import sys
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

from .directory import CONNECTION_FILE, LOG_FILE, make_directory, write_private
from .process_identity import network_namespace, start_time
from .settings import Settings, SettingsError

LOG_BYTES = 5 * 1024 * 1024
LOG_FILES = 3
CLOSE_SECONDS = 25.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until SIGTERM or SIGINT.

    Returns:
        0 after a clean stop, 1 if it could not start, 2 for wrong settings.
    """
    parser = argparse.ArgumentParser(prog="python -m sandbox.local", description="The local platform.")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve until SIGTERM; settings come from UOM_ variables")
    serve.add_argument("--background", action="store_true", help="leave the caller and log to a file")
    serve.add_argument("--ready-fd", type=int, help="descriptor that gets JSON lines: pid, then ready or error")
    options = parser.parse_args(arguments)
    report = _Report(options.ready_fd)
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        report.send(error=str(error))
        sys.stderr.write(f"{error}\n")
        return 2
    if options.background:
        _leave_caller()
    report.send(pid=os.getpid())
    make_directory(settings.home)
    make_directory(settings.platform_directory)
    target = settings.platform_directory / LOG_FILE if options.background else None
    with _logging(target):
        return asyncio.run(_serve(settings, report))


async def _serve(settings: Settings, report: _Report) -> int:
    log = logging.getLogger(__name__)
    try:
        from .server import LocalPlatform
        from .version import platform_version
    except ImportError as error:
        report.send(error=f"{error}: install the local extra, pip install 'uom-sandbox[local]'")
        raise
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    connection_file = settings.platform_directory / CONNECTION_FILE
    platform = LocalPlatform(settings, preferred_port=_former_port(connection_file))
    try:
        await platform.start()
    except Exception as error:
        log.exception("the platform could not be started")
        report.send(error=str(error) or type(error).__name__)
        return 1
    document = {
        "api_url": platform.api_url,
        "pid": os.getpid(),
        "started": start_time(os.getpid()),
        "network": network_namespace(),
        "version": platform_version(),
        "settings": settings.to_environment(),
    }
    try:
        await asyncio.to_thread(write_private, connection_file, json.dumps(document))
        report.send(ready=True)
        await stopping.wait()
        log.info("stopping")
    finally:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await platform.close()
        except TimeoutError:
            # Boxes die with this process, and the next start resolves what it left unfinished.
            log.exception("the platform did not stop within %g s", CLOSE_SECONDS)
            logging.shutdown()
            os._exit(1)
    log.info("stopped")
    return 0


class _Report:
    """Tells the starter how the start goes; nothing if there is none."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        if fd is not None:
            os.set_inheritable(fd, False)

    def send(self, **report: Any) -> None:
        if self._fd is None:
            return
        try:
            os.write(self._fd, json.dumps(report).encode() + b"\n")
        except BrokenPipeError:
            self._close()  # the starter has gone; the service stays
        if "ready" in report or "error" in report:
            self._close()

    def _close(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)


def _leave_caller() -> None:
    """Becomes nobody's child, so that whoever started the service need not wait for it."""
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    faulthandler.enable()


def _former_port(path: Path) -> int | None:
    """Returns the port of the last run: clients that still know it find the new one there."""
    try:
        return int(str(json.loads(path.read_text())["api_url"]).partition("://")[2].partition("/")[0].partition(":")[2])
    except (OSError, ValueError, KeyError, TypeError):
        return None


class _PrivateRotatingFile(logging.handlers.RotatingFileHandler):
    """A rotating log that only its owner can read."""

    def _open(self) -> TextIOWrapper[Any]:
        file: IO[Any] = open(  # noqa: SIM115 - the handler closes it
            self.baseFilename,
            self.mode,
            encoding="utf-8",
            opener=lambda name, flags: os.open(name, flags | os.O_CLOEXEC, 0o600),
        )
        assert isinstance(file, TextIOWrapper)
        return file


@contextlib.contextmanager
def _logging(path: Path | None) -> Iterator[None]:
    """Logs to a file, else to stderr, from a thread of its own: writing must not delay the loop."""
    handler: logging.Handler = (
        logging.StreamHandler()
        if path is None
        else _PrivateRotatingFile(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES - 1)
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    records: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    listener = logging.handlers.QueueListener(records, handler)
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    sender = logging.handlers.QueueHandler(records)
    root.addHandler(sender)
    listener.start()
    try:
        yield
    finally:
        root.removeHandler(sender)
        listener.stop()
        handler.close()
