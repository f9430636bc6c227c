"""``/sandbox``: the routes of sandboxes."""

from __future__ import annotations

import re
import uuid
from urllib.parse import urlsplit

from aiohttp import web

from ..control.connections import checked_connections
from ..control.network import network_policy, updated
from ..control.plane import ControlPlane
from ..control.records import (
    DEFAULT_AUTO_ARCHIVE_MINUTES,
    DEFAULT_AUTO_STOP_MINUTES,
    DEFAULT_CPU,
    DEFAULT_DISK_GIB,
    DEFAULT_MEMORY_GIB,
    MAX_AUTO_ARCHIVE_MINUTES,
    BuildRecord,
    NetworkSettings,
    SandboxRecord,
)
from ..control.snapshots import DEFAULT_SNAPSHOT
from ..control.states import DesiredState, SandboxState, SnapshotState, Verb
from ..control.views import TARGET
from ..wire_errors import WireError
from .answers import json_answer
from .bodies import (
    MAX_MINUTES,
    CreateSandboxBody,
    LabelsBody,
    NetworkBody,
    ResizeBody,
    SandboxQuery,
    flag,
    path_integer,
    query_flag,
    read_body,
)
from .build_log_routes import log_url, stream_log
from .limits import check_size
from .paging import sandbox_page

_NAME_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f<>]|://")


class SandboxRoutes:
    """Handlers of ``/sandbox``.

    Args:
        plane: The control plane.
        api_url: Public address of the API, without a slash at its end.
    """

    def __init__(self, plane: ControlPlane, *, api_url: str) -> None:
        self._plane = plane
        self._api_url = api_url
        self._api_port = urlsplit(api_url).port or 80

    def table(self) -> list[web.RouteDef]:
        """Returns the routes."""
        one = "/sandbox/{sandboxId}"
        return [
            web.get("/sandbox", self.list),
            web.post("/sandbox", self.create),
            web.get(one, self.get),
            web.delete(one, self.delete),
            web.post(f"{one}/start", self.start),
            web.post(f"{one}/stop", self.stop),
            web.post(f"{one}/recover", self.recover),
            web.post(f"{one}/archive", self.archive),
            web.post(f"{one}/resize", self.resize),
            web.post(f"{one}/pause", self.pause),
            web.put(f"{one}/labels", self.set_labels),
            web.post(f"{one}/autostop/{{minutes}}", self.set_auto_stop),
            web.post(f"{one}/autoarchive/{{minutes}}", self.set_auto_archive),
            web.post(f"{one}/autodelete/{{minutes}}", self.set_auto_delete),
            web.post(f"{one}/ttl/{{minutes}}", self.set_time_to_live),
            web.post(f"{one}/public/{{isPublic}}", self.set_public),
            web.post(f"{one}/last-activity", self.note_activity),
            web.post(f"{one}/network-settings", self.set_network),
            web.get(f"{one}/toolbox-proxy-url", self.toolbox_url),
            web.get(f"{one}/build-logs-url", self.build_log_url),
            web.get(f"{one}/build-logs", self.build_log),
        ]

    async def list(self, request: web.Request) -> web.Response:
        """``GET /sandbox``."""
        page, cursor = sandbox_page(self._plane.sandboxes.all(), SandboxQuery.of(request))
        return json_answer({"items": [self._plane.views.sandbox_item(record) for record in page], "nextCursor": cursor})

    async def create(self, request: web.Request) -> web.Response:
        """``POST /sandbox``; held until the sandbox runs, as the hosted platform does."""
        body = await read_body(request, CreateSandboxBody)
        unsupported = body.unsupported()
        if unsupported is not None:
            raise WireError(400, f"{unsupported} is not supported by the local platform: leave it out")
        if body.target and body.target != TARGET:
            raise WireError(404, f"target: there is no region {body.target!r}, only {TARGET!r}")
        record = self._new_record(body)
        if body.build_info is None:
            return json_answer(await self._from_snapshot(body, record))
        return json_answer(await self._from_image(body, record))

    async def get(self, request: web.Request) -> web.Response:
        """``GET /sandbox/{id or name}``."""
        return self._answer(self._record(request))

    async def delete(self, request: web.Request) -> web.Response:
        """``DELETE /sandbox/{id}``; the name is free at once."""
        record = self._record(request)
        await self._plane.sandboxes.delete(record)
        return self._answer(record)

    async def start(self, request: web.Request) -> web.Response:
        """``POST /sandbox/{id}/start``; held until the sandbox runs."""
        record = self._record(request)
        await self._plane.sandboxes.start(record)
        return self._answer(record)

    async def stop(self, request: web.Request) -> web.Response:
        """``POST /sandbox/{id}/stop``; answers at once."""
        record = self._record(request)
        await self._plane.sandboxes.stop(record, force=query_flag(request, "force"))
        return self._answer(record)

    async def recover(self, request: web.Request) -> web.Response:
        """``POST /sandbox/{id}/recover``."""
        record = self._record(request)
        await self._plane.sandboxes.recover(record, skip_start=query_flag(request, "skipStart"))
        return self._answer(record)

    async def archive(self, request: web.Request) -> web.Response:
        """``POST /sandbox/{id}/archive``."""
        record = self._record(request)
        await self._plane.sandboxes.archive(record)
        return self._answer(record)

    async def resize(self, request: web.Request) -> web.Response:
        """``POST /sandbox/{id}/resize``, for stopped sandboxes."""
        record = self._record(request)
        body = await read_body(request, ResizeBody)
        check_size(self._plane.settings, cpu=body.cpu, memory=body.memory, disk=body.disk)
        await self._plane.sandboxes.resize(
            record,
            cpu=body.cpu or record.cpu,
            memory=body.memory or record.memory,
            disk=body.disk or record.disk,
        )
        return self._answer(record)

    async def pause(self, request: web.Request) -> web.Response:
        """``POST /sandbox/{id}/pause``; never possible for containers."""
        record = self._record(request)
        self._plane.sandboxes.refuse(Verb.PAUSE, record)
        return self._answer(record)

    async def set_labels(self, request: web.Request) -> web.Response:
        """``PUT /sandbox/{id}/labels``; replaces all of them. Other connections are valid from the next start."""
        record = self._record(request)
        labels = (await read_body(request, LabelsBody)).labels
        checked_connections(labels, api_port=self._api_port)
        record.labels = labels
        return await self._changed(record)

    async def set_auto_stop(self, request: web.Request) -> web.Response:
        """``POST /sandbox/{id}/autostop/{minutes}``; 0 is off."""
        record = self._record(request)
        record.auto_stop = path_integer(request, "minutes", low=0, high=MAX_MINUTES)
        return await self._changed(record)

    async def set_auto_archive(self, request: web.Request) -> web.Response:
        """``POST /sandbox/{id}/autoarchive/{minutes}``; 0 is the maximum."""
        record = self._record(request)
        record.auto_archive = _archive_minutes(path_integer(request, "minutes", low=0, high=2**53))
        return await self._changed(record)

    async def set_auto_delete(self, request: web.Request) -> web.Response:
        """``POST /sandbox/{id}/autodelete/{minutes}``; negative is off, 0 makes the sandbox ephemeral."""
        record = self._record(request)
        record.auto_delete = max(-1, path_integer(request, "minutes", low=None, high=MAX_MINUTES))
        return await self._changed(record)

    async def set_time_to_live(self, request: web.Request) -> web.Response:
        """``POST /sandbox/{id}/ttl/{minutes}``; counted from now, 0 is off."""
        record = self._record(request)
        record.destroy_at = self._end_of_life(path_integer(request, "minutes", low=0, high=MAX_MINUTES))
        return await self._changed(record)

    async def set_public(self, request: web.Request) -> web.Response:
        """``POST /sandbox/{id}/public/{bool}``."""
        record = self._record(request)
        record.public = flag(request.match_info["isPublic"], field="isPublic")
        return await self._changed(record)

    async def note_activity(self, request: web.Request) -> web.Response:
        """``POST /sandbox/{id}/last-activity``; begins the idle time anew."""
        self._plane.sandboxes.active(self._record(request).id)
        await self._plane.sandboxes.save_activity()
        return web.Response(status=201)

    async def set_network(self, request: web.Request) -> web.Response:
        """``POST /sandbox/{id}/network-settings``; applied at once."""
        record = self._record(request)
        body = await read_body(request, NetworkBody)
        settings = updated(
            record.network,
            block_all=body.network_block_all,
            allow_list=body.network_allow_list,
            domain_allow_list=body.domain_allow_list,
        )
        await self._plane.sandboxes.set_network(record, settings)
        return self._answer(record)

    async def toolbox_url(self, request: web.Request) -> web.Response:
        """``GET /sandbox/{id}/toolbox-proxy-url``."""
        self._record(request)
        return json_answer({"url": self._plane.views.toolbox_url})

    async def build_log_url(self, request: web.Request) -> web.Response:
        """``GET /sandbox/{id}/build-logs-url``; without a query, since the SDK appends its own."""
        record = self._record(request)
        return log_url(self._plane, record.build_id, url=f"{self._api_url}/sandbox/{record.id}/build-logs")

    async def build_log(self, request: web.Request) -> web.StreamResponse:
        """``GET /sandbox/{id}/build-logs``."""
        return await stream_log(self._plane, request, build_id=self._record(request).build_id)

    def _record(self, request: web.Request) -> SandboxRecord:
        return self._plane.sandboxes.get(request.match_info["sandboxId"])

    def _answer(self, record: SandboxRecord) -> web.Response:
        return json_answer(self._plane.views.sandbox(record))

    async def _changed(self, record: SandboxRecord) -> web.Response:
        await self._plane.sandboxes.changed(record)
        return self._answer(record)

    def _new_record(self, body: CreateSandboxBody) -> SandboxRecord:
        now = self._plane.clock.now()
        sandbox_id = str(uuid.uuid4())
        network = NetworkSettings(
            block_all=body.network_block_all or False,
            allow_list=body.network_allow_list or None,
            domain_allow_list=body.domain_allow_list or None,
        )
        network_policy(network)
        checked_connections(body.labels or {}, api_port=self._api_port)
        return SandboxRecord(
            id=sandbox_id,
            name=_name(body.name) or sandbox_id,
            state=SandboxState.CREATING,
            desired_state=DesiredState.STARTED,
            created_at=now,
            updated_at=now,
            last_activity_at=now,
            network=network,
            user=body.user or "daytona",
            env=body.env or {},
            labels=body.labels or {},
            public=body.public or False,
            auto_stop=DEFAULT_AUTO_STOP_MINUTES if body.auto_stop_interval is None else body.auto_stop_interval,
            auto_archive=(
                DEFAULT_AUTO_ARCHIVE_MINUTES
                if body.auto_archive_interval is None
                else _archive_minutes(body.auto_archive_interval)
            ),
            auto_delete=-1 if body.auto_delete_interval is None else max(-1, body.auto_delete_interval),
            destroy_at=self._end_of_life(body.ttl_minutes or 0),
        )

    async def _from_snapshot(self, body: CreateSandboxBody, record: SandboxRecord) -> dict[str, object]:
        for name in ("cpu", "memory", "disk"):
            if getattr(body, name) is not None:
                raise WireError(400, f"{name} is given by the snapshot: set it there, or create from an image")
        wanted = (body.snapshot or "").strip() or DEFAULT_SNAPSHOT
        snapshot = self._plane.snapshots.find(wanted)
        if snapshot is None:
            raise WireError(400, f"snapshot: there is no snapshot {wanted!r}")
        if snapshot.state is not SnapshotState.ACTIVE:
            raise WireError(400, f"snapshot: {snapshot.name!r} is {snapshot.state.value}, not active")
        record.snapshot, record.recipe = snapshot.name, snapshot.recipe
        record.cpu, record.memory, record.disk = snapshot.cpu, snapshot.memory, snapshot.disk
        answer = await self._plane.sandboxes.create(record)
        await self._plane.snapshots.used(snapshot)
        return answer

    async def _from_image(self, body: CreateSandboxBody, record: SandboxRecord) -> dict[str, object]:
        if body.build_info is None or (body.snapshot or "").strip():
            raise WireError(400, "snapshot and buildInfo exclude each other: give only one of them")
        if body.build_info.context_hashes:
            raise WireError(400, "buildInfo.contextHashes: the local platform has no build contexts")
        check_size(self._plane.settings, cpu=body.cpu, memory=body.memory, disk=body.disk)
        record.cpu = body.cpu or DEFAULT_CPU
        record.memory = body.memory or DEFAULT_MEMORY_GIB
        record.disk = body.disk or DEFAULT_DISK_GIB
        build: BuildRecord = self._plane.builds.request(body.build_info.dockerfile_content)
        try:
            return await self._plane.sandboxes.create(record, build=build)
        finally:
            # Where the sandbox was refused nothing stands on the build; where it was made this does nothing.
            await self._plane.builds.release(build.id)

    def _end_of_life(self, minutes: int) -> float | None:
        return self._plane.clock.now() + minutes * 60 if minutes else None


def _archive_minutes(minutes: int) -> int:
    return min(minutes, MAX_AUTO_ARCHIVE_MINUTES) if minutes else MAX_AUTO_ARCHIVE_MINUTES


def _name(name: str | None) -> str | None:
    if name is None or not name.strip():
        return None
    if len(name) > 255 or _NAME_FORBIDDEN.search(name):
        raise WireError(400, "name must have at most 255 characters and no control characters, tags or addresses")
    return name.strip()
