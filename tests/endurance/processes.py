"""What of a platform is alive on this machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path


def command_lines(needle: str) -> list[str]:
    """Command lines of living processes that contain ``needle``; sandboxes' processes are visible from outside."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if needle in line and state != "Z":
            found.append(f"{entry.name} {line}")
    return found


async def until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Waits for a fact outside of this process, which no event can tell; returns whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.05)
    return True
