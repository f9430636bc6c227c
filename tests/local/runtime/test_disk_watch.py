"""When the watch looks at a box: free space is only a hint, and others change it too."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from sandbox.local.runtime.disk_watch import DiskWatch

GIB = 2**30


class Box:
    disk_limit = GIB
    busy = True

    def __init__(self) -> None:
        self.killed = asyncio.Event()

    async def kill_for_disk(self) -> None:
        self.killed.set()


async def test_what_others_free_does_not_hide_what_a_box_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    free_gib: Iterator[float] = iter([50.0, 90.0, 89.5, 89.0, 99.0, 98.4, 98.4])

    measured_root = Path("/nowhere")
    real = os.statvfs

    def statvfs(path: Path) -> SimpleNamespace | os.statvfs_result:
        if path != measured_root:  # a platform that runs in this process looks, too
            return real(path)
        return SimpleNamespace(f_bfree=int(next(free_gib, 98.4) * GIB) // 4096, f_frsize=4096)

    measured = 0

    async def measure() -> int:
        nonlocal measured
        measured += 1
        return 0 if measured == 1 else 2 * GIB

    monkeypatch.setattr(os, "statvfs", statvfs)
    box = Box()
    watch = DiskWatch(root=measured_root)
    watch.add(box, measure=measure)
    task = asyncio.create_task(watch.run())
    try:
        await asyncio.wait_for(box.killed.wait(), 10)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert measured >= 2
