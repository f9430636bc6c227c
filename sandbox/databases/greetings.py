"""What a client says first to a server of each kind, and what such a server answers.

PostgreSQL: the request for TLS of its frontend protocol ("SSLRequest"), answered by one byte whatever the server's
settings are. SQL Server: PRELOGIN of [MS-TDS], answered by a packet of type 4. MongoDB: the command ``hello`` in an
OP_MSG, answered by a header of 16 bytes with the same operation code. Neo4j: the handshake of Bolt, answered by four
bytes of which the first is zero. None of them needs an account, and none leaves a trace but a connection that ended.

Where nothing but TLS is spoken, it is the beginning of a TLS handshake, answered by a handshake or an alert.
"""

from __future__ import annotations

import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sandbox.databases.kinds import DatabaseKind


@dataclass(frozen=True, slots=True)
class Greeting:
    """The first words of a conversation.

    Attributes:
        sent: What the client says.
        count: How many bytes of the answer tell whether it is the right one.
        fits: Whether an answer of so many bytes is one of such a server.
    """

    sent: bytes
    count: int
    fits: Callable[[bytes], bool]


_SSL_REQUEST: Final = struct.pack("!II", 8, 80877103)
_OP_MSG: Final = 2013


def _prelogin() -> bytes:
    version, encryption = b"\x00" * 6, b"\x00"
    options_size = 2 * 5 + 1
    options = struct.pack("!BHH", 0, options_size, len(version))
    options += struct.pack("!BHH", 1, options_size + len(version), len(encryption)) + b"\xff"
    payload = options + version + encryption
    return struct.pack("!BBHHBB", 0x12, 1, 8 + len(payload), 0, 1, 0) + payload


def _hello() -> bytes:
    document = b"\x10hello\x00" + struct.pack("<i", 1) + b"\x02$db\x00" + struct.pack("<i", 6) + b"admin\x00"
    document = struct.pack("<i", len(document) + 5) + document + b"\x00"
    body = struct.pack("<I", 0) + b"\x00" + document
    return struct.pack("<iiii", 16 + len(body), 1, 0, _OP_MSG) + body


GREETINGS: Final = {
    DatabaseKind.POSTGRESQL: Greeting(_SSL_REQUEST, 1, lambda answer: answer in (b"S", b"N")),
    DatabaseKind.SQLSERVER: Greeting(_prelogin(), 1, lambda answer: answer == b"\x04"),
    DatabaseKind.MONGODB: Greeting(_hello(), 16, lambda answer: struct.unpack("<i", answer[12:])[0] == _OP_MSG),
    # Versions 5.4 to 5.0, 4.4 to 4.2, 4.1 and 3; which of them is chosen does not matter.
    DatabaseKind.NEO4J: Greeting(
        bytes.fromhex("6060b017 00040405 00020404 00000104 00000003"), 4, lambda answer: answer[0] == 0
    ),
}


def greeting(kind: DatabaseKind, *, host: str, tls: bool) -> Greeting:
    """Returns what to say to a server.

    Args:
        kind: What it should be.
        host: Its name, which a client tells in a TLS handshake.
        tls: Whether nothing but TLS is spoken with it.
    """
    return Greeting(_client_hello(host), 1, lambda answer: answer in (b"\x16", b"\x15")) if tls else GREETINGS[kind]


def _client_hello(host: str) -> bytes:
    """The first message of the handshake that Python's own client would make; nothing is verified by that."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    handshake = context.wrap_bio(received, sent, server_hostname=host)
    try:
        handshake.do_handshake()
    except ssl.SSLWantReadError:
        return sent.read()
    raise AssertionError("a handshake cannot end before the server has spoken")
