"""``/snapshots``: the routes of snapshots."""

from __future__ import annotations

import uuid

from aiohttp import web

from ..control.plane import ControlPlane
from ..control.records import SnapshotRecord
from ..control.views import SANDBOX_CLASS, TARGET
from ..wire_errors import WireError
from .answers import json_answer
from .bodies import CreateSnapshotBody, SnapshotQuery, read_body
from .build_log_routes import log_url, stream_log
from .limits import check_size
from .paging import snapshot_page


class SnapshotRoutes:
    """Handlers of ``/snapshots``.

    Args:
        plane: The control plane.
        api_url: Public address of the API, without a slash at its end.
    """

    def __init__(self, plane: ControlPlane, *, api_url: str) -> None:
        self._plane = plane
        self._api_url = api_url

    def table(self) -> list[web.RouteDef]:
        """Returns the routes."""
        # A name may hold slashes, which the SDK's generated client encodes and aiohttp decodes within one segment.
        one = "/snapshots/{snapshotId}"
        return [
            web.get("/snapshots", self.list),
            web.post("/snapshots", self.create),
            web.get(one, self.get),
            web.delete(one, self.delete),
            web.post(f"{one}/activate", self.activate),
            web.post(f"{one}/deactivate", self.deactivate),
            web.get(f"{one}/build-logs-url", self.build_log_url),
            web.get(f"{one}/build-logs", self.build_log),
        ]

    async def list(self, request: web.Request) -> web.Response:
        """``GET /snapshots``."""
        query = SnapshotQuery.of(request)
        page, total, pages = snapshot_page(self._plane.snapshots.all(), query)
        items = [self._plane.views.snapshot(record) for record in page]
        return json_answer({"items": items, "total": total, "page": query.page, "totalPages": pages})

    async def create(self, request: web.Request) -> web.Response:
        """``POST /snapshots``; answers ``building`` at once, or ``active`` where an equal build is there already."""
        body = await read_body(request, CreateSnapshotBody)
        if body.gpu or body.gpu_type:
            raise WireError(400, "gpu is not supported by the local platform: leave it out")
        if body.region_id and body.region_id != TARGET:
            raise WireError(404, f"regionId: there is no region {body.region_id!r}, only {TARGET!r}")
        if body.sandbox_class and body.sandbox_class != SANDBOX_CLASS:
            raise WireError(400, f"sandboxClass: the local platform has only {SANDBOX_CLASS!r}")
        if body.build_info is not None and body.image_name:
            raise WireError(400, "imageName and buildInfo exclude each other: give only one of them")
        if body.build_info is not None and body.entrypoint:
            raise WireError(400, "entrypoint belongs into the Dockerfile when buildInfo is given")
        if body.build_info is not None and body.build_info.context_hashes:
            raise WireError(400, "buildInfo.contextHashes: the local platform has no build contexts")
        check_size(self._plane.settings, cpu=body.cpu, memory=body.memory, disk=body.disk)
        snapshot = await self._plane.snapshots.create(
            name=body.name,
            image_name=body.image_name,
            dockerfile=body.build_info.dockerfile_content if body.build_info is not None else None,
            entrypoint=body.entrypoint,
            cpu=body.cpu,
            memory=body.memory,
            disk=body.disk,
        )
        return self._answer(snapshot)

    async def get(self, request: web.Request) -> web.Response:
        """``GET /snapshots/{id or name}``."""
        return self._answer(self._record(request))

    async def delete(self, request: web.Request) -> web.Response:
        """``DELETE /snapshots/{id}``."""
        await self._plane.snapshots.delete(self._own(request))
        return web.Response(status=204)

    async def activate(self, request: web.Request) -> web.Response:
        """``POST /snapshots/{id}/activate``."""
        snapshot = self._own(request)
        await self._plane.snapshots.activate(snapshot)
        return self._answer(snapshot)

    async def deactivate(self, request: web.Request) -> web.Response:
        """``POST /snapshots/{id}/deactivate``."""
        await self._plane.snapshots.deactivate(self._own(request))
        return web.Response(status=204)

    async def build_log_url(self, request: web.Request) -> web.Response:
        """``GET /snapshots/{id}/build-logs-url``; without a query, since the SDK appends its own."""
        snapshot = self._record(request)
        return log_url(self._plane, snapshot.build_id, url=f"{self._api_url}/snapshots/{snapshot.id}/build-logs")

    async def build_log(self, request: web.Request) -> web.StreamResponse:
        """``GET /snapshots/{id}/build-logs``."""
        return await stream_log(self._plane, request, build_id=self._record(request).build_id)

    def _record(self, request: web.Request) -> SnapshotRecord:
        return self._plane.snapshots.get(request.match_info["snapshotId"])

    def _own(self, request: web.Request) -> SnapshotRecord:
        """Finds by id only, as Daytona does for whatever changes a snapshot."""
        text = request.match_info["snapshotId"]
        try:
            snapshot_id = str(uuid.UUID(text))
        except ValueError:
            raise WireError(400, f"id must be the UUID of a snapshot, not {text!r}") from None
        return self._plane.snapshots.get(snapshot_id)

    def _answer(self, snapshot: SnapshotRecord) -> web.Response:
        return json_answer(self._plane.views.snapshot(snapshot))
