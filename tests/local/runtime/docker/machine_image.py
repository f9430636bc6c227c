"""An image made of this machine's own Debian packages: a small system with bash and Python, without any registry."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from sandbox.local.runtime.docker_archive import image_archive

PACKAGES = ("bash", "coreutils", "dash", "findutils", "gawk", "grep", "gzip", "mawk", "procps", "python3", "sed", "tar")
# Only needed while packages are installed.
LEFT_OUT = {"debconf", "dpkg", "gcc-12-base", "init-system-helpers", "media-types", "perl-base", "tzdata"}
NOT_NEEDED = ("/usr/share/doc", "/usr/share/info", "/usr/share/locale", "/usr/share/man", "/var/lib/dpkg")
DIRECTORIES = ("dev", "etc", "home", "opt", "proc", "root", "run", "srv", "sys", "tmp", "usr", "var", "var/tmp")
LINKS = {"awk": "mawk", "sh": "dash"}
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/shadow": "root:*:1:0:99999:7:::\n",
}


def machine_image(name: str) -> bytes:
    """Returns an archive for ``Engine.load``."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for directory in DIRECTORIES:
            member = tarfile.TarInfo(directory)
            member.type, member.mode = tarfile.DIRTYPE, 0o1777 if directory.endswith("tmp") else 0o755
            archive.addfile(member)
        for link in ("bin", "lib", "lib64", "sbin"):
            _link(archive, link, f"usr/{link}")
        for link, target in LINKS.items():
            _link(archive, f"usr/bin/{link}", target)
        for path, text in FILES.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(text), 0o600 if path == "etc/shadow" else 0o644
            archive.addfile(member, io.BytesIO(text.encode()))
        for file in sorted(_files()):
            archive.add(file, arcname=str(file).lstrip("/"), recursive=False, filter=_of_root)
    return image_archive(name, buffer.getvalue(), environment={"FROM_IMAGE": "a b"})


def _link(archive: tarfile.TarFile, path: str, target: str) -> None:
    member = tarfile.TarInfo(path)
    member.type, member.linkname = tarfile.SYMTYPE, target
    archive.addfile(member)


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _files() -> set[Path]:
    """Returns what the packages hold, by real paths: ``/lib`` is a link to ``/usr/lib``."""
    found = set()
    for line in _output("dpkg", "--listfiles", *sorted(_closure())).splitlines():
        if line.startswith("/") and not line.startswith(NOT_NEEDED):
            path = Path(line)
            real = path.parent.resolve() / path.name
            if (
                real.name not in LINKS
                and len(real.parts) > 2
                and real.parts[1] == "usr"
                and (real.exists() or real.is_symlink())
            ):
                found.add(real)
    return found


def _closure() -> set[str]:
    """Returns the packages with all that they need, the first alternative that is installed."""
    needs: dict[str, str] = {}
    for line in _output("dpkg-query", "--show", "-f", "${Package}\t${Pre-Depends}, ${Depends}\n").splitlines():
        package, _, words = line.partition("\t")
        needs[package] = words
    found: set[str] = set()
    waiting = [package for package in PACKAGES if package in needs]
    while waiting:
        package = waiting.pop()
        if package in found or package in LEFT_OUT:
            continue
        found.add(package)
        for group in needs[package].split(","):
            names = [word.split("(")[0].split(":")[0].strip() for word in group.split("|")]
            waiting.extend([name for name in names if name in needs][:1])
    return found


def _output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
