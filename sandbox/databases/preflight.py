"""The phase ``preflight``: tells within three seconds, before anything is compiled, which databases do not answer.

A driver that finds no server waits half a minute and then throws something that looks like the program's fault. So each
endpoint is greeted from inside the sandbox, over the same way that the program will take, as a client of its kind would
(``greetings``). A server that accepts and does not answer as one of its kind is as unreachable as one that refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Final

from sandbox.databases.connection import DatabaseConnection
from sandbox.databases.endpoints import Endpoint
from sandbox.databases.greetings import greeting
from sandbox.models import Diagnostic, Severity
from sandbox.profiles import Phase

PREFLIGHT: Final = "preflight"
SCRIPT: Final = "preflight.sh"
PATIENCE_MILLISECONDS: Final = 2500
"""How long an answer is waited for."""

LIMIT_SECONDS: Final = 15.0
"""Limit of the phase. The script ends by itself; this is for a machine so busy that bash does not start."""

CODE: Final = "database-unreachable"
NO_BASH: Final = "there is no bash in the sandbox"

_LINE: Final = re.compile(
    r"^(?P<number>\d+) .*? (?P<state>answered|closed|failed|silent|unreached)(?: (?P<rest>.*))?$", re.MULTILINE
)
_UNRESOLVED: Final = "its name cannot be resolved in the sandbox"
_RESET: Final = "connection refused or reset"
_REASONS: Final = {
    "Name or service not known": _UNRESOLVED,
    "Temporary failure in name resolution": _UNRESOLVED,
    "No address associated with hostname": _UNRESOLVED,
    "Connection reset by peer": _RESET,
}
_BASH_WITHOUT_NETWORK: Final = ("No such file or directory", "not supported")


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A database that did not answer.

    Attributes:
        connection: Which.
        reasons: Of each endpoint, why.
    """

    connection: DatabaseConnection
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        where = ", ".join(map(str, self.connection.endpoints))
        why = "; ".join(dict.fromkeys(self.reasons))
        return f"The {self.connection.kind.product} database at {where} cannot be reached from the sandbox: {why}."

    @property
    def diagnostic(self) -> Diagnostic:
        """The same as a finding."""
        return Diagnostic(severity=Severity.ERROR, message=str(self), code=CODE, tool=PREFLIGHT, phase=PREFLIGHT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the phase found.

    Attributes:
        unreachable: Databases of which no endpoint answered.
        warnings: What could not be checked, and endpoints of a database that others of it make up for.
    """

    unreachable: tuple[Unreachable, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The phase for the databases of a request.

    Attributes:
        connections: The databases; those that are files are not asked.
        addresses: Names that the sandbox cannot ask for → the address of each.
    """

    connections: tuple[DatabaseConnection, ...]
    addresses: Mapping[str, str] = field(default_factory=dict)

    @property
    def phase(self) -> Phase:
        """The phase itself; its script is uploaded beside it."""
        return Phase(
            name=PREFLIGHT,
            command=f"command -v bash >/dev/null || {{ echo '{NO_BASH}'; exit 0; }}\n"
            f"exec bash .uom/{SCRIPT} {PATIENCE_MILLISECONDS}",
            timeout_seconds=LIMIT_SECONDS,
        )

    def script(self) -> bytes:
        """Returns the text of the script with its endpoints; nothing in it is secret."""
        lines = [f"know {name} {address}" for name, address in self.addresses.items()]
        for number, (connection, endpoint) in enumerate(self._asked()):
            hello = greeting(connection.kind, host=endpoint.host, tls=connection.tls)
            sent = "".join(f"\\x{byte:02x}" for byte in hello.sent)
            name = f"{connection.kind.product} at {endpoint}"
            lines.append(f"probe {number} '{name}' {endpoint.host} {endpoint.port} {hello.count} '{sent}'")
        return "\n".join((_script(), *lines, "run", "")).encode()

    def report(self, printed: str) -> Report:
        """Returns what the script found.

        Args:
            printed: Its standard output.
        """
        if NO_BASH in printed:
            return Report(warnings=(_unchecked(NO_BASH),))
        told = {int(match["number"]): (match["state"], match["rest"] or "") for match in _LINE.finditer(printed)}
        unreachable: list[Unreachable] = []
        warnings: list[str] = []
        number = 0
        for connection in self.connections:
            silent: list[str] = []
            reasons: list[str] = []
            for endpoint in connection.endpoints:
                state, rest = told.get(number, ("", ""))
                number += 1
                if not state:
                    warnings.append(_unchecked(f"nothing was reported about {endpoint}"))
                elif state == "failed" and any(word in rest for word in _BASH_WITHOUT_NETWORK):
                    warnings.append(_unchecked("the bash of the sandbox opens no connections"))
                elif reason := _reason(connection, endpoint, state, rest):
                    silent.append(str(endpoint))
                    reasons.append(reason)
            if reasons and len(reasons) == len(connection.endpoints):
                unreachable.append(Unreachable(connection, tuple(reasons)))
            elif reasons:
                product, why = connection.kind.product, "; ".join(dict.fromkeys(reasons))
                warnings.append(f"{product} at {', '.join(silent)} cannot be reached from the sandbox: {why}.")
        return Report(unreachable=tuple(unreachable), warnings=tuple(dict.fromkeys(warnings)))

    def _asked(self) -> Iterator[tuple[DatabaseConnection, Endpoint]]:
        for connection in self.connections:
            for endpoint in connection.endpoints:
                yield connection, endpoint


def _reason(connection: DatabaseConnection, endpoint: Endpoint, state: str, rest: str) -> str:
    """Returns why an endpoint is of no use; empty when it answered as it should."""
    product = connection.kind.product
    patience = f"{PATIENCE_MILLISECONDS / 1000:g} s"
    match state:
        case "answered":
            hello = greeting(connection.kind, host=endpoint.host, tls=connection.tls)
            if hello.fits(bytes.fromhex(rest)):
                return ""
            return f"what answers there is not {product}{' over TLS' if connection.tls else ''}"
        case "closed":
            return f"the connection was closed before {product} answered"
        case "silent":
            return f"it accepts connections but does not answer as {product} within {patience}"
        case "unreached":
            return f"no connection within {patience}"
    reason = _REASONS.get(rest) or f"{rest[:1].lower()}{rest[1:]}"
    # The local platform looks names up itself, outside of the sandbox, and resets what leads nowhere.
    return f"{reason}, or its name is unknown" if reason is _RESET and endpoint.is_name else reason


def _unchecked(why: str) -> str:
    return f"Whether the databases can be reached was not checked before the build: {why}."


@cache
def _script() -> str:
    return resources.files("sandbox.databases").joinpath(SCRIPT).read_text(encoding="utf-8")
