"""The few calls to a Docker engine that the runtime needs, each with a limit of time and an error in words."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any, TypeVar

import aiodocker
import aiohttp
from aiodocker.exceptions import DockerError

from .errors import RuntimeFault, RuntimeUnavailableError

T = TypeVar("T")

CALL_SECONDS = 60.0
PULL_SECONDS = 1800.0
COMMIT_SECONDS = 900.0
_CONNECT_SECONDS = 5.0
_NOT_FOUND = 404
_CONFLICT = 409
_NOT_MODIFIED = 304


class EngineError(RuntimeFault):
    """The engine refused, failed or did not answer.

    Attributes:
        status: Of its HTTP answer; 0 if there was none.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Engine:
    """A connection to one Docker engine; containers and images are known by their names.

    Args:
        host: Address such as ``unix:///var/run/docker.sock``; ``None`` looks where Docker's own client looks:
            ``DOCKER_HOST``, the current context, the usual sockets.

    Raises:
        RuntimeUnavailableError: There is no engine to talk to.
    """

    def __init__(self, host: str | None) -> None:
        try:
            self._docker = aiodocker.Docker(
                url=host, timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
            )
        except (AssertionError, ValueError, DockerError) as error:
            where = f"at {host!r}" if host else "on this machine"
            raise RuntimeUnavailableError(
                f"there is no Docker engine {where}{f': {error}' if str(error) else ''}; start it, or set DOCKER_HOST "
                f"to its socket"
            ) from error

    async def info(self) -> Mapping[str, Any]:
        """Returns what the engine tells about itself (``docker info``)."""
        async with _bounded("tell about itself"):
            return await self._docker.system.info()

    async def find_image(self, name: str) -> dict[str, Any] | None:
        """Returns what the engine knows of an image, ``None`` if it has none of this name."""
        async with _bounded(f"look for the image {name}"):
            return await _unless_missing(self._docker.images.inspect(name))

    async def pull(self, name: str) -> None:
        """Fetches an image from its registry."""
        async with _bounded(f"fetch the image {name}", seconds=PULL_SECONDS):
            await self._docker.images.pull(name)

    async def load(self, archive: bytes) -> None:
        """Takes images out of an archive as ``docker save`` writes them."""
        async with _bounded("load an image", seconds=COMMIT_SECONDS):
            await self._docker.images.import_image(io.BytesIO(archive))

    async def images(self, labels: Sequence[str]) -> list[dict[str, Any]]:
        """Lists the images with all of ``labels`` (``name=value``)."""
        async with _bounded("list images"):
            found: list[dict[str, Any]] = await self._docker.images.list(filters={"label": list(labels)})
            return found

    async def remove_image(self, name: str) -> None:
        """Takes a name from an image, which goes with its last one; fine if there is none."""
        async with _bounded(f"remove the image {name}", seconds=COMMIT_SECONDS):
            await _unless_missing(self._docker.images.delete(name, force=True))

    async def containers(self, labels: Sequence[str]) -> list[tuple[str, str, dict[str, str]]]:
        """Lists the containers with all of ``labels``, running or not: name, state, labels."""
        async with _bounded("list containers"):
            found = await self._docker.containers.list(all=True, filters=json.dumps({"label": list(labels)}))
        return [(one["Names"][0].lstrip("/"), str(one["State"]), dict(one["Labels"] or {})) for one in found]

    async def create(self, name: str, config: Mapping[str, Any]) -> None:
        """Makes a container."""
        async with _bounded(f"make the container {name}"):
            await self._docker.containers.create(dict(config), name=name)

    async def start(self, name: str) -> None:
        """Starts a container."""
        async with _bounded(f"start the container {name}"):
            await self._docker.containers.container(name).start()

    async def update(self, name: str, limits: Mapping[str, Any]) -> None:
        """Changes the limits of a container."""
        async with _bounded(f"change the limits of the container {name}"):
            # aiodocker has no method for this call of the Engine API.
            await self._docker._query_json(f"containers/{name}/update", "POST", data=dict(limits))

    async def inspect(self, name: str, *, size: bool = False) -> dict[str, Any] | None:
        """Returns what the engine knows of a container, ``None`` if there is none.

        Args:
            name: The container.
            size: True has the engine add up what its writable layer holds (``SizeRw``), which takes time.
        """
        async with _bounded(f"look at the container {name}"):
            return await _unless_missing(self._docker.containers.container(name).show(size=size))

    async def wait(self, name: str) -> None:
        """Returns when a container does not run (any more); the caller limits the time."""
        async with _bounded(f"wait for the container {name}", seconds=None):
            await _unless_missing(self._docker.containers.container(name).wait())

    async def kill(self, name: str) -> None:
        """Kills what runs in a container; fine if nothing does."""
        async with _bounded(f"kill the container {name}"):
            try:
                await self._docker.containers.container(name).kill()
            except DockerError as error:
                if error.status not in (_NOT_FOUND, _CONFLICT, _NOT_MODIFIED):
                    raise

    async def remove(self, name: str) -> None:
        """Kills and deletes a container with its anonymous volumes; fine if there is none."""
        async with _bounded(f"remove the container {name}", seconds=COMMIT_SECONDS):
            await _unless_missing(self._docker.containers.container(name).delete(force=True, v=True))

    async def commit(self, name: str, *, repository: str, tag: str, labels: Mapping[str, str]) -> None:
        """Makes an image of the files of a container.

        Args:
            name: The container.
            repository: First part of the image's name.
            tag: Second part.
            labels: Put over those that it inherits from the container; plain words only.
        """
        changes = [f"LABEL {label}={value}" for label, value in labels.items()]
        async with _bounded(f"make an image of the container {name}", seconds=COMMIT_SECONDS):
            await self._docker.containers.container(name).commit(repository=repository, tag=tag, changes=changes)

    async def read_file(self, name: str, path: str) -> bytes | None:
        """Returns the content of a file in a container that does not run; ``None`` if it has none."""
        async with _bounded(f"read {path} of the container {name}"):
            archive = await _unless_missing(self._docker.containers.container(name).get_archive(path))
        if archive is None:
            return None
        with archive:
            member = archive.next()
            content = archive.extractfile(member) if member is not None and member.isfile() else None
            return content.read() if content is not None else None

    async def unpack(self, name: str, archive: bytes) -> None:
        """Unpacks a tar archive at the root of a container."""
        async with _bounded(f"write to the container {name}"):
            container = self._docker.containers.container(name)
            await container.put_archive("/", archive)  # type: ignore[no-untyped-call]

    async def output(self, name: str) -> str:
        """Returns what the main process of a container has written."""
        async with _bounded(f"read the output of the container {name}"):
            log = self._docker.containers.container(name).log(stdout=True, stderr=True, tail=50)
            return "".join(await _unless_missing(log) or ())

    async def close(self) -> None:
        """Closes the connections. May be called twice."""
        await self._docker.close()


@contextlib.asynccontextmanager
async def _bounded(what: str, *, seconds: float | None = CALL_SECONDS) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except DockerError as error:
        text = f"the Docker engine could not {what}: {error.message}"
        # 900 is aiodocker's number for "not connected".
        raise EngineError(text, status=error.status if error.status < 600 else 0) from error
    except TimeoutError as error:
        raise EngineError(f"the Docker engine did not {what} within {seconds:g} s") from error
    except aiohttp.ClientError as error:
        raise EngineError(f"the Docker engine could not {what}: {error}") from error


async def _unless_missing(call: Awaitable[T]) -> T | None:
    """Returns the answer, ``None`` if the engine does not know what was asked for."""
    try:
        return await call
    except DockerError as error:
        if error.status != _NOT_FOUND:
            raise
        return None
