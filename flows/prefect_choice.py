"""Which Prefect API is configured, found out without importing Prefect, for commands that only tell about it."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path


def configured_api_url() -> str | None:
    """Returns ``PREFECT_API_URL`` of the environment or of the active Prefect profile, ``None`` when neither has it.

    Runs ask Prefect itself, which also reads ``prefect.toml`` and ``.env`` of the working directory.
    """
    if url := os.environ.get("PREFECT_API_URL"):
        return url
    home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect").expanduser()
    path = Path(os.environ.get("PREFECT_PROFILES_PATH") or home / "profiles.toml").expanduser()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    name = os.environ.get("PREFECT_PROFILE") or document.get("active")
    url = document.get("profiles", {}).get(name, {}).get("PREFECT_API_URL")
    return url if isinstance(url, str) and url else None
