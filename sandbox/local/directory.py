"""The platform's data directory: who may read it, who uses it now, and the key that lies in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Self

KEY_FILE = "api-key"
LOCK_FILE = "platform.lock"
STATE_FILE = "state.sqlite"
CONNECTION_FILE = "connection.json"
LOG_FILE = "platform.log"
RUNTIME_FILE = "runtime.name"
DOCKER_DIRECTORY = "docker"


class DirectoryBusyError(Exception):
    """Another platform uses the directory."""


class DirectoryLock:
    """Holds a data directory for one platform. The kernel releases it with the process, however that ends.

    Args:
        path: The lock file; made if absent.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self) -> Self:
        """Takes the lock.

        Raises:
            DirectoryBusyError: It is held by another platform.
        """
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise DirectoryBusyError(
                f"another platform uses {self._path.parent}: stop it (`uom-sandbox platform stop`) or set "
                "UOM_SANDBOX_HOME to another directory"
            ) from None
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        return self

    def release(self) -> None:
        """Gives the lock back. May be called twice."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def is_locked(path: Path) -> bool:
    """True if somebody holds the lock file."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two who look at the same time do not see each other.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def make_directory(path: Path) -> None:
    """Makes a directory of the platform.

    Root's boxes run under another uid, which must be able to pass through to what is its own but not to list it; a
    user's boxes run under the user's own uid.
    """
    mode = 0o711 if os.geteuid() == 0 else 0o700
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=mode)
        path.chmod(mode)


def read_key(directory: Path) -> str:
    """Returns the key of the platform, made at the first call and readable by its owner only."""
    path = directory / KEY_FILE
    try:
        return _key_in(path)
    except FileNotFoundError:
        pass
    key = f"uom_{os.urandom(32).hex()}"
    write_private(path, key + "\n")
    return key


def write_private(path: Path, text: str) -> None:
    """Replaces a file at once by one that only its owner can read."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _key_in(path: Path) -> str:
    mode = path.stat().st_mode
    if mode & 0o077:
        path.chmod(0o600)
    key = path.read_text().strip()
    if not key:
        raise FileNotFoundError(path)
    return key
