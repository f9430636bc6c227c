"""The table of faults names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_fault_names_a_test_that_exists() -> None:
    rows = [line for line in (ROOT / "docs/faults.md").read_text().splitlines()[7:] if line.startswith("|")]
    assert len(rows) > 30
    for row in rows:
        named = re.findall(r"`(tests/\S+\.py)::(test_\w+)`", row)
        assert named, row
        for file, name in named:
            tree = ast.parse((ROOT / file).read_text())
            found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
            assert name in found, row
