"""Network policies: what is allowed, without a network."""

from __future__ import annotations

import ipaddress

import pytest

from sandbox.local.runtime.interface import NetworkPolicy
from sandbox.local.runtime.policy import Gate, PolicyError, is_public, parse_networks

PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "0.0.0.0",
    "100.64.0.1",
    "192.0.2.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fc00::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "2002:7f00:1::",
    "2002:a00:1::",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "2606:4700:4700::1111", "::ffff:1.1.1.1"]


def allows(gate: Gate, host: str, address: str, port: int = 443) -> bool:
    return gate.allows(host, ipaddress.ip_address(address), port)


@pytest.mark.parametrize("address", PRIVATE)
@pytest.mark.parametrize("host", ["host.example", "literal"])
def test_public_refuses_what_is_not_public(host: str, address: str) -> None:
    gate = Gate(NetworkPolicy(mode="public"))
    assert not allows(gate, address if host == "literal" else host, address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_allows_every_port_of_public_addresses(address: str) -> None:
    gate = Gate(NetworkPolicy(mode="public"))
    assert allows(gate, address, address, 22)
    assert allows(gate, "host.example", address, 27017)


def test_none_refuses_everything() -> None:
    gate = Gate(NetworkPolicy(mode="none", cidrs=("0.0.0.0/0",), domains=("host.example",)))
    assert not allows(gate, "host.example", "1.1.1.1")
    assert not gate.looks_up("host.example", 443)


def test_domains_exact_and_below() -> None:
    gate = Gate(NetworkPolicy(mode="allow", domains=("one.example", "*.two.example")))
    allowed = {"one.example", "ONE.example.", "a.two.example", "a.b.two.example"}
    refused = {"a.one.example", "two.example", "xtwo.example", "one.example.evil", "evil-one.example"}
    for host in allowed:
        assert allows(gate, host, "1.1.1.1"), host
    for host in refused:
        assert not allows(gate, host, "1.1.1.1"), host
        assert not gate.looks_up(host, 443)
    assert allows(gate, "one.example", "1.1.1.1", 80)
    assert not allows(gate, "one.example", "1.1.1.1", 22)


def test_an_allowed_name_with_a_private_address_is_refused() -> None:
    policy = NetworkPolicy(mode="allow", domains=("one.example",))
    assert not allows(Gate(policy), "one.example", "10.1.2.3")
    assert allows(Gate(policy, extra_public=parse_networks(["10.1.0.0/16"])), "one.example", "10.1.2.3")


def test_an_address_in_an_extra_public_network_is_no_free_ticket() -> None:
    gate = Gate(NetworkPolicy(mode="allow", domains=("one.example",)), extra_public=parse_networks(["10.1.0.0/16"]))
    assert not allows(gate, "10.1.2.3", "10.1.2.3")
    assert not allows(gate, "other.example", "10.1.2.3")


def test_a_refusal_tells_of_a_private_address_but_gives_no_advice_about_loopback() -> None:
    gate = Gate(NetworkPolicy(mode="public"))
    assert "extra_public_cidrs" in gate.refusal("mirror.example", 443, address=ipaddress.ip_address("10.1.2.3"))
    assert "extra_public_cidrs" not in gate.refusal("localhost", 443, address=ipaddress.ip_address("127.0.0.1"))
    assert "mirror.example:443" in gate.refusal("mirror.example", 443)


def test_networks_any_port_by_address_and_by_name() -> None:
    gate = Gate(NetworkPolicy(mode="allow", cidrs=("10.1.0.0/16",)))
    assert allows(gate, "10.1.2.3", "10.1.2.3", 5432)
    assert allows(gate, "database.internal", "10.1.2.3", 5432)
    assert allows(gate, "database.internal", "::ffff:10.1.2.3", 5432)
    assert not allows(gate, "10.2.0.1", "10.2.0.1", 5432)
    assert not allows(gate, "1.1.1.1", "1.1.1.1")


@pytest.mark.parametrize("entry", ["10.0.0.0/33", "example.com", "", "10.0.0"])
def test_bad_networks_are_named(entry: str) -> None:
    with pytest.raises(PolicyError, match="CIDR"):
        Gate(NetworkPolicy(mode="allow", cidrs=(entry,)))


@pytest.mark.parametrize("entry", ["", "*", "*.", "a..b", "http://a", "a:80", "a*.b", "*.*.a"])
def test_bad_domains_are_named(entry: str) -> None:
    with pytest.raises(PolicyError, match="domain"):
        Gate(NetworkPolicy(mode="allow", domains=(entry,)))


def test_public_addresses() -> None:
    assert is_public(ipaddress.ip_address("1.1.1.1"))
    assert not is_public(ipaddress.ip_address("224.0.0.1"))
