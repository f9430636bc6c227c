"""Records as the wire shows them. The SDK's models are strict: whole numbers, strings in maps, no missing members."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from .records import BuildRecord, SandboxRecord, SnapshotRecord
from .states import DesiredState, SandboxState, SnapshotState

ORGANIZATION = "local"
TARGET = "local"
RUNNER = "local"
SANDBOX_CLASS = "container"


def timestamp(seconds: float) -> str:
    """Returns ISO 8601 in UTC with milliseconds and ``Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Views:
    """Renders records.

    Args:
        toolbox_url: Base of all toolboxes, without a slash at its end.
        version: Of the platform.
    """

    def __init__(self, *, toolbox_url: str, version: str) -> None:
        self.toolbox_url = toolbox_url
        self.version = version
        self.build_of: Callable[[str], BuildRecord | None] = lambda _build_id: None

    def sandbox(self, record: SandboxRecord) -> dict[str, Any]:
        """Returns the ``Sandbox`` object."""
        view = self.sandbox_item(record) | {"env": record.env, "kvm": False, "volumes": []}
        build = self._build_info(record.build_id) if record.snapshot is None else None
        if build is not None:
            view["buildInfo"] = build
        return view

    def sandbox_item(self, record: SandboxRecord) -> dict[str, Any]:
        """Returns the ``SandboxListItem`` object."""
        desired = record.desired_state
        view: dict[str, Any] = {
            "id": record.id,
            "organizationId": ORGANIZATION,
            "name": record.name,
            "user": record.user,
            "target": TARGET,
            "labels": record.labels,
            "public": record.public,
            "networkBlockAll": record.network.block_all,
            "cpu": record.cpu,
            "gpu": 0,
            "memory": record.memory,
            "disk": record.disk,
            "state": SandboxState.CREATING.value if record.state is SandboxState.UNKNOWN else record.state.value,
            "desiredState": DesiredState(desired).value,
            "recoverable": record.recoverable,
            "autoStopInterval": record.auto_stop,
            "autoArchiveInterval": record.auto_archive,
            "autoDeleteInterval": record.auto_delete,
            "sandboxClass": SANDBOX_CLASS,
            "runnerId": RUNNER,
            "daemonVersion": self.version,
            "backupState": "None",
            "createdAt": timestamp(record.created_at),
            "updatedAt": timestamp(record.updated_at),
            "lastActivityAt": timestamp(record.last_activity_at),
            "toolboxProxyUrl": self.toolbox_url,
        }
        optional = {
            "snapshot": record.snapshot,
            "errorReason": record.error_reason,
            "networkAllowList": record.network.allow_list,
            "domainAllowList": record.network.domain_allow_list,
            "autoDestroyAt": timestamp(record.destroy_at) if record.destroy_at is not None else None,
        }
        return view | {name: value for name, value in optional.items() if value is not None}

    def snapshot(self, record: SnapshotRecord) -> dict[str, Any]:
        """Returns the ``SnapshotDto`` object; ``size`` in GiB."""
        active = record.state is SnapshotState.ACTIVE
        entrypoint = record.recipe.entrypoint
        if entrypoint is None and record.build_id is not None:
            entrypoint = ["sleep", "infinity"]  # what Daytona reports for a definition without one
        view: dict[str, Any] = {
            "id": record.id,
            "organizationId": ORGANIZATION,
            "general": record.general,
            "name": record.name,
            "state": record.state.value,
            "size": round(record.size / 1024**3, 6) if active and record.size is not None else None,
            "entrypoint": entrypoint,
            "cpu": record.cpu,
            "gpu": 0,
            "mem": record.memory,
            "disk": record.disk,
            "errorReason": record.error_reason,
            "createdAt": timestamp(record.created_at),
            "updatedAt": timestamp(record.updated_at),
            "lastUsedAt": timestamp(record.last_used_at) if record.last_used_at is not None else None,
            "sourceSandboxId": None,
            "regionIds": [TARGET],
            "sandboxClass": SANDBOX_CLASS,
        }
        if record.image_name is not None:
            view["imageName"] = record.image_name
        build = self._build_info(record.build_id)
        if build is not None:
            view["buildInfo"] = build
            view["ref"] = build["snapshotRef"]
        return view

    def _build_info(self, build_id: str | None) -> dict[str, Any] | None:
        build = self.build_of(build_id) if build_id is not None else None
        if build is None:
            return None
        return {
            "dockerfileContent": build.text,
            "contextHashes": [],
            "createdAt": timestamp(build.created_at),
            "updatedAt": timestamp(build.updated_at),
            "snapshotRef": f"daytona-{build.key}:daytona",
        }
