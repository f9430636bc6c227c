"""Scratch directories outside pytest's own, which the uid that sandboxes run under could not search."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

PARENT = Path("/tmp")


def scratch_prefix() -> str:
    """What the directories of this test session are called; ``tests.hygiene`` looks for left-overs by it."""
    return f"uom-test-{os.environ.get('UOM_TEST_SESSION', 'none')[:8]}-"


def scratch_directory() -> Path:
    """Makes a new directory that other uids can search (0711); the caller removes it."""
    path = Path(tempfile.mkdtemp(prefix=scratch_prefix(), dir=PARENT))
    path.chmod(0o711)
    return path
