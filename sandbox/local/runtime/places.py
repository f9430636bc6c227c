"""The data directory of the runtime: what lies where, and whose it is."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from .errors import RuntimeFault, RuntimeUnavailableError

_IDENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


@dataclass(frozen=True, slots=True)
class Places:
    """Paths below the data directory.

    Attributes:
        root: The data directory. Mode U (the server is an ordinary user): the user's, 0700. Mode R (root): root's,
            0711, so that the dropped uid can pass through to what is its own.
        uid: Host uid of every box; owns ``boxes``, ``layers`` and ``base``.
        dropped: True in mode R.
    """

    root: Path
    uid: int
    dropped: bool

    @property
    def boxes(self) -> Path:
        """Writable directories: ``<box id>/up`` and ``<box id>/work``."""
        return self.root / "boxes"

    @property
    def layers(self) -> Path:
        """Frozen writable directories, by layer id."""
        return self.root / "layers"

    @property
    def base(self) -> Path:
        """The lowest layer, by fingerprint."""
        return self.root / "base"

    @property
    def kit(self) -> Path:
        """Interpreter and agent of the boxes, bwrap and the filter, by fingerprint."""
        return self.root / "kit"

    @property
    def stage(self) -> Path:
        """Mount points for toolchains that the dropped uid cannot reach; used only inside private mount namespaces."""
        return self.root / "stage"

    @property
    def state(self) -> Path:
        """What is known of live boxes, for the next start after a crash, and their locks; the server's alone."""
        return self.root / "state"

    @property
    def trash(self) -> Path:
        """What is being deleted."""
        return self.root / "trash"

    def create(self) -> None:
        """Makes the directories with their owners and modes.

        Raises:
            RuntimeUnavailableError: The dropped uid cannot reach the data directory.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        self._check_owner()
        self.root.chmod(0o711 if self.dropped else 0o700)
        for path, shared, mode in (
            (self.boxes, True, 0o700),
            (self.layers, True, 0o700),
            (self.base, True, 0o700),
            (self.kit, False, 0o755),
            (self.stage, False, 0o711),
            (self.state, False, 0o700),
            (self.trash, False, 0o700),
        ):
            path.mkdir(exist_ok=True)
            path.chmod(mode)
            if shared:
                self.give(path)
        if self.dropped:
            self._check_reachable()

    def give(self, path: Path) -> None:
        """Makes ``path`` the property of the boxes' host uid."""
        if self.dropped:
            os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def _check_owner(self) -> None:
        """Layers of another uid would show as nobody's in a box, and half of their files as unreadable."""
        with contextlib.suppress(FileNotFoundError):
            owner = self.layers.stat().st_uid
            if owner != self.uid:
                raise RuntimeUnavailableError(
                    f"the sandboxes in {self.root} belong to uid {owner}, but would now run as uid {self.uid}; "
                    f"start the server as it was before, or choose another data directory"
                )

    def _check_reachable(self) -> None:
        for parent in self.root.parents:
            if not parent.stat().st_mode & stat.S_IXOTH:
                raise RuntimeUnavailableError(
                    f"sandboxes run as uid {self.uid}, which cannot pass through {parent} to the data directory "
                    f"{self.root}; choose a data directory below a path that others may search, such as /var/lib"
                )


def checked_identity(value: str, *, what: str) -> str:
    """Returns ``value`` if it can name a directory.

    Raises:
        RuntimeFault: It cannot.
    """
    if not _IDENTITY.match(value):
        raise RuntimeFault(f"{what} {value!r} may hold letters, digits, '.', '_' and '-' only, at most 100 of them")
    return value
