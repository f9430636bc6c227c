"""Routes about the platform itself, and clear refusals where Daytona has something that this platform has not."""

from __future__ import annotations

from aiohttp import web
from aiohttp.typedefs import Handler

from ..control.plane import ControlPlane
from ..control.records import MAX_AUTO_ARCHIVE_MINUTES
from ..control.snapshots import DEFAULT_SNAPSHOT
from ..wire_errors import WireError
from .answers import json_answer

OPEN_PATHS = frozenset({"/health", "/health/ready", "/config"})
"""Routes that need no key, as on the hosted platform."""

_SANDBOX = "/sandbox/{sandboxId}"

NOT_OFFERED: tuple[tuple[str, str, str], ...] = (
    ("POST", f"{_SANDBOX}/snapshot", "snapshots made from a sandbox"),
    ("POST", f"{_SANDBOX}/fork", "forks"),
    ("GET", f"{_SANDBOX}/forks", "forks"),
    ("GET", f"{_SANDBOX}/parent", "forks"),
    ("GET", f"{_SANDBOX}/ancestors", "forks"),
    ("POST", f"{_SANDBOX}/backup", "backups"),
    ("POST", f"{_SANDBOX}/autopause/{{minutes}}", "pausing"),
    ("GET", f"{_SANDBOX}/ports/{{port}}/preview-url", "previews of ports"),
    ("GET", f"{_SANDBOX}/ports/{{port}}/signed-preview-url", "previews of ports"),
    ("POST", f"{_SANDBOX}/ports/{{port}}/signed-preview-url/{{token}}/expire", "previews of ports"),
    ("POST", f"{_SANDBOX}/ssh-access", "access by SSH"),
    ("DELETE", f"{_SANDBOX}/ssh-access", "access by SSH"),
    ("GET", f"{_SANDBOX}/secrets", "secrets; pass environment variables instead"),
    ("PUT", f"{_SANDBOX}/secrets", "secrets; pass environment variables instead"),
    ("GET", f"{_SANDBOX}/signing-key", "signed addresses"),
    ("POST", f"{_SANDBOX}/signing-key/rotate", "signed addresses"),
    ("GET", f"{_SANDBOX}/telemetry/{{rest:.*}}", "telemetry"),
    ("POST", "/volumes", "volumes"),
    ("DELETE", "/volumes/{volumeId}", "volumes"),
    ("GET", "/object-storage/push-access", "build contexts; write files with a here-document in RUN instead"),
    ("*", "/secret{rest:.*}", "secrets; pass environment variables instead"),
    ("*", "/warm-pools{rest:.*}", "warm pools"),
)
"""What answers 501, as method, path and what is not offered."""


class PlatformRoutes:
    """Handlers of what is neither sandbox nor snapshot.

    Args:
        plane: The control plane.
        api_url: Public address of the API, without a slash at its end.
        version: Of the platform.
    """

    def __init__(self, plane: ControlPlane, *, api_url: str, version: str) -> None:
        self._plane = plane
        self._api_url = api_url
        self._version = version

    def table(self) -> list[web.RouteDef]:
        """Returns the routes."""
        routes = [
            web.get("/health", self.health),
            web.get("/health/ready", self.ready),
            web.get("/config", self.config),
            web.get("/volumes", self.volumes),
            web.get("/volumes/{volumeId}", self.volume),
            web.get("/volumes/by-name/{name}", self.volume),
        ]
        return routes + [web.route(method, path, _refusal(what)) for method, path, what in NOT_OFFERED]

    async def health(self, _request: web.Request) -> web.Response:
        """``GET /health``."""
        return json_answer({"status": "ok", "version": self._version})

    async def ready(self, _request: web.Request) -> web.Response:
        """``GET /health/ready``: the state file answers too."""
        await self._plane.store.ping()
        up = {"store": {"status": "up"}}
        return json_answer({"status": "ok", "info": up, "error": {}, "details": up})

    async def config(self, _request: web.Request) -> web.Response:
        """``GET /config``; the SDK reads it before it asks for metrics."""
        return json_answer(
            {
                "version": self._version,
                "oidc": {"issuer": "", "clientId": "", "audience": "", "provider": "none"},
                "linkedAccountsEnabled": False,
                "announcements": {},
                "proxyTemplateUrl": "",
                "proxyToolboxUrl": self._plane.views.toolbox_url,
                "defaultSnapshot": DEFAULT_SNAPSHOT,
                "dashboardUrl": "",
                "maxAutoArchiveInterval": MAX_AUTO_ARCHIVE_MINUTES,
                "maintananceMode": False,
                "environment": "local",
            }
        )

    async def volumes(self, _request: web.Request) -> web.Response:
        """``GET /volumes``: there are none."""
        return json_answer([])

    async def volume(self, request: web.Request) -> web.Response:
        """``GET /volumes/{id}`` and ``/volumes/by-name/{name}``: there are none."""
        wanted = request.match_info.get("name") or request.match_info.get("volumeId")
        raise WireError(404, f"there is no volume {wanted!r}: the local platform has no volumes")


def _refusal(what: str) -> Handler:
    async def refuse(_request: web.Request) -> web.StreamResponse:
        raise WireError(501, f"the local platform does not offer {what}")

    return refuse
