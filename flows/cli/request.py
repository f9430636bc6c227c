"""The request that the words of a command line describe."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from flows.cli.program import read_program
from flows.parameters import checked_request
from sandbox.errors import ConfigurationError
from sandbox.models import ValidationRequest
from sandbox.profiles import Profile


def request_from(
    options: argparse.Namespace, *, profile: Profile | None = None, connections: Sequence[Mapping[str, Any]] = ()
) -> ValidationRequest:
    """Reads the files that the options name and returns the request.

    Args:
        options: The words of a command that validates one program.
        profile: The caller's own profile, where it is not one by name.
        connections: Databases, as fields of the request.

    Raises:
        ConfigurationError: An option is wrong; the text names it.
    """
    document: dict[str, Any] = {
        "profile": profile.name if profile else options.profile,
        "framework": options.framework,
        "files": read_program(options.paths),
        "entry_point": options.entry_point,
        "thread_id": options.thread,
        "environment": options.env,
        "secrets": {name: _secret(name) for name in options.secret_env},
        "connections": connections,
        "isolation": options.isolation,
        "limits": {"total_seconds": options.timeout} if options.timeout else {},
    }
    if options.stdin:
        document["stdin"] = _read(options.stdin, "--stdin")
    if options.expected:
        try:
            document["expected"] = orjson.loads(_read(options.expected, "--expected"))
        except orjson.JSONDecodeError as error:
            raise ConfigurationError(f"{options.expected} is not JSON: {error}", field="--expected") from None
    return checked_request(document)


def _secret(name: str) -> str:
    if name not in os.environ:
        raise ConfigurationError(f"the environment has no variable {name}", field="--secret-env")
    return os.environ[name]


def _read(path: Path, option: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}", field=option) from None
