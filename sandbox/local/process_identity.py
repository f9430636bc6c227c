"""Which process a number means: a pid is used again, a pid with its start time is not."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path


def start_time(pid: int) -> int | None:
    """Returns when a process started, in clock ticks since the boot; ``None`` if it is not alive."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def network_namespace() -> int:
    """Returns the number of this process's network namespace: 127.0.0.1 is another machine in each."""
    return Path("/proc/self/ns/net").stat().st_ino


@contextlib.contextmanager
def opened(pid: int, *, started: int) -> Iterator[int | None]:
    """Gives a descriptor of exactly this process, ``None`` if it has gone, whatever its number means now."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield fd if start_time(pid) == started else None
    finally:
        os.close(fd)


def end(pid: int, *, started: int, seconds: float) -> bool:
    """Asks a process to end, waits, and kills it if it has not ended in time.

    Args:
        pid: Its number.
        started: Its start time, see ``start_time``.
        seconds: How long it may take.

    Returns:
        False if it had to be killed.
    """
    with opened(pid, started=started) as fd:
        if fd is None:
            return True
        for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 10.0)):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(fd, number)
            poller = select.poll()
            poller.register(fd, select.POLLIN)
            if poller.poll(patience * 1000):
                return number is signal.SIGTERM
    return False
