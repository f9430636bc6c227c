"""What an operator can set about this machine: the ``UOM_`` variables with their bounds, meaning and origin.

Nothing is read at import. A wrong value is refused with the name of its variable and what it must be.
"""

from __future__ import annotations

import ipaddress
import os
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

LOOPBACK = "127.0.0.1"
"""The platform runs untrusted code for its own user only, so it listens nowhere else."""

DEFAULT_DOCKER_IMAGE = "debian:bookworm-slim"

PREFIX: Final = "UOM_"
ENVIRONMENT: Final = "environment"
DEFAULT: Final = "default"

RuntimeName = Literal["bubblewrap", "docker"]


class SettingsError(ValueError):
    """A setting cannot be used; the text names the variable, what it must be and what to do."""


def _absolute(value: object) -> object:
    path = Path(value).expanduser() if isinstance(value, str) else value
    if isinstance(path, Path) and not path.is_absolute():
        raise ValueError("must be an absolute path")
    return path


def _socket(value: object) -> object:
    if isinstance(value, str) and not value.startswith("unix://"):
        raise ValueError("must be a socket of this machine such as unix:///var/run/docker.sock")
    return value


def _networks(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return tuple(str(ipaddress.IPv4Network(item.strip())) for item in value.split(",") if item.strip())
    except ValueError as error:
        raise ValueError(f"must hold IPv4 networks such as 10.1.0.0/16, separated by commas ({error})") from None


def _directories(value: object) -> object:
    if not isinstance(value, str):
        return value
    paths = tuple(Path(item.strip()).expanduser() for item in value.split(":") if item.strip())
    for path in paths:
        if not path.is_absolute() or not path.is_dir():
            raise ValueError(f"must hold paths of existing directories, separated by colons ({path} is none)")
    return tuple(dict.fromkeys(paths))


class Settings(BaseModel):
    """Settings of this machine; a field's variable is ``UOM_`` and its name, but for ``home`` and ``port``."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        alias_generator=lambda name: f"{PREFIX}{name.upper()}",
        allow_inf_nan=False,
    )

    home: Annotated[Path, BeforeValidator(_absolute)] = Field(
        alias="UOM_SANDBOX_HOME", description="Directory of all data of this machine."
    )
    port: int = Field(
        default=0,
        ge=0,
        le=65_535,
        alias="UOM_PLATFORM_PORT",
        description="TCP port of the local platform on 127.0.0.1; 0 takes a free one.",
    )
    runtime: RuntimeName = Field(default="bubblewrap", description="How the local platform isolates sandboxes.")
    docker_host: Annotated[str | None, BeforeValidator(_socket)] = Field(
        default=None, description="Socket of the Docker engine; by default where Docker's own tools find it."
    )
    docker_image: str = Field(
        default=DEFAULT_DOCKER_IMAGE, description="Image of sandboxes that name none, with the runtime docker."
    )
    toolchains: Annotated[tuple[Path, ...], BeforeValidator(_directories)] = Field(
        default=(),
        description="Toolchain directories outside /usr, separated by colons; "
        "by default DOTNET_ROOT, JAVA_HOME and the dotnet on PATH.",
    )
    extra_public_cidrs: Annotated[tuple[str, ...], BeforeValidator(_networks)] = Field(
        default=(),
        description="Private IPv4 networks, separated by commas, that count as public, such as a company's mirror.",
    )
    total_memory_gib: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="Sum of the memory limits of running sandboxes, GiB; unlimited by default.",
    )
    max_sandboxes: int = Field(
        default=500, ge=1, le=100_000, description="Sandboxes that may exist at once, running or not."
    )
    max_cpu: int = Field(default=4, ge=1, le=1024, description="CPUs of one sandbox at most.")
    max_memory_gib: int = Field(default=8, ge=1, le=65_536, description="Memory of one sandbox at most, GiB.")
    max_disk_gib: int = Field(default=10, ge=1, le=65_536, description="Disk of one sandbox at most, GiB.")
    hold_seconds: float = Field(
        default=30.0, ge=0, le=3600, description="How long create and start wait for the sandbox before they answer."
    )
    build_seconds: float = Field(default=3600.0, gt=0, le=86_400, description="Longest build of a snapshot.")
    concurrent_builds: int = Field(default=2, ge=1, le=100, description="Snapshot builds at a time; others wait.")
    sweep_seconds: float = Field(
        default=10.0, gt=0, le=3600, description="Pause between two rounds of the platform's clean-up."
    )
    fault_control: bool = Field(
        default=False, description="Lets tests ask the local platform for faults; never for real work."
    )

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
            SettingsError: Values cannot be used; the text names every one.
        """
        given = {name: value for name, (value, _) in _given(os.environ if environ is None else environ).items()}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise SettingsError("; ".join(_complaint(item) for item in error.errors(include_url=False))) from None

    @classmethod
    def origins(cls, environ: Mapping[str, str]) -> dict[str, str]:
        """Returns where the value of each variable comes from: ``default``, ``environment``, or another variable."""
        given = _given(environ)
        return {name: given[name][1] if name in given else DEFAULT for name in cls.variables()}

    @classmethod
    def variables(cls) -> dict[str, FieldInfo]:
        """Returns the field of each variable."""
        return {str(field.alias): field for field in cls.model_fields.values()}

    def to_environment(self) -> dict[str, str]:
        """Returns the variables from which ``from_environment`` makes these settings again."""
        return {str(field.alias): _text(getattr(self, name)) for name, field in type(self).model_fields.items()}


def allowed_values(field: FieldInfo) -> str:
    """Returns what a setting takes, such as ``a whole number from 1 to 4``; nothing where its description says it."""
    kinds = get_args(field.annotation) if get_origin(field.annotation) in (Union, types.UnionType) else ()
    kind = next((each for each in kinds if each is not type(None)), field.annotation)
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    if kind is bool:
        return "1 or 0"
    number = {int: "a whole number", float: "a number"}.get(kind) if isinstance(kind, type) else None
    if number is None:
        return ""
    bounds = {
        name: getattr(each, name) for each in field.metadata for name in ("ge", "gt", "le") if hasattr(each, name)
    }
    low = f"from {bounds['ge']}" if "ge" in bounds else f"above {bounds['gt']}"
    return f"{number} {low} to {bounds['le']}"


def _given(environ: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    """The value of each variable that has another than its default, with its origin."""
    # An empty variable is as none, but for the toolchains, where it says that there are none.
    given: dict[str, tuple[Any, str]] = {
        name: (environ[name].strip(), ENVIRONMENT)
        for name in Settings.variables()
        if environ.get(name, "").strip() or (name == "UOM_TOOLCHAINS" and name in environ)
    }
    if "UOM_SANDBOX_HOME" not in given:
        given["UOM_SANDBOX_HOME"] = _default_home(environ)
    if "UOM_TOOLCHAINS" not in given and (found := _found_toolchains(environ)):
        given["UOM_TOOLCHAINS"] = (tuple(found), " and ".join(dict.fromkeys(found.values())))
    docker = environ.get("DOCKER_HOST", "").strip()
    if (
        "UOM_DOCKER_HOST" not in given
        and given.get("UOM_RUNTIME", ("", ""))[0] == "docker"
        and docker.startswith("unix://")
    ):
        given["UOM_DOCKER_HOST"] = (docker, "DOCKER_HOST")
    return given


def _default_home(environ: Mapping[str, str]) -> tuple[Path, str]:
    """The system's directory for root, else the user's."""
    if os.geteuid() == 0:
        return Path("/var/lib/uom-sandbox"), DEFAULT
    data = environ.get("XDG_DATA_HOME", "")
    if data.startswith("/"):
        return Path(data) / "uom-sandbox", "XDG_DATA_HOME"
    return Path(environ.get("HOME") or Path.home()) / ".local" / "share" / "uom-sandbox", DEFAULT


def _found_toolchains(environ: Mapping[str, str]) -> dict[Path, str]:
    """Toolchains the user already works with but that lie outside ``/usr``, which every box sees anyway."""
    candidates = [(Path(environ[name]), name) for name in ("DOTNET_ROOT", "JAVA_HOME") if environ.get(name)]
    directories = [Path(part) for part in environ.get("PATH", "").split(":") if part.startswith("/")]
    dotnet = next((path / "dotnet" for path in directories if os.access(path / "dotnet", os.X_OK)), None)
    if dotnet is not None:
        candidates.append((dotnet.resolve().parent, "PATH"))
    usr = Path("/usr")
    found: dict[Path, str] = {}
    for path, name in candidates:
        if path.is_absolute() and path.is_dir() and not path.resolve().is_relative_to(usr):
            found.setdefault(path, name)
    return found


def _complaint(error: Any) -> str:
    name = str(error["loc"][0])
    field = Settings.variables()[name]
    wanted = allowed_values(field)
    what = f"must be {wanted}" if wanted else str(error["msg"]).removeprefix("Value error, ")
    default = "" if field.is_required() or field.default is None else _text(field.default)
    remedy = f"unset it for {default}" if default else "unset it for the default"
    return f"{name} {what}, not {str(error['input'])!r}: {remedy}"


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(int(value))
        case tuple():
            return (":" if any(isinstance(item, Path) for item in value) else ",").join(map(str, value))
        case _:
            return str(value)
