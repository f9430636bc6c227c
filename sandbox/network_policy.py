"""A profile's network policy in the words of Daytona's API: all blocked, networks allowed, or domains allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from daytona import AsyncSandbox

    from sandbox.profiles import Network


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """The three fields of the API; at most one of them says something (Daytona refuses combinations).

    Attributes:
        block_all: Nothing may be reached.
        cidrs: Comma-separated IPv4 networks, empty for no such list.
        domains: Comma-separated host names, empty for no such list.
    """

    block_all: bool
    cidrs: str = ""
    domains: str = ""

    @classmethod
    def of(cls, network: Network) -> Self:
        """Returns the policy of a profile."""
        return cls(network.mode == "none", ",".join(network.cidrs), ",".join(network.domains))

    def holds_for(self, sandbox: AsyncSandbox) -> bool:
        """True if a sandbox has this policy."""
        return (
            bool(sandbox.network_block_all),
            _items(sandbox.network_allow_list),
            _items(sandbox.domain_allow_list),
        ) == (
            self.block_all,
            _items(self.cidrs),
            _items(self.domains),
        )

    async def apply_to(self, sandbox: AsyncSandbox) -> None:
        """Gives a running sandbox this policy; takes effect at once."""
        if self.block_all:
            await sandbox.update_network_settings(network_block_all=True)
        elif self.cidrs:
            await sandbox.update_network_settings(network_allow_list=self.cidrs)
        elif self.domains:
            await sandbox.update_network_settings(domain_allow_list=self.domains)
        else:
            await sandbox.update_network_settings(network_block_all=False)


def _items(listed: str | None) -> frozenset[str]:
    return frozenset(item.strip() for item in (listed or "").split(",") if item.strip())
