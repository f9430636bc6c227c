"""A shell session: one shell that sources one command after the other, each with its own pipes.

The pipes are the server's. The supervisor holds them while the command runs, and the shell opens them by the
supervisor's ``/proc`` entry, so output flows from program to server through the kernel alone. The redirections belong
to the sourcing, so that tracing and traps of the session do not show the driver; the price is that what an EXIT trap
writes when the shell itself ends goes nowhere.
"""

from __future__ import annotations

import os

from .child import start
from .kernel import set_reachable
from .supervisor import Supervisor
from .wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SESSIONS = "/run/session"
_LONGEST_REPORT = 256

# The descriptors of the driver are closed for the sourced text. bash takes numbers that no script uses; a POSIX shell
# knows only one digit. ">|" because the text may have set noclobber.
_DRIVER = (
    "while IFS=' ' {read} _session_number _session_text _session_in _session_out _session_err; do "
    '. "$_session_text" <"$_session_in" >|"$_session_out" 2>|"$_session_err" {commands}<&- {reports}>&-; '
    '{builtin}printf \'%s %s\\n\' "$_session_number" "$?" >&{reports}; done'
)
_BASH = _DRIVER.format(read="builtin read -r -u 40", commands=40, reports=41, builtin="builtin ")
_POSIX = _DRIVER.format(read="read -r <&8", commands=8, reports=9, builtin="")
# POSIX wants a redirection behind the names.
_POSIX = _POSIX.replace("read -r <&8 ", "read -r ").replace("_session_err; do", "_session_err <&8; do")


def find_shell() -> tuple[str, str, int]:
    """Returns program, driver text and number of the first of the driver's two descriptors."""
    for program in ("/bin/bash", "/usr/bin/bash"):
        if os.access(program, os.X_OK):
            return program, _BASH, 40
    return "/bin/sh", _POSIX, 8


class ShellSupervisor(Supervisor):
    """Supervises the shell of a session and hands it commands."""

    def __init__(self, request: Mapping[str, Any], *, wire: Wire) -> None:
        super().__init__(request, wire=wire)
        self._commands = -1
        self._reports = -1
        self._number: int | None = None
        self._held: list[int] = []
        self._report = b""
        self._watching = True
        self._directory = f"{SESSIONS}/{os.getpid()}"

    def launch(self) -> int:
        """Starts the shell with nothing on its own standard descriptors."""
        # The shell opens the pipes of its commands through this process.
        set_reachable(True)
        program, driver, first = find_shell()
        commands_read, self._commands = os.pipe2(os.O_CLOEXEC)
        self._reports, reports_write = os.pipe2(os.O_CLOEXEC)
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        # dup2 in the child must not overwrite a source: move the sources above every target.
        sources = [_above(descriptor, 64) for descriptor in (commands_read, reports_write, null)]
        name = os.path.basename(program)
        options = ["--noprofile", "--norc"] if name == "bash" else []
        try:
            pid = start(
                [program, *options, "-c", driver, name],
                env=self.request["env"],
                directory=self.request["directory"],
                limits=self.request["limits"],
                descriptors={0: sources[2], 1: sources[2], 2: sources[2], first: sources[0], first + 1: sources[1]},
            )
        finally:
            for descriptor in sources:
                os.close(descriptor)
        os.set_blocking(self._reports, False)
        self.watch(self._reports)
        return pid

    def command(self, message: dict[str, Any], descriptors: list[int]) -> None:
        """Hands a command to the shell: its text, stdout, stderr and, if it has one, stdin."""
        if self.main is None or self._number is not None:
            for descriptor in descriptors:
                os.close(descriptor)
            self.wire.send({"refused": message["number"]})
            return
        self._number = message["number"]
        self._held = descriptors
        mine = f"/proc/{os.getpid()}/fd"
        text = f"{self._directory}/command"
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            # The name of this link is what the shell puts before its own messages.
            if os.path.lexists(text):
                os.unlink(text)
            os.symlink(f"{mine}/{descriptors[0]}", text)
        except OSError:
            # A program of this box has made the directory unusable; the bare name serves as well.
            text = f"{mine}/{descriptors[0]}"
        stdin = f"{mine}/{descriptors[3]}" if len(descriptors) > 3 else "/dev/null"
        line = f"{self._number} {text} {stdin} {mine}/{descriptors[1]} {mine}/{descriptors[2]}\n"
        try:
            os.write(self._commands, line.encode("ascii"))
        except BrokenPipeError:
            # The shell has just ended; its end will be reported by ``main_ended``.
            return

    def readable(self, descriptor: int) -> None:
        """The shell reports that a command has ended."""
        try:
            data = os.read(self._reports, 4096)
        except BlockingIOError:
            return
        if not data:
            if self._watching:
                self.unwatch(self._reports)
                self._watching = False
            return
        *lines, self._report = (self._report + data).split(b"\n")
        self._report = self._report[-_LONGEST_REPORT:]
        for line in lines:
            number, _, code = line.partition(b" ")
            # Whatever runs in the session can write here; only the running command can be reported.
            if self._number is not None and number == b"%d" % self._number and code.isdigit():
                done = {"done": self._number, "code": int(code) & 0xFF}
                self._release()
                self.wire.send(done)

    def main_ended(self) -> None:
        """The shell has gone; it may have reported its last command before."""
        self.readable(self._reports)
        self._release()

    def _release(self) -> None:
        self._number = None
        for descriptor in self._held:
            os.close(descriptor)
        self._held = []


def _above(descriptor: int, bound: int) -> int:
    """Moves a descriptor to a number of at least ``bound``."""
    import fcntl

    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, bound)
    os.close(descriptor)
    return moved
