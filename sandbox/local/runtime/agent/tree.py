"""Process trees in the box: who descends from whom, and how to end all of them."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SIGKILL = 9
SIGSTOP = 19


def parents() -> dict[int, tuple[int, bytes]]:
    """Returns pid → (parent, state letter) of every process in the box."""
    table: dict[int, tuple[int, bytes]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            descriptor = os.open(f"/proc/{name}/stat", os.O_RDONLY)
        except OSError:
            continue
        try:
            line = os.read(descriptor, 1024)
        except OSError:
            continue
        finally:
            os.close(descriptor)
        # The name of the program stands in parentheses and may hold anything, parentheses too.
        fields = line[line.rfind(b")") + 2 :].split(b" ", 2)
        if len(fields) == 3:
            table[int(name)] = (int(fields[1]), fields[0])
    return table


def descendants(root: int, *, spare: frozenset[int] = frozenset()) -> set[int]:
    """Returns the live descendants of ``root`` but for its children in ``spare`` and all that descends from them."""
    table = parents()
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    queue = [pid for pid in children.get(root, ()) if pid not in spare]
    while queue:
        pid = queue.pop()
        if table[pid][1] not in b"ZX":
            found.add(pid)
        queue.extend(children.get(pid, ()))
    return found


def kill_descendants(root: int, *, reap: Callable[[], None], spare: frozenset[int] = frozenset()) -> None:
    """Kills everything that descends from ``root`` and returns when nothing of it is left.

    Stops every process before it kills the first: a stopped process cannot fork, and while it still counts against the
    limit of processes, a fork bomb runs into that limit instead of outrunning this loop.

    Args:
        root: The process whose descendants die; the caller itself.
        reap: Called between rounds, to take the zombies off the table.
        spare: Children of ``root`` that stay.
    """
    while True:
        stopped: set[int] = set()
        while fresh := descendants(root, spare=spare) - stopped:
            for pid in fresh:
                signal_quietly(pid, SIGSTOP)
            stopped |= fresh
        if not stopped:
            reap()
            return
        for pid in stopped:
            signal_quietly(pid, SIGKILL)
        reap()
        # The kernel needs a moment to end them; there is no event that tells of processes that are not ours yet.
        time.sleep(0.001)


def signal_quietly(pid: int, number: int) -> None:
    """Sends a signal to a process that may be gone already."""
    try:
        os.kill(pid, number)
    except OSError:
        return
