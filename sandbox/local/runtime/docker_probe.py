"""A throw-away box at the start of a server: what an engine lacks shows then and not later."""

from __future__ import annotations

from collections.abc import AsyncIterator

from . import docker_labels as labels
from .docker_archive import image_archive, tree
from .docker_engine import Engine
from .errors import RuntimeFault, RuntimeUnavailableError
from .interface import BoxSpec, Runtime

_BOX = "probe"
_NAME = "uom-sandbox/empty"


async def probe(runtime: Runtime, engine: Engine, *, owner: str) -> None:
    """Starts a box on an image in which nothing is but what the runtime brings, writes a file in it and reads it back.

    No image of a registry is needed for that, so a machine without a network can start the platform.

    Args:
        runtime: Otherwise ready.
        engine: Is given the image.
        owner: See ``DockerPlaces.owner``.

    Raises:
        RuntimeUnavailableError: It did not work; the text says what did not.
    """
    image = f"{_NAME}:{owner}"
    if await engine.find_image(image) is None:
        marks = {labels.OWNER: owner, labels.ROLE: "empty"}
        await engine.load(image_archive(image, tree(()), labels=marks))
    try:
        await runtime.remove_box(_BOX)
        box = await runtime.start(BoxSpec(box_id=_BOX, image=image))
        try:
            await box.files.write("probe", _once(b"written"))
            content = b"".join([chunk async for chunk in box.files.read("probe")])
            await box.files.delete("probe")
        finally:
            await box.stop(force=True)
            await runtime.remove_box(_BOX)
    except RuntimeFault as error:
        raise RuntimeUnavailableError(
            f"a test sandbox did not work: {error}\nThe Docker engine must run on this machine, outside of virtual "
            f"machines, and must be allowed to mount what is below the data directory."
        ) from error
    if content != b"written":
        raise RuntimeUnavailableError(f"a test sandbox wrote a file and read {content[:100]!r} from it")


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
