"""Prefect flows that validate programs in sandboxes, and the orchestrator's way in.

Importing this package is cheap: Prefect (three to four seconds) is imported when one of the names below is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flows.api import validate
    from flows.prefect_connection import prefect_api
    from flows.submission import SubmittedRun, submit
    from flows.synchronous import result_sync, submit_sync, validate_sync, validate_translation_sync, watch_sync
    from flows.translation_api import validate_translation
    from flows.watching import watch

__all__ = [
    "SubmittedRun",
    "prefect_api",
    "result_sync",
    "submit",
    "submit_sync",
    "validate",
    "validate_sync",
    "validate_translation",
    "validate_translation_sync",
    "watch",
    "watch_sync",
]

_MODULES = {
    "SubmittedRun": "flows.submission",
    "prefect_api": "flows.prefect_connection",
    "result_sync": "flows.synchronous",
    "submit": "flows.submission",
    "submit_sync": "flows.synchronous",
    "validate": "flows.api",
    "validate_sync": "flows.synchronous",
    "validate_translation": "flows.translation_api",
    "validate_translation_sync": "flows.synchronous",
    "watch": "flows.watching",
    "watch_sync": "flows.synchronous",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
