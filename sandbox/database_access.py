"""The way from a sandbox to the databases of its request.

The local platform opens exactly the endpoints that the label ``uom-connections`` names, whatever the network policy is;
``localhost`` is its own machine there. Any other Daytona API knows networks or domains, not ports, and gives the label
no meaning: there the databases' addresses are added to what the policy allows. Where networks are allowed, Daytona
drops questions to DNS too (https://www.daytona.io/docs/en/network-limits/), so names come with their addresses.

An API on a loopback address is taken for the local platform.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from sandbox.connection import is_on_this_machine
from sandbox.databases import DatabaseConnection, Endpoint
from sandbox.errors import ConfigurationError
from sandbox.network_policy import NetworkPolicy
from sandbox.profiles import Network

MAX_LISTED: Final = 10
"""Items of an allow list, Daytona's limit."""

RESOLVE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseAccess:
    """How a sandbox reaches its databases.

    Attributes:
        policy: Its network policy.
        addresses: Names that it cannot ask for → the address of each.
    """

    policy: NetworkPolicy
    addresses: Mapping[str, str] = field(default_factory=dict)


async def database_access(
    connections: Sequence[DatabaseConnection], *, network: Network, api_url: str
) -> DatabaseAccess:
    """Returns how a sandbox of a platform reaches its databases.

    Args:
        connections: The databases.
        network: The profile's network policy.
        api_url: The platform.

    Raises:
        ConfigurationError: They cannot be reached from there, or the policy cannot be widened so; names the connection.
    """
    policy = NetworkPolicy.of(network)
    endpoints = [
        (f"connections[{number}]", endpoint)
        for number, connection in enumerate(connections)
        for endpoint in connection.endpoints
    ]
    if endpoints and is_on_this_machine(api_url):
        _refuse_the_platform_itself(endpoints, api_url)
    if not endpoints or is_on_this_machine(api_url):
        return DatabaseAccess(policy=policy)
    for name, endpoint in endpoints:
        if endpoint.on_this_machine:
            raise ConfigurationError(
                f"{endpoint} means the machine of the platform, which is at {api_url} and not this one",
                field=name,
                remedy="Name the database by an address that the platform reaches, or use the local platform.",
            )
    if network.mode == "open":
        return DatabaseAccess(policy=policy)
    if network.domains:
        return DatabaseAccess(policy=NetworkPolicy(block_all=False, domains=_domains(network.domains, endpoints)))
    found = await asyncio.gather(*(_address(name, endpoint) for name, endpoint in endpoints))
    listed = dict.fromkeys((*network.cidrs, *(f"{address}/32" for address in found)))
    _check_length(len(listed), "networks")
    addresses = {
        endpoint.host: address
        for (_, endpoint), address in zip(endpoints, found, strict=True)
        if endpoint.host != address
    }
    return DatabaseAccess(policy=NetworkPolicy(block_all=False, cidrs=",".join(listed)), addresses=addresses)


def _refuse_the_platform_itself(endpoints: Sequence[tuple[str, Endpoint]], api_url: str) -> None:
    """The local platform lets no sandbox reach its own port; said here, the error names the connection."""
    own = urlsplit(api_url)
    port = own.port or (443 if own.scheme == "https" else 80)
    for name, endpoint in endpoints:
        if endpoint.on_this_machine and endpoint.port == port:
            raise ConfigurationError(
                f"{endpoint} is the local platform itself ({api_url}), which no sandbox may reach",
                field=name,
                remedy="Name the port at which the database listens.",
            )


def _domains(domains: Sequence[str], endpoints: Sequence[tuple[str, Endpoint]]) -> str:
    listed = dict.fromkeys(domains)
    for name, endpoint in endpoints:
        if ":" in endpoint.host or "." not in endpoint.host or endpoint.host.rpartition(".")[2].isdigit():
            raise ConfigurationError(
                f"{endpoint} is no domain, and the profile's network policy allows domains, which Daytona does not "
                "combine with addresses",
                field=name,
                remedy="Name the database by its full host name, or list networks (`cidrs`) in the profile.",
            )
        listed[endpoint.host] = None
    _check_length(len(listed), "domains")
    return ",".join(listed)


def _check_length(count: int, what: str) -> None:
    if count > MAX_LISTED:
        raise ConfigurationError(
            f"the network policy and the databases together have {count} {what}; Daytona takes {MAX_LISTED}",
            field="connections",
        )


async def _address(name: str, endpoint: Endpoint) -> str:
    """Returns the IPv4 address of an endpoint, the only kind that allow lists take."""
    try:
        literal = ipaddress.ip_address(endpoint.host)
    except ValueError:
        pass
    else:
        if literal.version == 6:
            raise ConfigurationError(
                f"{endpoint} is an IPv6 address, which Daytona's allow lists do not take", field=name
            )
        return str(literal)
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(
                endpoint.host, endpoint.port, family=socket.AF_INET, type=socket.SOCK_STREAM
            )
    except (OSError, TimeoutError) as error:
        raise ConfigurationError(
            f"{endpoint.host} has no IPv4 address that this machine can find ({error or 'no answer'})",
            field=name,
            remedy="The network policy of the sandbox is made from it.",
        ) from None
    # The same one for all runs that share the sandbox, whatever the order in which a name server lists them.
    return min(str(address[0]) for *_, address in found)
