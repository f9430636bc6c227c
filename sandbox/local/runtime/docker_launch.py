"""Starting a container and waiting for its agent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Any

from .channel import Channel
from .docker_engine import Engine, EngineError
from .docker_socket import AgentSocket
from .errors import BoxLostError, RuntimeUnavailableError

START_SECONDS = 30.0
_LONGEST_OUTPUT = 2000


async def launch(engine: Engine, name: str, *, sockets: Path) -> tuple[Channel, dict[str, Any]]:
    """Starts a container; returns the channel to its agent and what the engine knows of it.

    Args:
        engine: Has made the container.
        name: The container.
        sockets: The directory that the container is shown for the socket.

    Raises:
        RuntimeUnavailableError: The agent did not come; what the container wrote is in the text.
        EngineError: The engine failed.
    """
    listener = await asyncio.to_thread(AgentSocket, sockets)
    connection: socket.socket | None = None
    try:
        await engine.start(name)
        connection = await _agent(engine, name, listener)
        container = await engine.inspect(name) or {}
    except (BoxLostError, TimeoutError) as error:
        await _abandon(engine, name, connection)
        raise RuntimeUnavailableError(await complaint(engine, name, str(error))) from error
    except BaseException:
        await asyncio.shield(_abandon(engine, name, connection))
        raise
    finally:
        listener.close()
    return Channel(connection, takes_descriptors=True), container


async def complaint(engine: Engine, name: str, reason: str) -> str:
    """Returns a text that says why a container did not start, with what it wrote."""
    output = ""
    with contextlib.suppress(EngineError):
        output = (await engine.output(name)).strip()[-_LONGEST_OUTPUT:]
    return f"the container {name} did not start: {reason}{f'; it wrote: {output}' if output else ''}"


async def _agent(engine: Engine, name: str, listener: AgentSocket) -> socket.socket:
    """Waits for the agent to connect, or for the container to end without."""
    accepting = asyncio.ensure_future(listener.accept())
    ending = asyncio.ensure_future(engine.wait(name))
    try:
        done, _ = await asyncio.wait({accepting, ending}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if accepting in done:
            return accepting.result()
        if ending in done:
            ending.result()
            raise BoxLostError("its agent ended before it had reached the server")
        raise TimeoutError(f"its agent did not reach the server within {START_SECONDS:g} s")
    finally:
        for task in (accepting, ending):
            task.cancel()
        await asyncio.gather(accepting, ending, return_exceptions=True)


async def _abandon(engine: Engine, name: str, connection: socket.socket | None) -> None:
    if connection is not None:
        connection.close()
    with contextlib.suppress(EngineError):
        await engine.kill(name)
