"""One build at a time for each snapshot: among the tasks of a process, and among the processes of a machine.

Between machines nothing is needed: whoever asks second is told 409 and waits for the other's build.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import tempfile
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sandbox.errors import ConfigurationError
from sandbox.heartbeat import Heartbeat
from sandbox.retry import Pace

_Locks = weakref.WeakValueDictionary[str, asyncio.Lock]
_locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Locks] = weakref.WeakKeyDictionary()


@asynccontextmanager
async def build_turn(platform: str, name: str, beat: Heartbeat) -> AsyncIterator[None]:
    """Holds the right to build a snapshot.

    Args:
        platform: Address of the platform.
        name: Name of the snapshot.
        beat: Told that we wait; its deadline bounds the wait.

    Raises:
        WaitTimeoutError: Another task or process kept its turn too long.
        ConfigurationError: No lock file can be made.
    """
    identity = f"{platform}\n{name}"
    locks = _locks.setdefault(asyncio.get_running_loop(), weakref.WeakValueDictionary())
    lock = locks.setdefault(identity, asyncio.Lock())
    if lock.locked():
        beat.saw("waiting for another build")
    try:
        async with asyncio.timeout(beat.deadline.remaining):
            await lock.acquire()
    except TimeoutError:
        raise beat.timed_out(step="ensure_snapshot", wanted="free to build") from None
    try:
        descriptor = _open(identity)
        try:
            await _flock(descriptor, beat)
            yield
        finally:
            os.close(descriptor)  # also gives the lock back
    finally:
        lock.release()


async def _flock(descriptor: int, beat: Heartbeat) -> None:
    # A blocking flock would need a thread that cannot be cancelled.
    pace = Pace(0.02, longest=0.5)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            beat.saw("waiting for another process's build")
            if beat.deadline.expired:
                raise beat.timed_out(step="ensure_snapshot", wanted="free to build") from None
            await asyncio.sleep(beat.deadline.capped(pace.next()))
        else:
            return


def _open(identity: str) -> int:
    directory = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"uom-sandbox-{os.getuid()}"
    path = directory / f"build-{hashlib.sha256(identity.encode()).hexdigest()[:32]}.lock"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigurationError(
            f"cannot make the lock file {path}: {error.strerror}",
            field="XDG_RUNTIME_DIR",
            remedy="It must name a directory that this user can write to.",
        ) from None
