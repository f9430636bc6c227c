"""The Docker engine that tests use, and how they leave it as they found it."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sandbox.local.runtime import docker_labels as labels
from sandbox.local.runtime.docker_engine import Engine
from sandbox.local.runtime.docker_places import DockerPlaces
from sandbox.local.runtime.errors import RuntimeFault

from .machine_image import machine_image

NO_ENGINE = "no Docker engine on this machine"
NO_PACKAGES = "no Debian packages to make an image of"


@asynccontextmanager
async def engine() -> AsyncIterator[Engine]:
    """An engine that answers, or the test is skipped."""
    try:
        found = Engine(None)
    except RuntimeFault:
        pytest.skip(NO_ENGINE)
    try:
        await found.info()
    except RuntimeFault:
        await found.close()
        pytest.skip(NO_ENGINE)
    try:
        yield found
    finally:
        await found.close()


@asynccontextmanager
async def loaded_image() -> AsyncIterator[str]:
    """The name of an image with bash and Python."""
    if shutil.which("dpkg-query") is None:
        pytest.skip(NO_PACKAGES)
    name = f"uom-test/machine:{os.environ.get('UOM_TEST_SESSION', uuid.uuid4().hex)[:8]}"
    async with engine() as found:
        await found.load(machine_image(name))
        try:
            yield name
        finally:
            await found.remove_image(name)


async def of_owner(root: Path) -> list[tuple[str, str]]:
    """Name and state of the containers of a data directory."""
    async with engine() as found:
        listed = await found.containers([f"{labels.OWNER}={DockerPlaces(root).owner}"])
    return sorted((name, state) for name, state, _ in listed)
