"""Reads the program to validate from files and directories."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sandbox.errors import ConfigurationError
from sandbox.models import MAX_FILES, MAX_REQUEST_BYTES

SKIPPED_DIRECTORIES: Final = frozenset({"__pycache__", "node_modules"})


def read_program(paths: Sequence[Path]) -> dict[str, str | bytes]:
    """Returns the files by relative path: a file by its name, a directory's files by their paths inside it.

    Hidden files and directories, caches and links to directories are left out.

    Raises:
        ConfigurationError: A path does not exist, two files have the same relative path, or there is too much.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise ConfigurationError(f"{path} does not exist", field="PATH")
        for name, file in _files(path):
            if name in found:
                raise ConfigurationError(f"{file} and {found[name]} are both {name}", field="PATH")
            found[name] = file
            if len(found) > MAX_FILES:
                raise ConfigurationError(f"more than {MAX_FILES} files", field="PATH")
    if not found:
        raise ConfigurationError(f"no files in {', '.join(map(str, paths))}", field="PATH")
    if (total := sum(file.stat().st_size for file in found.values())) > MAX_REQUEST_BYTES:
        raise ConfigurationError(f"{total} bytes together; the limit is {MAX_REQUEST_BYTES}", field="PATH")
    return {name: _content(file) for name, file in sorted(found.items())}


def _files(path: Path) -> list[tuple[str, Path]]:
    if path.is_file():
        return [(path.name, path)]
    files: list[tuple[str, Path]] = []
    for directory, children, names in os.walk(path):
        children[:] = sorted(child for child in children if child[0] != "." and child not in SKIPPED_DIRECTORIES)
        base = Path(directory)
        # The walk is cut short for a caller who named a home directory by mistake.
        if len(files) > MAX_FILES:
            break
        files += [
            ((base / name).relative_to(path).as_posix(), base / name)
            for name in sorted(names)
            if name[0] != "." and (base / name).is_file()
        ]
    return files


def _content(path: Path) -> str | bytes:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}", field="PATH") from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw
