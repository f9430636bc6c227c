"""Starting bwrap: the descriptors it inherits, and what it says before the agent speaks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .channel import Channel, socket_pair, whole_number
from .command_line import BoxMounts, as_host_uid, bwrap_command, dropped_to, find_program
from .endpoints import RoutePlan
from .errors import BoxLostError
from .kit import Kit
from .pipes import PipeEnd, PipeReader
from .places import Places
from .privileges import prepare_network
from .toolchains import Toolchain

_PID_SECONDS = 10.0
_LONGEST_COMPLAINT = 4000
_MOST_INFO = 16 * 1024


@dataclass(frozen=True, slots=True)
class Launch:
    """A bwrap that has been started.

    Attributes:
        process: The outer bwrap.
        channel: The control channel; its agent has not spoken yet.
    """

    process: subprocess.Popen[bytes]
    channel: Channel
    _info: PipeReader
    _complaints: PipeReader

    async def agent_pid(self) -> int:
        """Returns the host's pid of the agent, as soon as bwrap has made it.

        Raises:
            BoxLostError: bwrap ended without it.
        """
        text = b""
        try:
            async with asyncio.timeout(_PID_SECONDS):
                while len(text) < _MOST_INFO and (chunk := await self._info.read()):
                    text += chunk
                    if b"}" in text:
                        break
            pid = whole_number(json.loads(text).get("child-pid"), low=2, high=1 << 31)
        except (TimeoutError, ValueError, AttributeError) as error:
            raise BoxLostError("bwrap did not start") from error
        if pid is None:
            raise BoxLostError("bwrap did not tell its child")
        return pid

    async def complaint(self) -> str:
        """Returns what was written to standard error until its end, for use after a failure."""
        text = b""
        try:
            async with asyncio.timeout(1.0):
                while len(text) < _LONGEST_COMPLAINT and (chunk := await self._complaints.read()):
                    text += chunk
        except TimeoutError:
            pass
        return text[:_LONGEST_COMPLAINT].decode("utf-8", "replace").strip()

    def release(self) -> None:
        """Closes what is only needed during the start."""
        self._info.close()
        self._complaints.close()


class Launcher:
    """Starts boxes in mode U or R.

    Args:
        places: Tells mode and uid.
        kit: See ``Kit``.
        toolchains: The staged ones get mount points.
        pipes: See ``PipeEnd``.
    """

    def __init__(self, places: Places, *, kit: Kit, toolchains: Sequence[Toolchain], pipes: set[PipeEnd]) -> None:
        self._places = places
        self._kit = kit
        self._pipes = pipes
        self._setpriv = find_program("setpriv") if places.dropped else ""
        self.stages: dict[Path, Path] = {}
        for number, toolchain in enumerate(toolchains):
            if toolchain.staged:
                stage = self.stages[toolchain.path] = places.stage / str(number)
                stage.mkdir(exist_ok=True)

    def launch(self, mounts: BoxMounts) -> Launch:
        """Starts bwrap.

        Called in the event loop's own thread, which lives as long as the server: ``--die-with-parent`` follows the
        thread that started a process (measured).
        """
        mine, theirs = socket_pair()
        info_read, info_write = os.pipe2(os.O_CLOEXEC)
        complaint_read, complaint_write = os.pipe2(os.O_CLOEXEC)
        # bwrap reads it from where it stands, so each box gets it opened anew.
        seccomp = os.open(self._kit.seccomp, os.O_RDONLY | os.O_CLOEXEC)
        hosts = None if mounts.hosts is None else _filled(mounts.hosts)
        try:
            process = self._spawn(
                mounts, control=theirs.fileno(), seccomp=seccomp, info=info_write, log=complaint_write, hosts=hosts
            )
        except BaseException:
            mine.close()
            os.close(info_read)
            os.close(complaint_read)
            raise
        finally:
            theirs.close()
            for descriptor in (info_write, complaint_write, seccomp, hosts):
                if descriptor is not None:
                    os.close(descriptor)
        return Launch(
            process,
            Channel(mine, takes_descriptors=True),
            PipeReader(info_read, register=self._pipes),
            PipeReader(complaint_read, register=self._pipes),
        )

    async def prepare_network(self, plan: RoutePlan, *, pid: int) -> None:
        """Does what a box's connections need of its network namespace; ``pid`` is a process of the box.

        Raises:
            RuntimeFault: It failed.
        """
        prefix = dropped_to(self._places.uid, setpriv=self._setpriv) if self._places.dropped else []
        await prepare_network(self._kit, plan, pid=pid, prefix=prefix)

    def _spawn(
        self, mounts: BoxMounts, *, control: int, seccomp: int, info: int, log: int, hosts: int | None
    ) -> subprocess.Popen[bytes]:
        command = bwrap_command(self._kit, mounts, control=control, seccomp=seccomp, info=info, hosts=hosts)
        if self._places.dropped:
            command = as_host_uid(command, uid=self._places.uid, stages=self.stages, setpriv=self._setpriv)
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            pass_fds=(control, seccomp, info) if hosts is None else (control, seccomp, info, hosts),
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
            cwd="/",
        )


def _filled(text: str) -> int:
    """Returns a descriptor that reads ``text``, which lives as long as somebody has it open."""
    descriptor = os.memfd_create("hosts", os.MFD_CLOEXEC)
    os.write(descriptor, text.encode("ascii"))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
