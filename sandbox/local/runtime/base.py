"""The base layer: the lowest layer of every box, with mount points, links and a copy of what programs need of /etc."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from .places import Places
from .toolchains import Toolchain

_VERSION = 1
HOST_DIRECTORIES = ("bin", "sbin", "lib", "lib64", "lib32", "libx32")
_MOUNT_POINTS = (
    "usr", "proc", "dev", "tmp", "run", "etc", "home/sandbox", "sandbox",
    "root", "opt", "srv", "mnt", "var/tmp", "var/log",
)  # fmt: skip

# Read by programs below /usr: hundreds of links there lead through /etc (alternatives of java and mvn, the trust store,
# conf and security of Debian's JDK). Named one by one; /etc itself is never shown. Programs in a box can read these: a
# host that keeps passwords in Maven's settings below /etc shows them to each of its users, and to each box.
_ETC = (
    "alternatives", "java", "maven", "ssl/certs", "ssl/openssl.cnf", "ca-certificates.conf", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "nsswitch.conf", "localtime", "timezone", "mime.types", "services", "protocols",
    "os-release", "debian_version", "gai.conf", "host.conf", "profile", "profile.d", "bash.bashrc", "inputrc",
    "terminfo", "login.defs", "fonts", "pki/tls/certs", "pki/ca-trust/extracted", "pki/java", "crypto-policies",
)  # fmt: skip
_ETC_PATTERNS = ("java-*", "openjdk-*", "python3*")

HOSTS = "127.0.0.1 localhost sandbox\n::1 localhost\n"
"""The table of host names of a box without connections."""

_WRITTEN = {
    "passwd": (
        "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        "sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "group": "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n",
    "hosts": HOSTS,
    "hostname": "sandbox\n",
    "resolv.conf": "# Names are resolved by the proxy of the sandbox platform.\n",
}


def hosts_table(names: Sequence[tuple[str, str]]) -> str:
    """Returns what /etc/hosts holds in a box that knows ``names``: (address, host name) pairs, which come first."""
    return "".join(f"{address} {name}\n" for address, name in names) + HOSTS


def toolchain_fingerprint(toolchains: Sequence[Toolchain]) -> str:
    """Returns a short text that changes with the tools boxes see, so that what was prepared with them is stale.

    It does not change with everything of /etc that the base copies: an unrelated package that is installed on the host
    must not make a snapshot stale.
    """
    digest = hashlib.sha256(b"toolchains 1\n")
    release = Path("/etc/os-release")
    if release.is_file():
        lines = release.read_text(encoding="utf-8", errors="replace").splitlines()
        digest.update(repr([line for line in lines if line.startswith(("ID=", "VERSION_ID="))]).encode())
    jvm = Path("/usr/lib/jvm")
    if jvm.is_dir():
        for home in sorted(jvm.iterdir()):
            digest.update(f"{home} {home.readlink() if home.is_symlink() else ''}\n".encode())
            if (home / "release").is_file():
                digest.update((home / "release").read_bytes())
    for tool in ("bash", "dotnet", "java", "javac", "mvn", "python3"):
        found_at = shutil.which(tool, path="/usr/local/bin:/usr/bin:/bin")
        real = Path(found_at).resolve() if found_at else None
        digest.update(f"{tool} {real} {real.stat().st_size if real else ''}\n".encode())
    for toolchain in toolchains:
        found = toolchain.path.stat()
        digest.update(f"{toolchain.path} {found.st_ino} {found.st_mtime_ns} {toolchain.search_paths}\n".encode())
    return digest.hexdigest()[:16]


def build_base(places: Places, toolchains: Sequence[Toolchain]) -> Path:
    """Returns the base layer, written anew if its sources have changed. Blocks for some ten milliseconds."""
    target = places.base / _content_fingerprint(toolchains)
    if target.is_dir():
        return target
    building = places.trash / f"base-{uuid.uuid4().hex}"
    building.mkdir(mode=0o755)
    for name in _MOUNT_POINTS:
        (building / name).mkdir(parents=True, exist_ok=True)
    for toolchain in toolchains:
        (building / toolchain.path.relative_to("/")).mkdir(parents=True, exist_ok=True)
    for name in HOST_DIRECTORIES:
        host = Path("/", name)
        if host.is_symlink():
            (building / name).symlink_to(host.readlink())
        elif host.is_dir():
            (building / name).mkdir()
    for path in _sources():
        _copy(path, building / path.relative_to("/"))
    for name, text in _WRITTEN.items():
        (building / "etc" / name).write_text(text, encoding="utf-8")
    (building / "etc/mtab").symlink_to("/proc/self/mounts")
    for directory, names, files in os.walk(building):
        places.give(Path(directory))
        for name in (*names, *files):
            places.give(Path(directory, name))
    building.rename(target)
    return target


def _content_fingerprint(toolchains: Sequence[Toolchain]) -> str:
    digest = hashlib.sha256(f"base {_VERSION} {sorted(_WRITTEN.items())}\n".encode())
    for path in _sources():
        found = path.lstat()
        line = f"{path} {found.st_mode} {found.st_size} {found.st_mtime_ns}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    for toolchain in toolchains:
        digest.update(f"{toolchain.path}\n".encode())
    for name in HOST_DIRECTORIES:
        host = Path("/", name)
        digest.update(f"{name} {host.readlink() if host.is_symlink() else host.is_dir()}\n".encode())
    return digest.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    """Yields every file, link and directory of /etc that is copied, parents first."""
    etc = Path("/etc")
    tops = {etc / name for name in _ETC} | {path for pattern in _ETC_PATTERNS for path in etc.glob(pattern)}
    for top in sorted(tops):
        if not os.path.lexists(top) or not all(_is_open(parent) for parent in top.parents):
            continue
        yield top
        if top.is_dir() and not top.is_symlink():
            for directory, names, files in os.walk(top):
                # The server may be root; a box gets only what every user of the host can read.
                names[:] = sorted(name for name in names if _is_open(Path(directory, name)))
                for name in sorted((*names, *files)):
                    yield Path(directory, name)


def _is_open(directory: Path) -> bool:
    return directory.lstat().st_mode & (stat.S_IROTH | stat.S_IXOTH) == stat.S_IROTH | stat.S_IXOTH


def _copy(source: Path, target: Path) -> None:
    """Copies one entry; what others may not read is left out, as is anything but files, links and directories."""
    found = source.lstat()
    target.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(found.st_mode):
        target.symlink_to(source.readlink())
    elif stat.S_ISDIR(found.st_mode):
        target.mkdir(exist_ok=True)
    elif stat.S_ISREG(found.st_mode) and found.st_mode & stat.S_IROTH:
        shutil.copyfile(source, target)
        target.chmod(0o755 if found.st_mode & stat.S_IXOTH else 0o644)
