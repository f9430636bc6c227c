"""All ways out of one box: the proxy for what its policy opens, the tunnels of its connections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .endpoints import RoutePlan, plan_routes
from .errors import RuntimeFault
from .interface import BoxSpec
from .policy import IPNetwork, PolicyError
from .proxy import BoxProxy
from .resolver import Resolver
from .tunnels import Tunnels


@dataclass(frozen=True, slots=True)
class WaysOut:
    """What a box is made with to reach others; nothing listens yet.

    Attributes:
        proxy: The gate to the network.
        plan: Where its connections lead and how they look from inside.
        tunnels: The ways to them.
    """

    proxy: BoxProxy
    plan: RoutePlan
    tunnels: Tunnels

    async def close(self) -> None:
        """Cuts all of them."""
        await self.proxy.close()
        await self.tunnels.close()


def ways_out(spec: BoxSpec, *, resolver: Resolver, extra_public: Sequence[IPNetwork], own_port: int | None) -> WaysOut:
    """Returns the ways out of a box.

    Args:
        spec: What was asked for.
        resolver: Looks up names.
        extra_public: See ``Gate``.
        own_port: See ``Tunnels``.

    Raises:
        RuntimeFault: The policy or the connections cannot be offered; the text names what is wrong.
    """
    try:
        proxy = BoxProxy(spec.box_id, policy=spec.network, resolver=resolver, extra_public=extra_public)
    except PolicyError as error:
        raise RuntimeFault(f"network policy: {error}") from error
    plan = plan_routes(spec.connections)
    return WaysOut(proxy, plan, Tunnels(spec.box_id, routes=plan.routes, resolver=resolver, own_port=own_port))
