"""Keys of artifacts: stable per role, so that Prefect's list shows the newest of each and its history."""

from __future__ import annotations

import re


def artifact_key(role: str, *parts: str) -> str:
    """Returns a key of lower-case letters, digits and dashes, such as ``validation-summary-java-plain``."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(("validation", role, *parts)).lower()).strip("-")
