"""One box that is a container."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path

from .agent_box import AgentBox, BoxParts
from .docker_engine import Engine, EngineError
from .limits import groups_of
from .memory_group import MemoryGroup

_log = logging.getLogger(__name__)

_EXIT_SECONDS = 5.0
_DEATH_SECONDS = 60.0


class DockerBox(AgentBox):
    """A live box of the Docker runtime.

    Args:
        parts: See ``BoxParts``.
        engine: Runs the container.
        container: Its name.
    """

    def __init__(self, parts: BoxParts, *, engine: Engine, container: str) -> None:
        self._engine = engine
        self._container = container
        super().__init__(parts)

    async def await_exit(self) -> None:
        """Waits for the container, whose end means that no process of the box is left."""
        try:
            try:
                async with asyncio.timeout(_EXIT_SECONDS):
                    await self._engine.wait(self._container)
            except TimeoutError:
                await self._engine.kill(self._container)
                async with asyncio.timeout(_DEATH_SECONDS):
                    await self._engine.wait(self._container)
        except (EngineError, TimeoutError):
            # The agent has gone, and with pid 1 everything else; only the engine's word for it is missing.
            _log.exception("the Docker engine did not tell that the container %s has ended", self._container)


@dataclass(frozen=True, slots=True)
class ContainerAccount:
    """The kernel's account of a container's memory; ``group`` is ``None`` where the server cannot see it."""

    group: MemoryGroup | None

    @property
    def watched(self) -> bool:
        """True if the agent has to watch memory.

        The kernel's limit holds all the same, but the reason of a death would not be known. Who eats faster than the
        agent looks, ten times a second, is reported as killed for no known reason.
        """
        return self.group is None

    def oom_kills(self) -> int:
        """Returns how many processes of the box the kernel has killed for memory."""
        return self.group.oom_kills() if self.group is not None else 0

    def memory_used(self) -> int | None:
        """Returns the bytes the kernel accounts to the box."""
        return self.group.used() if self.group is not None else None


def account_of(pid: int) -> ContainerAccount:
    """Returns the account of the container whose main process has this pid on the host."""
    try:
        groups = groups_of(str(pid))
    except OSError:
        return ContainerAccount(None)
    for version, controller, name in ((1, "memory", "memory.oom_control"), (2, "", "memory.events")):
        directory = groups.get(controller)
        if directory is not None and directory != Path("/") and (directory / name).is_file():
            return ContainerAccount(MemoryGroup(version, directory))
    return ContainerAccount(None)
