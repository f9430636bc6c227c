"""What an operator can set about the local platform, read from ``UOM_`` environment variables.

Nothing is read at import; a wrong value is refused with the name of its variable.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

LOOPBACK = "127.0.0.1"
"""The platform runs untrusted code for its own user only, so it listens nowhere else."""

DEFAULT_DOCKER_IMAGE = "debian:bookworm-slim"

RuntimeName = Literal["bubblewrap", "docker"]


class SettingsError(ValueError):
    """A setting cannot be used; the text names the variable and what it must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of one platform.

    Attributes:
        home: Directory of all data; the platform keeps its own below ``platform/``.
        port: TCP port on 127.0.0.1; 0 takes a free one.
        runtime: How sandboxes are isolated.
        docker_host: Address of the Docker engine; ``None`` looks where Docker's own client looks.
        docker_image: What a sandbox is made of when nobody has named an image, with the Docker runtime.
        toolchains: Directories outside ``/usr`` that every sandbox sees read-only at their own paths.
        extra_public_cidrs: Private IPv4 networks that count as public for sandboxes, such as a company's mirror.
        total_memory_gib: Sum of the memory limits of running sandboxes; ``None`` lets them overcommit.
        max_sandboxes: Sandboxes that may exist at once, running or not.
        max_cpu: CPUs of one sandbox (Daytona's default limit).
        max_memory_gib: Memory of one sandbox (Daytona's default limit).
        max_disk_gib: Disk of one sandbox (Daytona's default limit).
        hold_seconds: How long create and start hold their answer until the sandbox runs (as Daytona does).
        build_seconds: Limit of one snapshot build.
        concurrent_builds: Snapshot builds that run at once; others wait.
        fault_control: Whether tests may ask for faults (``fault_control.py``); never set it for real work.
        sweep_seconds: Pause between two rounds of the janitor.
    """

    home: Path
    port: int = 0
    runtime: RuntimeName = "bubblewrap"
    docker_host: str | None = None
    docker_image: str = DEFAULT_DOCKER_IMAGE
    toolchains: tuple[Path, ...] = ()
    extra_public_cidrs: tuple[str, ...] = ()
    total_memory_gib: int | None = None
    max_sandboxes: int = 500
    max_cpu: int = 4
    max_memory_gib: int = 8
    max_disk_gib: int = 10
    hold_seconds: float = 30.0
    build_seconds: float = 3600.0
    concurrent_builds: int = 2
    sweep_seconds: float = 10.0
    fault_control: bool = False

    @property
    def platform_directory(self) -> Path:
        """Where the platform keeps its state, key, logs and boxes."""
        return self.home / "platform"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Reads the settings.

        Args:
            environ: The variables; the process's own by default.

        Raises:
            SettingsError: A value cannot be used.
        """
        values = os.environ if environ is None else environ
        return cls(
            home=_home(values),
            port=_integer(values, "UOM_PLATFORM_PORT", default=0, low=0, high=65535) or 0,
            runtime=_runtime(values),
            docker_host=_docker_host(values) if _runtime(values) == "docker" else None,
            docker_image=values.get("UOM_DOCKER_IMAGE", "").strip() or DEFAULT_DOCKER_IMAGE,
            toolchains=_toolchains(values),
            extra_public_cidrs=_networks(values, "UOM_EXTRA_PUBLIC_CIDRS"),
            total_memory_gib=_integer(values, "UOM_TOTAL_MEMORY_GIB", default=None, low=1, high=1_000_000),
            max_sandboxes=_integer(values, "UOM_MAX_SANDBOXES", default=500, low=1, high=100_000) or 500,
            fault_control=bool(_integer(values, "UOM_FAULT_CONTROL", default=0, low=0, high=1)),
        )

    def to_environment(self) -> dict[str, str]:
        """Returns the variables from which ``from_environment`` makes these settings again."""
        return {
            "UOM_SANDBOX_HOME": str(self.home),
            "UOM_PLATFORM_PORT": str(self.port),
            "UOM_RUNTIME": self.runtime,
            "UOM_DOCKER_HOST": self.docker_host or "",
            "UOM_DOCKER_IMAGE": self.docker_image,
            "UOM_TOOLCHAINS": ":".join(str(path) for path in self.toolchains),
            "UOM_EXTRA_PUBLIC_CIDRS": ",".join(self.extra_public_cidrs),
            "UOM_TOTAL_MEMORY_GIB": "" if self.total_memory_gib is None else str(self.total_memory_gib),
            "UOM_MAX_SANDBOXES": str(self.max_sandboxes),
            "UOM_FAULT_CONTROL": str(int(self.fault_control)),
        }


def default_home(environ: Mapping[str, str]) -> Path:
    """Returns the data directory used when ``UOM_SANDBOX_HOME`` is not set: the system's for root, else the user's."""
    if os.geteuid() == 0:
        return Path("/var/lib/uom-sandbox")
    data = environ.get("XDG_DATA_HOME", "")
    base = Path(data) if data.startswith("/") else Path(environ.get("HOME") or Path.home()) / ".local" / "share"
    return base / "uom-sandbox"


def _home(values: Mapping[str, str]) -> Path:
    text = values.get("UOM_SANDBOX_HOME", "").strip()
    if not text:
        return default_home(values)
    path = Path(text).expanduser()
    if not path.is_absolute():
        raise SettingsError(f"UOM_SANDBOX_HOME must be an absolute path, not {text!r}")
    return path


def _integer(values: Mapping[str, str], name: str, *, default: int | None, low: int, high: int) -> int | None:
    text = values.get(name, "").strip()
    if not text:
        return default
    try:
        number = int(text)
    except ValueError:
        raise SettingsError(f"{name} must be a whole number, not {text!r}") from None
    if not low <= number <= high:
        raise SettingsError(f"{name} must be {low} to {high}, not {number}")
    return number


def _runtime(values: Mapping[str, str]) -> RuntimeName:
    text = values.get("UOM_RUNTIME", "").strip() or "bubblewrap"
    if text == "bubblewrap":
        return "bubblewrap"
    if text == "docker":
        return "docker"
    raise SettingsError(f"UOM_RUNTIME must be bubblewrap or docker, not {text!r}")


def _docker_host(values: Mapping[str, str]) -> str | None:
    for name in ("UOM_DOCKER_HOST", "DOCKER_HOST"):
        text = values.get(name, "").strip()
        if text.startswith("unix://"):
            return text
        if text and name == "UOM_DOCKER_HOST":
            raise SettingsError(
                f"UOM_DOCKER_HOST must be a socket of this machine such as unix:///var/run/docker.sock, not {text!r}"
            )
    return None


def _networks(values: Mapping[str, str], name: str) -> tuple[str, ...]:
    import ipaddress  # here, since few use it and the command line imports this file

    found: list[str] = []
    for item in values.get(name, "").split(","):
        text = item.strip()
        if not text:
            continue
        try:
            found.append(str(ipaddress.IPv4Network(text)))
        except ValueError as error:
            raise SettingsError(
                f"{name} must hold IPv4 networks such as 10.1.0.0/16, separated by commas: {error}"
            ) from None
    return tuple(found)


def _toolchains(values: Mapping[str, str]) -> tuple[Path, ...]:
    given = values.get("UOM_TOOLCHAINS")
    if given is None:
        return _found_toolchains(values)
    roots: list[Path] = []
    for item in given.split(":"):
        if not item.strip():
            continue
        text = item.strip()
        path = Path(text).expanduser()
        if not path.is_absolute() or not path.is_dir():
            raise SettingsError(
                f"UOM_TOOLCHAINS must hold paths of existing directories, separated by colons; {text!r} is none"
            )
        roots.append(path)
    return tuple(dict.fromkeys(roots))


def _found_toolchains(values: Mapping[str, str]) -> tuple[Path, ...]:
    """Toolchains the user already works with but that lie outside ``/usr``, which every box sees anyway."""
    candidates = [Path(values[name]) for name in ("DOTNET_ROOT", "JAVA_HOME") if values.get(name)]
    directories = [Path(part) for part in values.get("PATH", "").split(":") if part.startswith("/")]
    dotnet = next((path / "dotnet" for path in directories if os.access(path / "dotnet", os.X_OK)), None)
    if dotnet is not None:
        candidates.append(dotnet.resolve().parent)
    usr = Path("/usr")
    found = (path for path in candidates if path.is_absolute() and path.is_dir())
    return tuple(dict.fromkeys(path for path in found if not path.resolve().is_relative_to(usr)))
