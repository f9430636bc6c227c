"""The network fields of a sandbox: what they may hold, and the policy they mean.

Rules as published by Daytona: at most ten IPv4 networks with a prefix, or at most ten host names; the three ways
exclude each other. Without any of them the public internet is open.
"""

from __future__ import annotations

import ipaddress
import re

from ..runtime.interface import NetworkPolicy
from ..wire_errors import WireError
from .records import NetworkSettings

MAX_ITEMS = 10

_DOMAIN = re.compile(
    r"(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])", re.IGNORECASE
)


def network_policy(settings: NetworkSettings) -> NetworkPolicy:
    """Returns the policy that the settings mean.

    Raises:
        WireError: 400, naming the item that is wrong.
    """
    cidrs = _networks(settings.allow_list)
    domains = _domains(settings.domain_allow_list)
    chosen = [
        name
        for name, present in (
            ("networkBlockAll", settings.block_all),
            ("networkAllowList", bool(cidrs)),
            ("domainAllowList", bool(domains)),
        )
        if present
    ]
    if len(chosen) > 1:
        raise WireError(400, f"{' and '.join(chosen)} exclude each other: give only one of them")
    if settings.block_all:
        return NetworkPolicy(mode="none")
    if cidrs or domains:
        return NetworkPolicy(mode="allow", cidrs=cidrs, domains=domains)
    return NetworkPolicy(mode="public")


def updated(
    settings: NetworkSettings, *, block_all: bool | None, allow_list: str | None, domain_allow_list: str | None
) -> NetworkSettings:
    """Returns the settings after an update in which ``None`` means "not given".

    What is given replaces the way that was in force before: a list ends blocking and the other list, ``block_all`` in
    either direction clears both lists.

    Raises:
        WireError: 400, nothing given or the result is not allowed.
    """
    if block_all is None and allow_list is None and domain_allow_list is None:
        raise WireError(400, "give networkBlockAll, networkAllowList or domainAllowList")
    result = NetworkSettings(
        block_all=settings.block_all, allow_list=settings.allow_list, domain_allow_list=settings.domain_allow_list
    )
    if block_all is not None:
        result = NetworkSettings(block_all=block_all)
    elif allow_list or domain_allow_list:
        result = NetworkSettings()
    if allow_list is not None:
        result.allow_list = allow_list or None
    if domain_allow_list is not None:
        result.domain_allow_list = domain_allow_list or None
    network_policy(result)
    return result


def _items(text: str | None, *, field: str) -> list[str]:
    items = [item.strip() for item in (text or "").split(",") if item.strip()]
    if len(items) > MAX_ITEMS:
        raise WireError(400, f"{field} holds {len(items)} items, at most {MAX_ITEMS} are allowed")
    return items


def _networks(text: str | None) -> tuple[str, ...]:
    found: list[str] = []
    for item in _items(text, field="networkAllowList"):
        if "/" not in item:
            raise WireError(400, f"networkAllowList: {item!r} needs a prefix length, such as {item}/32")
        try:
            found.append(str(ipaddress.IPv4Network(item, strict=False)))
        except ValueError:
            raise WireError(400, f"networkAllowList: {item!r} is not an IPv4 network such as 10.0.0.0/8") from None
    return tuple(found)


def _domains(text: str | None) -> tuple[str, ...]:
    found: list[str] = []
    for item in _items(text, field="domainAllowList"):
        if len(item) > 253 or not _DOMAIN.fullmatch(item):
            raise WireError(400, f"domainAllowList: {item!r} is not a host name such as example.org or *.example.org")
        found.append(item.lower())
    return tuple(found)
