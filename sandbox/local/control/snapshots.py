"""Snapshots: prepared environments that sandboxes are cloned from."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from ..wire_errors import WireError
from .builds import Builds
from .clock import Clock
from .live_events import LiveEvents
from .records import (
    DEFAULT_CPU,
    DEFAULT_DISK_GIB,
    DEFAULT_MEMORY_GIB,
    BuildRecord,
    BuildState,
    Recipe,
    SnapshotRecord,
)
from .states import SnapshotState
from .store import Store

_log = logging.getLogger(__name__)

DEFAULT_SNAPSHOT = "default"
"""Name of the snapshot that is always there: the machine's toolchains and nothing else."""

DEFAULT_SNAPSHOT_ID = str(uuid.uuid5(uuid.NAMESPACE_URL, "uom-sandbox:snapshot:default"))

_NAME = re.compile(r"[A-Za-z0-9_.:-]+(?:/[A-Za-z0-9_.:-]+)*")


class Snapshots:
    """All snapshots of one platform.

    Args:
        store: Where they are remembered.
        builds: Makes what they consist of.
        events: Told of every change.
        clock: The time.
        view: Renders a snapshot for an event.
    """

    def __init__(
        self,
        *,
        store: Store,
        builds: Builds,
        events: LiveEvents,
        clock: Clock,
        view: Callable[[SnapshotRecord], dict[str, Any]],
    ) -> None:
        self._store = store
        self._builds = builds
        self._events = events
        self._clock = clock
        self._view = view
        self._records: dict[str, SnapshotRecord] = {}
        self._removals: dict[str, asyncio.Task[None]] = {}

    async def load(self) -> None:
        """Reads the snapshots on file and brings them in line with their builds."""
        for snapshot in await self._store.snapshots():
            self._records[snapshot.id] = snapshot
            build = self._builds.get(snapshot.build_id) if snapshot.build_id is not None else None
            if snapshot.state is SnapshotState.REMOVING:
                self._remove(snapshot)
            elif snapshot.build_id is None:
                continue
            elif build is None:
                self._fail(
                    snapshot, SnapshotState.ERROR, "the files of the snapshot have gone: delete it and create it again"
                )
                await self._store.save(snapshot)
            elif snapshot.state is SnapshotState.BUILDING:
                await self.build_ended(build)
        if DEFAULT_SNAPSHOT_ID not in self._records:
            now = self._clock.now()
            general = SnapshotRecord(
                id=DEFAULT_SNAPSHOT_ID,
                name=DEFAULT_SNAPSHOT,
                state=SnapshotState.ACTIVE,
                created_at=now,
                updated_at=now,
                general=True,
                size=0,
            )
            self._records[general.id] = general
            await self._store.save(general)

    def all(self) -> Iterable[SnapshotRecord]:
        """Returns every snapshot."""
        return self._records.values()

    def find(self, id_or_name: str) -> SnapshotRecord | None:
        """Returns a snapshot by id or name; the user's own hide a general one of the same name."""
        found = self._records.get(id_or_name)
        if found is not None:
            return found
        named = [record for record in self._records.values() if record.name == id_or_name]
        return min(named, key=lambda record: record.general, default=None)

    def get(self, id_or_name: str) -> SnapshotRecord:
        """Returns a snapshot by id or name.

        Raises:
            WireError: 404, there is none.
        """
        found = self.find(id_or_name)
        if found is None:
            raise WireError(404, f"there is no snapshot {id_or_name!r}")
        return found

    def uses_build(self, build_id: str) -> bool:
        """True if a snapshot that is not being removed stands on the build."""
        return any(
            record.build_id == build_id and record.state is not SnapshotState.REMOVING
            for record in self._records.values()
        )

    async def create(
        self,
        *,
        name: str,
        image_name: str | None = None,
        dockerfile: str | None = None,
        entrypoint: list[str] | None = None,
        cpu: int | None = None,
        memory: int | None = None,
        disk: int | None = None,
    ) -> SnapshotRecord:
        """Creates a snapshot from an image name or a definition; memory and disk in GiB, 0 or ``None`` for the default.

        Raises:
            WireError: 400 for a name, image or definition that cannot be used, 409 for a name that is taken.
        """
        if not _NAME.fullmatch(name) or len(name) > 255:
            raise WireError(
                400, f"name: {name!r} may hold letters, digits and _ . - : in parts separated by single slashes"
            )
        if any(record.name == name and not record.general for record in self._records.values()):
            raise WireError(409, f"a snapshot named {name!r} exists already")
        now = self._clock.now()
        snapshot = SnapshotRecord(
            id=str(uuid.uuid4()),
            name=name,
            state=SnapshotState.ACTIVE,
            created_at=now,
            updated_at=now,
            image_name=image_name,
            size=0,
            cpu=cpu or DEFAULT_CPU,
            memory=memory or DEFAULT_MEMORY_GIB,
            disk=disk or DEFAULT_DISK_GIB,
        )
        if dockerfile is None:
            image = _checked_image(image_name)
            if self._builds.uses_images:
                self._adopt(snapshot, self._builds.request(_definition(image, entrypoint)))
            else:
                snapshot.recipe = Recipe(entrypoint=entrypoint)
                _log.info("snapshot %s: this machine's toolchains stand in for the image %s", name, image)
        else:
            self._adopt(snapshot, self._builds.request(dockerfile))
        self._records[snapshot.id] = snapshot
        await self._store.save(snapshot)
        self._events.emit("snapshot.created", self._view(snapshot))
        return snapshot

    async def activate(self, snapshot: SnapshotRecord) -> None:
        """Puts an inactive snapshot into use, built anew if the machine's toolchains have changed since.

        Raises:
            WireError: 400, it is not inactive.
        """
        if snapshot.state is not SnapshotState.INACTIVE:
            raise WireError(
                400, f"the snapshot {snapshot.name!r} is {snapshot.state}; only an inactive one is activated"
            )
        former = self._builds.get(snapshot.build_id) if snapshot.build_id is not None else None
        if former is None:
            snapshot.state = SnapshotState.ACTIVE
        else:
            self._adopt(snapshot, self._builds.request(former.text))
        await self._save(snapshot, old=SnapshotState.INACTIVE)
        if former is not None:
            await self._builds.release(former.id)

    async def deactivate(self, snapshot: SnapshotRecord) -> None:
        """Puts an active snapshot out of use.

        Raises:
            WireError: 400, it is not active; 403 for the default one.
        """
        self._own(snapshot)
        if snapshot.state is not SnapshotState.ACTIVE:
            raise WireError(400, f"the snapshot {snapshot.name!r} is {snapshot.state}, not active")
        snapshot.state = SnapshotState.INACTIVE
        await self._save(snapshot, old=SnapshotState.ACTIVE)

    async def delete(self, snapshot: SnapshotRecord) -> None:
        """Removes a snapshot; its layer goes as soon as no sandbox stands on it.

        Raises:
            WireError: 403 for the default one.
        """
        self._own(snapshot)
        old, snapshot.state = snapshot.state, SnapshotState.REMOVING
        if old is SnapshotState.REMOVING:
            return
        await self._save(snapshot, old=old)
        self._remove(snapshot)

    async def used(self, snapshot: SnapshotRecord) -> None:
        """Notes that a sandbox was made from it."""
        snapshot.last_used_at = self._clock.now()
        await self._store.save(snapshot)

    async def build_ended(self, build: BuildRecord) -> None:
        """Passes the end of a build on to the snapshots that wait for it."""
        for snapshot in list(self._records.values()):
            if snapshot.build_id == build.id and snapshot.state is SnapshotState.BUILDING:
                self._adopt(snapshot, build)
                await self._save(snapshot, old=SnapshotState.BUILDING)

    async def close(self) -> None:
        """Waits for removals under way; what is left of them goes on at the next start."""
        if self._removals:
            await asyncio.wait(self._removals.values(), timeout=5)
        for task in list(self._removals.values()):
            task.cancel()
        if self._removals:
            await asyncio.wait(self._removals.values())

    def _adopt(self, snapshot: SnapshotRecord, build: BuildRecord) -> None:
        snapshot.build_id = build.id
        if build.state is BuildState.BUILDING:
            snapshot.state, snapshot.size = SnapshotState.BUILDING, None
        elif build.state is BuildState.FAILED:
            self._fail(snapshot, SnapshotState.BUILD_FAILED, build.reason or "the build failed")
        else:
            snapshot.state = SnapshotState.ACTIVE
            snapshot.size, snapshot.recipe = build.size, build.recipe
        snapshot.updated_at = self._clock.now()

    def _fail(self, snapshot: SnapshotRecord, state: SnapshotState, reason: str) -> None:
        snapshot.state, snapshot.error_reason, snapshot.updated_at = state, reason, self._clock.now()

    def _own(self, snapshot: SnapshotRecord) -> None:
        if snapshot.general:
            raise WireError(403, f"the snapshot {snapshot.name!r} belongs to the platform and stays")

    def _remove(self, snapshot: SnapshotRecord) -> None:
        task = asyncio.create_task(self._removal(snapshot), name=f"remove snapshot {snapshot.id}")
        self._removals[snapshot.id] = task
        task.add_done_callback(lambda _task: self._removals.pop(snapshot.id, None))

    async def _removal(self, snapshot: SnapshotRecord) -> None:
        try:
            if snapshot.build_id is not None:
                await self._builds.release(snapshot.build_id)
        except Exception as error:
            _log.exception("snapshot %s could not be removed", snapshot.name)
            self._fail(snapshot, SnapshotState.ERROR, f"its files could not be removed: {error}")
            await self._store.save(snapshot)
            return
        await self._store.remove(snapshot)
        del self._records[snapshot.id]
        self._events.emit("snapshot.removed", {"id": snapshot.id, "name": snapshot.name})

    async def _save(self, snapshot: SnapshotRecord, *, old: SnapshotState) -> None:
        snapshot.updated_at = self._clock.now()
        await self._store.save(snapshot)
        self._events.emit(
            "snapshot.state.updated",
            {"snapshot": self._view(snapshot), "oldState": old.value, "newState": snapshot.state.value},
        )


def _definition(image: str, entrypoint: list[str] | None) -> str:
    """Returns the image definition that comes to the same as an image and an entrypoint."""
    text = f"FROM {image}\n"
    return text + f"ENTRYPOINT {json.dumps(entrypoint)}\n" if entrypoint else text


def _checked_image(image_name: str | None) -> str:
    """Returns the name of an image.

    Raises:
        WireError: 400, it names none, or not always the same.
    """
    if not image_name or not image_name.strip():
        raise WireError(400, "give imageName or buildInfo")
    reference = image_name.strip()
    if any(character.isspace() or character in "$\"'\\`" for character in reference):
        raise WireError(400, f"imageName: {image_name!r} is not the name of an image")
    if "@sha256:" in reference:
        return reference
    tag = reference.rpartition("/")[2].partition(":")[2]
    if not tag:
        raise WireError(400, f"imageName: {image_name!r} needs a tag or digest")
    if tag == "latest":
        raise WireError(400, f"imageName: {image_name!r} must not use the tag latest, which changes its meaning")
    return reference
