"""Packages that NuGet cannot find, in the words of somebody who sent a project to a sandbox."""

from __future__ import annotations

import re
from typing import Final

from sandbox.models import Diagnostic

SNAPSHOT: Final = "snapshot"
"""What the dotnet profile calls the source of a project that is built without a network."""

_MISSING: Final = re.compile(
    r"Unable to (?:find (?:a stable )?package (?P<name>[\w.-]*\w)(?: with version \((?P<version>[^)]*)\))?"
    r"|resolve '(?P<reference>[\w.-]+)(?: \((?P<range>[^)]*)\))?' for '[^']*')"
)
_CODES: Final = frozenset({"NU1100", "NU1101", "NU1102", "NU1103"})
REMEDY: Final = (
    "Use what the framework's template brings, or a profile whose network policy is `open`, or `allow` with the "
    "package source."
)


def explained_restore(found: Diagnostic) -> Diagnostic:
    """Returns a finding of NuGet, reworded when a package is missing because there is no network to fetch it.

    Its own words become details.
    """
    missing = _MISSING.match(found.message) if found.code in _CODES else None
    told = (found.message, *found.details)
    if missing is None or not any(
        re.search(rf"(?:source\(s\):|in|PackageSourceMapping.*) .*\b{SNAPSHOT}\b", text) for text in told
    ):
        return found
    version = missing["version"] or missing["range"]
    name = (missing["name"] or missing["reference"]) + (f" {version}" if version else "")
    message = f"{name} is not in the snapshot, and the sandbox has no network to fetch it"
    return found.model_copy(update={"message": message, "details": (*told, REMEDY)})
