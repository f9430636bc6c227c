"""A session in a sandbox: opened with the run's files, used for its phases, ended with all that runs in it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from daytona import FileUpload, SessionExecuteRequest

from sandbox.budget import ANSWER_SECONDS, CLOSE_SECONDS, TRANSFER_SECONDS, insist
from sandbox.errors import EndUnconfirmedError, PlatformUnavailableError, SandboxError
from sandbox.faults import code_of, status_of
from sandbox.platform_api import REQUEST_SECONDS
from sandbox.retry import Deadline
from sandbox.workspace import Workspace

if TYPE_CHECKING:
    from daytona import AsyncSandbox

logger = logging.getLogger(__name__)

STEP: Final = "execute_session"

KILL_SECONDS: Final = 20.0
"""Until when the end of a program must be confirmed; the real toolbox takes up to 5 s before it kills."""


RESTART_SECONDS: Final = 5.0
"""How long a run waits to tidy up in a sandbox that another run restarts."""


class Session:
    """One session of a sandbox, for one execution of a run.

    Args:
        sandbox: Where.
        workspace: The run's directory; its mark is part of the session's id.
        prefix: First part of the id: the sandbox's name.
        platform: How long the platform may keep us waiting.
    """

    def __init__(self, sandbox: AsyncSandbox, workspace: Workspace, *, prefix: str, platform: Deadline) -> None:
        self.sandbox = sandbox
        self.workspace = workspace
        self.id = f"{prefix}-{uuid.UUID(workspace.mark)}"
        self.platform = platform
        self._open_ids: list[str] = []
        self._prefix = prefix

    async def open(self, files: Mapping[str, bytes]) -> None:
        """Opens the session and uploads the workspace, at the same time.

        Raises:
            SandboxError: The sandbox does not answer, or refused an upload.
        """
        both = (asyncio.create_task(self._create()), asyncio.create_task(self._upload(files)))
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
            # A creation that is cut off may come to pass after its session was deleted.
            await asyncio.wait(both[:1])
            for task in both:
                if task.done():
                    task.result()
        finally:
            await end_tasks(*both)

    async def start(self, command: str) -> str:
        """Starts a command asynchronously and returns its id.

        A session that was lost is opened anew, once. So is one that did not answer: the command may run in it unseen,
        and ends with it.
        """
        try:
            return await self._start(command)
        except SandboxError as error:
            if status_of(error) not in (404, 410) and not isinstance(error, PlatformUnavailableError):
                raise
            logger.info("the session %s is gone (%s); opening another", self.id, error)
        await self.close()
        self.id = f"{self._prefix}-{uuid.uuid4()}"
        await self._create()
        return await self._start(command)

    async def send(self, command_id: str, text: str) -> None:
        """Writes to the standard input of a command; one that has ended meanwhile needs none."""

        async def send() -> None:
            try:
                await self.sandbox.process.send_session_command_input(self.id, command_id, text)
            except Exception as error:
                if code_of(error) != "COMMAND_ALREADY_COMPLETED" and status_of(error) != 410:
                    raise

        # Sent twice it does no harm: the script reads up to its end mark only.
        await insist(send, within=self.platform, step=STEP, sandbox=self.sandbox.name, seconds=ANSWER_SECONDS)

    async def kill(self, *, within: Deadline | None = None) -> None:
        """Ends everything that runs in the session, and confirms it.

        Args:
            within: Until when; ``KILL_SECONDS`` by default.

        Raises:
            EndUnconfirmedError: Something is still there, or nobody knows.
        """
        within = within or Deadline(KILL_SECONDS)
        await self.close(within=within.sooner(within.remaining / 2))
        try:
            answer = await insist(
                lambda: self.sandbox.process.exec(self.workspace.sweep_command(), timeout=int(KILL_SECONDS)),
                within=within,
                step=STEP,
                sandbox=self.sandbox.name,
            )
        except SandboxError as error:
            if status_of(error) in (404, 410):
                return  # the sandbox is gone, and all that ran in it
            raise EndUnconfirmedError(error.message, sandbox=self.sandbox.name) from error
        left = answer.result.strip()
        if left != "0":
            what = f"{left} processes are still there" if left.isdigit() else f"its processes cannot be listed: {left}"
            raise EndUnconfirmedError(what, sandbox=self.sandbox.name)
        if self._open_ids:
            raise EndUnconfirmedError("its session could not be deleted", sandbox=self.sandbox.name)

    async def close(self, *, tidy: bool = False, within: Deadline | None = None) -> None:
        """Deletes the session with all it runs; faults are logged, since the sandbox's own limits end it anyway.

        Args:
            tidy: Also remove what nobody reads after the run.
            within: Until when; ``CLOSE_SECONDS`` by default.
        """
        within = within or Deadline(CLOSE_SECONDS)
        calls = [self._delete(session_id, within) for session_id in self._open_ids]
        if tidy:
            calls.append(self._tidy(within))
        await asyncio.gather(*calls)

    async def _create(self) -> None:
        # Noted before the call: when its answer is lost, the session may be there all the same.
        self._open_ids.append(self.id)
        await insist(
            lambda: self.sandbox.process.create_session(self.id),
            within=self.platform,
            step=STEP,
            sandbox=self.sandbox.name,
            tries=1,
        )

    async def _upload(self, files: Mapping[str, bytes]) -> None:
        uploads = [FileUpload(source=content, destination=path) for path, content in files.items()]
        await insist(
            lambda: self.sandbox.fs.upload_files(uploads),
            within=self.platform,
            step=STEP,
            sandbox=self.sandbox.name,
            seconds=TRANSFER_SECONDS,
            tries=1,
        )

    async def _start(self, command: str) -> str:
        request = SessionExecuteRequest(command=command, run_async=True, suppress_input_echo=True)
        answer = await insist(
            lambda: self.sandbox.process.execute_session_command(self.id, request, timeout=int(REQUEST_SECONDS)),
            within=self.platform,
            step=STEP,
            sandbox=self.sandbox.name,
            tries=1,
        )
        return answer.cmd_id

    async def _delete(self, session_id: str, within: Deadline) -> None:
        try:
            await insist(
                lambda: self.sandbox.process.delete_session(session_id),
                within=within,
                step="close",
                sandbox=self.sandbox.name,
            )
        except SandboxError as error:
            if status_of(error) not in (404, 410):
                logger.warning("the session %s could not be deleted: %s", session_id, error)
                return
        self._open_ids.remove(session_id)

    async def _tidy(self, within: Deadline) -> None:
        try:
            await insist(
                lambda: self.sandbox.process.exec(self.workspace.tidy_command(), timeout=30),
                within=within,
                step="close",
                sandbox=self.sandbox.name,
                restart_seconds=RESTART_SECONDS,
            )
        except SandboxError as error:
            logger.debug("the workspace of %s could not be tidied: %s", self.id, error)


async def end_tasks(*tasks: asyncio.Task[Any]) -> None:
    """Cancels tasks and waits for their end; what they raise is nobody's any more."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task
