"""Process sessions: one long-lived shell each, commands one after the other.

An exit code becomes visible only when the log is complete: the shell has reported the code *and* both pipes have
reached their end. A background child that keeps a pipe open therefore delays the exit code, as it does on the hosted
platform; deleting the session ends both.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from pathlib import Path

from ..runtime.errors import BoxLostError, RuntimeFault
from ..runtime.interface import Box, EndReason, OutputPipe, ShellSession
from .command_log import CommandLog
from .commands import KILLED, Command, exit_code_of
from .errors import daemon_error, session_ended
from .framing import PAYLOAD_LIMIT, Stream

ENTRYPOINT = "entrypoint"
"""Reserved id of the session in which the sandbox's own command runs."""

WAITING_LIMIT = 1000
"""Most commands that may wait in one session."""

_NOT_STARTED = -1
_DRAIN_SECONDS = 5.0

_log = logging.getLogger(__name__)


class Session:
    """A shell and its commands, in the order they came.

    Attributes:
        id: Chosen by the client.
        deleted: True from the moment it is being deleted.
    """

    def __init__(self, session_id: str, shell: ShellSession, *, log_directory: Path, output_limit: int) -> None:
        self.id = session_id
        self._shell = shell
        self._log_directory = log_directory
        self._output_limit = output_limit
        self._commands: dict[str, Command] = {}
        self._waiting: asyncio.Queue[Command | None] = asyncio.Queue()
        self.deleted = False
        self._kill: asyncio.Task[None] | None = None
        self._runner = asyncio.create_task(self._run_commands(), name=f"session {session_id}")

    @property
    def commands(self) -> Sequence[Command]:
        """All commands ever given to the session, oldest first."""
        return list(self._commands.values())

    def describe(self) -> dict[str, object]:
        """Returns the session as the wire shows it."""
        return {"sessionId": self.id, "commands": [command.describe() for command in self._commands.values()]}

    def command(self, command_id: str) -> Command:
        """Returns a command of this session; raises 404 for an unknown id."""
        command = self._commands.get(command_id)
        if command is None:
            raise daemon_error(404, f"session {self.id!r} has no command {command_id!r}")
        return command

    def submit(self, text: str, *, interactive: bool, echo: bool) -> Command:
        """Queues a command behind those before it.

        Args:
            text: Shell text.
            interactive: Keep its standard input open for ``Command.write_input``; else it reads an end of file.
            echo: Show input in the log as stdout.

        Raises:
            WireError: 400 for a blank text, 410 ``SESSION_ENDED``, 429 when ``WAITING_LIMIT`` commands wait already.
        """
        if not text.strip():
            raise daemon_error(400, "command must not be blank")
        if "\0" in text:
            raise daemon_error(400, "command must not contain NUL")
        if self.deleted or self._shell.ended:
            raise session_ended(self.id)
        if self._waiting.qsize() >= WAITING_LIMIT:
            raise daemon_error(429, f"{WAITING_LIMIT} commands wait in session {self.id!r}; use another session")
        command_id = str(uuid.uuid4())
        log = CommandLog(self._log_directory / f"{command_id}.log", capacity=self._output_limit)
        command = Command(command_id, text, interactive=interactive, echo=echo, log=log)
        self._commands[command_id] = command
        self._waiting.put_nowait(command)
        return command

    async def delete(self) -> None:
        """Ends the shell and everything in it, completes the logs so that followers end, then removes them."""
        self.deleted = True
        self._waiting.put_nowait(None)
        await self._kill_shell()
        # With the tree gone both pipes end, so the runner finishes by itself; the limit is for a runtime that fails.
        await asyncio.wait({self._runner}, timeout=_DRAIN_SECONDS)
        if not self._runner.done():
            _log.warning("session %s: output did not end after the kill", self.id)
            self._runner.cancel()
        await asyncio.gather(self._runner, return_exceptions=True)
        for command in self._commands.values():
            await command.log.discard()

    async def _kill_shell(self) -> None:
        if self._kill is None:
            self._kill = asyncio.create_task(self._shell.delete(), name=f"kill session {self.id}")
        try:
            await asyncio.shield(self._kill)
        except BoxLostError:
            pass  # and everything in it has gone too
        except RuntimeFault:
            _log.exception("session %s: its shell could not be ended", self.id)

    async def _run_commands(self) -> None:
        try:
            while (command := await self._waiting.get()) is not None:
                await self._run(command)
        finally:
            for command in self._commands.values():
                if command.exit_code is None:
                    command.log.abandon()
                    command.end(KILLED)

    async def _run(self, command: Command) -> None:
        try:
            running = await self._shell.start(command.text, stdin=command.interactive)
        except RuntimeFault as fault:
            command.refused = True
            command.log.remark(f"[not started: {fault}]\n")
            await command.log.finish()
            command.end(_NOT_STARTED)
            return
        command.start(running)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._record(command, Stream.STDOUT, running.stdout))
                group.create_task(self._record(command, Stream.STDERR, running.stderr))
                waiting = group.create_task(running.wait())
            status = waiting.result()
            exit_code, reason = exit_code_of(status), status.reason
        except* BoxLostError:
            exit_code, reason = KILLED, EndReason.BOX_LOST
        finally:
            running.stdout.close()
            running.stderr.close()
        await command.log.finish()
        command.end(exit_code, reason=reason)

    async def _record(self, command: Command, stream: Stream, pipe: OutputPipe) -> None:
        told = False
        while data := await pipe.read(PAYLOAD_LIMIT):
            if await command.log.append(stream, data) or told:
                continue
            told = True
            command.log.remark(f"\n[output limit of {self._output_limit} bytes reached: the session was ended]\n")
            await self._kill_shell()


class SessionRegistry:
    """The sessions of one started sandbox, in the order they were created."""

    def __init__(self, box: Box, *, log_directory: Path) -> None:
        self._box = box
        self._log_directory = log_directory
        self._sessions: dict[str, Session | None] = {}
        self._deletions: set[asyncio.Task[None]] = set()
        self._closed = False

    def list(self) -> Sequence[Session]:
        """Returns all sessions but the entrypoint's."""
        return [session for key, session in self._sessions.items() if session is not None and key != ENTRYPOINT]

    def get(self, session_id: str) -> Session:
        """Returns a session; raises 404 for an unknown id."""
        session = self._sessions.get(session_id)
        if session is None:
            raise daemon_error(404, f"session {session_id!r} does not exist")
        return session

    async def create(self, session_id: str) -> Session:
        """Starts a shell.

        Raises:
            WireError: 409 if the id is taken, 400 if it is blank or reserved.
        """
        if not session_id.strip():
            raise daemon_error(400, "sessionId must not be blank")
        if session_id == ENTRYPOINT:
            raise daemon_error(400, f"the session id {ENTRYPOINT!r} is reserved")
        return await self._open(session_id)

    async def open_entrypoint(self, command: str) -> None:
        """Starts the sandbox's own command in the reserved session."""
        session = await self._open(ENTRYPOINT)
        session.submit(command, interactive=False, echo=False)

    async def delete(self, session_id: str) -> None:
        """Ends a session and removes its logs; the id is free and unknown at once.

        Raises:
            WireError: 404 for an unknown id, 400 for the entrypoint's.
        """
        if session_id == ENTRYPOINT:
            raise daemon_error(400, f"the session {ENTRYPOINT!r} lives as long as the sandbox")
        session = self.get(session_id)
        del self._sessions[session_id]
        await asyncio.shield(self._begin_deletion(session))

    async def close(self) -> None:
        """Deletes every session; later calls find none."""
        self._closed = True
        for session in self._sessions.values():
            if session is not None:
                self._begin_deletion(session)
        self._sessions.clear()
        while self._deletions:
            await asyncio.gather(*self._deletions, return_exceptions=True)

    async def _open(self, session_id: str) -> Session:
        self._require_open()
        if session_id in self._sessions:
            raise daemon_error(409, f"session {session_id!r} exists already")
        self._sessions[session_id] = None  # holds the place while the shell starts
        try:
            shell = await self._box.open_session()
        except BaseException:
            self._sessions.pop(session_id, None)
            raise
        session = Session(session_id, shell, log_directory=self._log_directory, output_limit=self._box.spec.disk)
        try:
            self._require_open()
        except BoxLostError:
            await asyncio.shield(self._begin_deletion(session))
            raise
        self._sessions[session_id] = session
        return session

    def _require_open(self) -> None:
        if self._closed:
            raise BoxLostError("the sandbox is stopping")

    def _begin_deletion(self, session: Session) -> asyncio.Task[None]:
        task = asyncio.create_task(session.delete(), name=f"delete session {session.id}")
        self._deletions.add(task)
        task.add_done_callback(self._deletions.discard)
        return task
