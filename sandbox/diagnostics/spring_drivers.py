"""Databases that did not answer, as the drivers under Spring Data tell it.

MongoDB's driver (5.8) gives up with the state of every server it tried; Neo4j's (6.1) names the address. Their words
count only at the head of a stack trace that the driver's own code is part of, so text alone proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sandbox.diagnostics.transcript import Transcript
from sandbox.diagnostics.unreachable import UnreachableServer

EVIDENCE_LINES: Final = 40
"""How far below its words a trace must show the driver's own code."""

TRACE_LINES: Final = 400
"""How far a trace is read for address and reason."""

_MONGODB: Final = re.compile(
    r"(?:.*[: ])?com\.mongodb\.MongoTimeoutException: Timed out (?:while|after \d+ ms while) waiting (?:for|to) .*"
)
_MONGODB_SERVER: Final = re.compile(
    r"\{address=(?P<address>[^\s,{}]+), type=UNKNOWN(?P<state>[^{}]*)(?:\{(?P<why>[^{}]*)\})?"
    r"(?:, caused by \{(?P<cause>[^{}]*)\})?"
)
_MONGODB_CODE: Final = re.compile(r"\s+at com\.mongodb\..*")

_NEO4J: Final = re.compile(r"(?:.*[: ])?org\.neo4j\.driver\.exceptions\.ServiceUnavailableException: (?P<text>.*)")
_NEO4J_ADDRESS: Final = re.compile(r"(?:Unable to connect to|with server) '?(?P<address>[\w.\[\]:-]+:\d+)")
_NEO4J_CODE: Final = re.compile(r"\s+at org\.neo4j\..*")
_NEO4J_CAUSE: Final = re.compile(r"\s*Caused by: (?P<type>java\.(?:net|nio)\.[\w.]+)(?:: (?P<text>.*))?")


def unreachable_server(transcript: Transcript) -> UnreachableServer | None:
    """Returns the database that a program could not reach, ``None`` when no driver says so."""
    for lines in (transcript.stdout, transcript.stderr):
        for index, line in enumerate(lines):
            following = lines[index + 1 : index + 1 + EVIDENCE_LINES]
            if _MONGODB.match(line) and _holds(_MONGODB_CODE, following):
                return _mongodb(line)
            if (match := _NEO4J.fullmatch(line)) and _holds(_NEO4J_CODE, following):
                return _neo4j(match["text"], lines[index + 1 :])
    return None


def _holds(pattern: re.Pattern[str], lines: Sequence[str]) -> bool:
    return any(map(pattern.fullmatch, lines))


def _mongodb(line: str) -> UnreachableServer:
    servers = list(_MONGODB_SERVER.finditer(line))
    if not servers:
        return UnreachableServer("MongoDB", "", "")
    reasons = [server["cause"] or server["why"] or "" for server in servers]
    return UnreachableServer(
        "MongoDB", ", ".join(server["address"] for server in servers), _words(next(filter(None, reasons), ""))
    )


def _neo4j(text: str, following: Sequence[str]) -> UnreachableServer:
    """The address is in the message, or, where a cluster was asked for its servers, in the first one's failure."""
    trace = following[:TRACE_LINES]
    address = next((match for line in (text, *trace) if (match := _NEO4J_ADDRESS.search(line))), None)
    cause = next((match for line in trace if (match := _NEO4J_CAUSE.fullmatch(line))), None)
    reason = "" if cause is None else f"{cause['type']}: {cause['text'] or ''}"
    return UnreachableServer("Neo4j", address["address"] if address else "", _words(reason))


def _words(reason: str) -> str:
    """The words of an exception, without its class; a message that is a mere name needs more."""
    kind, _, text = reason.partition(": ")
    if kind.endswith("UnknownHostException"):
        return f"unknown host {text}"
    return text or kind.rpartition(".")[2]
