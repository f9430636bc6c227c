"""Profiles: language environments as data.

A profile says which image, which set-up steps, what limits, which network and, per framework, which phases make a
program run. The built-in ones are the TOML files in ``sandbox/builtin``; a user adds others as a TOML or JSON file or
as a ``SandboxProfile`` block. Nothing in the code asks for a profile's name.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import orjson
from pydantic import Field, ValidationError, field_validator, model_validator

from sandbox.errors import ConfigurationError
from sandbox.models import (
    ENVIRONMENT_NAME,
    Isolation,
    Model,
    Outcome,
    ResultExpectation,
    ValidationRequest,
    check_relative_path,
)
from sandbox.profile_steps import with_step_files

NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,49}")

Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Resources(Model):
    """Share of the machine; whole units, as Daytona takes them.

    Attributes:
        cpu: CPUs.
        memory: GiB.
        disk: GiB.
    """

    cpu: int = Field(default=1, ge=1, le=64)
    memory: int = Field(default=2, ge=1, le=512, description="GiB")
    disk: int = Field(default=5, ge=1, le=1024, description="GiB")


class Network(Model):
    """What a program may reach. The default is nothing.

    Attributes:
        mode: ``none``, ``open`` (everything the platform lets out), or ``allow`` (only what is listed).
        cidrs: IPv4 networks for ``allow``, at most 10 (Daytona's limit).
        domains: Host names for ``allow``, ``*.`` in front for all below, at most 10; not together with ``cidrs``.
    """

    mode: Literal["none", "open", "allow"] = "none"
    cidrs: tuple[str, ...] = Field(default=(), max_length=10)
    domains: tuple[str, ...] = Field(default=(), max_length=10)

    @model_validator(mode="after")
    def _lists_fit_the_mode(self) -> Self:
        listed = bool(self.cidrs) + bool(self.domains)
        if self.mode == "allow" and listed != 1:
            raise ValueError("mode `allow` needs either `cidrs` or `domains`, not both")
        if self.mode != "allow" and listed:
            raise ValueError(f"`cidrs` and `domains` belong to mode `allow`, not `{self.mode}`")
        return self


class Phase(Model):
    """A step with its own command, time limit and exit code.

    Attributes:
        name: ``restore``, ``build``, ``run`` or another word.
        command: Shell text, run by ``sh`` in the workspace with the variables that ``execution`` sets.
        timeout_seconds: Wall time.
        no_output_seconds: Silence after which the phase ends as ``stalled``; ``None`` allows any.
        failure: Outcome of a non-zero exit code.
        diagnostics: Names of the parsers that read its output (see ``sandbox.diagnostics``).
        repeatable: Whether it may be run a second time when its sandbox was lost; ``None`` allows it unless the phase
            is given the address of a database, which it may have changed.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,29}$")
    command: str = Field(min_length=1, max_length=65_536)
    timeout_seconds: Seconds = 60.0
    no_output_seconds: Seconds | None = None
    failure: Literal[Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR] = Outcome.RUNTIME_ERROR
    diagnostics: tuple[str, ...] = ()
    repeatable: bool | None = None


class Framework(Model):
    """A project template.

    Attributes:
        description: One line for people.
        entry_point: The file a lone source is stored as when the request names none.
        files: Template files, relative path → text; a file of the request with the same path wins.
        setup: Further ``RUN`` steps of the snapshot.
        environment: Further environment of the program.
        phases: What to do, in order.
        result: Whether a result file must be there in the end.
        snapshot: ``shared`` with the profile's other templates, or ``own``: what takes long to prepare is prepared
            for those who use it. See ``Profile.prepared_for``.
        projects: Project file → framework that builds it: a request with that file is one to that framework.
    """

    description: str = ""
    entry_point: str
    files: dict[str, str] = Field(default_factory=dict)
    setup: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)
    phases: tuple[Phase, ...] = Field(min_length=1)
    result: ResultExpectation = ResultExpectation.OPTIONAL
    snapshot: Literal["shared", "own"] = "shared"
    projects: dict[str, str] = Field(default_factory=dict)

    @field_validator("entry_point")
    @classmethod
    def _entry_point_stays_inside(cls, path: str) -> str:
        check_relative_path(path)
        return path

    @field_validator("files")
    @classmethod
    def _files_stay_inside(cls, files: dict[str, str]) -> dict[str, str]:
        for path in files:
            check_relative_path(path)
        return files

    @field_validator("phases")
    @classmethod
    def _names_differ(cls, phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
        names = [phase.name for phase in phases]
        if len(set(names)) != len(names):
            raise ValueError("two phases have the same name")
        return phases


class Profile(Model):
    """A language environment.

    Attributes:
        name: What requests call it.
        type: Names the snapshot and the shared sandbox: ``validation-snapshot-<type>``, ``validation-sandbox-<type>``.
        language: First word of the event types, such as ``java``.
        description: One line for people.
        image: Base image of the snapshot.
        setup: ``RUN`` steps, safe where a tool is already present; no ``COPY`` (files come by here-documents).
        setup_variables: Variables of the caller's environment that set-up steps read → value when unset.
        environment: Environment of every process.
        resources: Share of the machine.
        network: What programs may reach.
        connections: Names of DatabaseConnection blocks: databases of every request to this profile. Whoever loads
            blocks puts them into the request; without that, it is refused.
        auto_stop_minutes: Idle minutes until the platform stops the sandbox, 0 never.
        auto_delete_minutes: Minutes a stopped sandbox is kept, 0 deletes it on stop, -1 never.
        isolation: Who shares a sandbox.
        parallel: Runs at a time in one shared sandbox.
        on_definition_change: What to do with a snapshot made from another definition.
        snapshot_timeout_seconds: Longest build.
        output_bytes: What a phase may print before it ends as ``output_exceeded``.
        result_bytes: Largest result file.
        default_framework: Taken when a request names none.
        frameworks: The project templates.
    """

    name: str
    type: str
    language: str = Field(pattern=r"^[a-z][a-z0-9]{0,29}$")
    description: str = ""
    image: str = Field(min_length=1, max_length=512)
    setup: tuple[str, ...] = ()
    setup_variables: dict[str, str] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)
    resources: Resources = Resources()
    network: Network = Network()
    connections: tuple[str, ...] = Field(default=(), max_length=10)
    auto_stop_minutes: int = Field(default=60, ge=0, le=43_200)
    auto_delete_minutes: int = Field(default=24 * 60, ge=-1, le=525_600)
    isolation: Isolation = Isolation.SHARED
    parallel: int = Field(default=2, ge=1, le=256)
    on_definition_change: Literal["rebuild", "use", "refuse"] = "rebuild"
    snapshot_timeout_seconds: Seconds = 1800.0
    output_bytes: int = Field(default=64 * 1024 * 1024, ge=1024, le=2**40)
    result_bytes: int = Field(default=16 * 1024 * 1024, ge=1, le=2**30)
    default_framework: str
    frameworks: dict[str, Framework] = Field(min_length=1)

    @field_validator("name", "type")
    @classmethod
    def _name(cls, value: str) -> str:
        if not NAME.fullmatch(value):
            raise ValueError("use 1 to 50 lower-case letters, digits and dashes, starting with a letter")
        return value

    @field_validator("environment", "setup_variables")
    @classmethod
    def _environment(cls, values: dict[str, str]) -> dict[str, str]:
        for name in values:
            if not ENVIRONMENT_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a name of an environment variable")
        return values

    @model_validator(mode="after")
    def _default_exists(self) -> Self:
        if self.default_framework not in self.frameworks:
            known = ", ".join(sorted(self.frameworks))
            raise ValueError(f"default_framework {self.default_framework!r} is none of frameworks: {known}")
        return self

    @model_validator(mode="after")
    def _frameworks_of_projects_exist(self) -> Self:
        for name, framework in self.frameworks.items():
            for path, builder in framework.projects.items():
                if builder not in self.frameworks or self.frameworks[builder].projects:
                    raise ValueError(
                        f"frameworks.{name}.projects: {path!r} is built by {builder!r}, which must be another "
                        "framework of the profile, without projects of its own"
                    )
        return self

    @model_validator(mode="after")
    def _names_of_own_snapshots_fit(self) -> Self:
        for name, framework in self.frameworks.items():
            if framework.snapshot == "own" and not NAME.fullmatch(f"{self.type}-{name}"):
                raise ValueError(
                    f"the snapshot of framework {name!r} is named after {self.type}-{name}; "
                    "use 1 to 50 lower-case letters, digits and dashes"
                )
        return self

    @property
    def snapshot_name(self) -> str:
        """Name of the snapshot sandboxes are cloned from."""
        return f"validation-snapshot-{self.type}"

    @property
    def sandbox_name(self) -> str:
        """Name of the shared sandbox."""
        return f"validation-sandbox-{self.type}"

    def framework(self, name: str | None) -> tuple[str, Framework]:
        """Returns name and template of a framework, the default one for ``None``.

        Raises:
            ConfigurationError: There is no such framework; the text lists those there are.
        """
        chosen = name or self.default_framework
        if chosen not in self.frameworks:
            known = ", ".join(sorted(self.frameworks))
            raise ConfigurationError(
                f"profile {self.name!r} has no framework {chosen!r}", field="framework", remedy=f"Known: {known}."
            )
        return chosen, self.frameworks[chosen]

    def framework_for(self, request: ValidationRequest) -> str:
        """Returns the name of the framework that makes a request run: the one it names, or that of its project file.

        Raises:
            ConfigurationError: There is no such framework; the text lists those there are.
        """
        name, template = self.framework(request.framework)
        return next((builder for path, builder in template.projects.items() if path in request.files), name)

    def prepared_for(self, framework: str | None) -> Profile:
        """Returns the profile whose snapshot has a framework.

        That is this profile, unless the framework has a snapshot of its own: then it is one with that framework alone
        and the type ``<type>-<framework>``, so that snapshot and shared sandbox have names of their own.

        Raises:
            ConfigurationError: There is no such framework; the text lists those there are.
        """
        name, template = self.framework(framework)
        if template.snapshot == "shared":
            return self
        alone = template.model_copy(update={"snapshot": "shared", "projects": {}})
        return self.model_copy(
            update={"type": f"{self.type}-{name}", "default_framework": name, "frameworks": {name: alone}}
        )

    def dockerfile(self, environment: Mapping[str, str]) -> str:
        """Returns the snapshot's definition: image, environment, set-up steps of profile and frameworks.

        Frameworks with snapshots of their own are left out; see ``prepared_for``.

        Args:
            environment: The caller's environment, read for the names in ``setup_variables`` only.
        """
        lines = [f"FROM {self.image}"]
        for name, default in sorted(self.setup_variables.items()):
            lines.append(f"ENV {name}={_quoted(environment.get(name, default))}")
        lines += [f"ENV {name}={_quoted(value)}" for name, value in sorted(self.environment.items())]
        lines += [f"RUN {step.rstrip()}" for step in self.setup]
        for _, framework in sorted(self.frameworks.items()):
            if framework.snapshot == "shared":
                lines += [f"RUN {step.rstrip()}" for step in framework.setup]
        return "\n".join(lines) + "\n"

    def definition_hash(self, environment: Mapping[str, str]) -> str:
        """SHA-256 of ``dockerfile``, hexadecimal; equal definitions have equal hashes."""
        return hashlib.sha256(self.dockerfile(environment).encode()).hexdigest()


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


def parse_profile(data: Mapping[str, Any], *, origin: str) -> Profile:
    """Checks a profile.

    Args:
        data: The document.
        origin: Where it came from, for the error text.

    Raises:
        ConfigurationError: Something is wrong; the text names every wrong field.
    """
    try:
        return Profile.model_validate(data)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in item['loc']) or 'profile'}: {item['msg'].removeprefix('Value error, ')}"
            for item in error.errors(include_url=False, include_input=False)
        )
        raise ConfigurationError(f"the profile from {origin} is wrong: {wrong}") from None


def load_profile_file(path: Path) -> Profile:
    """Reads a profile from a ``.toml`` or ``.json`` file.

    Raises:
        ConfigurationError: The file cannot be read or parsed, or its content is wrong.
    """
    try:
        raw = path.read_bytes()
        data = orjson.loads(raw) if path.suffix == ".json" else tomllib.loads(raw.decode())
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot read the profile file {path}: {error}", field="profile") from None
    if not isinstance(data, dict):
        raise ConfigurationError(f"the profile file {path} must hold a table of fields", field="profile")
    steps = with_step_files(data, read=lambda name: (path.parent / name).read_text(encoding="utf-8"), origin=str(path))
    return parse_profile(steps, origin=str(path))


def builtin_profile_names() -> tuple[str, ...]:
    """Names of the profiles that come with the package, sorted."""
    folder = resources.files("sandbox").joinpath("builtin")
    return tuple(sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")))


def builtin_profile(name: str) -> Profile:
    """Returns a profile that comes with the package.

    Raises:
        ConfigurationError: There is none of that name; the text lists those there are.
    """
    names = builtin_profile_names()
    if name not in names:
        raise ConfigurationError(f"no profile {name!r}", field="profile", remedy=f"Built in: {', '.join(names)}.")
    folder = resources.files("sandbox").joinpath("builtin")
    origin = f"the built-in {name}.toml"
    data = tomllib.loads(folder.joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    steps = with_step_files(data, read=lambda file: folder.joinpath(file).read_text(encoding="utf-8"), origin=origin)
    return parse_profile(steps, origin=origin)
