"""Limits of a box: cgroups where the server may make them, resource limits of every process, watchers for the rest."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .interface import MIB, BoxSpec
from .memory_group import MemoryGroup

OPEN_FILES = 4096
PROCESSES = 512
# Room for the agent, its supervisors and workers when the programs have used up theirs.
_OWN_PROCESSES = 128
# JVMs and .NET reserve more than they use; RLIMIT_DATA is only the backstop behind the memory limit. RLIMIT_AS would
# keep a JVM from starting (measured: fails at 4 GB).
_DATA_MARGIN = 512 * MIB
# The .NET runtime maps its code through a file in memory and dies below this (measured).
_SMALLEST_FILE = 16 * MIB
_SMALLEST_TMP = 64 * MIB
_CPU_PERIOD = 100_000
_REMOVE_TRIES = 50


def process_limits(spec: BoxSpec) -> dict[str, int]:
    """Returns the resource limits of every process, by the agent's names for them."""
    return {
        "core": 0,
        "files": OPEN_FILES,
        "processes": PROCESSES * (4 if spec.build else 1),
        "file_size": max(spec.disk, _SMALLEST_FILE),
        "data": spec.memory + _DATA_MARGIN,
    }


def task_limit(spec: BoxSpec) -> int:
    """Returns how many processes and threads may be in a box, the agent's own among them."""
    return PROCESSES * (4 if spec.build else 1) + _OWN_PROCESSES


def tmp_bytes(spec: BoxSpec) -> int:
    """Returns the size of /tmp, which is memory: a quarter of the box's, as has /dev/shm; so never more than half."""
    return max(spec.memory // 4, _SMALLEST_TMP)


@dataclass(frozen=True, slots=True)
class CgroupParent:
    """Where cgroups can be made.

    Attributes:
        version: 1 (one tree for each controller) or 2.
        directories: Controller → directory below which boxes get theirs; one directory under all names in version 2.
    """

    version: int
    directories: Mapping[str, Path]


class BoxLimits:
    """The cgroups of one box; without any it knows nothing and limits nothing."""

    def __init__(self, parent: CgroupParent | None, box_id: str) -> None:
        self._parent = parent
        names = dict.fromkeys(parent.directories.values()) if parent else {}
        self._groups = [directory / box_id for directory in names]
        self._memory: MemoryGroup | None = None
        if parent is not None and "memory" in parent.directories:
            self._memory = MemoryGroup(parent.version, parent.directories["memory"] / box_id)

    @property
    def watched(self) -> bool:
        """True if memory is not limited by a cgroup, so that the agent has to watch it."""
        return self._memory is None

    def create(self, spec: BoxSpec) -> None:
        """Makes the groups and sets their limits. Blocks for about a millisecond."""
        if self._parent is None:
            return
        for group in self._groups:
            group.mkdir(exist_ok=True)
        tasks = task_limit(spec)
        for controller, values in _settings(self._parent.version, spec, tasks=tasks).items():
            directory = self._parent.directories.get(controller)
            for name, (value, required) in values.items():
                if directory is None:
                    continue
                try:
                    (directory / spec.box_id / name).write_text(value, encoding="ascii")
                except OSError:
                    if required:
                        raise

    def adopt(self, pid: int) -> None:
        """Moves a process of the host into the groups. Blocks for some milliseconds: the kernel waits for all CPUs."""
        for group in self._groups:
            (group / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def oom_kills(self) -> int:
        """Returns how many processes of the box the kernel has killed for memory."""
        return self._memory.oom_kills() if self._memory is not None else 0

    def memory_used(self) -> int | None:
        """Returns the bytes the kernel accounts to the box, page cache left out; ``None`` without a cgroup."""
        return self._memory.used() if self._memory is not None else None

    async def remove(self) -> None:
        """Removes the groups; retries while the kernel still counts the box's last processes."""
        for group in self._groups:
            for _ in range(_REMOVE_TRIES):
                try:
                    group.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    await asyncio.sleep(0.02)
                else:
                    break


def _settings(version: int, spec: BoxSpec, *, tasks: int) -> dict[str, dict[str, tuple[str, bool]]]:
    """Returns controller → file → (value, must succeed)."""
    quota = str(spec.cpu * _CPU_PERIOD)
    if version == 1:
        return {
            # The swap limit can only be set above the memory limit, and only where swap is accounted.
            "memory": {
                "memory.limit_in_bytes": (str(spec.memory), True),
                "memory.memsw.limit_in_bytes": (str(spec.memory), False),
            },
            "pids": {"pids.max": (str(tasks), True)},
            "cpu": {"cpu.cfs_period_us": (str(_CPU_PERIOD), False), "cpu.cfs_quota_us": (quota, False)},
        }
    return {
        "memory": {"memory.max": (str(spec.memory), True), "memory.swap.max": ("0", False)},
        "pids": {"pids.max": (str(tasks), True)},
        "cpu": {"cpu.max": (f"{quota} {_CPU_PERIOD}", False)},
    }


def find_cgroups(name: str) -> CgroupParent | None:
    """Looks for a place to make cgroups: below the server's own, so that its limits hold for its boxes.

    Args:
        name: Name of the directory that is made there.

    Returns:
        ``None`` if there is none, as for an ordinary user without delegation.
    """
    own = _own_groups()
    found: dict[str, Path] = {}
    for controller in ("memory", "pids", "cpu"):
        group = own.get(controller)
        if group is None:
            continue
        try:
            (group / name).mkdir(exist_ok=True)
            (group / name / "probe").mkdir(exist_ok=True)
            (group / name / "probe").rmdir()
        except OSError:
            continue
        found[controller] = group / name
    if "memory" in found:
        return CgroupParent(1, found)
    unified = own.get("")
    return _unified(unified / name) if unified is not None else None


def _unified(directory: Path) -> CgroupParent | None:
    """Returns the parent below a version 2 group that has been delegated to the server (not measured)."""
    try:
        offered = (directory.parent / "cgroup.controllers").read_text(encoding="ascii").split()
        wanted = [controller for controller in ("memory", "pids", "cpu") if controller in offered]
        if "memory" not in wanted:
            return None
        directory.mkdir(exist_ok=True)
        enable = " ".join(f"+{controller}" for controller in wanted)
        # Fails with EBUSY while the server itself is in the parent, unless that is the root: then there is no place.
        (directory.parent / "cgroup.subtree_control").write_text(enable, encoding="ascii")
        (directory / "cgroup.subtree_control").write_text(enable, encoding="ascii")
    except OSError:
        with contextlib.suppress(OSError):
            directory.rmdir()
        return None
    return CgroupParent(2, dict.fromkeys(wanted, directory))


def _own_groups() -> dict[str, Path]:
    """Returns controller → the server's own group, if the server may change it."""
    return {controller: path for controller, path in groups_of("self").items() if os.access(path, os.W_OK)}


def groups_of(process: str) -> dict[str, Path]:
    """Returns controller → the group of a process; the empty name is the version 2 tree.

    Args:
        process: Its pid or ``self``.

    Raises:
        OSError: There is no such process.
    """
    mounts: dict[str, Path] = {}
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
        _, place, kind, options, *_ = line.split(" ")
        if kind == "cgroup":
            for option in options.split(","):
                mounts[option] = Path(place)
        elif kind == "cgroup2":
            mounts[""] = Path(place)
    found: dict[str, Path] = {}
    for line in Path("/proc", process, "cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in mounts:
                found[controller] = mounts[controller] / path.lstrip("/")
    return found


def take_over(parent: CgroupParent | None, record: Path) -> None:
    """Removes what a killed server has left, and notes where this one makes its groups.

    Args:
        parent: Where that is.
        record: A file of the data directory. A server that is started elsewhere has another group of its own, so the
            place of its predecessor's cannot be guessed.
    """
    try:
        left = record.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        left = []
    for directory in map(Path, left):
        # Groups that still hold processes stay; removing a directory of the kernel can do no other harm.
        with contextlib.suppress(OSError):
            for group in directory.iterdir():
                if group.is_dir():
                    with contextlib.suppress(OSError):
                        group.rmdir()
            if parent is None or directory not in parent.directories.values():
                directory.rmdir()
    places = sorted({str(directory) for directory in parent.directories.values()}) if parent else []
    record.write_text("".join(f"{place}\n" for place in places), encoding="utf-8")


def remove_parent(parent: CgroupParent) -> None:
    """Removes the server's own directory, when its last box has gone."""
    for directory in set(parent.directories.values()):
        with contextlib.suppress(OSError):
            directory.rmdir()
