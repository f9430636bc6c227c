"""The running half of sandboxes: a box, its toolbox and the watch over them. No states here."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..runtime.interface import GIB, Box, BoxSpec, NetworkPolicy, Runtime
from .connections import connections_at_start
from .network import network_policy
from .records import SandboxRecord
from .shielding import carried_through

_log = logging.getLogger(__name__)

STOP_SECONDS = 20.0


class RunningToolbox(Protocol):
    """What is needed of the toolbox here."""

    async def start(self) -> None:
        """Starts serving and runs the entrypoint."""
        ...

    async def close(self) -> None:
        """Ends sessions and streams."""
        ...


OpenToolbox = Callable[[SandboxRecord, Box], RunningToolbox]
OnLost = Callable[[str, str], None]


@dataclass(slots=True)
class _Running:
    box: Box
    toolbox: RunningToolbox
    watch: asyncio.Task[None] | None = None


class Boxes:
    """Starts and stops what runs, and tells when a box ends by itself.

    Args:
        runtime: Makes the boxes.
        open_toolbox: Makes the toolbox of a box.
        on_lost: Called with the sandbox's id and a reason when a box has ended unasked.
    """

    def __init__(self, *, runtime: Runtime, open_toolbox: OpenToolbox, on_lost: OnLost) -> None:
        self._runtime = runtime
        self._open_toolbox = open_toolbox
        self._on_lost = on_lost
        self._running: dict[str, _Running] = {}
        # Starting is work for the processor: more at once only makes each of them slower.
        self._slots = asyncio.Semaphore(2 * (os.cpu_count() or 1))

    def toolbox(self, sandbox_id: str) -> RunningToolbox | None:
        """Returns the toolbox of a running sandbox."""
        running = self._running.get(sandbox_id)
        return running.toolbox if running is not None else None

    async def start(self, record: SandboxRecord) -> None:
        """Starts the box over the sandbox's files, then its toolbox; leaves nothing behind on failure."""
        async with self._slots:
            box = await self._runtime.start(box_spec(record))
            try:
                toolbox = self._open_toolbox(record, box)
                try:
                    await toolbox.start()
                except BaseException:
                    await carried_through(toolbox.close())
                    raise
            except BaseException:
                await carried_through(box.stop(force=True))
                raise
        running = _Running(box, toolbox)
        running.watch = asyncio.create_task(self._watch(record.id, running), name=f"watch {record.id}")
        self._running[record.id] = running

    async def stop(self, sandbox_id: str, *, force: bool) -> None:
        """Ends the processes of a sandbox, then its toolbox; fine if it does not run."""
        running = self._running.pop(sandbox_id, None)
        if running is None:
            return
        if running.watch is not None and running.watch is not asyncio.current_task():
            running.watch.cancel()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await running.box.stop(force=force)
        except TimeoutError:
            _log.warning("sandbox %s did not stop within %g s; killing it", sandbox_id, STOP_SECONDS)
            await running.box.stop(force=True)
        finally:
            await carried_through(running.toolbox.close())

    async def set_network(self, sandbox_id: str, policy: NetworkPolicy) -> None:
        """Applies a policy at once; fine if the sandbox does not run."""
        running = self._running.get(sandbox_id)
        if running is not None:
            await running.box.set_network(policy)

    async def remove(self, sandbox_id: str) -> None:
        """Deletes the files of a sandbox."""
        await self._runtime.remove_box(sandbox_id)

    def on_disk(self) -> Sequence[str]:
        """Returns the sandboxes that have files."""
        return self._runtime.boxes_on_disk()

    async def close(self, *, force: bool) -> None:
        """Stops everything."""
        results = await asyncio.gather(
            *(self.stop(sandbox_id, force=force) for sandbox_id in list(self._running)), return_exceptions=True
        )
        for result in results:
            if isinstance(result, Exception):
                _log.error("a sandbox did not stop cleanly", exc_info=result)

    async def _watch(self, sandbox_id: str, running: _Running) -> None:
        reason = await running.box.wait()
        if self._running.get(sandbox_id) is not running:
            return
        del self._running[sandbox_id]
        try:
            await running.toolbox.close()
        except Exception:
            _log.exception("the toolbox of sandbox %s did not close", sandbox_id)
        self._on_lost(sandbox_id, reason)


def box_spec(record: SandboxRecord) -> BoxSpec:
    """Returns how the sandbox's box is started.

    Raises:
        RuntimeFault: The label of its connections cannot be read.
    """
    return BoxSpec(
        box_id=record.id,
        layers=tuple(record.recipe.layers),
        image=record.recipe.image,
        env=record.recipe.env | record.env,
        user=record.recipe.user or record.user,
        workdir=record.recipe.workdir,
        cpu=record.cpu,
        memory=record.memory * GIB,
        disk=record.disk * GIB,
        network=network_policy(record.network),
        connections=connections_at_start(record.labels),
    )
