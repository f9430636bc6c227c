"""Databases through the flow: blocks by name, never a value in what Prefect keeps."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from pydantic import SecretStr

import flows.translation as translation_module
import flows.validation as flow_module
from blocks import DatabaseConnection, SandboxProfile
from flows import prefect_api, validate, validate_translation
from flows.cli.examples import load_example
from flows.connections import split_references
from sandbox import databases
from sandbox.connection import Credentials, client
from sandbox.errors import ConfigurationError
from sandbox.models import Outcome, ValidationRequest, ValidationResult
from sandbox.profiles import builtin_profile
from tests.flows.test_validation import everything_stored, flow_run_of
from tests.sandbox.database_fakes import SPEAKERS, fake_server

pytestmark = pytest.mark.usefixtures("prefect_server")

PASSWORD = "ge;heim 1"
LOOK = """import json, os
print(os.environ.get("NEO4J_URI"), os.environ.get("CONNECTION_STRING"))
print(os.environ.get("NEO4J_PASSWORD"))
json.dump({"names": sorted(name for name in os.environ if name.startswith(("NEO4J_", "CONNECTION_"))),
           "password": os.environ.get("NEO4J_PASSWORD")}, open(os.environ["UOM_RESULT_FILE"], "w"))
"""


@pytest_asyncio.fixture(autouse=True)
async def _api(credentials: Credentials) -> AsyncIterator[None]:
    async with prefect_api(), client(credentials):
        yield


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest_asyncio.fixture
async def graph() -> AsyncIterator[int]:
    """A server that greets as Neo4j, and blocks that name it; gives its port."""
    async with fake_server(SPEAKERS["neo4j"]) as server:
        url = SecretStr(f"bolt://localhost:{server.port}")
        block = DatabaseConnection(kind="neo4j", url=url, username="neo4j", password=SecretStr(PASSWORD))
        await block.asave("graph", overwrite=True)
        await DatabaseConnection(kind="sqlite", url=SecretStr("shop.db")).asave("file", overwrite=True)
        yield server.port
    await DatabaseConnection.adelete("graph")
    await DatabaseConnection.adelete("file")


def program(**fields: Any) -> ValidationRequest:
    return ValidationRequest(profile="python", files={"main.py": LOOK}, **fields)


async def kept(result: ValidationResult) -> str:
    names = [f"execute_session-{phase.name}" for phase in result.phases]
    return await everything_stored(UUID(str(result.flow_run_id)), tasks_named=names)


async def test_a_closed_port_is_a_completed_run_without_a_compilation(
    credentials: Credentials, closed_port: int
) -> None:
    events: list[dict[str, Any]] = []
    url = SecretStr(f"postgresql://me:ge%3Bheim%201@localhost:{closed_port}/shop")
    connection = databases.DatabaseConnection(kind=databases.DatabaseKind.POSTGRESQL, url=url)
    result = await validate(
        program(connections=(connection,)), on_event=lambda event: events.append(dict(event)), credentials=credentials
    )
    assert result.outcome is Outcome.DATABASE_UNREACHABLE
    assert f"The PostgreSQL database at localhost:{closed_port} cannot be reached" in result.message
    assert {event["phase"] for event in events if event["type"] == "phase_started"} == {"preflight"}
    assert not [event for event in events if event["type"].endswith(("_stdout", "_stderr"))]
    stored = await kept(result)
    assert "DatabaseUnreachable" in stored
    assert f"localhost:{closed_port}" in stored
    assert "heim" not in stored
    assert "heim" not in json.dumps(events)


async def test_blocks_are_named_and_their_values_are_nowhere(credentials: Credentials, graph: int) -> None:
    result = await validate(program(), connection_blocks=["graph", "file", "graph"], credentials=credentials)
    assert result.outcome is Outcome.PASSED, result
    assert result.phases[-1].stdout.text == f"bolt://localhost:{graph} Data Source=shop.db\n•••\n"
    assert result.result == {
        "names": ["CONNECTION_STRING", "NEO4J_PASSWORD", "NEO4J_RESULTS_PATH", "NEO4J_URI", "NEO4J_USERNAME"],
        "password": "•••",
    }
    stored = await kept(result)
    assert "heim" not in stored
    assert f"localhost:{graph}" in stored  # printed by the program, and no secret
    run = await flow_run_of(result)
    assert run.parameters["connection_blocks"] == ["graph", "file", "graph"]


async def test_a_deployment_names_blocks(credentials: Credentials, graph: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYTONA_API_URL", credentials.api_url)
    monkeypatch.setenv("DAYTONA_API_KEY", credentials.api_key.get_secret_value())
    result: Any = await flow_module.validate(profile="python", files={"main.py": LOOK}, connection_blocks=["graph"])
    assert result.outcome is Outcome.PASSED, result
    assert result.phases[-1].stdout.text == f"bolt://localhost:{graph} None\n•••\n"
    side = {"profile": "python", "files": {"main.py": LOOK}}
    both: Any = await translation_module.validate_translation(
        source={**side, "connection_blocks": ["graph"]}, target={**side, "connection_blocks": ["graph", "file"]}
    )
    assert both.source.phases[-1].stdout.text == f"bolt://localhost:{graph} None\n•••\n"
    assert both.target.phases[-1].stdout.text == f"bolt://localhost:{graph} Data Source=shop.db\n•••\n"
    assert "heim" not in both.model_dump_json()


async def test_each_side_of_a_translation_has_its_own(credentials: Credentials, graph: int) -> None:
    result = await validate_translation(
        program(),
        program(),
        source_connection_blocks=["file"],
        target_connection_blocks=["graph"],
        credentials=credentials,
    )
    assert result.source.phases[-1].stdout.text == "None Data Source=shop.db\nNone\n"
    assert result.target.phases[-1].stdout.text == f"bolt://localhost:{graph} None\n•••\n"
    assert "heim" not in await everything_stored(
        UUID(str(result.flow_run_id)), tasks_named=["compare_results-python-python"]
    )


async def test_a_profile_names_blocks_too(credentials: Credentials, graph: int) -> None:
    profile = builtin_profile("python").model_copy(update={"connections": ("graph",)})
    result = await validate(program(), profile=profile, connection_blocks=["graph"], credentials=credentials)
    assert result.outcome is Outcome.PASSED, result
    assert result.phases[-1].stdout.text == f"bolt://localhost:{graph} None\n•••\n"
    assert SandboxProfile.from_profile(profile).connections == ["graph"]


@pytest.mark.parametrize(
    ("names", "connections", "text"),
    [
        (["postgresql://me@a/shop"], [], "connection_blocks: an address is not written down here"),
        (["missing"], [], "connection_blocks.missing: the block database-connection/missing cannot be read"),
        (["file"], [{"kind": "postgresql", "url": "Host=a"}], "connections[1].variable: CONNECTION_STRING is set by"),
    ],
)
@pytest.mark.usefixtures("graph")
async def test_what_is_wrong_with_a_block_is_told(
    credentials: Credentials, names: list[str], connections: list[dict[str, Any]], text: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await validate(
            {"profile": "python", "files": {"main.py": LOOK}, "connections": connections},
            connection_blocks=names,
            credentials=credentials,
        )
    assert text in str(caught.value)


def test_words_of_the_command_line() -> None:
    environment = {"SHOP": "Host=a", "GRAPH": "bolt://b"}
    words = ["orders", "postgresql=env:SHOP", "neo4j:OTHER_URI=env:GRAPH"]
    names, connections = split_references(words, field="--connection", environment=environment)
    assert names == ["orders"]
    assert connections == [
        {"kind": "postgresql", "url": "Host=a", "variable": None},
        {"kind": "neo4j", "url": "bolt://b", "variable": "OTHER_URI"},
    ]


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("mysql=env:SHOP", "'mysql' is no kind of database. Known: postgresql, sqlserver, sqlite, mongodb, neo4j"),
        ("postgresql=Host=a;Password=geheim", "an address is not written down here"),
        ("postgresql://me:geheim@a/shop", "an address is not written down here"),
        ("postgresql=env:NOWHERE", "the environment has no variable NOWHERE"),
    ],
)
def test_a_wrong_word_is_told_without_what_may_be_secret(word: str, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        split_references([word], field="--connection", environment={})
    assert str(caught.value).startswith("--connection: ")
    assert text in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_an_example_names_variables_and_says_which_are_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "main.py").write_text("print(1)")
    text = """title = "x"\nprofile = "python"\nframework = "plain"\nentry_point = "main.py"\nfiles = ["main.py"]
verdict = "passed"\nconnections = [{ kind = "mongodb", url_from = "env:EXAMPLE_MONGODB" }]\n"""
    description = tmp_path / "example.toml"
    description.write_text(text)
    monkeypatch.delenv("EXAMPLE_MONGODB", raising=False)
    example = load_example(tmp_path)
    assert (example.missing, example.request.connections) == (("EXAMPLE_MONGODB",), ())
    monkeypatch.setenv("EXAMPLE_MONGODB", "mongodb://localhost:1")
    example = load_example(tmp_path)
    assert example.missing == ()
    assert [str(item) for item in example.request.connections[0].endpoints] == ["localhost:1"]
    description.write_text(text.replace("url_from", "url"))
    with pytest.raises(ConfigurationError, match=r"example\.toml: connections\[0\]: has no field url"):
        load_example(tmp_path)
