"""The platform as a background service: started once, found and used by every later call.

Importing this is cheap, so parts of the standard library are imported where they are used; the server itself is
imported by the background process alone.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .directory import (
    CONNECTION_FILE,
    DOCKER_DIRECTORY,
    LOCK_FILE,
    LOG_FILE,
    DirectoryBusyError,
    DirectoryLock,
    is_locked,
    make_directory,
    read_key,
)
from .process_identity import end, network_namespace, start_time
from .settings import Settings

START_LOCK_FILE = "start.lock"
CRASH_FILE = "platform.err"

START_SECONDS = 60.0
EXIT_SECONDS = 5.0
"""How long a killed service may take to let go of its directory."""

STOP_SECONDS = 30.0
HEALTH_SECONDS = 5.0
POLL_SECONDS = 0.05

_INHERITED = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "DOTNET_ROOT",
        "JAVA_HOME",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
    }
)
"""What the background process gets of the caller's environment, beside ``UOM_``, ``LC_`` and ``XDG_`` variables: it
outlives the caller, whose other variables may be secrets."""


class ServiceError(Exception):
    """The background service cannot be started or stopped; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A running service.

    Attributes:
        api_url: For ``DaytonaConfig(api_url=…)``.
        api_key: For ``DaytonaConfig(api_key=…)``; not part of the ``repr``.
        pid: Of its process.
        version: Of the platform that runs.
        differs: Names of ``UOM_`` variables that it was started with otherwise than the caller's.
        reused: True if it ran before the call.
        reachable: False if it listens in another network namespace, such as a container's.
    """

    api_url: str
    api_key: str
    pid: int
    version: str
    differs: tuple[str, ...] = ()
    reused: bool = True
    reachable: bool = True

    def __repr__(self) -> str:
        return f"Connection(api_url={self.api_url!r}, pid={self.pid}, version={self.version!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is known of the service.

    Attributes:
        running: True if its process is alive.
        answers: True if it answers requests.
        detail: A sentence for people.
        directory: Where its data are.
        connection: How to reach it, if it runs.
    """

    running: bool
    answers: bool
    detail: str
    directory: Path
    connection: Connection | None = None


def start(settings: Settings | None = None, *, seconds: float = START_SECONDS) -> Connection:
    """Starts the service, or finds the one that runs. Of several callers at once one starts it, all get the same.

    A service that runs in another network namespace cannot be reached from here, and two cannot share a directory: it
    is stopped, which keeps snapshots and disks, and started anew.

    Args:
        settings: Where and how; from the environment by default.
        seconds: Limit for the whole call.

    Raises:
        ServiceError: It does not start in time; the text ends with the last lines of its log.
        SettingsError: A variable cannot be used.
    """
    settings = settings or Settings.from_environment()
    directory = settings.platform_directory
    deadline = time.monotonic() + seconds
    try:
        make_directory(settings.home)
        make_directory(directory)
        lock = _wait_for(DirectoryLock(directory / START_LOCK_FILE), deadline)
    except PermissionError as error:
        raise ServiceError(
            f"{error.filename} cannot be written: set UOM_SANDBOX_HOME to a directory of yours"
        ) from error
    try:
        found = _found(settings)
        if found is not None and not found.reachable:
            stop(settings, seconds=max(1.0, deadline - time.monotonic()))
            found = None
        if found is not None:
            if not _answers(found.api_url, seconds=HEALTH_SECONDS):
                raise ServiceError(
                    f"the platform (process {found.pid}) runs but does not answer at {found.api_url}: stop it with "
                    f"`uom-sandbox platform stop`, then start it again\n{logs(settings, lines=20)}"
                )
            return found
        if not _free(directory / LOCK_FILE, min(deadline, time.monotonic() + EXIT_SECONDS)):
            raise ServiceError(
                f"another program runs a platform of its own in {directory}: end it, or set UOM_SANDBOX_HOME"
            )
        return _spawn(settings, deadline)
    finally:
        lock.release()


def stop(settings: Settings | None = None, *, seconds: float = STOP_SECONDS) -> bool:
    """Stops the service; snapshots and the disks of sandboxes stay.

    Args:
        settings: Where; from the environment by default.
        seconds: How long it may take to stop cleanly before it is killed.

    Returns:
        False if it did not run.
    """
    settings = settings or Settings.from_environment()
    found = _read(settings)
    if found is None:
        return False
    connection, started = found
    end(connection.pid, started=started, seconds=seconds)
    return True


def status(settings: Settings | None = None) -> Status:
    """Tells whether the service runs and answers."""
    settings = settings or Settings.from_environment()
    directory = settings.platform_directory
    found = _found(settings)
    if found is None:
        busy = is_locked(directory / LOCK_FILE)
        detail = "a program runs a platform of its own here" if busy else "not running"
        return Status(running=busy, answers=False, detail=detail, directory=directory)
    answers = found.reachable and _answers(found.api_url, seconds=HEALTH_SECONDS)
    detail = f"running at {found.api_url} (process {found.pid}, version {found.version})"
    if not found.reachable:
        detail += ", but in another network namespace; a start here stops it there"
    elif not answers:
        detail += ", but it does not answer"
    if found.differs:
        detail += f"; started with other values of {', '.join(found.differs)}: stop and start it to apply yours"
    return Status(running=True, answers=answers, detail=detail, directory=directory, connection=found)


def logs(settings: Settings | None = None, *, lines: int = 100) -> str:
    """Returns the last lines of the service's log, and of what it printed if it crashed."""
    settings = settings or Settings.from_environment()
    directory = settings.platform_directory
    text = "".join(_text(directory / name) for name in (f"{LOG_FILE}.1", LOG_FILE, CRASH_FILE))
    return "\n".join(text.splitlines()[-lines:])


def reset(settings: Settings | None = None) -> None:
    """Stops the service and deletes everything it keeps: snapshots, sandboxes, logs and the key.

    Raises:
        ServiceError: Another program uses the directory, or the Docker engine that keeps its sandboxes does not answer.
    """
    settings = settings or Settings.from_environment()
    directory = settings.platform_directory
    stop(settings)
    if not directory.exists():
        return
    if directory.is_symlink():
        raise ServiceError(f"{directory} is a link; remove what it points to yourself")
    try:
        with DirectoryLock(directory / LOCK_FILE):
            _purge_engine(settings)
            for entry in directory.iterdir():
                if entry.name != LOCK_FILE:
                    remove_tree(entry)
    except DirectoryBusyError as error:
        raise ServiceError(str(error)) from error


def _purge_engine(settings: Settings) -> None:
    """Removes what lies not in the directory but in a Docker engine."""
    data = settings.platform_directory / DOCKER_DIRECTORY
    if not data.exists():
        return
    import asyncio

    from .runtime.errors import RuntimeFault

    try:
        from .runtime.docker_purge import purge

        asyncio.run(purge(data, host=settings.docker_host))
    except (ImportError, RuntimeFault) as error:
        raise ServiceError(f"the Docker engine keeps sandboxes of {settings.platform_directory}: {error}") from error


def _free(lock: Path, deadline: float) -> bool:
    """Waits until nobody holds a lock: a killed process gives its own back a little after it has ceased to be seen."""
    while is_locked(lock):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _spawn(settings: Settings, deadline: float) -> Connection:
    import subprocess

    directory = settings.platform_directory
    reader, writer = os.pipe()
    try:
        try:
            crash = os.open(directory / CRASH_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                subprocess.run(
                    [sys.executable, "-m", f"{__package__}", "serve", "--background", "--ready-fd", str(writer)],
                    stdin=subprocess.DEVNULL,
                    stdout=crash,
                    stderr=crash,
                    pass_fds=(writer,),
                    start_new_session=True,
                    cwd="/",
                    env=_environment(settings),
                    check=True,
                    timeout=max(1.0, deadline - time.monotonic()),
                )
            finally:
                os.close(crash)
        finally:
            os.close(writer)
        _wait_until_ready(reader, settings, deadline)
    except (subprocess.SubprocessError, OSError) as error:
        raise ServiceError(f"the platform could not be started: {error}\n{logs(settings, lines=20)}") from error
    finally:
        os.close(reader)
    found = _found(settings)
    if found is None:
        raise ServiceError(f"the platform ended right after its start\n{logs(settings, lines=20)}")
    return Connection(api_url=found.api_url, api_key=found.api_key, pid=found.pid, version=found.version, reused=False)


def _wait_until_ready(reader: int, settings: Settings, deadline: float) -> None:
    """Reads what the background process reports: its pid, then whether it is ready or why not."""
    import select

    pid, data = None, b""
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            if pid is not None and (started := start_time(pid)) is not None:
                end(pid, started=started, seconds=1.0)
            raise ServiceError(f"the platform was not ready in time\n{logs(settings, lines=20)}")
        chunk = os.read(reader, 65536)
        data += chunk
        *complete, data = data.split(b"\n")
        for line in complete:
            report = json.loads(line)
            if "error" in report:
                raise ServiceError(f"the platform could not be started: {report['error']}")
            if report.get("ready"):
                return
            pid = report.get("pid", pid)
        if not chunk:
            raise ServiceError(f"the platform ended while it started\n{logs(settings, lines=20)}")


def _environment(settings: Settings) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or name.startswith(("UOM_", "LC_", "XDG_"))
    }
    root = Path(__file__).resolve().parents[2]
    if root.name not in ("site-packages", "dist-packages"):
        # Run from a source tree: the background process works in / and would not find it.
        kept["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), kept.get("PYTHONPATH")]))
    return kept | settings.to_environment()


def _found(settings: Settings) -> Connection | None:
    found = _read(settings)
    return found[0] if found is not None else None


def _read(settings: Settings) -> tuple[Connection, int] | None:
    """Returns the running service and the start time of its process; ``None`` if the file speaks of a dead one."""
    directory = settings.platform_directory
    try:
        document = json.loads((directory / CONNECTION_FILE).read_text())
        started = int(document["started"])
        if start_time(document["pid"]) != started or not is_locked(directory / LOCK_FILE):
            return None
        theirs, ours = document["settings"], settings.to_environment()
        # A free port was asked for and found: that is no difference. One of an older version may lack variables.
        compared = (name for name in ours if name in theirs and name != "UOM_PLATFORM_PORT")
        differs = tuple(name for name in compared if theirs[name] != ours[name])
        connection = Connection(
            api_url=document["api_url"],
            api_key=read_key(directory),
            pid=document["pid"],
            version=document["version"],
            differs=differs,
            reachable=document.get("network") in (None, network_namespace()),
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return connection, started


def _answers(api_url: str, *, seconds: float) -> bool:
    """Asks for the health of the service; without an HTTP library, whose import would take longer than the answer."""
    import socket

    authority, _, path = api_url.partition("://")[2].partition("/")
    host, _, port = authority.partition(":")
    request = f"GET /{path}/health HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n"
    try:
        with socket.create_connection((host, int(port)), timeout=seconds) as connection:
            connection.sendall(request.encode())
            return connection.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def _wait_for(lock: DirectoryLock, deadline: float) -> DirectoryLock:
    while True:
        try:
            return lock.acquire()
        except DirectoryBusyError:
            if time.monotonic() > deadline:
                raise ServiceError("another call has been starting the platform for too long; see its log") from None
            time.sleep(POLL_SECONDS)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 1024 * 1024))
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def remove_tree(path: Path) -> None:
    """Deletes a tree, also directories that a box or the kernel's overlay has made unreadable."""
    import shutil

    def unlock(function: Callable[..., object], name: str, _error: object) -> None:
        entry = Path(name)
        for directory in (entry.parent, entry):
            if directory.is_dir() and not directory.is_symlink():
                directory.chmod(stat.S_IRWXU)
        if function in (os.scandir, os.open, os.listdir):
            shutil.rmtree(entry, onerror=unlock)
        else:
            function(name)

    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, onerror=unlock)
    else:
        path.unlink(missing_ok=True)
