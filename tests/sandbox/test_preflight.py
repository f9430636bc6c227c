"""Databases are asked from inside the sandbox before anything is compiled; programs then find them."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daytona import AsyncDaytona

from sandbox.databases import DatabaseConnection
from sandbox.databases.preflight import NO_BASH, Preflight
from sandbox.errors import ConfigurationError
from sandbox.events import PHASE_STARTED
from sandbox.models import Outcome, RunLimits, ValidationResult
from tests.sandbox.database_fakes import SPEAKERS, address, fake_server, hangs_up, self_signed, silent, website
from tests.sandbox.shell_profile import Recorded, shell_profile, validate

PASSWORD = "ge;heim/@%= ž"
ENCODED = "ge%3Bheim%2F%40%25%3D%20%C5%BE"
NAMES = {"postgresql": "PostgreSQL", "sqlserver": "SQL Server", "mongodb": "MongoDB", "neo4j": "Neo4j"}


def database(kind: str, url: str, **fields: Any) -> DatabaseConnection:
    return DatabaseConnection.model_validate({"kind": kind, "url": url, **fields})


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that nobody else can take, and at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def only_asked(result: ValidationResult, sink: Recorded) -> bool:
    """Whether nothing but the preflight was started."""
    started = [event["phase"] for event in sink.events if event["type"] == PHASE_STARTED]
    return started == ["preflight"] == [phase.name for phase in result.phases]


@pytest.mark.parametrize("kind", SPEAKERS)
async def test_a_closed_port_is_told_before_anything_is_compiled(
    daytona: AsyncDaytona, closed_port: int, kind: str
) -> None:
    sink = Recorded()
    profile = shell_profile("touch compiled", "echo ran")
    result = await validate(daytona, profile, sink=sink, connections=(database(kind, address(kind, closed_port)),))
    assert result.outcome is Outcome.DATABASE_UNREACHABLE
    assert result.message.startswith(
        f"The {NAMES[kind]} database at localhost:{closed_port} cannot be reached from the sandbox: connection refused"
    )
    assert only_asked(result, sink)
    finding = result.diagnostics[0]
    assert (finding.code, finding.tool, finding.phase) == ("database-unreachable", "preflight", "preflight")
    assert finding.message == result.message
    assert [event["data"] for event in sink.events if event["type"] == "diagnostic"] == [
        finding.model_dump(mode="json")
    ]


@pytest.mark.parametrize("kind", SPEAKERS)
async def test_a_server_that_answers_as_its_kind_lets_the_program_run(daytona: AsyncDaytona, kind: str) -> None:
    async with fake_server(SPEAKERS[kind]) as server:
        profile = shell_profile("echo compiled", "echo ran")
        result = await validate(daytona, profile, connections=(database(kind, address(kind, server.port)),))
    assert result.outcome is Outcome.PASSED, result
    assert [phase.name for phase in result.phases] == ["preflight", "one", "two"]
    assert result.warnings == ()
    assert result.phases[0].stdout.text.startswith(f"0 {NAMES[kind]} at localhost:{server.port} answered ")


@pytest.mark.parametrize("kind", SPEAKERS)
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (silent, "it accepts connections but does not answer as {} within 2.5 s."),
        (website, "what answers there is not {}."),
        (hangs_up, "the connection was closed before {} answered."),
    ],
)
async def test_a_port_where_something_else_listens_is_no_database(
    daytona: AsyncDaytona, kind: str, answer: Any, reason: str
) -> None:
    sink = Recorded()
    async with fake_server(answer) as server:
        profile = shell_profile("touch compiled")
        result = await validate(daytona, profile, sink=sink, connections=(database(kind, address(kind, server.port)),))
    assert result.outcome is Outcome.DATABASE_UNREACHABLE
    assert result.message.endswith(reason.format(NAMES[kind]))
    assert only_asked(result, sink)


async def test_a_server_of_another_kind_is_not_taken_for_the_right_one(daytona: AsyncDaytona) -> None:
    async with fake_server(SPEAKERS["postgresql"]) as server:
        connection = database("neo4j", address("neo4j", server.port))
        result = await validate(daytona, shell_profile("true"), connections=(connection,))
    assert result.outcome is Outcome.DATABASE_UNREACHABLE


async def test_a_server_that_speaks_tls_alone_is_asked_so(daytona: AsyncDaytona, tmp_path: Path) -> None:
    async with fake_server(silent, tls=self_signed(tmp_path)) as server, fake_server(silent) as plain:
        for kind, url in (
            ("mongodb", "mongodb://localhost:{}/?tls=true"),
            ("neo4j", "neo4j+s://localhost:{}"),
            ("sqlserver", "Server=localhost,{};Encrypt=Strict"),
            ("postgresql", "Host=localhost;Port={};SSL Negotiation=direct"),
        ):
            connection = database(kind, url.format(server.port))
            result = await validate(daytona, shell_profile("true"), connections=(connection,))
            assert result.outcome is Outcome.PASSED, result
            assert result.phases[0].stdout.text.rstrip().endswith("answered 16")
        connection = database("mongodb", f"mongodb://localhost:{plain.port}/?tls=true")
        result = await validate(daytona, shell_profile("true"), connections=(connection,))
        assert result.outcome is Outcome.DATABASE_UNREACHABLE


async def test_all_databases_are_asked_and_all_that_fail_are_named(daytona: AsyncDaytona, closed_port: int) -> None:
    async with fake_server(SPEAKERS["mongodb"]) as server, fake_server(silent) as mute:
        connections = (
            database("postgresql", address("postgresql", closed_port)),
            database("mongodb", address("mongodb", server.port)),
            database("neo4j", address("neo4j", mute.port)),
            database("sqlite", "shop.db", variable="FILE"),
        )
        result = await validate(daytona, shell_profile("true"), connections=connections)
    assert result.outcome is Outcome.DATABASE_UNREACHABLE
    assert [finding.message.split()[1] for finding in result.diagnostics] == ["PostgreSQL", "Neo4j"]
    assert result.message == " ".join(finding.message for finding in result.diagnostics)


async def test_of_several_hosts_one_is_enough_and_the_others_are_told(daytona: AsyncDaytona, closed_port: int) -> None:
    async with fake_server(SPEAKERS["mongodb"]) as server:
        uri = f"mongodb://localhost:{closed_port},localhost:{server.port}/shop"
        result = await validate(daytona, shell_profile("true"), connections=(database("mongodb", uri),))
        assert result.outcome is Outcome.PASSED, result
    (warning,) = result.warnings
    assert f"localhost:{closed_port}" in warning
    assert "connection refused" in warning
    result = await validate(
        daytona,
        shell_profile("true"),
        connections=(database("mongodb", f"mongodb://localhost:{closed_port},127.0.0.1:{closed_port}"),),
    )
    assert result.outcome is Outcome.DATABASE_UNREACHABLE
    assert f"at localhost:{closed_port}, 127.0.0.1:{closed_port} cannot" in result.message


async def test_a_name_that_does_not_exist_is_told(daytona: AsyncDaytona) -> None:
    connection = database("postgresql", "Host=no-such-host.invalid")
    result = await validate(daytona, shell_profile("true"), connections=(connection,))
    assert result.outcome is Outcome.DATABASE_UNREACHABLE
    assert "The PostgreSQL database at no-such-host.invalid:5432 cannot be reached" in result.message
    assert "its name" in result.message


async def test_the_limits_of_a_program_are_not_those_of_the_preflight(daytona: AsyncDaytona) -> None:
    hosts = ",".join(f"127.0.0.1:{port}" for port in range(1, 10))
    async with fake_server(silent) as server:
        connection = database("mongodb", f"mongodb://localhost:{server.port},{hosts}")
        limits = RunLimits(no_output_seconds=0.2, output_bytes=1024)
        environment = {"PATH": "/nowhere", "BASH_ENV": "/nowhere", "TMPDIR": "/nowhere"}
        profile = shell_profile("true")
        result = await validate(daytona, profile, connections=(connection,), limits=limits, environment=environment)
    assert result.outcome is Outcome.DATABASE_UNREACHABLE, result
    assert "does not answer as MongoDB within 2.5 s" in result.message
    limits = RunLimits(phase_seconds={"preflight": 0.001})
    async with fake_server(silent) as server:
        connection = database("mongodb", f"mongodb://localhost:{server.port}")
        result = await validate(daytona, profile, connections=(connection,), limits=limits)
    assert result.outcome is Outcome.TIMEOUT
    assert [phase.name for phase in result.phases] == ["preflight"]


async def test_the_program_reaches_its_database_and_only_the_last_phase_knows_it(daytona: AsyncDaytona) -> None:
    look = "env | grep -E '^(CONNECTION_STRING|DATABASE_KIND|MONGODB_URI|NEO4J_(URI|U.*|PASSWORD|DATABASE))=' | sort"
    talk = "exec 3<>/dev/tcp/localhost/${MONGODB_URI##*:}; printf '\\1' >&3; head -c 3 <&3"

    async def speaks(reader: Any, writer: Any) -> None:
        first = await reader.readexactly(1)
        if first == b"\1":
            writer.write(b"yes")
            await reader.read()
        else:
            size = int.from_bytes(first + await reader.readexactly(3), "little")
            await reader.readexactly(size - 4)
            writer.write(bytes(12) + (2013).to_bytes(4, "little"))
            await reader.read()

    async with fake_server(speaks) as server, fake_server(SPEAKERS["neo4j"]) as graph:
        connections = (
            database("mongodb", f"mongodb://localhost:{server.port}"),
            database("neo4j", f"bolt://neo4j:{ENCODED}@localhost:{graph.port}"),
            database("sqlite", "shop.db"),
        )
        profile = shell_profile(f"{look}; true", f'{look}; bash -c "{talk}"')
        result = await validate(daytona, profile, connections=connections)
    assert result.outcome is Outcome.PASSED, result
    assert result.phases[1].stdout.text == ""
    assert result.phases[2].stdout.text.splitlines() == [
        "CONNECTION_STRING=Data Source=shop.db",
        "DATABASE_KIND=sqlite",
        f"MONGODB_URI=mongodb://localhost:{server.port}",
        "NEO4J_PASSWORD=•••",
        f"NEO4J_URI=bolt://localhost:{graph.port}",
        "NEO4J_USERNAME=neo4j",
        "yes",
    ]


async def test_what_a_program_prints_of_its_connection_is_masked(daytona: AsyncDaytona) -> None:
    sink = Recorded()
    find = "grep -la 'he[i]m' /proc/[0-9]*/cmdline; grep -rl 'he[i]m' /sandbox /tmp"
    program = f"""{find}
        password=${{CONNECTION_STRING#*Password=\\"}}
        password=${{password%\\"*}}
        echo "$CONNECTION_STRING"
        echo "$password" >&2
        printf '{{"%s": ["%s", 1]}}' "$password" "$password" >$UOM_RESULT_FILE
        exit 3"""
    async with fake_server(SPEAKERS["postgresql"]) as server:
        url = f"postgresql://me:{ENCODED}@localhost:{server.port}/shop"
        connections = (database("postgresql", url),)
        result = await validate(daytona, shell_profile(f"{find}; true", program), sink=sink, connections=connections)
    assert result.outcome is Outcome.RUNTIME_ERROR, result
    assert result.phases[1].stdout.text == ""
    assert result.phases[2].stdout.text == "•••\n"
    assert result.phases[2].stderr.text == "•••\n"
    assert result.result == {"•••": ["•••", 1]}
    for shown in (result.model_dump_json(), json.dumps(sink.events, ensure_ascii=False)):
        assert "heim" not in shown


async def test_an_address_without_a_password_is_not_masked(daytona: AsyncDaytona) -> None:
    connection = database("sqlite", "Data Source=shop.db")
    result = await validate(daytona, shell_profile('echo "$CONNECTION_STRING"'), connections=(connection,))
    assert result.phases[0].stdout.text == "Data Source=shop.db\n"
    assert result.sandbox is not None
    assert result.sandbox.sandbox_name == "validation-sandbox-shell-sandbox"


async def test_runs_with_the_same_databases_share_a_sandbox_and_others_have_their_own(daytona: AsyncDaytona) -> None:
    async def sandbox(*connections: DatabaseConnection, **fields: Any) -> str:
        wanted = {"isolation": "shared", **fields}  # with a password, a run is alone unless it says so
        result = await validate(daytona, shell_profile("true"), connections=connections, **wanted)
        assert result.sandbox is not None
        return result.sandbox.sandbox_name

    async with fake_server(SPEAKERS["mongodb"]) as one, fake_server(SPEAKERS["mongodb"]) as two:
        first = database("mongodb", f"mongodb://localhost:{one.port}/a")
        second = database("mongodb", f"mongodb://localhost:{two.port}", variable="SECOND")
        same = database("mongodb", f"mongodb://me:pass@localhost:{one.port}/b")
        assert await sandbox(first) == await sandbox(same) != await sandbox(second)
        assert await sandbox(first, second) == await sandbox(second, same)
        found = await daytona.get(await sandbox(first))
        assert found.labels["uom-connections"] == f"localhost:{one.port}"
        own = await sandbox(first, isolation="run", run_id="r1")
        assert own.startswith("validation-sandbox-shell-sandbox-r1-")


async def test_without_bash_the_check_is_left_out_and_that_is_told(daytona: AsyncDaytona, closed_port: int) -> None:
    tools = " ".join(f"/usr/bin/{name}" for name in ("sh", "cat", "env", "find", "grep", "mkdir", "rm", "timeout"))
    profile = shell_profile(
        "echo ran",
        type="no-bash",
        environment={"PATH": "/opt/tools"},
        setup=[f"/bin/mkdir -p /opt/tools && /bin/ln -sf {tools} /opt/tools"],
    )
    connection = database("postgresql", address("postgresql", closed_port))
    result = await validate(daytona, profile, connections=(connection,))
    assert result.outcome is Outcome.PASSED, result
    assert result.warnings == (f"Whether the databases can be reached was not checked before the build: {NO_BASH}.",)


async def test_a_profile_with_a_phase_or_databases_of_that_name_is_refused(daytona: AsyncDaytona) -> None:
    document = shell_profile("true").model_dump(mode="json")
    document["frameworks"]["plain"]["phases"][0]["name"] = "preflight"
    profile = type(shell_profile("true")).model_validate(document)
    with pytest.raises(ConfigurationError, match=r"phases\.name: a phase of the profile is called 'preflight'"):
        await validate(daytona, profile, connections=(database("mongodb", "mongodb://localhost"),))
    profile = shell_profile("true", connections=["orders"])
    with pytest.raises(ConfigurationError, match=r"connections: the profile 'shell' names databases .*: orders"):
        await validate(daytona, profile)


@pytest.mark.parametrize(
    ("printed", "message", "warning"),
    [
        ("0 MongoDB at a:1 failed Connection refused\n1 MongoDB at b:2 silent\n",
         "The MongoDB database at a:1, b:2 cannot be reached from the sandbox: "
         "connection refused; it accepts connections but does not answer as MongoDB within 2.5 s.", None),
        ("0 MongoDB at a:1 unreached\n1 MongoDB at b:2 failed Name or service not known\n",
         "The MongoDB database at a:1, b:2 cannot be reached from the sandbox: "
         "no connection within 2.5 s; its name cannot be resolved in the sandbox.", None),
        ("0 ••• at a:1 failed •••\n1 MongoDB at b:2 closed 0011\n",
         "The MongoDB database at a:1, b:2 cannot be reached from the sandbox: "
         "•••; the connection was closed before MongoDB answered.", None),
        ("0 MongoDB at a:1 failed Connection refused\n", None, "nothing was reported about b:2"),
        ("0 MongoDB at a:1 failed No such file or directory\n1 MongoDB at b:2 silent\n", None,
         "the bash of the sandbox opens no connections"),
        ("", None, "nothing was reported about a:1"),
        ("there is no bash in the sandbox\n", None, "there is no bash in the sandbox"),
    ],
)  # fmt: skip
def test_what_the_script_prints_is_read(printed: str, message: str | None, warning: str | None) -> None:
    report = Preflight(connections=(database("mongodb", "mongodb://a:1,b:2"),)).report(printed)
    assert [str(item) for item in report.unreachable] == ([message] if message else [])
    assert warning is None or warning in " ".join(report.warnings)
