"""Ends runs whose process died without a word: an automation of the Prefect server that listens to heartbeats.

A worker that is killed, or a machine that is switched off, leaves its runs ``Running`` for ever, and they keep their
places under concurrency limits. Prefect's engine sends a heartbeat for each run; the automation makes a run ``Crashed``
that has been silent for ``SILENT_SECONDS``. The server refuses that for a run that has ended, so a heartbeat that comes
late harms nothing.

This module does not import Prefect: it also serves ``uom-sandbox up``.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import httpx

from sandbox.comparison.verdicts import TranslationOutcome
from sandbox.models import Outcome

NAME: Final = "uom-sandbox: runs whose process died"
FLOWS: Final = ("validate", "validate-translation", "warm-snapshots", "sweep-sandboxes")
SILENT_SECONDS: Final = 240.0
"""More than Prefect's own pause between heartbeats (180 s), so that a process without our settings is left alone."""

HEARTBEAT: Final = "prefect.flow-run.heartbeat"
_ENDS: Final = (
    *("Completed", "Failed", "Cancelled", "Crashed", "TimedOut"),
    *(outcome.state_name for outcome in Outcome),
    *(outcome.state_name for outcome in TranslationOutcome),
    *("Warm", "Swept", "DryRun"),
)
"""Names of final states: the server names the event of a state after the state."""


class Requests(Protocol):
    """Sends a request to the Prefect API: Prefect's client, or one of ``httpx`` with the API's address as its base."""

    async def request(self, method: Any, url: Any, /, *, json: Any = None) -> httpx.Response:
        """Sends it and returns the answer."""
        ...


def automation(silent_seconds: float = SILENT_SECONDS) -> dict[str, Any]:
    """Returns the automation as Prefect's API takes it.

    Args:
        silent_seconds: How long a run may send nothing.
    """
    return {
        "name": NAME,
        "description": f"Ends a run as crashed that has sent no heartbeat for {silent_seconds:g} s.",
        "enabled": True,
        "trigger": {
            "type": "event",
            "posture": "Proactive",
            "match": {"prefect.resource.id": "prefect.flow-run.*"},
            "match_related": {"prefect.resource.role": "flow", "prefect.resource.name": list(FLOWS)},
            "for_each": ["prefect.resource.id"],
            "after": [HEARTBEAT],
            "expect": [HEARTBEAT, *(f"prefect.flow-run.{name}" for name in _ENDS)],
            "threshold": 1,
            "within": silent_seconds,
        },
        "actions": [
            {
                "type": "change-flow-run-state",
                "state": "CRASHED",
                "message": f"The process of this run died: no heartbeat for {silent_seconds:g} s.",
            }
        ],
    }


async def ensure_automation(api: Requests, *, silent_seconds: float = SILENT_SECONDS) -> str:
    """Makes the automation, or brings the one that is there up to date; returns its id.

    Args:
        api: Where to.
        silent_seconds: How long a run may send nothing.
    """
    wanted = automation(silent_seconds)
    found = await api.request("POST", "/automations/filter", json={"automations": {"name": {"any_": [NAME]}}})
    found.raise_for_status()
    for existing in found.json():
        (await api.request("PUT", f"/automations/{existing['id']}", json=wanted)).raise_for_status()
        return str(existing["id"])
    made = await api.request("POST", "/automations/", json=wanted)
    made.raise_for_status()
    return str(made.json()["id"])
