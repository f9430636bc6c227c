"""SQL Server's client as far as it gets without a server: to its connection errors, which are clear ones."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from sandbox.databases import DatabaseConnection, DatabaseKind
from sandbox.models import Outcome, Severity, ValidationRequest
from tests.databases.server import closed_port
from tests.databases.sqlserver import unencrypted_sqlserver
from tests.examples.workbench import Workbench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
"""The snapshot of .NET takes most of a minute."""

PROGRAMS = {
    "dapper": """using Dapper;
using Microsoft.Data.SqlClient;

using var connection = new SqlConnection(Environment.GetEnvironmentVariable("CONNECTION_STRING"));
connection.Query<int>("select 1");
""",
    "efcore": """using Microsoft.EntityFrameworkCore;

var database = Environment.GetEnvironmentVariable("CONNECTION_STRING");
using var shop = new Shop(new DbContextOptionsBuilder<Shop>().UseSqlServer(database).Options);
shop.Database.OpenConnection();

class Shop(DbContextOptions<Shop> options) : DbContext(options);
""",
}


def request(framework: str, port: int) -> ValidationRequest:
    url = SecretStr(f"Server=localhost,{port};Database=shop;User ID=sa;Password=open-sesame")
    return ValidationRequest(
        profile="dotnet",
        framework=framework,
        files={"Program.cs": PROGRAMS[framework]},
        connections=(DatabaseConnection(kind=DatabaseKind.SQLSERVER, url=url),),
    )


@pytest.mark.parametrize("framework", PROGRAMS)
async def test_the_client_says_why_it_cannot_connect(workbench: Workbench, framework: str) -> None:
    async with unencrypted_sqlserver() as server:
        result = await workbench.validate(request(framework, server.port))
    assert result.outcome is Outcome.RUNTIME_ERROR, (result.message, result.phases)
    (found,) = (item for item in result.diagnostics if item.severity is Severity.ERROR)
    # EF Core puts an exception of its own around the client's, with the advice to enable retries.
    said = "\n".join((found.message, *found.details))
    assert "Microsoft.Data.SqlClient.SqlException" in said, result.phases
    assert "encryption" in said
    assert found.path == "Program.cs"
    assert "sesame" not in result.model_dump_json()


async def test_a_server_that_is_down_is_told_before_anything_is_compiled(workbench: Workbench) -> None:
    port = closed_port()
    result = await workbench.validate(request("dapper", port))
    assert result.outcome is Outcome.DATABASE_UNREACHABLE, (result.message, result.phases)
    assert f"SQL Server database at localhost:{port}" in result.message
    assert [phase.name for phase in result.phases] == ["preflight"]
