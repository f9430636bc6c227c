"""The control plane: everything that has a record, wired together."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ..runtime.interface import Runtime
from ..settings import Settings
from .boxes import Boxes, OpenToolbox
from .builds import Builds
from .clock import Clock
from .janitor import Janitor
from .live_events import LiveEvents
from .sandboxes import Sandboxes
from .snapshots import Snapshots
from .store import Store
from .views import Views


class ControlPlane:
    """All parts of one platform that outlive a request.

    Args:
        settings: Limits and intervals.
        runtime: Isolates; already prepared.
        clock: The time.
        directory: Where the state file and the build logs are; must exist.
        views: Renders records.
        open_toolbox: Makes the toolbox of a running sandbox.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        runtime: Runtime,
        clock: Clock,
        directory: Path,
        views: Views,
        open_toolbox: OpenToolbox,
    ) -> None:
        self.settings = settings
        self.views = views
        self.clock = clock
        self.closing = False
        self._closed = False
        self.events = LiveEvents()
        self.store = Store(directory / "state.sqlite")
        self.builds = Builds(
            store=self.store,
            runtime=runtime,
            clock=clock,
            directory=directory / "builds",
            seconds=settings.build_seconds,
            concurrent=settings.concurrent_builds,
        )
        views.build_of = self.builds.get
        self.snapshots = Snapshots(
            store=self.store, builds=self.builds, events=self.events, clock=clock, view=views.snapshot
        )
        self.boxes = Boxes(runtime=runtime, open_toolbox=open_toolbox, on_lost=self._box_lost)
        self.sandboxes = Sandboxes(
            store=self.store,
            boxes=self.boxes,
            builds=self.builds,
            events=self.events,
            clock=clock,
            view=views.sandbox,
            hold_seconds=settings.hold_seconds,
            max_sandboxes=settings.max_sandboxes,
            total_memory_gib=settings.total_memory_gib,
        )
        self.builds.on_ended = self.snapshots.build_ended
        self.builds.in_use = lambda build_id: self.snapshots.uses_build(build_id) or self.sandboxes.uses_build(build_id)
        self.janitor = Janitor(sandboxes=self.sandboxes, clock=clock, seconds=settings.sweep_seconds)

    async def start(self) -> None:
        """Reads what is on file, resolves what a predecessor left unfinished and begins the janitor's rounds."""
        await self.store.open()
        await self.builds.load()
        await self.sandboxes.load()
        await self.snapshots.load()
        self.janitor.start()

    async def close(self) -> None:
        """Stops everything and closes the file, each part also if another fails. May be called twice."""
        if self._closed:
            return
        self._closed = self.closing = True
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self.store.close)
            stack.callback(self.events.close)
            stack.push_async_callback(self.snapshots.close)
            stack.push_async_callback(self.sandboxes.close)
            stack.push_async_callback(self.builds.close)
            stack.push_async_callback(self.janitor.close)

    def _box_lost(self, sandbox_id: str, reason: str) -> None:
        self.sandboxes.box_lost(sandbox_id, reason)
