"""What a box may reach: the decision on one host, its addresses and port."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from .errors import RuntimeFault
from .interface import NetworkPolicy

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_WEB_PORTS = frozenset({80, 443})
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class PolicyError(RuntimeFault, ValueError):
    """A network policy that cannot be enforced; the text names the entry."""


class Gate:
    """Decides by a policy.

    Args:
        policy: See ``NetworkPolicy``.
        extra_public: Networks that count as public although they are private, such as a package mirror's.

    Raises:
        PolicyError: A network or a domain of the policy cannot be read.
    """

    def __init__(self, policy: NetworkPolicy, *, extra_public: Sequence[IPNetwork] = ()) -> None:
        self.policy = policy
        self._extra_public = tuple(extra_public)
        self._networks = parse_networks(policy.cidrs)
        self._domains = tuple(_domain(entry) for entry in policy.domains)

    def names(self, host: str, port: int) -> bool:
        """True if a host of this name may be looked up and then reached if its address is public."""
        if self.policy.mode == "public":
            return True
        if self.policy.mode == "none":
            return False
        name = host.rstrip(".").lower()
        listed = any(name == entry or (entry[0] == "*" and name.endswith(entry[1:])) for entry in self._domains)
        return listed and port in _WEB_PORTS

    def looks_up(self, host: str, port: int) -> bool:
        """True if it is worth asking for the host's addresses at all."""
        return self.names(host, port) or (self.policy.mode == "allow" and bool(self._networks))

    def allows(self, host: str, address: IPAddress, port: int) -> bool:
        """True if ``address``, which ``host`` has resolved to (or which it is), may be reached on ``port``."""
        real = unwrapped(address)
        if self.policy.mode == "none":
            return False
        if self.policy.mode == "allow" and _within(real, self._networks):
            return True
        literal = host.strip("[]") == str(address)
        if literal and self.policy.mode == "allow":
            return False
        return self.names(host, port) and (is_public(real) or _within(real, self._extra_public))

    def refusal(self, host: str, port: int, *, address: IPAddress | None = None) -> str:
        """Returns a sentence for whoever wonders why ``host`` is not to be reached."""
        text = f"the network policy of this sandbox does not allow {host}:{port}"
        if address is None or not self.names(host, port) or address.is_loopback or address.is_link_local:
            return text
        # The usual surprise behind a company's own resolver.
        return (
            f"{text}: its address {address} is not public; the operator of the platform can declare that network as "
            f"public (extra_public_cidrs)"
        )


def parse_networks(entries: Sequence[str]) -> tuple[IPNetwork, ...]:
    """Returns the networks.

    Raises:
        PolicyError: An entry is no network in CIDR form.
    """
    networks: list[IPNetwork] = []
    for entry in entries:
        try:
            networks.append(ipaddress.ip_network(entry.strip(), strict=False))
        except ValueError as error:
            raise PolicyError(f"{entry!r} is no network in CIDR form, such as 10.0.0.0/8: {error}") from error
    return tuple(networks)


def is_public(address: IPAddress) -> bool:
    """True for an address of the public internet: not private, loopback, link-local, multicast or reserved."""
    return address.is_global and not address.is_multicast and not address.is_reserved


def unwrapped(address: IPAddress) -> IPAddress:
    """Returns the IPv4 address inside an IPv6 one: mapped, 6to4, Teredo and NAT64 reach IPv4 hosts."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _within(address: IPAddress, networks: Sequence[IPNetwork]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _domain(entry: str) -> str:
    name = entry.strip().rstrip(".").lower()
    bare = name.removeprefix("*.")
    if not bare or "*" in bare or "/" in bare or ":" in bare or any(not part for part in bare.split(".")):
        raise PolicyError(f"{entry!r} is no domain; write a host name or *.suffix")
    return name
