"""The agent: pid 1 of a box. It forks supervisors and file workers, and reaps and ends what has lost its supervisor.

As pid 1 it is shielded by the kernel from every signal out of the box. When the server hangs up, the agent exits and
the kernel ends everything else in the box.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # below signal, which imports enum
import errno
import gc
import os
import select
import sys
from _socket import AF_UNIX, SOCK_STREAM, socket

from . import survey
from .kernel import install_filter, set_reachable
from .listener import listen
from .shell import ShellSupervisor, find_shell
from .supervisor import ProgramSupervisor, Supervisor
from .tree import SIGKILL, kill_descendants, parents, signal_quietly
from .wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SIGTERM = 15
_MEMORY_INTERVAL_MS = 100


class Agent:
    """The loop of pid 1."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._supervisors: dict[int, str] = {}
        self._workers: set[int] = set()
        self._limits: dict[str, int] = {}
        self._memory = 0
        self._terminating = False
        self._listening: set[int] = set()
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def run(self) -> None:
        """Serves the server until it hangs up or the box has been told to end and is empty."""
        _signal.signal(_signal.SIGCHLD, lambda number, frame: None)
        _signal.set_wakeup_fd(self._wake_write)
        poll = select.poll()
        poll.register(self.wire.fileno(), select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        while not (self._terminating and not self._supervisors and not self._workers):
            watching = self._memory and (self._supervisors or self._workers)
            events = poll.poll(_MEMORY_INTERVAL_MS if watching else None)
            for descriptor, _ in events:
                if descriptor == self._wake_read:
                    os.read(self._wake_read, 4096)
                    continue
                frames = self.wire.receive()
                if frames is None:
                    return
                for message, descriptors in frames:
                    self._serve(message, descriptors)
            self._reap()
            if watching:
                self._watch_memory()

    def _serve(self, message: dict[str, Any], descriptors: list[int]) -> None:
        what = message["do"]
        if what == "supervise":
            self._supervise(message, descriptors)
        elif what == "file":
            self._work(message, descriptors)
        else:
            try:
                answer, passed = self._answer(what, message)
            except OSError as error:
                answer, passed = {"errno": error.errno or 0}, ()
            self.wire.send({"id": message["id"], **answer}, descriptors=passed)
            for descriptor in passed:
                os.close(descriptor)

    def _answer(self, what: str, message: dict[str, Any]) -> tuple[dict[str, Any], tuple[int, ...]]:
        if what == "setup":
            return self._set_up(message), ()
        if what == "ping":
            return {}, ()
        if what == "sweep":
            self._abandon(message.get("unit"))
            return {}, ()
        if what == "terminate":
            self._terminating = True
            signal_quietly(-1, _SIGTERM)
            return {}, ()
        if what == "kill_all":
            signal_quietly(-1, SIGKILL)
            return {}, ()
        if what == "usage":
            return survey.usage(spare=self._own()), ()
        if what == "ports":
            return {"ports": survey.listening_ports(spare=self._listening)}, ()
        if what == "listen":
            descriptor = listen(message["address"], message["port"])
            self._listening.add(os.fstat(descriptor).st_ino)
            return {}, (descriptor,)
        return {"errno": errno.ENOSYS}, ()

    def _set_up(self, message: dict[str, Any]) -> dict[str, Any]:
        self._limits = message["limits"]
        self._memory = message["watch_memory"]
        problem = None
        try:
            os.makedirs(message["directory"], exist_ok=True)
        except OSError as error:
            problem = error.strerror
        return {"problem": problem, "shell": find_shell()[0]}

    def _supervise(self, message: dict[str, Any], descriptors: list[int]) -> None:
        message.setdefault("limits", self._limits)
        try:
            pid = os.fork()
        except OSError as error:
            wire = Wire(descriptors[0])
            wire.send({"failed": "fork", "errno": error.errno or 0})
            wire.close()
            for descriptor in descriptors[1:]:
                os.close(descriptor)
            self.wire.send({"event": "ended", "unit": message["unit"]})
            return
        if pid == 0:
            try:
                self._leave()
                wire = Wire(descriptors[0])
                supervisor: Supervisor
                if message["kind"] == "session":
                    supervisor = ShellSupervisor(message, wire=wire)
                else:
                    supervisor = ProgramSupervisor(message, wire=wire, stdio=descriptors[1:])
                supervisor.run()
            finally:
                # Whatever has happened: pid 1 ends what is left of the tree and tells the server.
                os._exit(0)
        self._supervisors[pid] = message["unit"]
        for descriptor in descriptors:
            os.close(descriptor)

    def _work(self, message: dict[str, Any], descriptors: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            wire = Wire(descriptors[0])
            wire.send({"failed": error.errno or 0, "text": error.strerror or ""})
            wire.close()
            for descriptor in descriptors[1:]:
                os.close(descriptor)
            return
        if pid == 0:
            try:
                self._leave()
                from .filework import serve

                serve(message, wire=Wire(descriptors[0]), data=descriptors[1:], limits=self._limits)
            finally:
                os._exit(0)
        self._workers.add(pid)
        for descriptor in descriptors:
            os.close(descriptor)

    def _leave(self) -> None:
        """In a fork: lets go of what belongs to pid 1."""
        _signal.set_wakeup_fd(-1)
        os.close(self._wake_read)
        os.close(self._wake_write)
        self.wire.close()

    def _own(self) -> frozenset[int]:
        return frozenset(self._supervisors) | frozenset(self._workers)

    def _reap(self) -> None:
        ended = []
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            self._workers.discard(pid)
            unit = self._supervisors.pop(pid, None)
            if unit is not None:
                ended.append(unit)
        if ended:
            # A supervisor exits by itself only when nothing is left of its tree, but it may have been killed.
            self._sweep()
        for unit in ended:
            self.wire.send({"event": "ended", "unit": unit})

    def _sweep(self) -> None:
        """Ends every child of pid 1 that is neither supervisor nor worker: they have lost their supervisor."""
        kill_descendants(os.getpid(), reap=self._reap_strays, spare=self._own())

    def _reap_strays(self) -> None:
        # Supervisors and workers that have ended wait for the next turn of the loop.
        own = self._own()
        for pid, (parent, state) in parents().items():
            if parent == os.getpid() and state == b"Z" and pid not in own:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    continue

    def _abandon(self, unit: str | None) -> None:
        """Ends a unit whose supervisor does not answer, with its whole tree; without a name only sweeps."""
        for pid, name in list(self._supervisors.items()):
            if name == unit:
                signal_quietly(pid, SIGKILL)
                # Not reaped before all it supervised has become a child of pid 1.
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        self._reap()
        self._sweep()

    def _watch_memory(self) -> None:
        victim = survey.over_memory(self._memory, spare=self._own())
        if victim is not None:
            # Told first, so that the server knows the reason before it hears of the end.
            self.wire.send({"event": "memory", "pid": victim})
            signal_quietly(victim, SIGKILL)


def main() -> None:
    """Takes the control channel from the command line and serves it.

    First argument: the number of an open descriptor, or the path of the socket at which the server listens. Second, if
    there is one: the file of a system call filter, for a box that was made without it.
    """
    # Objects made so far live for ever: without the collector looking at them, forks share their pages.
    gc.disable()
    gc.freeze()
    # No program of the box may write the memory of its warden.
    set_reachable(False)
    wire = Wire(_control(sys.argv[1]))
    try:
        os.set_inheritable(wire.fileno(), False)
        if len(sys.argv) > 2:
            _restrict(sys.argv[2])
        wire.send({"ready": os.getpid()})
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        for number in (0, 1, 2):
            os.dup2(null, number)
        Agent(wire).run()
    except Exception as error:
        # Nobody else can tell why a box has gone.
        wire.send({"event": "fault", "text": f"{type(error).__name__}: {error}"[:1000]})
    os._exit(0)


def _control(word: str) -> int:
    if word.isdigit():
        return int(word)
    control = socket(AF_UNIX, SOCK_STREAM)
    control.connect(word)
    return control.detach()


def _restrict(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        install_filter(os.read(descriptor, 65536))
    finally:
        os.close(descriptor)
