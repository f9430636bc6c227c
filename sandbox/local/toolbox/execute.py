"""One-shot execution: a command or a piece of Python, its combined output and exit code in one answer."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from aiohttp import web

from ..runtime.errors import BoxLostError, BoxSpawnError
from ..runtime.interface import Box, InputPipe, OutputPipe, Process
from . import bodies
from .command_log import CommandLog
from .commands import exit_code_of
from .errors import box_lost, daemon_error
from .framing import PAYLOAD_LIMIT, Stream
from .log_body import log_response

_NOT_STARTED = -1
_SHELLS = ("bash", "sh")
_NOT_FOUND = 127

# The code is compiled under a name that linecache knows, so that a traceback shows its lines; it runs as ``__main__``,
# with nothing of the loader left in sight and its standard input at the end.
_PYTHON_LOADER = """\
def _load():
    import linecache, sys
    text = sys.stdin.buffer.read().decode("utf-8")
    linecache.cache["<code>"] = (len(text), None, text.splitlines(True), "<code>")
    def show(kind, error, trace):
        import traceback
        while trace is not None and trace.tb_frame.f_code.co_filename == "<string>":
            trace = trace.tb_next
        traceback.print_exception(kind, error, trace)
    sys.excepthook = show
    del globals()["_load"]
    return compile(text, "<code>", "exec")
exec(_load())
"""


class Executor:
    """Runs one-shot processes of one sandbox and kills those that are left when it stops.

    Attributes:
        running: The processes that run now.
    """

    def __init__(self, box: Box, *, log_directory: Path) -> None:
        self._box = box
        self._log_directory = log_directory
        self.running: set[Process] = set()
        self._shells: tuple[str, ...] = _SHELLS

    async def execute(self, request: web.Request) -> web.StreamResponse:
        """``POST /process/execute``: feeds the command to a shell's standard input.

        A command that reads its own standard input therefore reads the rest of its text, as on the hosted platform.
        """
        body = await bodies.read_object(request)
        command = bodies.text(body, "command")
        if not command.strip():
            raise daemon_error(400, "command must not be blank")
        return await self._run(
            request,
            self._shells,
            text=command if command.endswith("\n") else command + "\n",
            cwd=bodies.text(body, "cwd", default="") or None,
            env=bodies.environment(body, "envs"),
            timeout=bodies.seconds(body, "timeout"),
        )

    async def run_code(self, request: web.Request) -> web.StreamResponse:
        """``POST /process/code-run``: runs Python source."""
        body = await bodies.read_object(request)
        code = bodies.text(body, "code")
        language = bodies.text(body, "language", default="python")
        if language != "python":
            raise daemon_error(501, f"code-run speaks python only, not {language!r}; use process/execute")
        return await self._run(
            request,
            ("python3",),
            arguments=("-c", _PYTHON_LOADER, *bodies.texts(body, "argv")),
            text=code,
            cwd=None,
            env=bodies.environment(body, "envs"),
            timeout=bodies.seconds(body, "timeout"),
        )

    async def close(self) -> None:
        """Kills what still runs; the waiting requests get what there is."""
        await asyncio.gather(*(process.kill() for process in list(self.running)), return_exceptions=True)

    async def _run(
        self,
        request: web.Request,
        programs: Sequence[str],
        *,
        arguments: Sequence[str] = (),
        text: str,
        cwd: str | None,
        env: Mapping[str, str],
        timeout: float | None,
    ) -> web.StreamResponse:
        log = CommandLog(self._log_directory / f"{uuid.uuid4()}.log", capacity=self._box.spec.disk)
        try:
            try:
                process = await self._start(programs, arguments=arguments, cwd=cwd, env=env)
            except BoxSpawnError as error:
                log.remark(f"{error}\n")
                exit_code = _NOT_STARTED
            else:
                exit_code = await self._collect(process, log, text=text, timeout=timeout)
            await log.finish()
            return await log_response(request, log, fields=("result",), others={"exitCode": exit_code})
        finally:
            await asyncio.shield(log.discard())

    async def _start(
        self, programs: Sequence[str], *, arguments: Sequence[str], cwd: str | None, env: Mapping[str, str]
    ) -> Process:
        """Starts the first of ``programs`` that exists."""
        for program in programs[:-1]:
            try:
                return await self._box.run([program, *arguments], env=env, cwd=cwd, stdin=True, merge_stderr=True)
            except BoxSpawnError as error:
                if error.exit_code != _NOT_FOUND:
                    raise
        return await self._box.run([programs[-1], *arguments], env=env, cwd=cwd, stdin=True, merge_stderr=True)

    async def _collect(self, process: Process, log: CommandLog, *, text: str, timeout: float | None) -> int:
        """Returns the exit code once the output is complete; the whole tree is killed if it does not come to that."""
        self.running.add(process)
        ended = lost = False
        try:
            async with asyncio.timeout(timeout):
                try:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(_feed(process.stdin, text.encode("utf-8", "surrogatepass")))
                        group.create_task(_record(process, process.stdout, log))
                        group.create_task(_record(process, process.stderr, log))
                        waiting = group.create_task(process.wait())
                    ended = True
                except* BoxLostError:
                    lost = True
        except TimeoutError:
            message = f"the command did not end within {timeout:g} s and was killed with all its children"
            raise daemon_error(408, message, code="PROCESS_EXECUTION_TIMEOUT") from None
        finally:
            if not ended:
                with contextlib.suppress(BoxLostError):
                    await asyncio.shield(process.kill())
            process.stdout.close()
            process.stderr.close()
            self.running.discard(process)
        if lost:
            raise box_lost()
        return exit_code_of(waiting.result())


async def _feed(pipe: InputPipe | None, data: bytes) -> None:
    if pipe is None:
        return
    try:
        await pipe.write(data)
    except BrokenPipeError:
        pass  # it ended without reading everything
    finally:
        pipe.close()


async def _record(process: Process, pipe: OutputPipe, log: CommandLog) -> None:
    told = False
    while data := await pipe.read(PAYLOAD_LIMIT):
        if await log.append(Stream.STDOUT, data) or told:
            continue
        told = True
        log.remark("\n[output limit reached: the command was killed]\n")
        await process.kill()
