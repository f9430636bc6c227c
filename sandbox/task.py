"""What a validation executes, the same for every attempt: a request that fits its profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sandbox.databases.environment import endpoints_of, hidden_texts, program_variables
from sandbox.databases.preflight import PREFLIGHT, Preflight
from sandbox.errors import ConfigurationError
from sandbox.models import Isolation, ValidationRequest
from sandbox.profiles import Framework, Profile
from sandbox.streaming import SecretMask
from sandbox.workspace import entry_point


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is executed.

    Attributes:
        request: With its ids.
        profile: The language environment.
        framework: Its template, with the preflight as its first phase when there is one.
        program: Entry point, relative to the workspace.
        isolation: Who shares the sandbox.
        secrets: Variables whose values are masked wherever they would show.
        databases: Variables by which the program finds its databases. Only the last phase gets them: a build, which
            runs code of the request too, has no use for them.
        preflight: Asks the databases first; ``None`` when there are none to ask.
        hidden: Every text that is masked.
        mask: Masks them.
    """

    request: ValidationRequest
    profile: Profile
    framework: Framework
    program: str
    isolation: Isolation
    secrets: Mapping[str, str]
    databases: Mapping[str, str] = field(default_factory=dict)
    preflight: Preflight | None = None
    hidden: frozenset[str]
    mask: SecretMask


def task_of(request: ValidationRequest, profile: Profile) -> Task:
    """Returns what a request asks of a profile.

    Args:
        request: With its ids.
        profile: The language environment.

    Raises:
        ConfigurationError: They do not fit; the text names the field.
    """
    if profile.connections:
        raise ConfigurationError(
            f"the profile {profile.name!r} names databases that nobody has looked up: {', '.join(profile.connections)}",
            field="connections",
            remedy="They are blocks of Prefect, which the flow loads; otherwise give `connections` in the request.",
        )
    name = profile.framework_for(request)
    _, framework = profile.framework(name)
    preflight = Preflight(connections=request.connections) if endpoints_of(request.connections) else None
    if preflight is not None:
        framework = _with_preflight(framework, preflight)
    names = [phase.name for phase in framework.phases]
    for limited in request.limits.phase_seconds:
        if limited not in names:
            raise ConfigurationError(
                f"there is no phase {limited!r}", field="limits.phase_seconds", remedy=f"Phases: {', '.join(names)}."
            )
    secrets = {name: value.get_secret_value() for name, value in request.secrets.items()}
    hidden = hidden_texts(request.connections) | set(secrets.values())
    return Task(
        request=request,
        profile=profile.prepared_for(name),
        framework=framework,
        program=entry_point(request, framework),
        isolation=request.isolation or _isolation(profile, hidden=bool(hidden)),
        secrets=secrets,
        databases=program_variables(request.connections, given={}),
        preflight=preflight,
        hidden=hidden,
        mask=SecretMask(hidden),
    )


def _isolation(profile: Profile, *, hidden: bool) -> Isolation:
    """The profile's, but a run that brings something to hide is alone unless it asks for company.

    The programs of a shared sandbox have one user, so each can read the others' environment.
    """
    return Isolation.RUN if hidden and profile.isolation is Isolation.SHARED else profile.isolation


def _with_preflight(framework: Framework, preflight: Preflight) -> Framework:
    if any(phase.name == PREFLIGHT for phase in framework.phases):
        raise ConfigurationError(
            f"a phase of the profile is called {PREFLIGHT!r}, as the one that asks the databases first",
            field="phases.name",
            remedy="Give it another name.",
        )
    return framework.model_copy(update={"phases": (preflight.phase, *framework.phases)})
