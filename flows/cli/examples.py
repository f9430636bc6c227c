"""The examples: real programs, each with the verdict it must get."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from flows.connections import connection_fields, referenced_variable
from flows.parameters import checked_request
from sandbox.errors import ConfigurationError
from sandbox.models import Outcome, ValidationRequest, ValidationResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One example.

    Attributes:
        name: Name of its directory.
        title: One line for people.
        request: The program.
        missing: Variables of the environment that hold the addresses of its databases and are not set; without them
            the request names no database.
        verdict: The outcome it must get.
        diagnostics: Findings there must be, fields of ``Diagnostic`` as far as given.
    """

    name: str
    title: str
    request: ValidationRequest
    missing: tuple[str, ...] = ()
    verdict: Outcome
    diagnostics: tuple[dict[str, Any], ...]

    def faults(self, result: ValidationResult) -> list[str]:
        """Returns what in a result is not as it must be, one line each."""
        faults = []
        if result.outcome is not self.verdict:
            faults.append(f"{result.outcome.value} instead of {self.verdict.value}: {result.message}")
        found = [diagnostic.model_dump(mode="json") for diagnostic in result.diagnostics]
        faults += [
            f"no finding with {', '.join(f'{name} {value}' for name, value in wanted.items())}"
            for wanted in self.diagnostics
            if not any(all(have.get(name) == value for name, value in wanted.items()) for have in found)
        ]
        return faults


def examples_directory(given: Path | None) -> Path:
    """Returns where the examples are: as given, in the working directory, or beside the packages.

    Raises:
        ConfigurationError: They are in none of these places.
    """
    places = [given] if given else [Path("examples"), Path(__file__).resolve().parents[2] / "examples"]
    for place in places:
        if any(place.glob("*/example.toml")):
            return place
    raise ConfigurationError(
        f"no examples in {' or '.join(map(str, places))}",
        field="--examples",
        remedy="They are part of the source repository.",
    )


def load_example(directory: Path) -> Example:
    """Reads an example.

    Raises:
        ConfigurationError: Its description or a file is missing or wrong; the text names it.
    """
    path = directory / "example.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        request = {
            "profile": document["profile"],
            "framework": document["framework"],
            "entry_point": document["entry_point"],
            "files": {name: (directory / name).read_text(encoding="utf-8") for name in document["files"]},
            "limits": document.get("limits", {}),
            "thread_id": "examples",
        }
        connections, missing = _connections(document.get("connections", ()), path)
        if "expected_file" in document:
            request["expected"] = orjson.loads((directory / document["expected_file"]).read_bytes())
        return Example(
            name=directory.name,
            title=document["title"],
            request=checked_request({**request, "connections": connections}),
            missing=missing,
            verdict=Outcome(document["verdict"]),
            diagnostics=tuple(document.get("diagnostics", ())),
        )
    except KeyError as error:
        raise ConfigurationError("is missing", field=f"{path}: {error.args[0]}") from None
    except ConfigurationError:
        raise
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the example {path} cannot be read: {error}") from None


def _connections(references: Any, path: Path) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Returns the databases of an example, or the variables that would have to name them."""
    named = [(f"{path}: connections[{number}]", reference) for number, reference in enumerate(references)]
    variables = dict.fromkeys(referenced_variable(reference, field) for field, reference in named)
    if missing := tuple(name for name in variables if name not in os.environ):
        return [], missing
    return [connection_fields(reference, field) for field, reference in named], ()
