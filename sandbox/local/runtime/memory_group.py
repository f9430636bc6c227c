"""What a memory cgroup tells about the box in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """A memory cgroup that can be read.

    Attributes:
        version: 1 or 2.
        directory: The group.
    """

    version: int
    directory: Path

    def oom_kills(self) -> int:
        """Returns how many processes of the group the kernel has killed for memory; 0 when the group has gone."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        try:
            text = (self.directory / name).read_text(encoding="ascii")
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), 0)

    def used(self) -> int | None:
        """Returns the bytes the kernel accounts to it, page cache left out; ``None`` when the group has gone."""
        current, cached = (
            ("memory.usage_in_bytes", "total_inactive_file")
            if self.version == 1
            else ("memory.current", "inactive_file")
        )
        try:
            used = int((self.directory / current).read_text(encoding="ascii"))
            lines = (self.directory / "memory.stat").read_text(encoding="ascii").splitlines()
        except OSError:
            return None
        return max(0, used - next((int(line.split()[1]) for line in lines if line.startswith(f"{cached} ")), 0))
