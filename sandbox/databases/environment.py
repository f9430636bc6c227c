"""All databases of a request together: the variables of the program, what is masked, where the sandbox may go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sandbox.databases.connection import DatabaseConnection
from sandbox.databases.endpoints import MAX_ENDPOINTS, Endpoint
from sandbox.request_checks import check_environment


def program_variables(
    connections: Sequence[DatabaseConnection], *, given: Mapping[str, Mapping[str, object]]
) -> dict[str, str]:
    """Returns the variables by which a program finds its databases.

    Args:
        connections: The databases.
        given: Other variables of the program, by the name of the field that holds them.

    Raises:
        ValueError: Two have the same name, or the environment cannot carry them; the text names the field.
    """
    found: dict[str, str] = {}
    owners: dict[str, int] = {}
    for number, connection in enumerate(connections):
        for name, value in connection.variables().items():
            if name in owners:
                raise ValueError(
                    f"connections[{number}].variable: {name} is set by connections[{owners[name]}] too; "
                    "give one of them another `variable`"
                )
            for field, others in given.items():
                if name in others:
                    raise ValueError(
                        f"connections[{number}].variable: {name} is in `{field}` too; "
                        "leave it out there, or give the connection another `variable`"
                    )
            owners[name] = number
            found[name] = value
    check_environment(found)
    return found


def hidden_texts(connections: Iterable[DatabaseConnection]) -> frozenset[str]:
    """Returns what must be masked wherever it would show."""
    return frozenset().union(*(connection.hidden() for connection in connections))


def endpoints_of(connections: Iterable[DatabaseConnection]) -> tuple[Endpoint, ...]:
    """Returns where the databases listen, each endpoint once, in order."""
    return tuple(dict.fromkeys(endpoint for connection in connections for endpoint in connection.endpoints))


def check_endpoints(connections: Sequence[DatabaseConnection]) -> None:
    """Checks that a sandbox can be given all the databases.

    Raises:
        ValueError: There are too many.
    """
    count = len(endpoints_of(connections))
    if count > MAX_ENDPOINTS:
        raise ValueError(f"have {count} endpoints (host and port) together; the limit is {MAX_ENDPOINTS}")
