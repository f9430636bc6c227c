"""One command of a session: its text, input, log and exit code."""

from __future__ import annotations

import asyncio

from ..runtime.interface import EndReason, ExitStatus, ShellCommand
from .command_log import CommandLog
from .errors import daemon_error
from .framing import Stream

KILLED = 137
"""Exit code of what did not get to end by itself: 128 + SIGKILL, as a shell reports it."""


class Command:
    """One command of a session.

    Attributes:
        id: Identity, a UUID made here.
        text: Shell text as it was asked for.
        interactive: Its standard input stays open for ``write_input``.
        log: What it has written.
        exit_code: None until the command has ended and its log is complete.
        end_reason: Why the platform ended something of it, where it knows better than the exit code.
        refused: The shell had gone before the command could start.
    """

    def __init__(self, command_id: str, text: str, *, interactive: bool, echo: bool, log: CommandLog) -> None:
        self.id = command_id
        self.text = text
        self.interactive = interactive
        self.log = log
        self.exit_code: int | None = None
        self.end_reason: EndReason | None = None
        self.refused = False
        self._echo = echo
        self._running: ShellCommand | None = None
        self._started = asyncio.Event()
        self._done = asyncio.Event()
        self._writing = asyncio.Lock()

    def describe(self) -> dict[str, object]:
        """Returns the command as the wire shows it; no ``exitCode`` while it runs.

        ``endReason`` is an addition of this platform: Daytona shows no more than the exit code, and 137 alone does not
        say that memory or disk was the reason.
        """
        described: dict[str, object] = {"id": self.id, "command": self.text}
        if self.exit_code is not None:
            described["exitCode"] = self.exit_code
        if self.end_reason in (EndReason.MEMORY, EndReason.DISK):
            described["endReason"] = self.end_reason.value
        return described

    async def wait(self) -> None:
        """Waits until ``exit_code`` is set."""
        await self._done.wait()

    async def write_input(self, data: str) -> None:
        """Writes to the command's standard input, with a newline at the end if there is none.

        Waits while the command has not started or does not read.

        Raises:
            WireError: 410 ``COMMAND_ALREADY_COMPLETED``, also when it ends meanwhile; 400 for a command without input.
        """
        if self.exit_code is not None:
            raise self._completed()
        if not self.interactive:
            raise daemon_error(400, f"command {self.id} was started synchronously and has no input; use runAsync")
        line = (data if data.endswith("\n") else data + "\n").encode("utf-8", "surrogatepass")
        writing = asyncio.ensure_future(self._write(line))
        done = asyncio.ensure_future(self._done.wait())
        try:
            await asyncio.wait({writing, done}, return_when=asyncio.FIRST_COMPLETED)
            if not writing.done():
                raise self._completed()
            writing.result()
        finally:
            for task in (writing, done):
                task.cancel()
            await asyncio.gather(writing, done, return_exceptions=True)

    async def _write(self, line: bytes) -> None:
        await self._started.wait()
        async with self._writing:
            stdin = self._running.stdin if self._running is not None else None
            if stdin is None:
                raise self._completed()
            try:
                await stdin.write(line)
            except BrokenPipeError:
                # The shell itself holds the other end for as long as the command lasts.
                raise self._completed() from None
            if self._echo:
                await self.log.append(Stream.STDOUT, line)

    def _completed(self) -> Exception:
        return daemon_error(410, f"command {self.id} has already completed", code="COMMAND_ALREADY_COMPLETED")

    def start(self, running: ShellCommand) -> None:
        """Takes note that the shell runs the command now."""
        self._running = running
        self._started.set()

    def end(self, exit_code: int, *, reason: EndReason | None = None) -> None:
        """Makes the exit code visible; the log is complete by now."""
        self.end_reason = reason
        self.exit_code = exit_code
        if self._running is not None and self._running.stdin is not None:
            self._running.stdin.close()
        self._running = None
        self._started.set()
        self._done.set()


def exit_code_of(status: ExitStatus) -> int:
    """Returns the exit code to show; where nobody knows one, that of a killed process, since 0 would mean success."""
    if status.exit_code is not None:
        return status.exit_code
    return 128 + status.signal if status.signal is not None and status.reason is EndReason.EXIT else KILLED
