"""Programs and translations share one list of names."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_no_name_is_given_twice() -> None:
    programs = {path.parent.name for path in EXAMPLES.glob("*/example.toml")}
    translations = {path.stem for path in (EXAMPLES / "translations").glob("*.toml")}
    assert programs
    assert translations
    assert not programs & translations
