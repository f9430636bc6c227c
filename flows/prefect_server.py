"""A Prefect server of our own for machines where none is configured: started once, reused by every later call.

It is an ordinary ``prefect server start`` in the background, on 127.0.0.1 and a free port, with its own home and
database. This module starts, finds and stops it; it does not import Prefect, so that commands that need no flow stay
quick.

Its settings come from measurements with Prefect 3.9 on SQLite. With several connections, the creation of a flow run
meets "database is locked", the server answers 503 and the client sleeps 2, 4, 8 seconds; with one connection it never
does. Prefect uses a pool of one connection when the database URL contains ``:memory:``, hence the tag in the URL below.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final
from urllib.parse import quote

import httpx

from flows.crash_detection import ensure_automation
from flows.prefect_process import HOST, ServerProcess, boot_id, network_namespace, process_start
from sandbox.connection import data_directory
from sandbox.errors import ConfigurationError, PlatformUnavailableError

logger = logging.getLogger(__name__)

PREFERRED_PORT: Final = 4267
START_SECONDS: Final = 120.0
"""A first start migrates an empty database: 24 s on two free cores, more where others compute."""

STOP_SECONDS: Final = 15.0
POLL_SECONDS: Final = 0.2
PORT_ATTEMPTS: Final = 3
LOG_BYTES: Final = 5_000_000

_INHERITED: Final = frozenset(
    ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "UOM_TEST_SESSION")
)
"""What the server gets of its starter's environment: it outlives the starter, whose other variables may be secrets."""

Progress = Callable[[str], None]

# Runs in a short-lived process, so that the server becomes nobody's child and outlives its starter without a zombie.
_LAUNCH: Final = """
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
with open(sys.argv[1], "ab") as log:
    server = subprocess.Popen(
        sys.argv[2:], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, close_fds=True
    )
print(server.pid)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """What is known about the server.

    Attributes:
        process: The running process, ``None`` when there is none.
        healthy: Whether it answers.
        log: Its log file.
    """

    process: ServerProcess | None
    healthy: bool
    log: Path


def server_settings(directory: Path, *, port: int) -> dict[str, str]:
    """Returns the environment variables that configure the server.

    Args:
        directory: The server's home.
        port: Where it listens.
    """
    database = quote(str(directory / "prefect.db"))
    return {
        "PREFECT_HOME": str(directory),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": (
            f"sqlite+aiosqlite:///file:{database}?uri=true&check_same_thread=false&tag=:memory:"
        ),
        # Without batches every task state is a transaction of its own.
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "50",
        # Whole seconds: Prefect 3.9 truncates it to an integer, and with 0 its flush loop spins (measured: one core).
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        # Who waits for a place under a concurrency limit asks again after this at the latest; by default after 30 s.
        "PREFECT_SERVER_CONCURRENCY_MAXIMUM_CONCURRENCY_SLOT_WAIT_SECONDS": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        # The UI calls port 4200 unless it is told otherwise.
        "PREFECT_UI_API_URL": f"http://{HOST}:{port}/api",
        "PREFECT_SERVER_LOG_RETRYABLE_ERRORS": "true",
        "PREFECT_LOGGING_COLORS": "false",
    }


class PrefectServer:
    """The background server of one home directory.

    Args:
        home: Directory of the project's data; the server keeps to ``prefect/`` below it.
        extra_settings: Further ``PREFECT_…`` variables for the server's process.
    """

    def __init__(self, home: Path | None = None, *, extra_settings: Mapping[str, str] | None = None) -> None:
        self.directory = (home or data_directory()) / "prefect"
        self.log = self.directory / "server.log"
        self._connection = self.directory / "server.json"
        self._lock = self.directory / "server.lock"
        self._extra_settings = dict(extra_settings or {})

    async def start(self, *, progress: Progress | None = None) -> ServerProcess:
        """Starts the server, or finds the one that runs; returns when it answers.

        Callers in any number of processes may race: one starts it, all get the same. A server that runs in another
        network namespace cannot be reached from here, and two cannot share one database: it is ended and started anew.

        Args:
            progress: Called with a line of text when the caller has to wait.

        Raises:
            PlatformUnavailableError: The server did not come up; the text holds the end of its log.
        """
        running = self.read()
        if running is not None and running.reachable and await _healthy(running):
            return self._checked(running)
        self._make_directory()
        async with self._locked():
            running = self.read()
            if running is not None and not running.reachable:
                if progress is not None:
                    progress("the Prefect server runs in another network namespace: stopping it there")
                await self._end(running)
                self._connection.unlink(missing_ok=True)
                running = None
            if running is not None:
                await self._until_healthy(running, progress=progress)
                return self._checked(running)
            if progress is not None:
                first = not (self.directory / "prefect.db").exists()
                progress(f"starting the Prefect server, once, about {30 if first else 15} s")
            for _ in range(PORT_ATTEMPTS - 1):
                port = _free_port()
                try:
                    return await self._launch(port)
                except PlatformUnavailableError:
                    # Between our look at the port and the server's bind, another program may have taken it.
                    if not _taken(port):
                        raise
            return await self._launch(_free_port())

    async def stop(self) -> bool:
        """Stops the server; returns whether there was one.

        Raises:
            PlatformUnavailableError: The process could not be ended.
        """
        if not self.directory.is_dir():
            return False
        async with self._locked():
            running = self.read()
            if running is None:
                self._connection.unlink(missing_ok=True)
                return False
            await self._end(running)
            self._connection.unlink(missing_ok=True)
            return True

    async def status(self) -> ServerStatus:
        """Tells whether the server runs and answers."""
        running = self.read()
        healthy = running is not None and running.reachable and await _healthy(running)
        return ServerStatus(process=running, healthy=healthy, log=self.log)

    def read(self) -> ServerProcess | None:
        """Returns the running server's process, ``None`` when none runs."""
        try:
            found = ServerProcess(**json.loads(self._connection.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return found if found.alive else None

    def _checked(self, running: ServerProcess) -> ServerProcess:
        ours = version("prefect")
        if running.prefect != ours:
            logger.warning(
                "the background Prefect server runs %s, this program %s; `uom-sandbox down` and `up` renew it",
                running.prefect,
                ours,
            )
        return running

    def _make_directory(self) -> None:
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.directory.chmod(0o700)
        except OSError as error:
            raise ConfigurationError(
                f"cannot use {self.directory} for the Prefect server: {error.strerror}",
                remedy="Set UOM_SANDBOX_HOME to a directory of yours.",
            ) from None

    @contextlib.asynccontextmanager
    async def _locked(self) -> AsyncIterator[None]:
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + START_SECONDS + STOP_SECONDS
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise PlatformUnavailableError(
                            "another process has been starting or stopping the Prefect server for too long",
                            remedy=f"See who holds {self._lock}.",
                        ) from None
                    await asyncio.sleep(POLL_SECONDS)
            yield
        finally:
            os.close(descriptor)

    async def _launch(self, port: int) -> ServerProcess:
        self._rotate_log()
        environment = {
            name: value for name, value in os.environ.items() if name in _INHERITED or name.startswith("LC_")
        }
        environment |= server_settings(self.directory, port=port) | self._extra_settings
        command = [sys.executable, "-m", "prefect", "--no-prompt", "server", "start", "--host", HOST]
        command += ["--port", str(port), "--log-level", "WARNING"]
        launcher = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _LAUNCH, str(self.log), *command),
            # Prefect reads prefect.toml, pyproject.toml and .env of its working directory.
            cwd=self.directory,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await launcher.communicate()
        if launcher.returncode != 0:
            raise PlatformUnavailableError(f"the Prefect server could not be launched (exit {launcher.returncode})")
        pid = int(output)
        server = ServerProcess(
            pid=pid,
            started=process_start(pid) or "",
            boot=boot_id(),
            port=port,
            prefect=version("prefect"),
            network=network_namespace(),
        )
        self._write(server)
        try:
            await self._until_healthy(server, progress=None)
            await _end_runs_of_dead_processes(server)
        except BaseException:
            # Also when the caller is cancelled: a server nobody waited for would be found half-started.
            await asyncio.shield(self._end(server))
            self._connection.unlink(missing_ok=True)
            raise
        return server

    async def _until_healthy(self, server: ServerProcess, *, progress: Progress | None) -> None:
        deadline = time.monotonic() + START_SECONDS
        told = False
        while not await _healthy(server):
            if not server.alive:
                raise PlatformUnavailableError(
                    "the Prefect server ended while it was starting", remedy=self._log_tail()
                )
            if time.monotonic() > deadline:
                raise PlatformUnavailableError(
                    f"the Prefect server did not answer within {START_SECONDS:g} s", remedy=self._log_tail()
                )
            if progress is not None and not told:
                progress("waiting for the Prefect server")
                told = True
            await asyncio.sleep(POLL_SECONDS)

    async def _end(self, server: ServerProcess) -> None:
        for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 5.0)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, number)
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                if not server.alive:
                    return
                await asyncio.sleep(0.05)
        raise PlatformUnavailableError(f"the Prefect server (process {server.pid}) did not end")

    def _write(self, server: ServerProcess) -> None:
        new = self._connection.with_suffix(".new")
        new.write_text(json.dumps(asdict(server)), encoding="utf-8")
        new.replace(self._connection)

    def _rotate_log(self) -> None:
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))

    def _log_tail(self) -> str:
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
        except OSError:
            return f"There is no log at {self.log}"
        return "\n".join((f"The end of {self.log}:", *(f"  {line}" for line in lines)))


async def _end_runs_of_dead_processes(server: ServerProcess) -> None:
    async with httpx.AsyncClient(base_url=server.api_url, trust_env=False, timeout=30) as api:
        try:
            await ensure_automation(api)
        except httpx.HTTPError as error:
            raise PlatformUnavailableError(f"the Prefect server refused an automation: {error}") from error


def _free_port() -> int:
    """The preferred port, so that bookmarks of the UI stay good; a free one where that is taken."""
    if not _taken(PREFERRED_PORT):
        return PREFERRED_PORT
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return True
        return False


async def _healthy(server: ServerProcess) -> bool:
    """Asks ``/api/health`` by hand: no proxy of the environment may come between."""
    port = server.port
    if not server.listening:
        return False
    try:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                request = f"GET /api/health HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: close\r\n\r\n"
                writer.write(request.encode())
                status = await reader.readline()
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError):
        return False
    return status.split()[1:2] == [b"200"]
