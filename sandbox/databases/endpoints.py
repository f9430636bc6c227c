"""Where a database listens: host and TCP port.

No error of this module repeats what it was given: a password that is not encoded as it should be is taken for a part of
the host's name.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MAX_ENDPOINTS: Final = 10
"""Endpoints that one sandbox may reach, as many as Daytona's allow lists have items."""

_NAME: Final = re.compile(
    r"(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*"
)
# What ends in a number is never looked up as a name, but read as inet_aton(3) does.
_NUMERIC_END: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """A TCP port of a host.

    Attributes:
        host: Name in lower case, or address; IPv6 without brackets.
        port: 1 to 65535.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_name(self) -> bool:
        """Whether its host is a name that has to be looked up."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return not self.on_this_machine
        return False

    @property
    def on_this_machine(self) -> bool:
        """Whether it is called by a name or address that every machine uses for itself."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def checked_host(text: str) -> str:
    """Returns a host's name or address in the form in which it is compared.

    Raises:
        ValueError: It is neither.
    """
    name = text.strip().lower().removesuffix(".")
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    if name.startswith(("/", "%2f", "@")):
        raise ValueError("names a Unix socket, which a sandbox cannot reach; let the server listen on TCP")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        pass
    else:
        if address.is_unspecified or address.is_multicast or (address.version == 6 and "%" in name):
            raise ValueError("has an address at which no server can be reached")
        return str(address)
    if not name.isascii():
        raise ValueError("has a host name with letters beyond ASCII; write it in its ASCII form (xn--…)")
    if _NUMERIC_END.fullmatch(name):
        raise ValueError(
            "has a host that ends like a number and is no IPv4 address; write such as 10.1.2.3, four parts"
        )
    if not _NAME.fullmatch(name):
        raise ValueError(
            "has no valid host name; in a user name or password, the characters / : @ ? # % must be percent-encoded"
        )
    return name


def checked_port(text: str) -> int:
    """Returns a port.

    Raises:
        ValueError: It is none.
    """
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 5 and 1 <= int(digits) <= 65_535):
        raise ValueError("has a port that is no number from 1 to 65535")
    return int(digits)


def parse_endpoint(text: str, *, port: int) -> Endpoint:
    """Reads ``host``, ``host:port``, ``[IPv6]`` or ``[IPv6]:port``.

    Args:
        text: As it stands in a URL.
        port: Taken when there is none.

    Raises:
        ValueError: It is none of these.
    """
    text = text.strip()
    bracket = text.find("]")
    if text.startswith("[") and bracket > 0:
        host, rest = text[: bracket + 1], text[bracket + 1 :]
        if rest and not rest.startswith(":"):
            raise ValueError("has something between an address in brackets and its port")
        number = rest[1:]
    elif text.count(":") > 1:
        host, number = text, ""  # an IPv6 address without brackets
    else:
        host, _, number = text.partition(":")
    return Endpoint(checked_host(host), checked_port(number) if number else port)


def connections_label(endpoints: Iterable[Endpoint]) -> str:
    """Returns the value of the label ``uom-connections``: each endpoint once, sorted, separated by commas."""
    return ",".join(str(endpoint) for endpoint in sorted(set(endpoints)))


def connections_suffix(endpoints: Iterable[Endpoint]) -> str:
    """Returns what distinguishes the name of a sandbox that may reach these endpoints; empty for none."""
    label = connections_label(endpoints)
    return f"-{hashlib.sha256(label.encode()).hexdigest()[:8]}" if label else ""
