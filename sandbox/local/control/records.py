"""What the platform remembers of sandboxes, snapshots and builds. Times are seconds since the epoch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

from .states import DesiredState, SandboxState, SnapshotState

DEFAULT_CPU = 1
DEFAULT_MEMORY_GIB = 1
DEFAULT_DISK_GIB = 3
DEFAULT_AUTO_STOP_MINUTES = 15
DEFAULT_AUTO_ARCHIVE_MINUTES = 10080
MAX_AUTO_ARCHIVE_MINUTES = 43200


class BuildState(StrEnum):
    """How far a build is."""

    BUILDING = "building"
    ACTIVE = "active"
    FAILED = "failed"


@dataclass(slots=True, kw_only=True)
class Recipe:
    """What a sandbox inherits from an image definition beside its files.

    Attributes:
        layers: Ids of frozen layers, lowest first.
        image: Named by ``FROM``, where the runtime uses images; ``None`` means the runtime's default.
        env: Environment set by ``ENV``.
        workdir: Directory set by ``WORKDIR``.
        user: Name set by ``USER``; informational.
        entrypoint: Set by ``ENTRYPOINT``; ``None`` when the definition has none.
    """

    layers: list[str] = field(default_factory=list)
    image: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    workdir: str | None = None
    user: str | None = None
    entrypoint: list[str] | None = None

    @classmethod
    def load(cls, document: dict[str, Any]) -> Self:
        """Returns the record that ``asdict`` has written."""
        return cls(**document)


@dataclass(slots=True, kw_only=True)
class BuildRecord:
    """One attempt to build an image definition.

    Attributes:
        id: UUID; also the id of the layer the build makes.
        key: Content hash of the definition and of the runtime's base.
        text: The Dockerfile.
        reason: Why it failed.
        size: Bytes of its layer.
    """

    id: str
    key: str
    text: str
    state: BuildState
    created_at: float
    updated_at: float
    recipe: Recipe = field(default_factory=Recipe)
    reason: str | None = None
    size: int = 0

    @classmethod
    def load(cls, document: dict[str, Any]) -> Self:
        """Returns the record that ``asdict`` has written."""
        recipe = Recipe.load(document.pop("recipe"))
        return cls(**document | {"state": BuildState(document["state"]), "recipe": recipe})


@dataclass(slots=True, kw_only=True)
class SnapshotRecord:
    """A prepared environment; sizes of memory and disk are GiB."""

    id: str
    name: str
    state: SnapshotState
    created_at: float
    updated_at: float
    recipe: Recipe = field(default_factory=Recipe)
    general: bool = False
    image_name: str | None = None
    build_id: str | None = None
    size: int | None = None
    cpu: int = DEFAULT_CPU
    memory: int = DEFAULT_MEMORY_GIB
    disk: int = DEFAULT_DISK_GIB
    error_reason: str | None = None
    last_used_at: float | None = None

    @classmethod
    def load(cls, document: dict[str, Any]) -> Self:
        """Returns the record that ``asdict`` has written."""
        recipe = Recipe.load(document.pop("recipe"))
        return cls(**document | {"state": SnapshotState(document["state"]), "recipe": recipe})


@dataclass(slots=True, kw_only=True)
class NetworkSettings:
    """The network fields as the client gave them; the platform derives the policy from them."""

    block_all: bool = False
    allow_list: str | None = None
    domain_allow_list: str | None = None


@dataclass(slots=True, kw_only=True)
class SandboxRecord:
    """A sandbox; sizes of memory and disk are GiB, intervals are minutes."""

    id: str
    name: str
    state: SandboxState
    desired_state: DesiredState
    created_at: float
    updated_at: float
    last_activity_at: float
    recipe: Recipe = field(default_factory=Recipe)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    snapshot: str | None = None
    build_id: str | None = None
    user: str = "daytona"
    env: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    public: bool = False
    cpu: int = DEFAULT_CPU
    memory: int = DEFAULT_MEMORY_GIB
    disk: int = DEFAULT_DISK_GIB
    auto_stop: int = DEFAULT_AUTO_STOP_MINUTES
    auto_archive: int = DEFAULT_AUTO_ARCHIVE_MINUTES
    auto_delete: int = -1
    destroy_at: float | None = None
    error_reason: str | None = None
    recoverable: bool = False

    @property
    def ephemeral(self) -> bool:
        """True if stopping the sandbox destroys it."""
        return self.auto_delete == 0

    @property
    def visible(self) -> bool:
        """False for what the user has deleted and the platform could not: it no longer exists for the user."""
        failed = self.state in (SandboxState.ERROR, SandboxState.BUILD_FAILED)
        return self.state is not SandboxState.DESTROYED and not (
            failed and self.desired_state is DesiredState.DESTROYED
        )

    @classmethod
    def load(cls, document: dict[str, Any]) -> Self:
        """Returns the record that ``asdict`` has written."""
        recipe = Recipe.load(document.pop("recipe"))
        network = NetworkSettings(**document.pop("network"))
        states: dict[str, Any] = {
            "state": SandboxState(document["state"]),
            "desired_state": DesiredState(document["desired_state"]),
        }
        return cls(**document | states | {"recipe": recipe, "network": network})


Record = SandboxRecord | SnapshotRecord | BuildRecord


def document(record: Record) -> dict[str, Any]:
    """Returns what the store keeps of a record."""
    return asdict(record)
