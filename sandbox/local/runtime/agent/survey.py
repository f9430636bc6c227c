"""What the box uses: memory, processes, listening ports, read from the box's own /proc."""

from __future__ import annotations

import os

from .tree import parents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TMPFS = ("/tmp", "/dev/shm", "/run")  # noqa: S108 - the mounts of the box whose content is memory
_LISTEN = "0A"


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        chunks = []
        while chunk := os.read(descriptor, 65536):
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        os.close(descriptor)


def _resident(spare: frozenset[int]) -> Iterator[tuple[int, int]]:
    for pid in parents():
        if pid == 1 or pid in spare:
            continue
        try:
            yield pid, int(_read(f"/proc/{pid}/statm").split()[1]) * _PAGE
        except (OSError, IndexError):
            continue


def _in_tmpfs() -> int:
    used = 0
    for path in _TMPFS:
        try:
            status = os.statvfs(path)
        except OSError:
            continue
        used += (status.f_blocks - status.f_bfree) * status.f_frsize
    return used


def usage(*, spare: frozenset[int]) -> dict[str, Any]:
    """Returns resident bytes, memory file systems included, and the number of processes; ``spare`` left out."""
    sizes = dict(_resident(spare))
    return {"memory": sum(sizes.values()) + _in_tmpfs(), "processes": len(sizes)}


def _proportional(pid: int) -> int:
    for line in _read(f"/proc/{pid}/smaps_rollup").split(b"\n"):
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def over_memory(limit: int, *, spare: frozenset[int]) -> int | None:
    """Returns the largest process if all together use more than ``limit`` bytes, else ``None``.

    Resident sizes count a shared page once per process. They are cheap and never too small, so they only raise the
    suspicion; the proportional sizes decide.
    """
    sizes = dict(_resident(spare))
    in_tmpfs = _in_tmpfs()
    if sum(sizes.values()) + in_tmpfs <= limit:
        return None
    shares = {}
    for pid, size in sizes.items():
        try:
            shares[pid] = _proportional(pid)
        except OSError:
            shares[pid] = size
    if sum(shares.values()) + in_tmpfs <= limit or not shares:
        return None
    return max(shares, key=lambda pid: shares[pid])


def listening_ports(*, spare: set[int]) -> list[int]:
    """Returns the TCP ports on which something in the box listens; ``spare`` are inodes of sockets left out."""
    ports = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = _read(f"/proc/net/{name}").decode("ascii").split("\n")[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 9 and fields[3] == _LISTEN and int(fields[9]) not in spare:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return sorted(ports)
