"""The data directory of the Docker runtime; the files of boxes and layers are the engine's."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class DockerPlaces:
    """Paths below the data directory.

    Attributes:
        root: The data directory, absolute; the server's alone. The engine, which is root, reaches what is in it.
    """

    root: Path

    @property
    def owner(self) -> str:
        """Marks what belongs to this data directory among all that the engine keeps."""
        return hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]

    @property
    def kit(self) -> Path:
        """Interpreter and agent of the boxes, by fingerprint."""
        return self.root / "kit"

    @property
    def current_kit(self) -> Path:
        """A link to the kit in use: containers that were made by an earlier version start with today's agent."""
        return self.root / "current-kit"

    @property
    def sockets(self) -> Path:
        """For each box a directory that holds the socket of its agent while the box starts."""
        return self.root / "sockets"

    @property
    def lock(self) -> Path:
        """Held by the server that uses the directory."""
        return self.root / "server.lock"

    @property
    def trash(self) -> Path:
        """What is not finished, or being deleted."""
        return self.root / "trash"

    def create(self) -> None:
        """Makes the directories."""
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o700)
        for path in (self.kit, self.sockets, self.trash):
            path.mkdir(exist_ok=True)
            # The user of a container passes through the mount of what is in them, never through them.
            path.chmod(0o755 if path == self.kit else 0o700)

    def use_kit(self, directory: Path) -> None:
        """Points ``current_kit`` at a kit."""
        link = self.trash / f"link-{os.getpid()}"
        link.unlink(missing_ok=True)
        link.symlink_to(directory)
        link.replace(self.current_kit)
