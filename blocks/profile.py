"""The block ``SandboxProfile``: a language environment that is edited in the Prefect UI and applies to the next run."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar, Final, Self

import orjson
from prefect.blocks.core import Block
from prefect.exceptions import ObjectNotFound
from pydantic import Field, HttpUrl

from blocks.logos import logo
from sandbox.errors import ConfigurationError
from sandbox.profiles import Profile, parse_profile

_NOT_OF_THE_PROFILE: Final = frozenset({"built_in"})


class SandboxProfile(Block):
    """A language environment: image, set-up steps, limits, network and what makes a program run.

    The name of the document is the name requests call the profile by. A document named like a built-in profile takes
    its place. Nested fields have the form of the built-in profiles' TOML files; they are checked when the profile is
    used, with an error that names the wrong field.

    Attributes:
        type: Names the snapshot and the shared sandbox.
        language: First word of the event types.
        description: One line for people.
        image: Base image of the snapshot.
        setup: Dockerfile RUN steps.
        setup_variables: Caller's variables that set-up steps read.
        environment: Environment of every process.
        resources: Share of the machine.
        network: What programs may reach.
        connections: Databases of every request, names of DatabaseConnection blocks.
        auto_stop_minutes: Idle minutes until the sandbox is stopped.
        auto_delete_minutes: Minutes a stopped sandbox is kept.
        isolation: Who shares a sandbox.
        parallel: Runs at a time in one shared sandbox.
        on_definition_change: What to do with an outdated snapshot.
        snapshot_timeout_seconds: Longest build.
        output_bytes: What a phase may print.
        result_bytes: Largest result file.
        default_framework: Taken when a request names none.
        frameworks: The project templates.
        built_in: Digest of the built-in profile this document was made from.

    Example:
        Load a stored profile and validate with it:

        ```python
        from blocks import SandboxProfile

        profile = SandboxProfile.load("BLOCK_NAME").profile()
        ```
    """

    _block_type_name: ClassVar[str] = "Sandbox Profile"
    _block_type_slug: ClassVar[str] = "sandbox-profile"
    _logo_url: ClassVar[HttpUrl | None] = logo("terminal")
    _documentation_url: ClassVar[HttpUrl] = HttpUrl("https://www.daytona.io/docs/en/snapshots/")
    _description: ClassVar[str] = "A language environment in which programs are compiled and run, isolated."

    type: str = Field(
        default="",
        title="Type",
        description="Names the snapshot and the shared sandbox: validation-snapshot-<type>, validation-sandbox-<type>.",
    )
    language: str = Field(
        default="", title="Language", description="First word of the event types, such as java; lower case."
    )
    description: str = Field(default="", title="Description", description="One line for people.")
    image: str = Field(
        default="",
        title="Image",
        description="Base image of the snapshot, such as bellsoft/liberica-openjdk-debian:25-cds.",
    )
    setup: list[str] = Field(
        default_factory=list,
        title="Set-up steps",
        description="Dockerfile RUN steps, in order; a step must be safe where its tool is already present.",
    )
    setup_variables: dict[str, str] = Field(
        default_factory=dict,
        title="Set-up variables",
        description="Variables of the caller's environment that set-up steps read, with the value to use when unset.",
    )
    environment: dict[str, str] = Field(
        default_factory=dict, title="Environment", description="Environment variables of every process; no secrets."
    )
    resources: dict[str, Any] = Field(
        default_factory=dict,
        title="Resources",
        description="Share of the machine: cpu (CPUs), memory (GiB), disk (GiB), whole numbers.",
    )
    network: dict[str, Any] = Field(
        default_factory=dict,
        title="Network",
        description="What programs may reach: mode none, open, or allow with cidrs or domains.",
    )
    connections: list[str] = Field(
        default_factory=list,
        title="Databases",
        description="Names of Database Connection blocks: databases that every program of this profile may talk to.",
    )
    auto_stop_minutes: int = Field(
        default=60, title="Stop after (minutes)", description="Idle minutes until the sandbox is stopped, 0 never."
    )
    auto_delete_minutes: int = Field(
        default=24 * 60,
        title="Delete after (minutes)",
        description="Minutes a stopped sandbox is kept, 0 deletes it on stop, -1 never.",
    )
    isolation: str = Field(
        default="shared",
        title="Isolation",
        description="Who shares a sandbox: shared (one per profile), thread (one per thread) or run (fresh each time).",
    )
    parallel: int = Field(default=2, title="Parallel runs", description="Runs at a time in one shared sandbox.")
    on_definition_change: str = Field(
        default="rebuild",
        title="When the definition changed",
        description="What to do with a snapshot made from another definition: rebuild, use or refuse.",
    )
    snapshot_timeout_seconds: float = Field(
        default=1800.0, title="Snapshot time limit (seconds)", description="Longest build of the snapshot."
    )
    output_bytes: int = Field(
        default=64 * 1024 * 1024,
        title="Output limit (bytes)",
        description="What a phase may print before it ends as output_exceeded.",
    )
    result_bytes: int = Field(
        default=16 * 1024 * 1024, title="Result limit (bytes)", description="Largest result file that is read."
    )
    default_framework: str = Field(
        default="", title="Default framework", description="Project template taken when a request names none."
    )
    frameworks: dict[str, Any] = Field(
        default_factory=dict,
        title="Frameworks",
        description="Project templates by name: entry_point, files, setup, environment, phases, result.",
    )
    built_in: str = Field(
        default="",
        title="Made from",
        description="Set by registration: digest of the built-in profile; an unedited document follows upgrades.",
    )

    @classmethod
    def from_profile(cls, profile: Profile, *, built_in: bool = False) -> Self:
        """Returns a block with the profile's content; save it under ``profile.name``.

        Args:
            profile: Any profile.
            built_in: Whether to mark the document as made from a built-in profile.
        """
        document = profile.model_dump(mode="json", exclude={"name"})
        block = cls(**document)
        return block.model_copy(update={"built_in": block.digest()}) if built_in else block

    def profile(self, name: str | None = None) -> Profile:
        """Returns the checked profile.

        Args:
            name: What requests call it; the document's name by default.

        Raises:
            ConfigurationError: A field is wrong; the text names every wrong one.
        """
        chosen = name or self._block_document_name
        if chosen is None:
            raise ConfigurationError("a block that is not stored has no name; give one", field="name")
        return parse_profile({"name": chosen, **self._content()}, origin=f"the block {self._block_type_slug}/{chosen}")

    def digest(self) -> str:
        """SHA-256 of the content, hexadecimal, without the mark of its origin."""
        # Without what has its default, so that a field that comes with an upgrade is no edit of a stored document.
        content = self._content(exclude_defaults=True)
        return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()

    @property
    def edited(self) -> bool:
        """Whether a person changed the document since registration made it from a built-in profile."""
        return self.digest() != self.built_in

    def _content(self, *, exclude_defaults: bool = False) -> dict[str, Any]:
        own = set(type(self).model_fields) - set(Block.model_fields) - _NOT_OF_THE_PROFILE
        return self.model_dump(mode="json", include=own, exclude_defaults=exclude_defaults)


async def stored_profile(name: str) -> Profile | None:
    """Returns the profile stored under a name, ``None`` when there is none.

    Raises:
        ConfigurationError: The stored profile is wrong.
    """
    try:
        block: SandboxProfile = await SandboxProfile.aload(name)
    except ValueError as error:
        # Prefect raises a bare ValueError for a missing document; its cause tells it from other faults.
        if isinstance(error.__cause__, ObjectNotFound):
            return None
        raise ConfigurationError(
            f"the block {SandboxProfile._block_type_slug}/{name} cannot be read: {error}", field="profile"
        ) from None
    except RuntimeError as error:
        raise ConfigurationError(
            f"the block {SandboxProfile._block_type_slug}/{name} cannot be read: {error}",
            field="profile",
            remedy="Run `uom-sandbox blocks register` after an upgrade.",
        ) from None
    return block.profile(name)
