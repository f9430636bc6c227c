"""What of a JDK this machine has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def java_25() -> None:
    """Skips where no JDK is new enough for the ``java`` profile."""
    candidates: list[str | Path] = [*Path("/usr/lib/jvm").glob("*/bin/javac"), shutil.which("javac") or "javac"]
    for javac in candidates:
        told = subprocess.run([javac, "-version"], capture_output=True, text=True, check=False)
        major = (told.stdout + told.stderr).removeprefix("javac ").split(".")[0].strip()
        if major.isdigit() and int(major) >= 25:
            return
    pytest.skip("no JDK of version 25 or newer on this machine")
