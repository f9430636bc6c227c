"""Shell sessions in a box."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from .channel import Channel, whole_number
from .errors import BoxLostError, SessionEndedError
from .interface import EndReason, ExitStatus, InputPipe, OutputPipe
from .pipes import PipeReader, PipeWriter, make_pipe
from .units import Unit, UnitHost, status_of


class SessionCommand:
    """A command that the session's shell is running; see ``ShellCommand``."""

    def __init__(self, session: BoxSession, *, stdin: InputPipe | None, stdout: OutputPipe, stderr: OutputPipe) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._session = session
        self._since = session.box.kills()
        self._status: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()

    @property
    def done(self) -> bool:
        """True once the shell has reported the command, or has gone."""
        return self._status.done()

    async def wait(self) -> ExitStatus:
        """Waits for the shell's report or the shell's end."""
        status = await asyncio.shield(self._status)
        return await self._session.explain(status, since=self._since)

    def finish(self, status: ExitStatus) -> None:
        """Sets how the command ended."""
        if not self._status.done():
            self._status.set_result(status)

    def close_pipes(self) -> None:
        """Closes what the caller has not closed."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()


class BoxSession(Unit):
    """One shell that sources one command after the other; see ``ShellSession``."""

    def __init__(self, box: UnitHost, *, name: str, channel: Channel) -> None:
        super().__init__(box, name=name, channel=channel)
        self._ended = False
        self._number = 0
        self._command: SessionCommand | None = None
        self._shell_status: ExitStatus | None = None

    @property
    def ended(self) -> bool:
        """True once the shell has gone."""
        return self._ended

    async def start(self, command: str, *, stdin: bool) -> SessionCommand:
        """Hands ``command`` to the shell.

        Raises:
            SessionEndedError: The shell has gone.
            RuntimeError: The command before has not ended.
        """
        if self._ended:
            raise SessionEndedError("the session's shell has ended; open a new session")
        if self._command is not None and not self._command.done:
            raise RuntimeError("a session runs one command at a time; wait for the one before")
        theirs: list[int] = []
        mine: list[int] = []
        try:
            theirs.append(_text_file(command))
            for _ in range(2):
                read, write = make_pipe()
                theirs.append(write)
                mine.append(read)
            if stdin:
                read, write = make_pipe()
                theirs.append(read)
                mine.append(write)
            started = SessionCommand(
                self,
                stdin=PipeWriter(mine[2], register=self.box.pipes) if stdin else None,
                stdout=PipeReader(mine[0], register=self.box.pipes),
                stderr=PipeReader(mine[1], register=self.box.pipes),
            )
        except OSError:
            for descriptor in mine:
                os.close(descriptor)
            raise
        else:
            self._number += 1
            self._command = started
            try:
                await self.channel.send({"do": "command", "number": self._number}, descriptors=theirs)
            except BoxLostError as error:
                started.close_pipes()
                raise SessionEndedError("the session's shell has ended; open a new session") from error
            except asyncio.CancelledError:
                started.close_pipes()
                raise
            return started
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    async def delete(self) -> None:
        """Kills the shell with everything that descends from it."""
        self._ended = True
        await self.end()

    def close_pipes(self) -> None:
        """Closes what the caller of the last command has not closed."""
        if self._command is not None:
            self._command.close_pipes()

    def report(self, message: Mapping[str, Any]) -> None:
        """A command or the shell has ended."""
        if "done" in message:
            code = whole_number(message.get("code"), low=0, high=255)
            if code is not None and message["done"] == self._number and self._command is not None:
                self._command.finish(ExitStatus(exit_code=code))
        elif "exit" in message:
            self._ended = True
            self._shell_status = status_of(message.get("exit"), message.get("signal"))
            if self._command is not None and self._shell_status is not None:
                self._command.finish(self._shell_status)
        elif "refused" in message and self._command is not None:
            # The shell had ended before the command reached it, and this end did not know yet: it never ran.
            self._command.finish(ExitStatus(exit_code=None, reason=EndReason.KILLED))

    async def lost(self) -> None:
        """The supervisor has gone, and with it the shell."""
        self._ended = True
        if self._command is not None and not self._command.done:
            self._command.finish(self._shell_status or await self.unreported())


def _text_file(command: str) -> int:
    """Returns a file in memory that holds the command; the shell opens it by its number."""
    descriptor = os.memfd_create("command", os.MFD_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o444)
        view = memoryview(command.encode("utf-8", "surrogateescape"))
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
