"""A supervisor: the subreaper above one process or shell session, so that nothing it starts can get away.

Whatever descends from the supervised program stays a descendant of the supervisor, also after ``setsid`` and a double
fork. A program of the box may kill its supervisor (same user); its orphans then land at pid 1, which ends them. So it
is pid 1 that tells the server when a tree is gone, and nothing that a supervisor says is more than a report about its
own program.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # below signal, which imports enum
import os
import select

from .child import STANDARD_DEATHS, StartError, start
from .kernel import become_subreaper
from .tree import kill_descendants
from .wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class Supervisor:
    """Starts one program, reports its end and ends the whole tree when told to, or when the server hangs up."""

    def __init__(self, request: Mapping[str, Any], *, wire: Wire) -> None:
        self.request = request
        self.wire = wire
        self.main: int | None = None
        self._ended: tuple[int | None, int | None] | None = None
        self._childless = False
        self._poll = select.poll()
        self._wake_read = -1

    def run(self) -> None:
        """Runs until the tree is empty; the caller exits then."""
        become_subreaper()
        for number in STANDARD_DEATHS:
            _signal.signal(number, _signal.SIG_IGN)
        self._wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        _signal.set_wakeup_fd(wake_write)
        try:
            self.main = self.launch()
        except StartError as error:
            self.wire.send({"failed": error.step, "errno": error.errno})
            return
        self.wire.send({"started": self.main})
        self.watch(self.wire.fileno())
        self.watch(self._wake_read)
        while not self._childless:
            for descriptor, _ in self._poll.poll():
                if descriptor == self.wire.fileno():
                    self._listen()
                elif descriptor == self._wake_read:
                    os.read(self._wake_read, 4096)
                else:
                    self.readable(descriptor)
            self.reap()
            self._report_end()

    def watch(self, descriptor: int) -> None:
        """Adds a descriptor whose news go to ``readable``."""
        self._poll.register(descriptor, select.POLLIN)

    def unwatch(self, descriptor: int) -> None:
        """Takes a descriptor out again."""
        self._poll.unregister(descriptor)

    def launch(self) -> int:
        """Starts the program and returns its pid; overridden by what supervises something else."""
        raise NotImplementedError

    def readable(self, descriptor: int) -> None:
        """Something can be read from a watched descriptor."""
        raise NotImplementedError

    def command(self, message: dict[str, Any], descriptors: list[int]) -> None:
        """The server asks for something other than ``kill``."""
        raise NotImplementedError

    def main_ended(self) -> None:
        """Called once, before the end of the main process is reported."""

    def reap(self) -> None:
        """Takes every zombie off the table and remembers how the main process ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._childless = True
                return
            if pid == 0:
                return
            if pid == self.main:
                signaled = os.WIFSIGNALED(status)
                number = os.WTERMSIG(status) if signaled else None
                self._ended = (None if signaled else os.WEXITSTATUS(status), number)

    def kill(self) -> None:
        """Ends the tree."""
        kill_descendants(os.getpid(), reap=self.reap)

    def _listen(self) -> None:
        frames = self.wire.receive()
        if frames is None:
            self.kill()
            os._exit(0)
        for message, descriptors in frames:
            if message["do"] == "kill":
                self.kill()
            else:
                self.command(message, descriptors)

    def _report_end(self) -> None:
        if self._ended is None:
            return
        self.main_ended()
        code, number = self._ended
        self._ended = None
        self.main = None
        self.wire.send({"exit": code, "signal": number})


class ProgramSupervisor(Supervisor):
    """Supervises a one-shot program whose three descriptors came with the request."""

    def __init__(self, request: Mapping[str, Any], *, wire: Wire, stdio: Sequence[int]) -> None:
        super().__init__(request, wire=wire)
        self._stdio = stdio

    def launch(self) -> int:
        """Starts the program; the supervisor keeps none of its pipes, so their end is exact."""
        try:
            return start(
                self.request["argv"],
                env=self.request["env"],
                directory=self.request["directory"],
                limits=self.request["limits"],
                descriptors=dict(enumerate(self._stdio)),
            )
        finally:
            for descriptor in set(self._stdio):
                os.close(descriptor)
