"""How Prefect is configured, found out without importing Prefect, for commands that only tell about it."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path


def configured_api_url() -> str | None:
    """Returns ``PREFECT_API_URL`` of the environment or of the active Prefect profile, ``None`` when neither has it."""
    found = prefect_setting("PREFECT_API_URL")
    return found[0] if found else None


def prefect_setting(name: str) -> tuple[str, str] | None:
    """Returns the value of a Prefect setting and where it comes from, ``None`` when nobody has set it.

    Runs ask Prefect itself, which also reads ``prefect.toml`` and ``.env`` of the working directory.

    Args:
        name: Its variable, such as ``PREFECT_API_URL``.
    """
    if value := os.environ.get(name):
        return value, "environment"
    home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect").expanduser()
    path = Path(os.environ.get("PREFECT_PROFILES_PATH") or home / "profiles.toml").expanduser()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    profile = os.environ.get("PREFECT_PROFILE") or document.get("active")
    stored = document.get("profiles", {}).get(profile, {}).get(name)
    return (stored, f"Prefect profile {profile}") if isinstance(stored, str) and stored else None
