"""Prefect flows that validate programs in sandboxes, and the orchestrator's way in.

Importing this package is cheap: Prefect (three to four seconds) is imported when one of the names below is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flows.api import prefect_api, validate

__all__ = ["prefect_api", "validate"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from flows import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
