"""The command line of bwrap for one box."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .base import HOST_DIRECTORIES
from .errors import RuntimeUnavailableError
from .interface import MIB
from .kit import INSIDE, Kit
from .toolchains import Toolchain

_RUN_BYTES = 4 * MIB
# Not separated by namespaces: they tell of the host, or let root's files be changed (sys). Hidden or read-only.
HIDDEN = (
    "cmdline", "config.gz", "interrupts", "kallsyms", "kcore", "key-users", "keys", "kmsg", "kpagecount",
    "kpageflags", "latency_stats", "pagetypeinfo", "sched_debug", "slabinfo", "softirqs", "sysrq-trigger",
    "timer_list", "vmallocinfo",
)  # fmt: skip
READ_ONLY = ("acpi", "bus", "driver", "fs", "irq", "scsi", "sys")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxMounts:
    """What is mounted in a box.

    Attributes:
        lowers: Directories of the root, lowest first.
        upper: The writable directory.
        work: The overlay's own directory beside it.
        toolchains: See ``Toolchain``.
        stages: Where root mounts the staged ones, by path of the toolchain.
        tmp_bytes: Size of /tmp and of /dev/shm each.
        hosts: Text that stands in place of /etc/hosts; ``None`` leaves the box what it has.
    """

    lowers: Sequence[Path]
    upper: Path
    work: Path
    toolchains: Sequence[Toolchain]
    stages: dict[Path, Path]
    tmp_bytes: int
    hosts: str | None = None


def bwrap_command(
    kit: Kit, mounts: BoxMounts, *, control: int, seccomp: int, info: int, hosts: int | None = None
) -> list[str]:
    """Returns the arguments that start a box.

    Args:
        kit: Program, filter and agent.
        mounts: See ``BoxMounts``.
        control: Descriptor of the agent's end of the control channel.
        seccomp: Descriptor of the filter, at its beginning.
        info: Descriptor to which bwrap writes the pid of the agent.
        hosts: Descriptor from which bwrap reads /etc/hosts.
    """
    argv = [str(kit.bwrap)]
    # One uid is mapped, no further user namespace can be made: nothing in the box ever has a capability.
    argv += ["--unshare-user", "--uid", "1000", "--gid", "1000", "--disable-userns"]
    argv += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--unshare-net"]
    argv += ["--hostname", "sandbox", "--clearenv", "--cap-drop", "ALL"]
    argv += ["--die-with-parent", "--new-session", "--as-pid-1"]
    for lower in mounts.lowers:
        argv += ["--overlay-src", str(lower)]
    argv += ["--overlay", str(mounts.upper), str(mounts.work), "/"]
    argv += ["--ro-bind", "/usr", "/usr"]
    for name in HOST_DIRECTORIES:
        if Path("/", name).is_dir() and not Path("/", name).is_symlink():
            argv += ["--ro-bind", f"/{name}", f"/{name}"]
    argv += ["--proc", "/proc"]
    for name in HIDDEN:
        if Path("/proc", name).exists():
            argv += ["--ro-bind", "/dev/null", f"/proc/{name}"]
    for name in READ_ONLY:
        if Path("/proc", name).exists():
            argv += ["--ro-bind", f"/proc/{name}", f"/proc/{name}"]
    size = str(mounts.tmp_bytes)
    argv += ["--dev", "/dev", "--size", size, "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    argv += ["--size", size, "--perms", "1777", "--tmpfs", "/tmp"]  # noqa: S108
    argv += ["--size", str(_RUN_BYTES), "--perms", "0755", "--tmpfs", "/run"]
    argv += ["--ro-bind", str(kit.root), INSIDE, "--setenv", "PYTHONHOME", INSIDE]
    for toolchain in mounts.toolchains:
        if not toolchain.path.is_relative_to("/usr"):
            source = mounts.stages.get(toolchain.path, toolchain.path)
            argv += ["--ro-bind", str(source), str(toolchain.path)]
    if hosts is not None:
        # Programs cannot change it: no one of them can lead another one's driver astray.
        argv += ["--perms", "0644", "--ro-bind-data", str(hosts), "/etc/hosts"]
    argv += ["--chdir", "/", "--seccomp", str(seccomp), "--info-fd", str(info)]
    return [*argv, "--", *kit.command, str(control)]


def dropped_to(uid: int, *, setpriv: str) -> list[str]:
    """Returns the words before a command that make root run it as ``uid``."""
    return [setpriv, "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--"]


def as_host_uid(command: Sequence[str], *, uid: int, stages: dict[Path, Path], setpriv: str) -> list[str]:
    """Returns ``command`` run by root as ``uid``; mode R.

    By ``setpriv`` and not by the ``user`` argument of ``subprocess``, for which Python forks the whole server.
    Staged toolchains are bind-mounted first, in a mount namespace that ends with the box.
    """
    drop = dropped_to(uid, setpriv=setpriv)
    if not stages:
        return [*drop, *command]
    steps = []
    for path, stage in stages.items():
        source, target = shlex.quote(str(path)), shlex.quote(str(stage))
        steps += [f"mount --bind {source} {target}", f"mount -o remount,bind,ro {target}"]
    script = " && ".join([*steps, 'exec "$@"'])
    return ["unshare", "-m", "--propagation", "private", "--", "sh", "-c", script, "sh", *drop, *command]


def find_program(name: str) -> str:
    """Returns the path of a program that every Debian has.

    Raises:
        RuntimeUnavailableError: It is not installed.
    """
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin:/bin")
    if found is None:
        raise RuntimeUnavailableError(f"the program {name} is not installed; it belongs to util-linux")
    return found
