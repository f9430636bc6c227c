"""Which files a path stands for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from flows.cli.program import read_program
from sandbox.errors import ConfigurationError
from sandbox.models import MAX_FILES


def tree(root: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def test_a_file_goes_by_its_name_and_a_directory_by_its_inner_paths(tmp_path: Path) -> None:
    tree(tmp_path, {"project/src/Main.java": "void main() {}", "project/logo.png": b"\x89\xff", "extra.txt": "é"})
    assert read_program([tmp_path / "project", tmp_path / "extra.txt"]) == {
        "src/Main.java": "void main() {}",
        "logo.png": b"\x89\xff",
        "extra.txt": "é",
    }


def test_hidden_files_caches_and_linked_directories_are_left_out(tmp_path: Path) -> None:
    tree(tmp_path, {"p/main.py": "1", "p/.git/config": "x", "p/.env": "secret"})
    tree(tmp_path, {"p/__pycache__/main.pyc": "x", "elsewhere/other.py": "x"})
    (tmp_path / "p" / "link").symlink_to(tmp_path / "elsewhere")
    assert set(read_program([tmp_path / "p"])) == {"main.py"}


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    tree(tmp_path, {"a/main.py": "1", "b/main.py": "2"})
    with pytest.raises(ConfigurationError, match=r"both main\.py"):
        read_program([tmp_path / "a", tmp_path / "b"])


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 1):
        (tmp_path / f"f{number}").touch()
    with pytest.raises(ConfigurationError, match="more than 500 files"):
        read_program([tmp_path])


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no files"):
        read_program([tmp_path])
