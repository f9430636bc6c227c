"""Builds and their cache: one build per text at a time, equal texts share one layer, unused layers go."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

from ..runtime.errors import RuntimeFault
from ..runtime.interface import GIB, Runtime
from ..wire_errors import WireError
from .build_log import BuildLog
from .build_run import BuildFailedError, BuildLimits, BuildRun
from .clock import Clock
from .dockerfile import Definition, DockerfileError, parse
from .records import BuildRecord, BuildState
from .store import Store

_log = logging.getLogger(__name__)

BUILD_MAX_CPU = 4
BUILD_MAX_MEMORY = 8 * GIB
BUILD_DISK = 20 * GIB


def build_limits() -> BuildLimits:
    """Returns CPU, memory and disk of a build box: Daytona's limits, or what the machine has less a quarter."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return BuildLimits(
        cpu=min(BUILD_MAX_CPU, os.cpu_count() or 1),
        memory=min(BUILD_MAX_MEMORY, physical * 3 // 4),
        disk=BUILD_DISK,
    )


class Builds:
    """All builds of one platform.

    Args:
        store: Where they are remembered.
        runtime: Makes build boxes and keeps layers.
        clock: The time.
        directory: Where logs are kept; must exist.
        seconds: Limit of one build.
        concurrent: How many run at once.
    """

    def __init__(
        self, *, store: Store, runtime: Runtime, clock: Clock, directory: Path, seconds: float, concurrent: int
    ) -> None:
        self._store = store
        self._runtime = runtime
        self._clock = clock
        self._directory = directory
        self._seconds = seconds
        self._slots = asyncio.Semaphore(concurrent)
        self._records: dict[str, BuildRecord] = {}
        self._logs: dict[str, BuildLog] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, asyncio.Event] = {}
        self.in_use: Callable[[str], bool] = lambda _build_id: True
        self.on_ended: Callable[[BuildRecord], Awaitable[None]] | None = None

    async def load(self) -> None:
        """Reads the builds on file; one that a crash interrupted has failed, one without its layer is forgotten."""
        on_disk = set(self._runtime.layers_on_disk())
        for build in await self._store.builds():
            if build.state is BuildState.BUILDING:
                build.state = BuildState.FAILED
                build.reason = "interrupted: the platform ended while the build ran"
                build.updated_at = self._clock.now()
                await self._store.save(build)
            if not set(build.recipe.layers) <= on_disk:
                _log.warning("layer of build %s has gone", build.id)
                await self._store.remove(build)
                continue
            self._records[build.id] = build
            self._logs[build.id] = BuildLog(self._log_path(build.id), finished=True)
            if build.state is BuildState.ACTIVE and build.key != self._key(build.text):
                _log.warning(
                    "build %s was made over other toolchains than this machine has now; snapshots of it still work, "
                    "and are built anew when they are deleted and created, or deactivated and activated",
                    build.id,
                )
        known = {layer for build in self._records.values() for layer in build.recipe.layers}
        for layer in on_disk - known:
            await self._runtime.remove_layer(layer)

    @property
    def uses_images(self) -> bool:
        """True if ``FROM`` names what sandboxes are made of; see ``Runtime``."""
        return self._runtime.uses_images

    def get(self, build_id: str) -> BuildRecord | None:
        """Returns a build, ``None`` if it is not known."""
        return self._records.get(build_id)

    def log(self, build_id: str) -> BuildLog | None:
        """Returns the log of a build, ``None`` if it is not known."""
        return self._logs.get(build_id)

    def request(self, text: str) -> BuildRecord:
        """Returns the build of a definition: one that is done or under way, else a new one, which starts at once.

        The caller links the build to a snapshot or sandbox and saves both before its next ``await``.

        Args:
            text: The Dockerfile.

        Raises:
            WireError: 400, the definition cannot be built here.
        """
        try:
            definition = parse(text)
        except DockerfileError as error:
            raise WireError(400, f"dockerfileContent: {error}", code="DOCKERFILE_NOT_SUPPORTED") from error
        key = self._key(text)
        for build in self._records.values():
            if build.key == key and build.state in (BuildState.ACTIVE, BuildState.BUILDING):
                return build
        now = self._clock.now()
        build = BuildRecord(
            id=str(uuid.uuid4()), key=key, text=text, state=BuildState.BUILDING, created_at=now, updated_at=now
        )
        self._records[build.id] = build
        self._logs[build.id] = BuildLog(self._log_path(build.id))
        self._ended[build.id] = asyncio.Event()
        self._tasks[build.id] = asyncio.create_task(self._build(build, definition), name=f"build {build.id}")
        return build

    async def wait(self, build: BuildRecord) -> None:
        """Waits until a build has ended, one way or the other."""
        ended = self._ended.get(build.id)
        if ended is not None:
            await ended.wait()

    async def release(self, build_id: str) -> None:
        """Forgets a build, its layer and its log unless somebody still uses it; stops it if it is under way."""
        build = self._records.get(build_id)
        if build is None or self.in_use(build_id):
            return
        del self._records[build_id]
        task = self._tasks.get(build_id)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        for layer in build.recipe.layers:
            await self._runtime.remove_layer(layer)
        log = self._logs.pop(build_id, None)
        if log is not None:
            await log.remove()
        await self._store.remove(build)

    async def close(self) -> None:
        """Stops every build and waits for it."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _build(self, build: BuildRecord, definition: Definition) -> None:
        log = self._logs[build.id]
        try:
            try:
                await log.open()
                await self._store.save(build)
                await self._carry_out(build, definition, log)
            except BuildFailedError as error:
                await self._settle(build, reason=str(error))
            except TimeoutError:
                await log.line(f"ERROR: the build has reached its limit of {self._seconds:g} s")
                await self._settle(build, reason=f"the build took longer than its limit of {self._seconds:g} s")
            except RuntimeFault as error:
                await log.line(f"ERROR: {error}")
                await self._settle(build, reason=f"the build box failed: {error}")
            except Exception as error:
                _log.exception("build %s failed unexpectedly", build.id)
                await log.line(f"ERROR: unexpected {type(error).__name__}; the platform's log has the details")
                await self._settle(build, reason=f"unexpected {type(error).__name__} in the platform")
            else:
                await self._settle(build, reason=None)
        finally:
            # The log ends last: who has read it to its end finds the new state by GET.
            del self._tasks[build.id]
            self._ended.pop(build.id).set()
            await log.finish()

    async def _carry_out(self, build: BuildRecord, definition: Definition, log: BuildLog) -> None:
        if self._slots.locked():
            await log.line("waiting for other builds to end")
        async with self._slots:
            run = BuildRun(definition, layer_id=build.id, runtime=self._runtime, log=log, limits=build_limits())
            async with asyncio.timeout(self._seconds):
                await run.execute()
        build.recipe, build.size = run.recipe, run.size
        await log.line("the snapshot is ready")

    async def _settle(self, build: BuildRecord, *, reason: str | None) -> None:
        build.state = BuildState.ACTIVE if reason is None else BuildState.FAILED
        build.reason = reason
        build.updated_at = self._clock.now()
        await self._store.save(build)
        if self.on_ended is not None:
            await self.on_ended(build)

    def _key(self, text: str) -> str:
        """Returns what makes two builds equal: the text, and the base it is carried out on."""
        return hashlib.sha256(f"{text}\0{self._runtime.fingerprint}".encode("utf-8", "surrogatepass")).hexdigest()

    def _log_path(self, build_id: str) -> Path:
        return self._directory / f"{build_id}.log"
