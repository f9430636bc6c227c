"""The version of the platform."""

from __future__ import annotations

from importlib import metadata


def platform_version() -> str:
    """Returns the version of the installed distribution, ``0+source`` when run from a source tree."""
    try:
        return metadata.version("uom-sandbox")
    except metadata.PackageNotFoundError:
        return "0+source"
