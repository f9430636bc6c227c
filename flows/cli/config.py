"""``uom-sandbox config``: every setting with its value, where the value comes from, and what it means."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from flows.outcomes import EXIT_PASSED
from flows.prefect_choice import prefect_setting
from sandbox.connection import resolve_credentials
from sandbox.errors import ConfigurationError
from sandbox.local import service
from sandbox.local.settings import DEFAULT, ENVIRONMENT, PREFIX, Settings, SettingsError, allowed_values
from sandbox.profiles import builtin_profile, builtin_profile_names

HIDDEN: Final = "(hidden)"
NOT_SET: Final = "(not set)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One line of the answer.

    Attributes:
        section: What it is about.
        variable: The environment variable that sets it.
        value: Its value in words; secrets are hidden.
        origin: Where the value comes from.
        help: What it means and takes.
    """

    section: str
    variable: str
    value: str
    origin: str
    help: str


def run(options: argparse.Namespace) -> int:
    """Prints the settings.

    Raises:
        ConfigurationError: Some cannot be used; the text names every one.
    """
    try:
        own = Settings.from_environment()
    except SettingsError as error:
        raise ConfigurationError(str(error)) from None
    settings = [*_machine(own), *_snapshots(os.environ), *_daytona(os.environ), *_prefect()]
    if options.json:
        print(json.dumps([asdict(setting) for setting in settings], indent=2))
    else:
        section = ""
        for setting in settings:
            if setting.section != section:
                section = setting.section
                print(section)
            print(f"  {setting.variable} = {setting.value}  [{setting.origin}]\n      {setting.help}")
    for line in _remarks(own, {setting.variable for setting in settings}):
        print(line, file=sys.stderr)
    return EXIT_PASSED


def _machine(own: Settings) -> Iterator[Setting]:
    values, origins = own.to_environment(), Settings.origins(os.environ)
    for variable, field in Settings.variables().items():
        takes = allowed_values(field)
        yield Setting(
            section="this machine and the local platform",
            variable=variable,
            value=_shown(values[variable]),
            origin=origins[variable],
            help=f"{field.description}{f' Takes {takes}.' if takes else ''}",
        )


def _snapshots(environ: Mapping[str, str]) -> Iterator[Setting]:
    """What the set-up of built-in profiles reads; a profile of one's own may name further variables."""
    for name in builtin_profile_names():
        for variable, default in sorted(builtin_profile(name).setup_variables.items()):
            yield Setting(
                section="snapshots",
                variable=variable,
                value=_shown(environ.get(variable, default)),
                origin=ENVIRONMENT if variable in environ else f"{DEFAULT} of the profile {name}",
                help=f"Read when the snapshot of {name} is built.",
            )


def _daytona(environ: Mapping[str, str]) -> Iterator[Setting]:
    found = resolve_credentials()
    local = "local platform"
    for variable, value, meaning in (
        ("DAYTONA_API_KEY", HIDDEN if found else NOT_SET, "Without a key the local platform is used."),
        ("DAYTONA_API_URL", found.api_url if found else NOT_SET, "Address of the API."),
        ("DAYTONA_TARGET", (found.target if found else "") or NOT_SET, "Region; by default the organization's."),
    ):
        yield Setting(
            section="Daytona",
            variable=variable,
            value=_shown(value),
            origin=ENVIRONMENT if found and environ.get(variable) else DEFAULT if found else local,
            help=f"{meaning} Arguments and a DaytonaCredentials block win.",
        )


def _prefect() -> Iterator[Setting]:
    for variable, secret, meaning in (
        ("PREFECT_API_URL", False, "Without one, a background server of this machine is used."),
        ("PREFECT_API_KEY", True, "Key of Prefect Cloud."),
        ("PREFECT_API_AUTH_STRING", True, "User and password of a Prefect server that asks for them."),
    ):
        value, origin = prefect_setting(variable) or (NOT_SET, DEFAULT)
        hidden = secret and value != NOT_SET
        yield Setting(
            section="Prefect",
            variable=variable,
            value=HIDDEN if hidden else _shown(value),
            origin=origin,
            help=meaning,
        )


def _shown(value: str) -> str:
    """A value for people: nothing is said in words, and what an address may hold of a secret is left out."""
    if not value:
        return NOT_SET
    parts = urlsplit(value) if "://" in value else None
    if parts is None or not (parts.username or parts.password or parts.query or parts.fragment):
        return value
    host = parts.netloc.rpartition("@")[2]
    user = f"{HIDDEN}@" if "@" in parts.netloc else ""
    return urlunsplit((parts.scheme, f"{user}{host}", parts.path, HIDDEN if parts.query else "", ""))


def _remarks(own: Settings, known: set[str]) -> Iterator[str]:
    """What else a person who looks at the settings should know."""
    for name in sorted(set(os.environ) - known):
        if name.startswith(PREFIX) and (close := difflib.get_close_matches(name, known, n=1, cutoff=0.85)):
            yield f"{name} is set, but is no setting: is {close[0]} meant?"
    connection = service.status(own).connection
    if connection is not None and connection.differs:
        yield (
            f"The running local platform was started with other values of {', '.join(connection.differs)}: "
            "`uom-sandbox platform stop`, then start it, to apply yours."
        )
