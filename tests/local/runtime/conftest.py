"""Real boxes: one runtime for all tests of this folder, boxes that end with the test that asked for them."""

from __future__ import annotations

import shutil
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest
import pytest_asyncio

from sandbox.local.runtime.box import BubblewrapBox
from sandbox.local.runtime.bubblewrap import BubblewrapRuntime
from sandbox.local.runtime.interface import BoxSpec
from tests.scratch import scratch_directory

from .far_side import EchoServer, Names

BoxMaker = Callable[..., Coroutine[Any, Any, BubblewrapBox]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def runtime() -> AsyncIterator[BubblewrapRuntime]:
    root = scratch_directory()
    made = BubblewrapRuntime(data_directory=root)
    try:
        await made.prepare()
        yield made
    finally:
        await made.close()
        shutil.rmtree(root)


@pytest.fixture
async def layers(runtime: BubblewrapRuntime) -> AsyncIterator[list[str]]:
    """Names of layers that are removed after the test."""
    names: list[str] = []
    yield names
    for name in set(names) & set(runtime.layers_on_disk()):
        await runtime.remove_layer(name)


@pytest.fixture
async def make_box(runtime: BubblewrapRuntime, layers: list[str]) -> AsyncIterator[BoxMaker]:
    """Starts boxes with the options of ``BoxSpec``."""
    made: dict[str, BubblewrapBox] = {}

    async def make(box_id: str | None = None, **options: Any) -> BubblewrapBox:
        box = await runtime.start(BoxSpec(box_id=box_id or str(uuid.uuid4()), **options))
        made[box.spec.box_id] = box
        return box

    yield make
    for box in made.values():
        await box.stop(force=True)
    for box_id in made:
        await runtime.remove_box(box_id)


@pytest.fixture
async def box(make_box: BoxMaker) -> BubblewrapBox:
    return await make_box()


@pytest.fixture
async def echo() -> AsyncIterator[EchoServer]:
    made = EchoServer()
    server = await made.start("127.0.0.1")
    yield made
    server.close()
    await server.wait_closed()


@pytest.fixture
def refused_port() -> Iterator[int]:
    """A port of this machine that nobody listens on and nobody gets meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def names(runtime: BubblewrapRuntime, monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    made = Names(db_example="127.0.0.1", other_example="127.0.0.1")
    monkeypatch.setattr(runtime, "_resolver", made)
    yield made
    made.close()
