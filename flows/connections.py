"""Databases named by reference: blocks of Prefect, and variables of the caller's environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from flows.parameters import check_block_names, checked_request
from sandbox.databases import DatabaseKind
from sandbox.errors import ConfigurationError
from sandbox.models import ValidationRequest

_FROM_ENVIRONMENT: Final = re.compile(r"env:(?P<variable>[A-Za-z_][A-Za-z0-9_]*)")


async def with_stored_connections(request: ValidationRequest, names: Iterable[str]) -> ValidationRequest:
    """Returns a request with the databases of blocks added to its own.

    Args:
        request: The request.
        names: Names of DatabaseConnection blocks; each counts once.

    Raises:
        ConfigurationError: A block is missing or wrong, or does not fit the others; the text names it.
    """
    wanted = tuple(dict.fromkeys(names))
    if not wanted:
        return request
    check_block_names(wanted, field="connection_blocks")
    from blocks.database import stored_connection

    found = []
    for name in wanted:
        try:
            found.append(await stored_connection(name))
        except ConfigurationError as error:
            raise ConfigurationError(error.message, field=f"connection_blocks.{name}", remedy=error.remedy) from None
    document = {name: getattr(request, name) for name in type(request).model_fields}
    return checked_request({**document, "connections": (*request.connections, *found)})


def split_references(
    words: Sequence[str], *, field: str, environment: Mapping[str, str] | None = None
) -> tuple[list[str], list[dict[str, Any]]]:
    """Returns what a command line names: blocks, and connections as fields of a request.

    Args:
        words: Each ``NAME`` of a block, ``KIND=env:VARIABLE`` or ``KIND:NAME=env:VARIABLE``.
        field: The option, for error texts.
        environment: Read instead of the process's own.

    Raises:
        ConfigurationError: A word is wrong, or names a variable that is not set. No value is shown.
    """
    names: list[str] = []
    connections: list[dict[str, Any]] = []
    for word in words:
        kind, equals, source = word.partition("=")
        if not equals:
            check_block_names([word], field=field)
            names.append(word)
            continue
        kind, _, variable = kind.partition(":")
        connections.append(
            connection_fields({"kind": kind, "variable": variable or None, "url_from": source}, field, environment)
        )
    return names, connections


def connection_fields(
    reference: Mapping[str, Any], field: str, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Returns a connection whose address is in a variable of the caller's environment, as fields of a request.

    Args:
        reference: ``kind``, ``url_from`` (``env:VARIABLE``) and, if wanted, ``variable``.
        field: Where the reference stands, for error texts.
        environment: Read instead of the process's own.

    Raises:
        ConfigurationError: It is wrong, or names a variable that is not set.
    """
    name = referenced_variable(reference, field)
    value = (os.environ if environment is None else environment).get(name)
    if value is None:
        raise ConfigurationError(f"the environment has no variable {name}", field=field)
    return {"kind": reference["kind"], "url": value, "variable": reference.get("variable")}


def referenced_variable(reference: Mapping[str, Any], field: str) -> str:
    """Returns the variable of the caller's environment that a reference names.

    Raises:
        ConfigurationError: The reference is wrong.
    """
    unknown = sorted(reference.keys() - {"kind", "url_from", "variable"})
    if unknown:
        raise ConfigurationError(
            f"has no field {', '.join(unknown)}", field=field, remedy="There are `kind`, `url_from` and `variable`."
        )
    kind, source = str(reference.get("kind", "")), str(reference.get("url_from", ""))
    if kind not in set(DatabaseKind):
        raise ConfigurationError(
            f"{kind[:20]!r} is no kind of database", field=field, remedy=f"Known: {', '.join(DatabaseKind)}."
        )
    found = _FROM_ENVIRONMENT.fullmatch(source)
    if found is None:
        raise ConfigurationError(
            "an address is not written down here, where others see its password",
            field=field,
            remedy=f"Put it into an environment variable and name that: {kind}=env:VARIABLE.",
        )
    return found["variable"]
