"""Images made here, without a registry: tar archives of a file tree in the form that ``docker load`` takes."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Docker's names for what the kernel calls a machine."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A directory, or with ``content`` a file, of a tree."""

    path: str
    mode: int
    owner: int = 0
    content: bytes | None = None


def tree(entries: Iterable[Entry]) -> bytes:
    """Returns a tar archive; parents are listed before what is in them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            member = tarfile.TarInfo(entry.path.lstrip("/"))
            member.type = tarfile.DIRTYPE if entry.content is None else tarfile.REGTYPE
            member.mode, member.uid, member.gid = entry.mode, entry.owner, entry.owner
            member.size = len(entry.content or b"")
            archive.addfile(member, io.BytesIO(entry.content or b""))
    return buffer.getvalue()


def image_archive(
    name: str, layer: bytes, *, environment: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None
) -> bytes:
    """Returns an archive for ``Engine.load`` that holds one image of one layer.

    Args:
        name: Repository and tag.
        layer: Tar archive of the whole tree.
        environment: The image's ``ENV``.
        labels: Its ``LABEL``.
    """
    machine = platform.machine()
    config = {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {
            "Env": [f"{name}={value}" for name, value in (environment or {}).items()],
            "Labels": dict(labels or {}),
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created_by": "uom-sandbox"}],
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    return tree(
        [
            Entry("manifest.json", 0o644, content=json.dumps(manifest).encode()),
            Entry("config.json", 0o644, content=json.dumps(config).encode()),
            Entry("layer.tar", 0o644, content=layer),
        ]
    )
