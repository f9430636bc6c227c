"""Writable directories and frozen layers on disk: one live box per directory, freezing by rename, deleting by trash."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

from .command_line import find_program
from .errors import RuntimeFault
from .places import Places, checked_identity

# The kernel takes one page of mount options and bwrap 0.11 cuts what is longer without a word (measured: of 200 layers
# 163 were visible). bwrap puts "/oldroot" before every path and a colon behind.
_LONGEST_OPTIONS = 3500
_PREFIX = len("/oldroot") + 1


class BoxLock:
    """The right to mount a box's writable directory; two overlays over one corrupt it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise RuntimeFault(f"{path.name} is in use by a live sandbox or another server") from error

    def release(self) -> None:
        """Gives the right back. May be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Disks:
    """The directories of boxes and layers."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._deleting: set[asyncio.Task[None]] = set()

    def lock(self, box_id: str) -> BoxLock:
        """Takes the lock of a box.

        Raises:
            RuntimeFault: A live box holds it.
        """
        return BoxLock(self._places.state / f"{checked_identity(box_id, what='box id')}.lock")

    def box(self, box_id: str) -> Path:
        """Returns the directory of a box."""
        return self._places.boxes / checked_identity(box_id, what="box id")

    def layer(self, layer_id: str) -> Path:
        """Returns the directory of a layer."""
        return self._places.layers / checked_identity(layer_id, what="layer id")

    def make_box(self, box_id: str) -> Path:
        """Returns the directory of a box, made if it is new."""
        directory = self.box(box_id)
        for path in (directory, directory / "up", directory / "work"):
            if not path.exists():
                path.mkdir(mode=0o755 if path.name == "up" else 0o700)
                self._places.give(path)
        return directory

    def tidy(self, box_id: str) -> None:
        """Removes what overlayfs leaves beside the writable directory: a directory that its own owner cannot open."""
        with contextlib.suppress(OSError):
            (self.box(box_id) / "work/work").rmdir()

    def lowers(self, base: Path, layers: Sequence[str], *, box: Path) -> list[Path]:
        """Returns the directories below a box's writable one, lowest first.

        Raises:
            RuntimeFault: A layer is missing, or together they are too many to mount.
        """
        paths = [base, *(self.layer(layer_id) for layer_id in layers)]
        for layer_id, path in zip(layers, paths[1:], strict=True):
            if not path.is_dir():
                raise RuntimeFault(f"layer {layer_id!r} does not exist")
        length = sum(len(os.fsencode(path)) + _PREFIX for path in (*paths, box / "up", box / "work"))
        if length > _LONGEST_OPTIONS:
            raise RuntimeFault(
                f"{len(layers)} layers take {length} bytes of mount options, {_LONGEST_OPTIONS} are possible; "
                f"build the snapshot from fewer layers or use a data directory with a shorter path"
            )
        return paths

    async def freeze(self, box_id: str, layer_id: str) -> int:
        """Turns the writable directory of a stopped box into a layer; returns its bytes.

        Raises:
            RuntimeFault: The box runs, there is nothing to freeze, or the layer exists.
        """
        target = self.layer(layer_id)
        box = self.box(box_id)
        lock = self.lock(box_id)
        try:
            if not (box / "up").is_dir():
                raise RuntimeFault(f"box {box_id!r} has no writable directory")
            if target.exists():
                raise RuntimeFault(f"layer {layer_id!r} exists already")
            size = await self.measure(box / "up")
            (box / "up").rename(target)
            self._forget(box)
        finally:
            lock.release()
        return size

    def _forget(self, box: Path) -> None:
        self.discard(box)
        (self._places.state / f"{box.name}.lock").unlink(missing_ok=True)

    async def measure(self, path: Path) -> int:
        """Returns the bytes that ``path`` takes on the disk; see ``measured``."""
        return await measured(path)

    def discard(self, path: Path) -> None:
        """Moves a directory out of the way at once and deletes it in the background."""
        if not path.exists():
            return
        trash = self._places.trash / uuid.uuid4().hex
        path.rename(trash)
        task = asyncio.create_task(delete_tree(trash), name=f"delete {path.name}")
        self._deleting.add(task)
        task.add_done_callback(self._deleting.discard)

    def discard_others(self, current: Path) -> None:
        """Discards what lies beside ``current``: versions of it that nothing uses any more."""
        for path in current.parent.iterdir():
            if path != current:
                self.discard(path)

    def remove_box(self, box_id: str) -> None:
        """Discards a stopped box.

        Raises:
            RuntimeFault: The box runs.
        """
        lock = self.lock(box_id)
        try:
            self._forget(self.box(box_id))
        finally:
            lock.release()

    def empty_trash(self) -> None:
        """Deletes in the background what an earlier run has left."""
        for path in self._places.trash.iterdir():
            task = asyncio.create_task(delete_tree(path), name=f"delete {path.name}")
            self._deleting.add(task)
            task.add_done_callback(self._deleting.discard)

    async def close(self) -> None:
        """Waits for the deletions."""
        while self._deleting:
            await asyncio.gather(*self._deleting)


async def measured(path: Path) -> int:
    """Returns the bytes that ``path`` takes on the disk, hard links counted once.

    By ``du`` in its own process, so that a directory with a million files does not stall the server. An ordinary
    user runs it as root of a user namespace, because a box can hide a directory from its owner by its mode.
    """
    process = await asyncio.create_subprocess_exec(
        *_as_owner("du", "-sx", "--block-size=1", "--", str(path)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        if process.returncode is None:
            process.kill()
            await asyncio.shield(process.wait())
        raise
    first = output.split(b"\t", 1)[0]
    # du fails for what vanishes while it counts and still prints the sum of the rest.
    return int(first) if first.isdigit() else 0


async def delete_tree(path: Path) -> None:
    """Deletes a directory in which a box has written, in a process of its own.

    ``shutil.rmtree`` fails on trees deeper than a path may be long, and for an ordinary user on directories that a box
    has closed by their mode.
    """
    process = await asyncio.create_subprocess_exec(
        *_as_owner("rm", "-rf", "--one-file-system", "--", str(path)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await process.wait()
    except asyncio.CancelledError:
        process.kill()
        await asyncio.shield(process.wait())
        raise


def _as_owner(*argv: str) -> list[str]:
    """Returns the command as somebody whom no mode stops: root, or root of a user namespace."""
    if os.geteuid() == 0:
        return list(argv)
    return [find_program("unshare"), "--user", "--map-root-user", "--", *argv]
