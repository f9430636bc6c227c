"""The label that names a sandbox's connections: databases it reaches over plain TCP whatever its network policy says.

An extension of the local platform; elsewhere the label is a text like any other. It holds at most ten ``host:port``
items with commas between, such as ``localhost:5432,db.example.com:27017,[2001:db8::1]:7687``.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping

from ..runtime.endpoints import LOCALHOST, LOOPBACK_ADDRESSES
from ..runtime.errors import RuntimeFault
from ..runtime.interface import Endpoint
from ..runtime.proxy import PROXY_PORT
from ..wire_errors import WireError

LABEL = "uom-connections"
MAX_ITEMS = 10

_ITEM = re.compile(r"(?:\[(?P<literal>[^\[\]]*)\]|(?P<host>[^:\[\]]*)):(?P<port>[0-9]{1,5})")
# Names of containers and of the Windows world have underscores.
_NAME = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
)
# Resolvers take these for addresses in old notations: 127.1, 0x7f000001, 2130706433.
_NUMERIC_END = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")


def connections(labels: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Returns what the label names, each endpoint once; nothing where there is no label.

    ``127.0.0.1`` and ``::1`` are taken for ``localhost``: programs use them for one another.

    Raises:
        WireError: 400, naming the label and what is wrong in it.
    """
    items = [item.strip() for item in labels.get(LABEL, "").split(",")]
    if items == [""]:
        return ()
    found = dict.fromkeys(_endpoint(item) for item in items)
    if len(found) > MAX_ITEMS:
        raise _wrong(f"{len(found)} connections are named, at most {MAX_ITEMS} are allowed")
    return tuple(found)


def checked_connections(labels: Mapping[str, str], *, api_port: int) -> None:
    """Checks the label of a sandbox that is about to be made or changed.

    Args:
        labels: All its labels.
        api_port: Where the platform itself listens on this host.

    Raises:
        WireError: 400, the label cannot be read, or a connection would lead to the platform or to the sandbox's proxy.
    """
    for endpoint in connections(labels):
        if endpoint.port == api_port and _is_this_host(endpoint.host):
            raise _wrong(f"{endpoint} is the sandbox platform itself, which no sandbox may reach")
        if endpoint.port == PROXY_PORT and endpoint.host == LOCALHOST:
            raise _wrong(
                f"{endpoint} is where a sandbox has its own HTTP proxy: give the server another port, or name this "
                f"machine by its host name"
            )


def connections_at_start(labels: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Returns what the label of a sandbox on file names.

    Raises:
        RuntimeFault: It cannot be read; it was set before labels of this name had a meaning.
    """
    try:
        return connections(labels)
    except WireError as error:
        raise RuntimeFault(error.message) from error


def _endpoint(item: str) -> Endpoint:
    match = _ITEM.fullmatch(item)
    if match is None:
        raise _wrong(f"{item!r} is not host:port, such as db.example.com:5432 or [2001:db8::1]:7687")
    port = int(match["port"])
    if not 1 <= port <= 65535:
        raise _wrong(f"{item!r} has no port between 1 and 65535")
    if match["literal"] is not None:
        return Endpoint(_address(match["literal"], item), port)
    host = match["host"].lower().rstrip(".")
    if _NUMERIC_END.fullmatch(host):
        return Endpoint(_address(host, item), port)
    if not _NAME.fullmatch(host):
        raise _wrong(f"{item!r} has no host name before its port; names in other scripts are written as xn--…")
    return Endpoint(host, port)


def _address(text: str, item: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise _wrong(f"{item!r} has no address that can be read before its port") from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise _wrong(f"{item!r}: an address with a zone is not supported")
        address = address.ipv4_mapped or address
    if address.is_unspecified or address.is_multicast or address == ipaddress.IPv4Address("255.255.255.255"):
        raise _wrong(f"{item!r} is the address of no single host")
    return LOCALHOST if str(address) in LOOPBACK_ADDRESSES else str(address)


def _is_this_host(host: str) -> bool:
    if host == LOCALHOST or host.endswith(f".{LOCALHOST}") or host == socket.gethostname().lower():
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _wrong(text: str) -> WireError:
    return WireError(400, f"label {LABEL}: {text}")
