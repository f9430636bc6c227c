"""Changing the network of a box that is a container, from a second container that shares it and may do so."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from . import docker_labels as labels
from .docker_engine import Engine
from .docker_places import DockerPlaces
from .endpoints import RoutePlan
from .kit import INSIDE, Kit
from .privileges import PROGRAM, arguments, cannot_prepare

_SECONDS = 30.0


async def prepare_network(
    engine: Engine, box: str, plan: RoutePlan, *, image: str, kit: Kit, places: DockerPlaces
) -> None:
    """Gives a running container the addresses of its connections; its ports it has from its configuration.

    Args:
        engine: Runs both containers.
        box: The container.
        plan: Says which addresses.
        image: Any image; nothing of it is run.
        kit: Has the program.
        places: Tells where the kit is and whose the container is.

    Raises:
        RuntimeFault: It failed; the text says what could not be done.
    """
    if not plan.literals:
        return
    name = f"{box}-network-{uuid.uuid4().hex[:8]}"
    program, *words = kit.program(PROGRAM)
    config: dict[str, Any] = {
        "Image": image,
        "Entrypoint": [program],
        "Cmd": [*words, *_addresses_only(plan)],
        "User": "0:0",
        "Env": [f"PYTHONHOME={INSIDE}"],
        "WorkingDir": "/",
        "Healthcheck": {"Test": ["NONE"]},
        "Labels": {labels.OWNER: places.owner, labels.ROLE: "network"},
        "HostConfig": {
            "NetworkMode": f"container:{box}",
            "CapDrop": ["ALL"],
            "CapAdd": ["NET_ADMIN"],
            "SecurityOpt": ["no-new-privileges"],
            "ReadonlyRootfs": True,
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "64k", "max-file": "1"}},
            "Mounts": [
                {"Type": "bind", "Source": str(places.current_kit / "root"), "Target": INSIDE, "ReadOnly": True}
            ],
        },
    }
    try:
        await engine.create(name, config)
        await engine.start(name)
        try:
            async with asyncio.timeout(_SECONDS):
                await engine.wait(name)
        except TimeoutError as error:
            raise cannot_prepare(plan, f"it took longer than {_SECONDS:g} s") from error
        state = (await engine.inspect(name) or {}).get("State") or {}
        if state.get("ExitCode") != 0:
            raise cannot_prepare(plan, (await engine.output(name)).strip()[-1000:])
    finally:
        await asyncio.shield(engine.remove(name))


def _addresses_only(plan: RoutePlan) -> list[str]:
    return arguments(RoutePlan(literals=plan.literals))
