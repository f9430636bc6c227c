"""Names and labels of the sandboxes we make."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Collection, Mapping
from typing import Final

from sandbox.databases.endpoints import Endpoint, connections_label, connections_suffix
from sandbox.models import Isolation, SnapshotIdentity
from sandbox.profiles import Profile

MANAGED_BY: Final = "managed-by"
MANAGER: Final = "uom-sandbox"
PROFILE: Final = "uom-profile"
ISOLATION: Final = "uom-isolation"
OWNER: Final = "uom-owner"
THREAD: Final = "uom-thread"
RUN: Final = "uom-run"
FLOW_RUN: Final = "uom-flow-run"
"""Id of the Prefect flow run that a sandbox of one run belongs to."""

LEASE_END: Final = "uom-lease-end"
"""Seconds since the epoch; see ``sandbox.leases``."""

SNAPSHOT_ID: Final = "uom-snapshot-id"
CONNECTIONS: Final = "uom-connections"
"""``host:port`` of each database that the sandbox may reach; the local platform opens exactly these."""

LIFETIME_MARGIN_SECONDS: Final = 900.0
"""How much longer than its program a sandbox of one run lives at most: uploads, downloads, waits for the platform."""


def sandbox_name(
    profile: Profile,
    *,
    isolation: Isolation,
    thread_id: str,
    run_id: str,
    endpoints: Collection[Endpoint] = (),
) -> str:
    """Returns the name of the sandbox a run uses: one for each profile, thread or run.

    What a sandbox may reach is fixed for its life, so there is one for each set of databases, too.

    Args:
        profile: Its profile.
        isolation: Who shares it.
        thread_id: The conversation.
        run_id: The run.
        endpoints: Databases that it may reach.
    """
    name = profile.sandbox_name
    if isolation is Isolation.THREAD:
        name = f"{name}-{thread_id}"
    elif isolation is Isolation.RUN:
        name = f"{name}-{run_id}"
    return f"{name}{connections_suffix(endpoints)}"


def default_owner() -> str:
    """Returns ``user@host``, for the label that says who made a sandbox."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def sandbox_labels(
    profile: Profile,
    *,
    isolation: Isolation,
    snapshot: SnapshotIdentity,
    owner: str,
    thread_id: str,
    run_id: str,
    flow_run_id: str | None = None,
    endpoints: Collection[Endpoint] = (),
) -> Mapping[str, str]:
    """Returns the labels of a new sandbox but its lease; it carries them from the create call on.

    Args:
        profile: Its profile.
        isolation: Who shares it.
        snapshot: What it is made from.
        owner: Who makes it.
        thread_id: The conversation; a label only where the sandbox belongs to it.
        run_id: The run; likewise.
        flow_run_id: Its Prefect flow run; likewise.
        endpoints: Databases that it may reach.
    """
    labels = {
        MANAGED_BY: MANAGER,
        PROFILE: profile.name,
        ISOLATION: isolation.value,
        OWNER: owner,
        SNAPSHOT_ID: snapshot.snapshot_id,
    }
    if isolation is not Isolation.SHARED:
        labels[THREAD] = thread_id
    if endpoints:
        labels[CONNECTIONS] = connections_label(endpoints)
    if isolation is Isolation.RUN:
        labels[RUN] = run_id
        if flow_run_id is not None:
            labels[FLOW_RUN] = flow_run_id
    return labels
