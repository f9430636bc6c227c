"""The runtime that isolates with bubblewrap: no daemon, no image, no root needed."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .base import base_fingerprint, build_base
from .box import BubblewrapBox
from .channel import Channel, socket_pair, whole_number
from .command_line import BoxMounts, as_host_uid, bwrap_command, find_program
from .errors import BoxLostError, RuntimeFault, RuntimeUnavailableError
from .interface import BoxSpec
from .kit import Kit, build_kit
from .layers import BoxLock, Disks
from .limits import BoxLimits, CgroupParent, find_cgroups, process_limits, remove_parent, remove_stale, tmp_bytes
from .places import Places
from .policy import PolicyError, parse_networks
from .proxy import BoxProxy
from .toolchains import Toolchain, resolve_toolchains

DEFAULT_HOST_UID = 64321
_START_SECONDS = 10.0
_LONGEST_COMPLAINT = 4000


class BubblewrapRuntime:
    """Boxes by bubblewrap; see ``Runtime``.

    A server that runs as an ordinary user starts boxes as itself (mode U). A server that runs as root starts them as
    ``host_uid`` (mode R): root's uid without capabilities would still own root's files, and so could write to the
    kernel's settings (measured).

    Args:
        data_directory: Where layers and writable directories live. Not on an overlay file system; as root not below a
            directory that others cannot search.
        toolchains: Directories of the host that boxes see read-only at their own paths.
        host_uid: Mode R: the uid of every box outside; one that no account uses. Mode U: must be left out.
        extra_public_cidrs: Networks that the policies ``public`` and ``allow`` treat as public although they are
            private, such as that of a package mirror.
    """

    name = "bubblewrap"

    def __init__(
        self,
        *,
        data_directory: Path,
        toolchains: Sequence[Path] = (),
        host_uid: int | None = None,
        extra_public_cidrs: Sequence[str] = (),
    ) -> None:
        self._data_directory = data_directory
        self._roots = tuple(toolchains)
        self._host_uid = host_uid
        self._extra_public_cidrs = tuple(extra_public_cidrs)
        self._boxes: dict[str, BubblewrapBox] = {}
        self._toolchains: tuple[Toolchain, ...] = ()
        self._cgroups: CgroupParent | None = None
        self._fingerprint = ""
        self._lock = -1

    async def prepare(self) -> None:
        """Checks the machine and writes what boxes need; see ``Runtime.prepare``."""
        uid, dropped = self._choose_uid()
        self._places = Places(self._data_directory.absolute(), uid, dropped)
        try:
            self._extra_public = parse_networks(self._extra_public_cidrs)
        except PolicyError as error:
            raise RuntimeUnavailableError(f"extra_public_cidrs: {error}") from error
        await asyncio.to_thread(self._write)
        self._disks.empty_trash()

    def _choose_uid(self) -> tuple[int, bool]:
        own = os.geteuid()
        if own != 0:
            if self._host_uid not in {None, own}:
                raise RuntimeUnavailableError("host_uid can be chosen by root only; leave it out")
            return own, False
        uid = DEFAULT_HOST_UID if self._host_uid is None else self._host_uid
        if uid <= 0:
            raise RuntimeUnavailableError("host_uid must not be root's: sandboxes would own root's files")
        return uid, True

    def _write(self) -> None:
        self._places.create()
        self._disks = Disks(self._places)
        self._setpriv = find_program("setpriv") if self._places.dropped else ""
        self._take_data_directory()
        self._toolchains = resolve_toolchains(
            self._roots, data_directory=self._places.root, dropped=self._places.dropped
        )
        self._stages = {
            toolchain.path: self._places.stage / str(number)
            for number, toolchain in enumerate(self._toolchains)
            if toolchain.staged
        }
        for stage in self._stages.values():
            stage.mkdir(exist_ok=True)
        self._kit: Kit = build_kit(self._places)
        self._fingerprint = base_fingerprint(self._toolchains)
        self._base = build_base(self._places, self._toolchains, fingerprint=self._fingerprint)
        self._cgroups = find_cgroups(f"uom-sandbox-{os.getpid()}")
        if self._cgroups is not None:
            remove_stale(self._cgroups)

    def _take_data_directory(self) -> None:
        self._lock = os.open(self._places.state / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            self._lock = -1
            raise RuntimeUnavailableError(f"another server uses the data directory {self._places.root}") from error

    @property
    def fingerprint(self) -> str:
        """Changes when the toolchains of this machine change."""
        return self._fingerprint

    async def start(self, spec: BoxSpec) -> BubblewrapBox:
        """Starts a box; see ``Runtime.start``.

        Raises:
            RuntimeFault: The box runs already, a layer is missing, or the policy cannot be enforced.
            RuntimeUnavailableError: bwrap refused; its own words are in the text.
        """
        try:
            proxy = BoxProxy(spec.box_id, policy=spec.network, extra_public=self._extra_public)
        except PolicyError as error:
            raise RuntimeFault(f"network policy: {error}") from error
        lock = self._disks.lock(spec.box_id)
        try:
            box = await self._start(spec, lock=lock, proxy=proxy)
        except BaseException:
            lock.release()
            raise
        self._boxes[spec.box_id] = box
        return box

    async def _start(self, spec: BoxSpec, *, lock: BoxLock, proxy: BoxProxy) -> BubblewrapBox:
        directory = self._disks.make_box(spec.box_id)
        mounts = BoxMounts(
            lowers=self._disks.lowers(self._base, spec.layers, box=directory),
            upper=directory / "up",
            work=directory / "work",
            toolchains=self._toolchains,
            stages=self._stages,
            tmp_bytes=tmp_bytes(spec),
        )
        limits = BoxLimits(self._cgroups, spec.box_id)
        limits.create(spec)
        mine, theirs = socket_pair()
        info_read, info_write = os.pipe2(os.O_CLOEXEC)
        complaint_read, complaint_write = os.pipe2(os.O_CLOEXEC)
        try:
            process = self._spawn(mounts, theirs, info=info_write, complaints=complaint_write)
        except BaseException:
            mine.close()
            os.close(info_read)
            os.close(complaint_read)
            await limits.remove()
            raise
        finally:
            theirs.close()
            os.close(info_write)
            os.close(complaint_write)

        async def ended(box: BubblewrapBox) -> None:
            self._boxes.pop(spec.box_id, None)
            await limits.remove()
            lock.release()

        box = BubblewrapBox(
            spec,
            process=process,
            channel=Channel(mine, takes_descriptors=True),
            limits=limits,
            paths=[path for toolchain in self._toolchains for path in toolchain.search_paths],
            proxy=proxy,
            measure_disk=lambda: self._disks.measure(mounts.upper),
            on_end=ended,
        )
        try:
            await self._bring_up(box, spec, limits=limits, info=info_read)
        except BaseException as error:
            await box.stop(force=True)
            if isinstance(error, (BoxLostError, TimeoutError)):
                os.set_blocking(complaint_read, False)
                raise _start_failure(_read_up(complaint_read), error) from error
            raise
        finally:
            os.close(info_read)
            os.close(complaint_read)
        return box

    def _spawn(
        self, mounts: BoxMounts, control: socket.socket, *, info: int, complaints: int
    ) -> subprocess.Popen[bytes]:
        """Starts bwrap from the loop's own thread: ``--die-with-parent`` follows the thread that started it."""
        seccomp = os.open(self._kit.seccomp, os.O_RDONLY | os.O_CLOEXEC)
        try:
            command = bwrap_command(self._kit, mounts, control=control.fileno(), seccomp=seccomp, info=info)
            if self._places.dropped:
                command = as_host_uid(command, uid=self._places.uid, stages=self._stages, setpriv=self._setpriv)
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                pass_fds=(control.fileno(), seccomp, info),
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
                cwd="/",
            )
        finally:
            os.close(seccomp)

    async def _bring_up(self, box: BubblewrapBox, spec: BoxSpec, *, limits: BoxLimits, info: int) -> None:
        os.set_blocking(info, False)
        pid = await _agent_pid(info)
        # The agent starts meanwhile; the first program does not before it is in its groups.
        await asyncio.to_thread(limits.adopt, pid)
        await box.set_up(
            limits=process_limits(spec), watch_memory=spec.memory if limits.watched else 0, seconds=_START_SECONDS
        )

    async def freeze(self, box_id: str, layer_id: str) -> int:
        """Freezes a stopped box; see ``Runtime.freeze``."""
        return await self._disks.freeze(box_id, layer_id)

    async def remove_box(self, box_id: str) -> None:
        """Deletes a stopped box; see ``Runtime.remove_box``."""
        self._disks.remove_box(box_id)

    async def remove_layer(self, layer_id: str) -> None:
        """Deletes a layer; the caller knows that no box stands on it.

        Raises:
            RuntimeFault: A live box stands on it.
        """
        if any(layer_id in box.spec.layers for box in self._boxes.values()):
            raise RuntimeFault(f"layer {layer_id!r} is in use by a live sandbox")
        self._disks.discard(self._disks.layer(layer_id))

    def boxes_on_disk(self) -> Sequence[str]:
        """Returns the ids of boxes that have a writable directory."""
        return sorted(path.name for path in self._places.boxes.iterdir())

    def layers_on_disk(self) -> Sequence[str]:
        """Returns the ids of the layers."""
        return sorted(path.name for path in self._places.layers.iterdir())

    async def close(self) -> None:
        """Stops every box at once and waits for deletions."""
        await asyncio.gather(*(box.stop(force=True) for box in list(self._boxes.values())))
        if self._lock < 0:
            return
        await self._disks.close()
        if self._cgroups is not None:
            remove_parent(self._cgroups)
        os.close(self._lock)
        self._lock = -1


async def _agent_pid(info: int) -> int:
    """Reads from bwrap which process of the host the agent is.

    Raises:
        BoxLostError: bwrap ended without a word.
    """
    from .pipes import PipeReader

    reader = PipeReader(os.dup(info))
    text = b""
    try:
        async with asyncio.timeout(_START_SECONDS):
            while chunk := await reader.read():
                text += chunk
                if b"}" in text:
                    break
    finally:
        reader.close()
    try:
        pid = whole_number(json.loads(text).get("child-pid"), low=2, high=1 << 31)
    except (ValueError, AttributeError) as error:
        raise BoxLostError("bwrap did not start") from error
    if pid is None:
        raise BoxLostError("bwrap did not tell its child")
    return pid


def _read_up(descriptor: int) -> str:
    try:
        return os.read(descriptor, _LONGEST_COMPLAINT).decode("utf-8", "replace").strip()
    except BlockingIOError:
        return ""


def _start_failure(complaint: str, error: BaseException) -> RuntimeFault:
    return RuntimeUnavailableError(f"the sandbox did not start: {complaint or error or 'no answer in time'}")
