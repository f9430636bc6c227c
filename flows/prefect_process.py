"""Which process the background Prefect server is, and whether it can be reached from here."""

from __future__ import annotations

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
