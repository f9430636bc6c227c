from __future__ import annotations

import pytest

from sandbox.local.control.network import network_policy, updated
from sandbox.local.control.records import NetworkSettings
from sandbox.local.runtime.interface import NetworkPolicy
from sandbox.local.wire_errors import WireError


@pytest.mark.parametrize(
    ("settings", "policy"),
    [
        (NetworkSettings(), NetworkPolicy(mode="public")),
        (NetworkSettings(block_all=True), NetworkPolicy(mode="none")),
        (
            NetworkSettings(allow_list=" 10.0.0.0/8, ,192.168.1.7/24"),
            NetworkPolicy(mode="allow", cidrs=("10.0.0.0/8", "192.168.1.0/24")),
        ),
        (
            NetworkSettings(domain_allow_list="Example.org,*.maven.org"),
            NetworkPolicy(mode="allow", domains=("example.org", "*.maven.org")),
        ),
        (NetworkSettings(allow_list=" , "), NetworkPolicy(mode="public")),
    ],
)
def test_policy(settings: NetworkSettings, policy: NetworkPolicy) -> None:
    assert network_policy(settings) == policy


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (NetworkSettings(allow_list="10.0.0.1"), "10.0.0.1"),
        (NetworkSettings(allow_list="10.0.0.0/33"), "10.0.0.0/33"),
        (NetworkSettings(allow_list="::/0"), "::/0"),
        (NetworkSettings(allow_list=",".join(f"10.{n}.0.0/16" for n in range(11))), "11 items"),
        (NetworkSettings(domain_allow_list="localhost"), "localhost"),
        (NetworkSettings(domain_allow_list="*.com*"), r"*.com*"),
        (NetworkSettings(domain_allow_list="https://example.org"), "https://example.org"),
        (NetworkSettings(block_all=True, allow_list="10.0.0.0/8"), "networkBlockAll and networkAllowList"),
        (NetworkSettings(allow_list="10.0.0.0/8", domain_allow_list="a.org"), "exclude each other"),
    ],
)
def test_what_is_wrong_is_named(settings: NetworkSettings, named: str) -> None:
    with pytest.raises(WireError) as caught:
        network_policy(settings)
    assert caught.value.status == 400
    assert named in caught.value.message


def test_an_update_replaces_the_way_that_was_in_force() -> None:
    blocked = NetworkSettings(block_all=True)
    assert updated(blocked, block_all=None, allow_list="10.0.0.0/8", domain_allow_list=None) == NetworkSettings(
        allow_list="10.0.0.0/8"
    )
    listed = NetworkSettings(allow_list="10.0.0.0/8")
    assert updated(listed, block_all=False, allow_list=None, domain_allow_list=None) == NetworkSettings()
    assert updated(listed, block_all=True, allow_list=None, domain_allow_list=None) == blocked
    assert updated(listed, block_all=None, allow_list="", domain_allow_list=None) == NetworkSettings()
    assert updated(blocked, block_all=None, allow_list="", domain_allow_list=None) == blocked


def test_an_update_of_nothing_is_refused() -> None:
    with pytest.raises(WireError):
        updated(NetworkSettings(), block_all=None, allow_list=None, domain_allow_list=None)
