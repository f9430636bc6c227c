"""Carries out one image definition inside a build box, step by step, with a live log."""

from __future__ import annotations

import asyncio
import posixpath
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ..runtime.errors import BoxSpawnError
from ..runtime.interface import Box, BoxSpec, EndReason, ExitStatus, NetworkPolicy, Process, Runtime
from .build_log import BuildLog
from .dockerfile import (
    Arg,
    Definition,
    Entrypoint,
    Env,
    From,
    Instruction,
    Run,
    Shell,
    User,
    Workdir,
)
from .records import Recipe
from .shielding import carried_through
from .variables import expand

NUMBERED = (From, Run, Workdir)
"""Instructions that count as steps; the others only set values."""

DEFAULT_SHELL = ("/bin/sh", "-c")
SCRIPT_PATH = "/tmp/.uom-build-step"  # noqa: S108 - a path inside the box, whose /tmp is its own and never frozen

MAX_ARGUMENT_BYTES = 100_000
"""Longer shell text goes through a file: Linux limits one argument to 128 KiB."""

DRAIN_SECONDS = 5.0
TITLE_LENGTH = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLimits:
    """Size of a build box; memory and disk in bytes."""

    cpu: int
    memory: int
    disk: int


class BuildFailedError(Exception):
    """The definition could not be carried out; the text is the reason a user reads."""


class BuildRun:
    """One build.

    Args:
        definition: What to carry out.
        layer_id: Id of the layer that the files become.
        runtime: Makes the box.
        log: Gets the progress and all output.
        limits: Size of the box.
    """

    def __init__(
        self, definition: Definition, *, layer_id: str, runtime: Runtime, log: BuildLog, limits: BuildLimits
    ) -> None:
        self._definition = definition
        self._layer_id = layer_id
        self._runtime = runtime
        self._log = log
        self._limits = limits
        self._shell: tuple[str, ...] = DEFAULT_SHELL
        self._base_env: dict[str, str] = {}
        self._arguments: dict[str, str] = {}
        self.recipe = Recipe()
        self.size = 0

    async def execute(self) -> None:
        """Runs every step, then freezes the files; afterwards ``recipe`` and ``size`` tell the result.

        Raises:
            BuildFailedError: A step failed.
            RuntimeFault: The box failed.
        """
        if not self._definition.needs_box and not self._runtime.uses_images:
            await self._steps(None)
            return
        box_id = str(uuid.uuid4())
        if self._runtime.uses_images:
            self.recipe.image = self._definition.image
            await self._log.line(f"looking for the image {self._definition.image}, which is fetched if it is not here")
        spec = BoxSpec(
            box_id=box_id,
            image=self.recipe.image,
            network=NetworkPolicy(mode="public"),
            build=True,
            cpu=self._limits.cpu,
            memory=self._limits.memory,
            disk=self._limits.disk,
        )
        frozen = False
        try:
            box = await self._runtime.start(spec)
            try:
                self._base_env = await _environment(box)
                await self._steps(box)
            finally:
                await carried_through(box.stop(force=True))
            if any(isinstance(step, Run | Workdir) for step in self._definition.instructions):
                self.size = await self._runtime.freeze(box_id, self._layer_id)
                frozen = True
                self.recipe.layers = [self._layer_id]
        finally:
            if not frozen:
                await carried_through(self._runtime.remove_box(box_id))

    async def _steps(self, box: Box | None) -> None:
        total = sum(isinstance(step, NUMBERED) for step in self._definition.instructions)
        number = 0
        for step in self._definition.instructions:
            number += isinstance(step, NUMBERED)
            await self._step(box, step, title=f"[{number}/{total}] {_title(step)}")

    async def _step(self, box: Box | None, step: Instruction, *, title: str) -> None:
        recipe = self.recipe
        match step:
            case From():
                await self._log.line(title)
                if not self._runtime.uses_images:
                    await self._log.line(
                        f"the {self._runtime.name} runtime uses this machine's toolchains in place of the image"
                    )
            case Env():
                values = self._variables()
                recipe.env.update({name: expand(word, values) for name, word in step.pairs})
            case Arg():
                values = self._variables()
                self._arguments.update(
                    {name: "" if word is None else expand(word, values) for name, word in step.pairs}
                )
            case User():
                recipe.user = expand(step.name, self._variables())
            case Shell():
                self._shell = step.argv
            case Entrypoint():
                recipe.entrypoint = list(step.argv)
            case Workdir():
                path = posixpath.join(recipe.workdir or "/", expand(step.path, self._variables()))
                recipe.workdir = posixpath.normpath(path)
                await self._log.line(title)
                if box is not None:
                    await box.files.make_directory(recipe.workdir)
            case Run():
                await self._log.line(title)
                if box is not None:
                    await self._run(box, step, title=title)

    def _variables(self) -> dict[str, str]:
        return self._base_env | self._arguments | self.recipe.env

    async def _run(self, box: Box, step: Run, *, title: str) -> None:
        started = time.monotonic()
        if not step.network:
            await box.set_network(NetworkPolicy(mode="none"))
        try:
            status = await self._command(box, step)
        except BoxSpawnError as error:
            await self._fail(title, step, f"exit code {error.exit_code}: {error}")
        finally:
            if not step.network:
                await box.set_network(NetworkPolicy(mode="public"))
        if status.exit_code != 0 or status.reason is not EndReason.EXIT:
            await self._fail(title, step, _ending(status))
        await self._log.line(f"{title.partition(']')[0]}] done in {time.monotonic() - started:.1f} s")

    async def _command(self, box: Box, step: Run) -> ExitStatus:
        argv = await self._argv(box, step)
        process = await box.run(argv, env=self._arguments | self.recipe.env, cwd=self.recipe.workdir, merge_stderr=True)
        try:
            async with asyncio.TaskGroup() as group:
                reader = group.create_task(self._copy(process))
                status = await process.wait()
                # As in Docker a step ends with its main process; what it left running would hold the pipe open.
                await process.kill()
                try:
                    await asyncio.wait_for(asyncio.shield(reader), DRAIN_SECONDS)
                except TimeoutError:
                    process.stdout.close()
                    reader.cancel()
        finally:
            await carried_through(process.kill())
            process.stdout.close()
            process.stderr.close()
        return status

    async def _copy(self, process: Process) -> None:
        while data := await process.stdout.read():
            await self._log.output(data)

    async def _argv(self, box: Box, step: Run) -> Sequence[str]:
        if step.argv is not None:
            return step.argv
        if step.script is not None and step.script.startswith("#!"):
            await box.files.write(SCRIPT_PATH, _once(step.script.encode()))
            return [*step.script.partition("\n")[0].removeprefix("#!").split(None, 1), SCRIPT_PATH]
        text = step.text if step.script is None else step.script
        if len(text.encode()) <= MAX_ARGUMENT_BYTES:
            return [*self._shell, text]
        await box.files.write(SCRIPT_PATH, _once(text.encode()))
        return [*self._shell, f'. "{SCRIPT_PATH}"']

    async def _fail(self, title: str, step: Run, ending: str) -> NoReturn:
        tail = await self._log.tail(lines=20, limit=2000)
        await self._log.line(f"ERROR: {title} failed (line {step.line}): {ending}")
        raise BuildFailedError(f"step {title} (line {step.line}) failed with {ending}; its last output:\n{tail}")


def _title(step: Instruction) -> str:
    match step:
        case From():
            text = f"FROM {step.image}"
        case Run():
            text = f"RUN {step.text}"
        case Workdir():
            text = f"WORKDIR {step.path.text}"
        case _:
            text = type(step).__name__.upper()
    first = text.split("\n", 1)[0]
    return first if len(first) <= TITLE_LENGTH else f"{first[: TITLE_LENGTH - 1]}…"


def _ending(status: ExitStatus) -> str:
    match status.reason:
        case EndReason.MEMORY:
            return "the memory of the build exhausted"
        case EndReason.DISK:
            return "the disk of the build exhausted"
        case EndReason.BOX_LOST:
            return "its box lost"
        case _:
            return f"exit code {status.exit_code}" if status.exit_code is not None else "an unknown exit code"


async def _environment(box: Box) -> dict[str, str]:
    """Returns what a process in the box has in its environment, for ``ENV PATH=/x:$PATH``."""
    process = await box.run(["env", "-0"])
    try:
        data = b""
        while chunk := await process.stdout.read():
            data += chunk
        await process.wait()
    finally:
        await carried_through(process.kill())
        process.stdout.close()
        process.stderr.close()
    pairs = (entry.partition("=") for entry in data.decode("utf-8", "replace").split("\0") if "=" in entry)
    return {name: value for name, _, value in pairs}


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
