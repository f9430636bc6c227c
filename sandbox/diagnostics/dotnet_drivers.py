"""Databases that did not answer, as the relational drivers of .NET tell it.

Npgsql (10.0) names the address when the server refuses and not when the name is unknown or nobody answers; Microsoft's
client of SQL Server (7.1) never does. Their words count only at the head of a trace that shows the driver opening a
connection, so neither text alone nor a query that takes too long proves anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sandbox.diagnostics.transcript import Transcript
from sandbox.diagnostics.unreachable import UnreachableServer

TRACE_LINES: Final = 400
"""How far a trace is read."""

UNCAUGHT: Final = "Unhandled exception. "

_HEAD: Final = re.compile(
    r"(?:.*[: ])?(?P<driver>Npgsql\.NpgsqlException|Microsoft\.Data\.SqlClient\.SqlException)"
    r" \(0x[0-9A-F]{8}\): (?P<text>.*)"
)
_OPENING: Final = {
    "Npgsql.NpgsqlException": re.compile(r" +at Npgsql\.Internal\.NpgsqlConnector\.(?:RawOpen|Open|Connect).*"),
    "Microsoft.Data.SqlClient.SqlException": re.compile(r" +at Microsoft\.Data\.SqlClient\.TdsParser\.Con\w+\(.*"),
}
_PRODUCTS: Final = {"Npgsql.NpgsqlException": "PostgreSQL", "Microsoft.Data.SqlClient.SqlException": "SQL Server"}
_ADDRESS: Final = re.compile(r"Failed to connect to (?P<address>\S+)")
_NO_ANSWER: Final = (
    "A network-related or instance-specific error occurred while establishing a connection",
    "Connection Timeout Expired.",
)
_REASON: Final = re.compile(
    r" ---> (?:System\.Net\.Sockets\.SocketException \([^)]*\)|System\.TimeoutException): (?P<text>.+)"
)
_TRACE: Final = re.compile(r" +at .+| ---> .+| +--- End of .+")


def unreachable_server(transcript: Transcript) -> UnreachableServer | None:
    """Returns the database that a program could not reach, ``None`` when no driver says so."""
    found = unreachable_trace(transcript)
    return None if found is None else found[0]


def unreachable_trace(transcript: Transcript) -> tuple[UnreachableServer, Sequence[str]] | None:
    """Returns the database and the trace that tells of it.

    When an exception ended the program, only its trace counts; else the last one that the program wrote itself.
    """
    lines = transcript.stderr
    ended = next((at for at in range(len(lines) - 1, -1, -1) if lines[at].startswith(UNCAUGHT)), None)
    if ended is not None:
        return next((found for at in _trace(lines, ended) if (found := _told(lines, at))), None)
    for stream in (transcript.stderr, transcript.stdout):
        for at in range(len(stream) - 1, -1, -1):
            if found := _told(stream, at):
                return found
    return None


def _trace(lines: Sequence[str], start: int) -> range:
    """The lines of a trace whose head has one line or more."""
    end = start + 1
    framed = False
    while end < min(len(lines), start + TRACE_LINES):
        if _TRACE.fullmatch(lines[end]):
            framed = True
        elif framed:
            break
        end += 1
    return range(start, end)


def _told(lines: Sequence[str], at: int) -> tuple[UnreachableServer, Sequence[str]] | None:
    head = _HEAD.fullmatch(lines[at])
    if head is None:
        return None
    trace = [lines[position] for position in _trace(lines, at)]
    if not any(map(_OPENING[head["driver"]].fullmatch, trace)):
        return None
    address = _ADDRESS.match(head["text"])
    reason = next((match["text"] for line in trace if (match := _REASON.fullmatch(line))), "")
    if address is None and not reason and not head["text"].startswith(_NO_ANSWER):
        return None
    if reason in ("", "Success"):  # what the client of SQL Server makes of a refusal
        reason = head["text"].partition(".")[0]
    product = _PRODUCTS[head["driver"]]
    return UnreachableServer(product, address["address"] if address else "", reason.rstrip(".")), trace
