"""Toolchain directories of the host that boxes may read, each at its own path."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import RuntimeUnavailableError

# Nothing of these may show in a box, whatever lies below them.
_CLOSED = tuple(Path(name) for name in ("/etc", "/run", "/proc", "/sys", "/dev", "/boot"))
# These hold more than toolchains; what lies below may be named one by one.
_TOO_WIDE = frozenset(
    Path("/", name) for name in ("", "root", "home", "var", "var/lib", "usr", "opt", "tmp", "srv", "mnt")
)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A directory of the host that boxes see read-only.

    Attributes:
        path: Where it is, links resolved, and where boxes see it.
        staged: True if the boxes' uid cannot reach it, so that root must mount it somewhere it can.
    """

    path: Path
    staged: bool

    @property
    def search_paths(self) -> tuple[str, ...]:
        """What it adds to ``PATH``: itself if it holds programs, then its ``bin``."""
        found = [str(self.path)] if _has_programs(self.path) else []
        if (self.path / "bin").is_dir():
            found.append(str(self.path / "bin"))
        return tuple(found)


def resolve_toolchains(roots: Sequence[Path], *, data_directory: Path, dropped: bool) -> tuple[Toolchain, ...]:
    """Checks the configured roots.

    Args:
        roots: Directories of the host.
        data_directory: The runtime's own, which must not show.
        dropped: True if boxes run as another user than the server (mode R).

    Raises:
        RuntimeUnavailableError: A root does not exist, or would show more than a toolchain.
    """
    found: dict[Path, Toolchain] = {}
    for root in roots:
        try:
            path = root.resolve(strict=True)
        except OSError as error:
            raise RuntimeUnavailableError(f"toolchain directory {root} cannot be used: {error.strerror}") from error
        if not path.is_dir():
            raise RuntimeUnavailableError(f"toolchain directory {root} is not a directory")
        _check(path, data_directory=data_directory)
        if dropped and not path.stat().st_mode & stat.S_IROTH:
            raise RuntimeUnavailableError(
                f"toolchain directory {path} is readable for its owner only; run: chmod -R o+rX {path}"
            )
        staged = dropped and not all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents)
        found[path] = Toolchain(path, staged)
    return tuple(found.values())


def _check(path: Path, *, data_directory: Path) -> None:
    if path in _TOO_WIDE or any(path == closed or path.is_relative_to(closed) for closed in _CLOSED):
        raise RuntimeUnavailableError(f"{path} cannot be a toolchain directory: sandboxes would see more than tools")
    private = {Path(entry.pw_dir) for entry in pwd.getpwall()} | {Path.home(), data_directory.resolve()}
    for directory in private - {Path("/")}:
        # Accounts of services have homes such as /usr/sbin, which are none; only what lies outside /usr counts.
        if not directory.is_relative_to("/usr") and directory.is_relative_to(path):
            raise RuntimeUnavailableError(f"{path} cannot be a toolchain directory: it contains {directory}")


def _has_programs(path: Path) -> bool:
    with os.scandir(path) as entries:
        return any(entry.is_file() and os.access(entry.path, os.X_OK) for entry in entries)
