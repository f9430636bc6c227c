"""How a sandbox reaches its databases on a platform that knows networks and domains, and no label."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from daytona import AsyncDaytona

from sandbox import database_access as module
from sandbox.database_access import database_access
from sandbox.databases import DatabaseConnection
from sandbox.databases.preflight import Preflight
from sandbox.errors import ConfigurationError
from sandbox.network_policy import NetworkPolicy
from sandbox.profiles import Network
from tests.sandbox.shell_profile import shell_profile, validate

CLOUD = "https://app.daytona.io/api"
LOCAL = "http://127.0.0.1:3986/api"
NONE = Network()
OPEN = Network(mode="open")
NETWORKS = Network(mode="allow", cidrs=("10.0.0.0/8",))
DOMAINS = Network(mode="allow", domains=("*.example.com",))


def database(*hosts: str) -> DatabaseConnection:
    return DatabaseConnection.model_validate({"kind": "mongodb", "url": f"mongodb://{','.join(hosts)}"})


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server that knows two names."""
    known = {"db.example.com": ["192.0.2.9", "192.0.2.7"], "intern": ["192.0.2.5"]}

    async def getaddrinfo(_: Any, host: str, port: int, **options: Any) -> list[Any]:
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in known[host]]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)


@pytest.mark.parametrize("network", [NONE, OPEN, NETWORKS, DOMAINS])
async def test_the_local_platform_keeps_the_profiles_policy(network: Network) -> None:
    access = await database_access([database("localhost", "db.example.com")], network=network, api_url=LOCAL)
    assert access.policy == NetworkPolicy.of(network)
    assert access.addresses == {}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "db.localhost"])
async def test_the_local_platform_is_no_database(host: str) -> None:
    connections = [database("db.example.com:3986"), database(f"{host}:3986")]
    with pytest.raises(ConfigurationError, match=r"connections\[1\].*3986 is the local platform itself"):
        await database_access(connections, network=NONE, api_url=LOCAL)
    await database_access([database(f"{host}:3987")], network=NONE, api_url=LOCAL)


@pytest.mark.parametrize(
    ("network", "policy"),
    [
        (NONE, NetworkPolicy(False, cidrs="192.0.2.7/32,192.0.2.5/32,192.0.2.1/32")),
        (NETWORKS, NetworkPolicy(False, cidrs="10.0.0.0/8,192.0.2.7/32,192.0.2.5/32,192.0.2.1/32")),
        (OPEN, NetworkPolicy(False)),
    ],
)
async def test_addresses_are_added_where_not_everything_may_be_reached(network: Network, policy: NetworkPolicy) -> None:
    connections = [database("db.example.com", "intern:1"), database("192.0.2.1", "db.example.com:5")]
    access = await database_access(connections, network=network, api_url=CLOUD)
    assert access.policy == policy
    known = {} if network.mode == "open" else {"db.example.com": "192.0.2.7", "intern": "192.0.2.5"}
    assert access.addresses == known


async def test_domains_are_added_to_domains() -> None:
    access = await database_access([database("db.example.org")], network=DOMAINS, api_url=CLOUD)
    assert access.policy == NetworkPolicy(False, domains="*.example.com,db.example.org")
    assert access.addresses == {}


async def test_without_databases_the_policy_is_the_profiles() -> None:
    assert (await database_access([], network=NONE, api_url=CLOUD)).policy == NetworkPolicy(True)


@pytest.mark.parametrize(
    ("host", "network", "text"),
    [
        ("localhost", NONE, "connections[1]: localhost:27017 means the machine of the platform"),
        ("127.0.0.1:5", OPEN, "connections[1]: 127.0.0.1:5 means the machine of the platform"),
        ("[::1]", NONE, "use the local platform"),
        (
            "nowhere.example.com",
            NONE,
            "connections[1]: nowhere.example.com has no IPv4 address that this machine can find",
        ),
        ("[2001:db8::1]", NONE, "connections[1]: [2001:db8::1]:27017 is an IPv6 address"),
        ("192.0.2.1", DOMAINS, "connections[1]: 192.0.2.1:27017 is no domain"),
        ("intern", DOMAINS, "Name the database by its full host name"),
    ],
)
async def test_what_cannot_be_reached_is_refused_with_its_connection(host: str, network: Network, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await database_access([database("db.example.com"), database(host)], network=network, api_url=CLOUD)
    assert text in str(caught.value)


async def test_an_allow_list_has_ten_items_at_most() -> None:
    network = Network(mode="allow", cidrs=tuple(f"10.{number}.0.0/16" for number in range(10)))
    with pytest.raises(ConfigurationError, match="11 networks; Daytona takes 10"):
        await database_access([database("192.0.2.1")], network=network, api_url=CLOUD)


async def test_a_sandbox_is_made_with_the_widened_policy(
    daytona: AsyncDaytona, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "is_on_this_machine", lambda _: False)
    result = await validate(daytona, shell_profile("true"), connections=(database("192.0.2.1"),))
    assert result.sandbox is not None
    found = await daytona.get(result.sandbox.sandbox_name)
    assert found.network_allow_list == "192.0.2.1/32"
    assert not found.network_block_all


def test_names_that_cannot_be_asked_for_are_noted_once(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n192.0.2.1 db.example.com\n192.0.2.2 mydb.example.com\n")
    for address in ("192.0.2.7", "192.0.2.7", "192.0.2.8"):
        preflight = Preflight(connections=(), addresses={"db.example.com": address})
        script = preflight.script().decode().replace("/etc/hosts", str(hosts))
        subprocess.run(["bash", "-c", script, "preflight.sh", "100"], check=True)
        assert hosts.read_text() == (f"127.0.0.1 localhost\n192.0.2.2 mydb.example.com\n{address} db.example.com\n")
