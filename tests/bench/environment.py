"""A local platform in a process of its own, as users have it, over a data directory that goes away afterwards."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from daytona import AsyncDaytona, CreateSnapshotParams, DaytonaNotFoundError, Image, Resources
from pydantic import SecretStr

from sandbox.connection import Credentials, client
from sandbox.local import service
from tests.scratch import scratch_directory


@contextmanager
def fresh_home() -> Iterator[Path]:
    """Points ``UOM_SANDBOX_HOME`` to a new directory and stops the platform that was started there."""
    home = scratch_directory()
    before = os.environ.get("UOM_SANDBOX_HOME")
    os.environ["UOM_SANDBOX_HOME"] = str(home)
    try:
        yield home
    finally:
        subprocess.run([Path(sys.executable).with_name("uom-sandbox"), "down"], check=True, stdout=subprocess.DEVNULL)
        if before is None:
            del os.environ["UOM_SANDBOX_HOME"]
        else:
            os.environ["UOM_SANDBOX_HOME"] = before
        shutil.rmtree(home, ignore_errors=True)


@asynccontextmanager
async def platform_client() -> AsyncIterator[AsyncDaytona]:
    """The SDK, connected to the local platform of ``UOM_SANDBOX_HOME``, which is started if need be."""
    platform = await asyncio.to_thread(service.start)
    async with client(Credentials(api_key=SecretStr(platform.api_key), api_url=platform.api_url)) as daytona:
        yield daytona


async def bench_snapshot(daytona: AsyncDaytona, *, disk: int = 3) -> str:
    """Returns the name of a small snapshot, built once."""
    name = f"bench-{disk}"
    try:
        await daytona.snapshot.get(name)
    except DaytonaNotFoundError:
        image = Image.base("debian:12").run_commands("mkdir -p /sandbox")
        await daytona.snapshot.create(
            CreateSnapshotParams(name=name, image=image, resources=Resources(cpu=1, memory=1, disk=disk))
        )
    return name
