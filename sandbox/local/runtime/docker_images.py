"""Images: what a box is made of, and what is frozen from one.

A *base* is an image with what every box needs added to it: the directories of the sandbox's user, and a name for that
user. It is made once for an image. A *layer* is a base with all that boxes have written above it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import platform
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import docker_labels as labels
from .agent_box import HOME
from .docker_archive import ARCHITECTURES, Entry, tree
from .docker_engine import Engine, EngineError
from .errors import RuntimeFault
from .places import checked_identity

USER = 1000
VERSION = 1
"""Of what is added to an image; raised when that changes."""

_BASE = "uom-sandbox/base"
_ACCOUNTS = (
    ("etc/passwd", f"sandbox:x:{USER}:{USER}:sandbox:{HOME}:/bin/sh\n"),
    ("etc/group", f"sandbox:x:{USER}:\n"),
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """An image from which containers are made.

    Attributes:
        name: The image.
        layers: Ids of the layers in it, lowest first.
        environment: ``ENV`` of the image at the bottom.
        declared: Names of all variables it sets, the ones a container has to unset.
    """

    name: str
    layers: tuple[str, ...]
    environment: Mapping[str, str]
    declared: tuple[str, ...]


class Images:
    """The images of one data directory.

    Args:
        engine: Keeps them.
        owner: See ``DockerPlaces.owner``.
    """

    def __init__(self, engine: Engine, *, owner: str) -> None:
        self._engine = engine
        self._owner = owner
        self._preparing = asyncio.Lock()
        self.layers: set[str] = set()

    async def load(self) -> None:
        """Learns which layers there are, and removes what was one when a container still stood on it."""
        for image in await self._engine.images([f"{labels.OWNER}={self._owner}", f"{labels.ROLE}=layer"]):
            layer_id = image["Labels"][labels.LAYER]
            if self.layer_name(layer_id) in (image.get("RepoTags") or ()):
                self.layers.add(layer_id)
            else:
                with contextlib.suppress(EngineError):
                    await self._engine.remove_image(image["Id"])

    async def prepared(self, image: str, layers: Sequence[str]) -> Prepared:
        """Returns what a box over ``layers`` is made from; without layers the base of ``image``, fetched if missing.

        Raises:
            RuntimeFault: A layer is missing, the layers do not stand on each other, or the image cannot be had.
        """
        if not layers:
            return await self._base(image)
        found = await self._engine.find_image(self.layer_name(layers[-1]))
        if found is None or layers[-1] not in self.layers:
            raise RuntimeFault(f"layer {layers[-1]!r} does not exist")
        prepared = _prepared(self.layer_name(layers[-1]), found)
        if prepared.layers != tuple(layers):
            raise RuntimeFault(
                f"layer {layers[-1]!r} stands on the layers {', '.join(prepared.layers[:-1]) or 'none'} "
                f"and not on {', '.join(layers[:-1]) or 'none'}"
            )
        return prepared

    async def freeze(self, container: str, layer_id: str, *, below: Sequence[str]) -> None:
        """Makes a layer of a container that does not run.

        Args:
            container: Its name.
            layer_id: Of the new layer.
            below: Ids of the layers it stands on.

        Raises:
            RuntimeFault: There is a layer of this id.
        """
        if layer_id in self.layers:
            raise RuntimeFault(f"layer {layer_id!r} exists already")
        repository, _, tag = self.layer_name(layer_id).rpartition(":")
        marks = {
            labels.ROLE: "layer",
            labels.OWNER: self._owner,
            labels.LAYER: layer_id,
            labels.STACK: ",".join([*below, layer_id]),
        }
        await self._engine.commit(container, repository=repository, tag=tag, labels=marks)
        self.layers.add(layer_id)

    async def remove_layer(self, layer_id: str) -> None:
        """Removes a layer; what stands on it keeps its files, and takes them along when it goes."""
        self.layers.discard(layer_id)
        await self._engine.remove_image(self.layer_name(layer_id))

    def layer_name(self, layer_id: str) -> str:
        """Returns the name of a layer's image."""
        return f"uom-sandbox/layer-{self._owner}:{checked_identity(layer_id, what='layer id')}"

    async def _base(self, image: str) -> Prepared:
        # One at a time: the second asker of an image finds what was made for the first.
        async with self._preparing:
            source = await self._source(image)
            key = hashlib.sha256(f"{VERSION} {self._owner} {source['Id']}".encode()).hexdigest()[:24]
            name = f"{_BASE}:{key}"
            found = await self._engine.find_image(name)
            if found is None:
                await self._prepare(source, key)
                found = await self._engine.find_image(name)
            if found is None:
                raise RuntimeFault(f"the image {image} was prepared but is not there")
            return _prepared(name, found)

    async def _source(self, image: str) -> dict[str, Any]:
        found = await self._engine.find_image(image)
        if found is None:
            try:
                await self._engine.pull(image)
            except EngineError as error:
                raise RuntimeFault(
                    f"the Docker engine has no image {image} and cannot fetch it: {error}. "
                    f"Load it by hand (docker pull, docker load) or name another"
                ) from error
            found = await self._engine.find_image(image)
        if found is None:
            raise RuntimeFault(f"the Docker engine fetched the image {image} but does not have it")
        ours = ARCHITECTURES.get(platform.machine(), platform.machine())
        if found.get("Os") != "linux" or found.get("Architecture") != ours:
            raise RuntimeFault(
                f"the image {image} is for {found.get('Os')}/{found.get('Architecture')}, this machine is linux/{ours}"
            )
        return found

    async def _prepare(self, source: Mapping[str, Any], key: str) -> None:
        container = f"uom-sandbox-{self._owner}-scratch-{uuid.uuid4().hex}"
        environment = _environment(source)
        config = {
            "Image": source["Id"],
            # Never run; a container must have a command, and not every image names one.
            "Entrypoint": ["/none"],
            "Cmd": [],
            "NetworkDisabled": True,
            "HostConfig": {"NetworkMode": "none"},
            "Labels": {
                labels.OWNER: self._owner,
                labels.ROLE: "scratch",
                labels.ENVIRONMENT: json.dumps(environment, separators=(",", ":")),
            },
        }
        try:
            await self._engine.create(container, config)
            entries = [Entry(HOME, 0o755, owner=USER), Entry("/sandbox", 0o755, owner=USER)]
            for path, line in _ACCOUNTS:
                content = await self._engine.read_file(container, f"/{path}") or b""
                if not _knows(content, USER):
                    separator = b"\n" if content and not content.endswith(b"\n") else b""
                    entries.append(Entry(path, 0o644, content=content + separator + line.encode()))
            await self._engine.unpack(container, tree(entries))
            await self._engine.commit(container, repository=_BASE, tag=key, labels={labels.ROLE: "base"})
        finally:
            await asyncio.shield(self._engine.remove(container))


def _knows(accounts: bytes, number: int) -> bool:
    """True if the third field of a line of passwd or group is ``number``."""
    lines = (line.split(b":") for line in accounts.splitlines())
    return any(len(fields) > 2 and fields[2] == str(number).encode() for fields in lines)


def _environment(image: Mapping[str, Any]) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in (image.get("Config") or {}).get("Env") or [])
    return {name: value for name, equals, value in pairs if equals and name}


def environment_of(container: Mapping[str, Any]) -> dict[str, str]:
    """Returns ``ENV`` of the image at the bottom of a container."""
    found: dict[str, str] = json.loads(container["Config"]["Labels"].get(labels.ENVIRONMENT, "{}"))
    return found


def _prepared(name: str, image: Mapping[str, Any]) -> Prepared:
    marks = (image.get("Config") or {}).get("Labels") or {}
    stack = marks.get(labels.STACK, "")
    return Prepared(
        name,
        tuple(stack.split(",")) if stack else (),
        json.loads(marks.get(labels.ENVIRONMENT, "{}")),
        tuple(entry.partition("=")[0] for entry in (image.get("Config") or {}).get("Env") or []),
    )
