"""What all database servers of the tests are to those who use them."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

PATIENCE = 60.0
"""Seconds a server may take to start, on a machine that does other things too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server.

    Attributes:
        kind: As in ``DatabaseConnection``.
        host: Where it listens.
        port: Its TCP port.
        user: Who may log in; empty for a server without accounts.
        password: With which password.
        path: What follows host and port in its URL: a slash and the database's name.
    """

    kind: str
    host: str
    port: int
    user: str = ""
    password: str = ""
    path: str = ""

    @property
    def url(self) -> str:
        """Its URL with user and password, as the loader of the examples takes it."""
        scheme = {"neo4j": "bolt"}.get(self.kind, self.kind)
        account = f"{quote(self.user)}:{quote(self.password, safe='')}@" if self.user else ""
        return f"{scheme}://{account}{self.host}:{self.port}{self.path}"

    @classmethod
    def at(cls, address: str, *, kind: str, user: str = "", password: str = "", path: str = "") -> Server:
        """A server that told its address."""
        parts = urlsplit(address)
        assert parts.hostname is not None
        assert parts.port is not None
        # The servers listen on the loopback interface of this machine; a connection calls that localhost.
        return cls(kind=kind, host="localhost", port=parts.port, user=user, password=password, path=path)


def new_password() -> str:
    """A password whose characters have a meaning in URLs and connection strings."""
    return f"s3cr&t;'{secrets.token_hex(8)}/@%= ž"


def closed_port() -> int:
    """A port of the loopback interface at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
