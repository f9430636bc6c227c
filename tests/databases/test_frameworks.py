"""Each framework's program over the orders in a sandbox, against a real database: right, and wrong in every way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import SecretStr

from sandbox.databases import DatabaseConnection, DatabaseKind
from sandbox.models import Outcome, ResultExpectation, Severity, ValidationResult
from tests.databases.programs import DAPPER, EFCORE, MONGODB, NEO4J, PROGRAMS, Edit, Files, Program
from tests.databases.server import Server, closed_port
from tests.examples.workbench import Workbench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
"""The snapshots of .NET and of Spring take most of a minute each."""

SQLITE_FILE = "shop.db"
ON_SERVERS = [EFCORE.name, DAPPER.name, MONGODB.name, NEO4J.name]


@dataclass(frozen=True, slots=True)
class Case:
    """A program and the database it is validated with.

    Attributes:
        program: Which.
        connection: Its database, with the orders.
        files: What the request has to bring beside the program.
    """

    program: Program
    connection: DatabaseConnection
    files: Files = field(default_factory=dict)


def connection_to(server: Server) -> DatabaseConnection:
    return DatabaseConnection(kind=DatabaseKind(server.kind), url=SecretStr(server.url))


@pytest.fixture
def case(request: pytest.FixtureRequest) -> Case:
    program = PROGRAMS[request.param]
    database = request.getfixturevalue(program.kind)
    if isinstance(database, Server):
        return Case(program, connection_to(database))
    connection = DatabaseConnection(kind=DatabaseKind.SQLITE, url=SecretStr(f"Data Source={SQLITE_FILE}"))
    return Case(program, connection, {SQLITE_FILE: database})


every = pytest.mark.parametrize("case", list(PROGRAMS), indirect=True)
on_servers = pytest.mark.parametrize("case", ON_SERVERS, indirect=True)


async def validated(workbench: Workbench, case: Case, *edits: Edit, **fields: Any) -> ValidationResult:
    return await workbench.validate(case.program.request(case.connection, *edits, files=case.files, **fields))


def told(result: ValidationResult) -> tuple[Any, ...]:
    """What to show when a verdict is another than the wanted one."""
    return result.message, result.diagnostics, result.comparison, result.phases


@every
async def test_a_right_program_passes(workbench: Workbench, case: Case) -> None:
    result = await validated(workbench, case)
    assert result.outcome is Outcome.PASSED, told(result)
    assert result.diagnostics == ()


@every
async def test_a_program_that_does_not_compile_never_sees_the_database(workbench: Workbench, case: Case) -> None:
    edit, code = case.program.broken
    result = await validated(workbench, case, edit)
    assert result.outcome is Outcome.COMPILE_ERROR, told(result)
    (found,) = result.diagnostics
    assert (found.path, found.code) == (case.program.description["entry_point"], code)
    assert found.line is not None
    assert edit.put in case.program.text(edit).splitlines()[found.line - 1]
    assert "run" not in {phase.name for phase in result.phases}


@every
async def test_what_the_database_refuses_is_found_at_its_line(workbench: Workbench, case: Case) -> None:
    edit, code, said = case.program.throws
    result = await validated(workbench, case, edit)
    assert result.outcome is Outcome.RUNTIME_ERROR, told(result)
    (found,) = (item for item in result.diagnostics if item.severity is Severity.ERROR)
    assert (found.path, found.code) == (case.program.description["entry_point"], code), told(result)
    assert said in "\n".join((found.message, *found.details)), told(result)
    assert (found.excerpt or "").strip() == edit.put.splitlines()[0]


@every
async def test_a_wrong_query_is_a_mismatch_with_its_paths(workbench: Workbench, case: Case) -> None:
    result = await validated(workbench, case, case.program.wrong)
    assert result.outcome is Outcome.MISMATCH, told(result)
    assert result.comparison is not None
    assert {found.path for found in result.comparison.differences} == case.program.wrong_paths


@on_servers
async def test_the_same_program_with_a_project_file_passes(workbench: Workbench, case: Case) -> None:
    result = await workbench.validate(case.program.project_request(case.connection, spoilt=False))
    assert result.outcome is Outcome.PASSED, told(result)
    assert [item for item in result.diagnostics if item.severity is Severity.ERROR] == []


@on_servers
async def test_a_package_outside_of_the_template_is_named(workbench: Workbench, case: Case) -> None:
    result = await workbench.validate(case.program.project_request(case.connection, spoilt=True))
    assert result.outcome is Outcome.COMPILE_ERROR, told(result)
    errors = [found for found in result.diagnostics if found.severity is Severity.ERROR]
    assert len(errors) == 1, told(result)
    assert case.program.missing in errors[0].message
    assert "network" in errors[0].message


def closed(kind: str) -> DatabaseConnection:
    """A database that is down."""
    schemes: dict[str, Callable[[str], str]] = {
        "postgresql": "postgresql://anna:open-sesame@{}/shop".format,
        "sqlserver": "Server={};Database=shop;User ID=anna;Password=open-sesame".format,
        "mongodb": "mongodb://anna:open-sesame@{}/shop".format,
        "neo4j": "bolt://anna:open-sesame@{}".format,
    }
    at = f"localhost{',' if kind == 'sqlserver' else ':'}{closed_port()}"
    return DatabaseConnection(kind=DatabaseKind(kind), url=SecretStr(schemes[kind](at)))


@pytest.mark.parametrize("program", [PROGRAMS[name] for name in ON_SERVERS], ids=lambda program: program.name)
async def test_a_database_that_is_down_is_told_before_anything_is_compiled(
    workbench: Workbench, program: Program
) -> None:
    connection = closed(program.kind)
    result = await workbench.validate(program.request(connection))
    assert result.outcome is Outcome.DATABASE_UNREACHABLE, told(result)
    (endpoint,) = connection.endpoints
    assert f"{DatabaseKind(program.kind).product} database at localhost:{endpoint.port}" in result.message
    assert [phase.name for phase in result.phases] == ["preflight"]
    assert "sesame" not in result.model_dump_json()
    assert [found.code for found in result.diagnostics] == ["database-unreachable"]


@pytest.mark.parametrize("case", [EFCORE.name, NEO4J.name], indirect=True)
async def test_a_wrong_password_is_the_drivers_own_error_and_shown_nowhere(workbench: Workbench, case: Case) -> None:
    (endpoint,) = case.connection.endpoints
    scheme, path = ("postgresql", "/shop") if case.program.kind == "postgresql" else ("bolt", "")
    user = "shop" if case.program.kind == "postgresql" else "neo4j"
    url = f"{scheme}://{user}:open-sesame@localhost:{endpoint.port}{path}"
    connection = DatabaseConnection(kind=DatabaseKind(case.program.kind), url=SecretStr(url))
    result = await workbench.validate(case.program.request(connection, result=ResultExpectation.REQUIRED))
    assert result.outcome is Outcome.RUNTIME_ERROR, told(result)
    (found,) = (item for item in result.diagnostics if item.severity is Severity.ERROR)
    said = {
        "postgresql": 'Npgsql.PostgresException: 28P01: password authentication failed for user "shop"',
        "neo4j": "org.neo4j.driver.exceptions.AuthenticationException: The client is unauthorized",
    }
    assert said[case.program.kind] in "\n".join((found.message, *found.details)), told(result)
    assert "sesame" not in result.model_dump_json()
