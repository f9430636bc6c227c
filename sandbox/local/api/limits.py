"""Limits of a single sandbox or snapshot."""

from __future__ import annotations

from ..settings import Settings
from ..wire_errors import WireError


def check_size(settings: Settings, *, cpu: int | None, memory: int | None, disk: int | None) -> None:
    """Checks what one sandbox asks for; memory and disk in GiB.

    Raises:
        WireError: 400, naming the resource and its limit.
    """
    for name, value, limit, unit in (
        ("cpu", cpu, settings.max_cpu, "CPUs"),
        ("memory", memory, settings.max_memory_gib, "GiB"),
        ("disk", disk, settings.max_disk_gib, "GiB"),
    ):
        if value is not None and value > limit:
            raise WireError(400, f"{name}: {value} is more than the limit of {limit} {unit} for one sandbox")
