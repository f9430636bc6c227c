"""Removing what the engine keeps for a data directory that is about to go."""

from __future__ import annotations

from pathlib import Path

from . import docker_labels as labels
from .docker_engine import Engine
from .docker_places import DockerPlaces


async def purge(data_directory: Path, *, host: str | None) -> None:
    """Deletes every container and image that was made for a data directory; no server uses it.

    Args:
        data_directory: As it was given to ``DockerRuntime``.
        host: See ``Engine``.

    Raises:
        RuntimeUnavailableError: There is no engine to talk to.
        EngineError: The engine failed.
    """
    mark = f"{labels.OWNER}={DockerPlaces(data_directory).owner}"
    engine = Engine(host)
    try:
        for name, _, _ in await engine.containers([mark]):
            await engine.remove(name)
        # What stands on others goes before them.
        for image in sorted(await engine.images([mark]), key=lambda image: -int(image["Created"])):
            for name in image.get("RepoTags") or [image["Id"]]:
                await engine.remove_image(name)
    finally:
        await engine.close()
