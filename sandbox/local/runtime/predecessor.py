"""What is known on disk of live boxes, so that a server that was killed leaves nothing to the next one."""

from __future__ import annotations

import json
import os
import select
import signal
from pathlib import Path

_KILL_SECONDS = 5.0


def start_time(pid: int) -> int | None:
    """Returns when a process was started, in clock ticks since boot; ``None`` if there is none of this pid."""
    try:
        line = Path("/proc", str(pid), "stat").read_bytes()
    except OSError:
        return None
    return int(line[line.rfind(b")") + 2 :].split(b" ")[19])


def remember(path: Path, *, pid: int) -> None:
    """Writes down which process of the host a box is; its start time tells it from a later one of the same pid."""
    path.write_text(json.dumps({"pid": pid, "start_time": start_time(pid)}), encoding="ascii")


def forget(path: Path) -> None:
    """The box has ended."""
    path.unlink(missing_ok=True)


def end_predecessors(directory: Path) -> int:
    """Kills boxes of an earlier server that are still there, and returns how many. Blocks until they are gone.

    There should be none: a box ends with its server in two ways (closed socket, parent-death signal).
    """
    killed = 0
    for path in directory.glob("*.json"):
        try:
            record = json.loads(path.read_text(encoding="ascii"))
            pid, started = int(record["pid"]), int(record["start_time"])
        except (OSError, ValueError, TypeError, KeyError):
            path.unlink(missing_ok=True)
            continue
        killed += _end(pid, started)
        path.unlink(missing_ok=True)
    return killed


def _end(pid: int, started: int) -> bool:
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # Asked while the descriptor is held: it stays the same process whatever happens to the number.
        if start_time(pid) != started:
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        select.select([pidfd], [], [], _KILL_SECONDS)
    except OSError:
        return False
    finally:
        os.close(pidfd)
    return True
