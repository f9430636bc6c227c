"""The fixtures of the folder above, with boxes that are containers: its checks run here as they are."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sandbox.local.runtime.docker import DockerRuntime
from sandbox.local.runtime.docker_box import DockerBox
from sandbox.local.runtime.docker_purge import purge
from sandbox.local.runtime.interface import BoxSpec
from tests.scratch import scratch_directory

from .engines import loaded_image

HERE = Path(__file__).parent

BoxMaker = Callable[..., Coroutine[Any, Any, DockerBox]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A container takes half a second to start, and there is one for each check."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def image() -> AsyncIterator[str]:
    """An image in the engine."""
    async with loaded_image() as name:
        yield name


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def runtime(image: str) -> AsyncIterator[DockerRuntime]:
    root = scratch_directory()
    made = DockerRuntime(data_directory=root, default_image=image)
    try:
        await made.prepare()
        yield made
    finally:
        await made.close()
        await purge(root, host=None)
        shutil.rmtree(root)


@pytest.fixture
async def layers(runtime: DockerRuntime) -> AsyncIterator[list[str]]:
    """Names of layers that are removed after the test."""
    names: list[str] = []
    yield names
    for name in reversed(names):
        if name in runtime.layers_on_disk():
            await runtime.remove_layer(name)


@pytest.fixture
async def make_box(runtime: DockerRuntime, layers: list[str]) -> AsyncIterator[BoxMaker]:
    """Starts boxes with the options of ``BoxSpec``."""
    made: dict[str, DockerBox] = {}

    async def make(box_id: str | None = None, **options: Any) -> DockerBox:
        box = await runtime.start(BoxSpec(box_id=box_id or str(uuid.uuid4()), **options))
        made[box.spec.box_id] = box
        return box

    yield make
    for box in made.values():
        await box.stop(force=True)
    for box_id in made:
        await runtime.remove_box(box_id)
    # The layers below go next, and the engine keeps what a container stands on.
    await runtime.settle()


@pytest.fixture
async def box(make_box: BoxMaker) -> DockerBox:
    return await make_box()
