"""Which process the background Prefect server is, and whether it can be reached from here."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProcess:
    """The server as its connection file describes it.

    Attributes:
        pid: Process id.
        started: When the process started, in clock ticks since boot: with ``boot`` it tells a reused pid apart.
        boot: Identity of the boot the process belongs to.
        port: TCP port on 127.0.0.1.
        prefect: Version of Prefect it runs.
        network: Number of the network namespace it listens in, 0 if unknown.
    """

    pid: int
    started: str
    boot: str
    port: int
    prefect: str
    network: int = 0

    @property
    def api_url(self) -> str:
        """What ``PREFECT_API_URL`` must be."""
        return f"http://{HOST}:{self.port}/api"

    @property
    def ui_url(self) -> str:
        """Where a browser finds the UI."""
        return f"http://{HOST}:{self.port}"

    @property
    def alive(self) -> bool:
        """Whether the very process still runs."""
        return self.boot == boot_id() and process_start(self.pid) == self.started

    @property
    def reachable(self) -> bool:
        """Whether its 127.0.0.1 is ours: that of a container or of ``unshare --net`` is another one."""
        return self.network in (0, network_namespace())

    @property
    def listening(self) -> bool:
        """Whether the port is the server's own: a server of somebody else may have been faster to take it."""
        ours = _listening_sockets(self.port)
        return any(
            _session(process) == self.pid and ours & _sockets(process) for process in Path("/proc").glob("[0-9]*")
        )


def boot_id() -> str:
    """Identity of the boot; empty where the kernel shows none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def network_namespace() -> int:
    """Number of this process's network namespace; 0 where the kernel shows none."""
    try:
        return Path("/proc/self/ns/net").stat().st_ino
    except OSError:
        return 0


def process_start(pid: int) -> str | None:
    """Start time of a live process, ``None`` when there is no such process or it is a zombie."""
    try:
        # The second field is the name in parentheses, which may itself hold spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else fields[19]


def _listening_sockets(port: int) -> set[str]:
    """The sockets that listen on a port of 127.0.0.1, as links in ``/proc/<pid>/fd`` name them."""
    address, listening = f"0100007F:{port:04X}", "0A"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:])
    return {f"socket:[{row[9]}]" for row in rows if row[1] == address and row[3] == listening}


def _session(process: Path) -> int | None:
    try:
        stat = (process / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[3])


def _sockets(process: Path) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for link in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(str(link.readlink()))
    return found
