"""Prefect flows that validate programs in sandboxes, and the orchestrator's way in.

Importing this package is cheap: Prefect (three to four seconds) is imported when one of the names below is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flows.api import validate
    from flows.prefect_connection import prefect_api
    from flows.translation_api import validate_translation

__all__ = ["prefect_api", "validate", "validate_translation"]


def __getattr__(name: str) -> Any:
    if name == "validate":
        from flows.api import validate

        return validate
    if name == "prefect_api":
        from flows.prefect_connection import prefect_api

        return prefect_api
    if name == "validate_translation":
        from flows.translation_api import validate_translation

        return validate_translation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
