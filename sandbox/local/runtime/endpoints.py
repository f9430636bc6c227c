"""How the connections of a box look from inside: where it listens, which names and addresses it has for that."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import RuntimeFault
from .interface import Endpoint
from .proxy import PROXY_PORT

LOCALHOST = "localhost"
LOOPBACK_ADDRESSES = ("127.0.0.1", "::1")
PRIVILEGED_BELOW = 1024
"""Ports under this one take a capability that no process of a box has (ip(7), ip_unprivileged_port_start)."""

# Loopback addresses that stand for a name each; nobody's habit, so that no literal in a connection meets them.
_NAMES = ipaddress.IPv4Address("127.83.0.1")


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint and the addresses inside that stand for it.

    Attributes:
        endpoint: What is reached.
        listens: Addresses on which the box listens at the endpoint's port; those after the first only where the box
            has them.
    """

    endpoint: Endpoint
    listens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoutePlan:
    """Everything a box needs for its connections.

    Attributes:
        routes: One for each endpoint.
        names: (address, host name) pairs for the box's /etc/hosts.
        literals: Addresses of other machines that the box must take for its own.
        lowest_port: The lowest port listened on; 65536 where there is none.
    """

    routes: tuple[Route, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    literals: tuple[str, ...] = ()
    lowest_port: int = 65536

    @property
    def privileged(self) -> bool:
        """True if the box's network must be changed with a capability before it can listen."""
        return bool(self.literals) or self.lowest_port < PRIVILEGED_BELOW

    @property
    def hosts(self) -> tuple[str, ...]:
        """The distinct hosts, as programs write them."""
        return tuple(dict.fromkeys(route.endpoint.host for route in self.routes))


def plan_routes(connections: Sequence[Endpoint]) -> RoutePlan:
    """Returns the plan; the same connections in the same order get the same addresses.

    Raises:
        RuntimeFault: A port is taken by the box's own proxy.
    """
    taken = {endpoint.host for endpoint in connections}
    free = (str(_NAMES + number) for number in itertools.count() if str(_NAMES + number) not in taken)
    names: dict[str, str] = {}
    literals: dict[str, None] = {}
    routes = []
    for endpoint in dict.fromkeys(connections):
        listens = _own_addresses(endpoint.host)
        if not listens:
            listens = (names.setdefault(endpoint.host, names.get(endpoint.host) or next(free)),)
        elif not ipaddress.ip_address(listens[0]).is_loopback:
            literals[endpoint.host] = None
        if endpoint.port == PROXY_PORT and LOOPBACK_ADDRESSES[0] in listens:
            raise RuntimeFault(
                f"{endpoint} cannot be reached from a sandbox: its own HTTP proxy listens on port {PROXY_PORT}; "
                f"give the server another port, or name its host otherwise than as localhost"
            )
        routes.append(Route(endpoint, listens))
    return RoutePlan(
        tuple(routes),
        tuple((address, name) for name, address in names.items()),
        tuple(literals),
        min((route.endpoint.port for route in routes), default=65536),
    )


def _own_addresses(host: str) -> tuple[str, ...]:
    """Returns the addresses at which programs that know ``host`` look for it without resolving a name."""
    if host == LOCALHOST:
        return LOOPBACK_ADDRESSES
    try:
        return (str(ipaddress.ip_address(host)),)
    except ValueError:
        return ()
