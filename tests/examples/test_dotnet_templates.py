"""The templates of the dotnet profile: every provider compiles and starts; both ways to build agree."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.models import Outcome, ValidationRequest, ValidationResult
from sandbox.profiles import Network, builtin_profile
from tests.examples.workbench import Workbench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
"""The snapshot of .NET takes most of a minute."""

Files = dict[str, str | bytes]

CLOSED = {
    "sqlserver": "Server=127.0.0.1,1;User ID=anna;Password=x;Connect Timeout=3;TrustServerCertificate=true",
    "postgresql": "Host=127.0.0.1;Port=1;Username=anna;Timeout=3",
}

EFCORE = """using Microsoft.EntityFrameworkCore;

using var shop = new Shop();
Console.WriteLine(shop.Database.ProviderName);
if (Environment.GetEnvironmentVariable("SCHEMA") == "new")
    shop.Database.EnsureCreated();
var rows = shop.Orders.Include(order => order.Lines).Where(order => order.Total > 10).ToList();
File.WriteAllText(Environment.GetEnvironmentVariable("EFCORE_RESULTS_PATH")!, $"[{rows.Count}]");

class Order
{
    public int Id { get; set; }
    public decimal Total { get; set; }
    public DateTime Placed { get; set; }
    public List<OrderLine> Lines { get; } = [];
}

class OrderLine
{
    public int Id { get; set; }
    public required string Product { get; set; }
}

class Shop : DbContext
{
    public DbSet<Order> Orders => Set<Order>();

    protected override void OnConfiguring(DbContextOptionsBuilder options) =>
        options.PROVIDER(Environment.GetEnvironmentVariable("CONNECTION_STRING"));
}
"""

DAPPER = """using Dapper;

using var connection = new PROVIDER(Environment.GetEnvironmentVariable("CONNECTION_STRING"));
Console.WriteLine(connection.GetType().Name);
var rows = connection.Query<Order>("select 7 as Id, 'Anna' as Customer").AsList();
File.WriteAllText(Environment.GetEnvironmentVariable("DAPPER_RESULTS_PATH")!, $"[{rows.Single().Id}]");

record Order(long Id, string Customer);
"""

SQLCLIENT = """using Microsoft.Data.SqlClient;

try
{
    using var connection = new SqlConnection(Environment.GetEnvironmentVariable("CONNECTION_STRING"));
    connection.Open();
}
catch (SqlException error)
{
    Console.WriteLine($"{error.Number}: {error.Message}");
}
"""

NPGSQL = "Npgsql.NpgsqlConnection"
MICROSOFT = "Microsoft.Data.SqlClient.SqlConnection"

DOWN = [
    ("efcore", EFCORE.replace("PROVIDER", "UseNpgsql"), "postgresql", "Npgsql.EntityFrameworkCore.PostgreSQL"),
    ("efcore", EFCORE.replace("PROVIDER", "UseSqlServer"), "sqlserver", "Microsoft.EntityFrameworkCore.SqlServer"),
    ("dapper", DAPPER.replace("PROVIDER", NPGSQL), "postgresql", "NpgsqlConnection"),
    ("dapper", DAPPER.replace("PROVIDER", MICROSOFT), "sqlserver", "SqlConnection"),
]
ON_SQLITE = {
    "efcore": EFCORE.replace("PROVIDER", "UseSqlite"),
    "dapper": DAPPER.replace("PROVIDER", "Microsoft.Data.Sqlite.SqliteConnection"),
}
SQLITE = {"CONNECTION_STRING": "Data Source=shop.db", "SCHEMA": "new"}
RESULTS = {"efcore": [0], "dapper": [7]}
BOTH = pytest.mark.parametrize("framework", ["efcore", "dapper"])


async def dotnet(
    workbench: Workbench, files: Files, *, network: Network | None = None, **fields: object
) -> ValidationResult:
    request = {"profile": "dotnet", "files": files, **fields}
    return await workbench.validate(ValidationRequest.model_validate(request), network=network)


def project(framework: str, reference: str = "") -> str:
    """The project of a template, as a caller would send it, with one more reference."""
    definition = builtin_profile("dotnet").dockerfile({})
    start = definition.index("<Project", definition.index(f"/templates/{framework}/project/Program.csproj"))
    text = definition[start : definition.index("</Project>", start)]
    return f"{text}<ItemGroup>{reference}</ItemGroup>\n</Project>\n"


@pytest.mark.parametrize(("framework", "source", "kind", "provider"), DOWN)
async def test_every_provider_compiles_and_says_that_its_database_is_down(
    workbench: Workbench, framework: str, source: str, kind: str, provider: str
) -> None:
    environment = {"CONNECTION_STRING": CLOSED[kind]}
    result = await dotnet(workbench, {"Program.cs": source}, framework=framework, environment=environment)
    assert result.outcome is Outcome.DATABASE_UNREACHABLE, (result.message, result.phases)
    assert result.phases[-1].stdout.text == f"{provider}\n"
    (found,) = result.diagnostics
    assert (found.code, found.path) == ("database-unreachable", "Program.cs")
    product = {"postgresql": "PostgreSQL at 127.0.0.1:1", "sqlserver": "SQL Server"}[kind]
    assert found.message.startswith(f"{product} did not answer: ")
    assert found.excerpt == source.splitlines()[found.line - 1] if found.line else False


@BOTH
async def test_the_client_of_sql_server_has_a_number_and_a_text_for_its_error(
    workbench: Workbench, framework: str
) -> None:
    environment = {"CONNECTION_STRING": CLOSED["sqlserver"]}
    result = await dotnet(
        workbench, {"Program.cs": SQLCLIENT}, framework=framework, result="none", environment=environment
    )
    assert result.outcome is Outcome.PASSED, (result.message, result.phases)
    number, _, text = result.phases[-1].stdout.text.partition(": ")
    assert number.lstrip("-").isdigit()
    assert text.startswith("A network-related or instance-specific error occurred")


@BOTH
async def test_both_ways_to_build_give_the_same_result(workbench: Workbench, framework: str) -> None:
    files: Files = {"Program.cs": ON_SQLITE[framework]}
    quick = await dotnet(workbench, files, framework=framework, environment=SQLITE)
    whole = await dotnet(
        workbench,
        {**files, "Shop.csproj": project(framework)},
        framework=framework,
        entry_point="Program.cs",
        environment=SQLITE,
    )
    for result in (quick, whole):
        assert result.outcome is Outcome.PASSED, (result.message, result.phases)
        assert result.result == RESULTS[framework]
        assert result.diagnostics == ()
    assert quick.phases[-1].stdout.text == whole.phases[-1].stdout.text


@pytest.mark.parametrize("way", ["quick", "project"])
async def test_programs_start_with_the_libraries_compiled_ahead(workbench: Workbench, way: str) -> None:
    source = "Console.WriteLine(typeof(Microsoft.EntityFrameworkCore.DbContext).Assembly.Location);"
    files: Files = {"Program.cs": source}
    if way == "project":
        files["Shop.csproj"] = project("efcore")
    result = await dotnet(workbench, files, framework="efcore", entry_point="Program.cs", result="none")
    assert result.phases[-1].stdout.text.startswith("/opt/uom/nuget/compiled/"), (result.message, result.phases)


@BOTH
async def test_both_ways_to_build_give_the_same_findings(workbench: Workbench, framework: str) -> None:
    broken = ON_SQLITE[framework].replace("rows.", "rowz.").replace("\nusing var", "\nstring name = null;\nusing var")
    files: Files = {"Program.cs": broken}
    quick = await dotnet(workbench, files, framework=framework)
    whole = await dotnet(
        workbench, {**files, "Shop.csproj": project(framework)}, framework=framework, entry_point="Program.cs"
    )
    assert quick.outcome is whole.outcome is Outcome.COMPILE_ERROR
    assert {item.code for item in quick.diagnostics} >= {"CS0103", "CS8600"}
    key = lambda item: item.model_dump_json()  # noqa: E731
    assert sorted(map(key, quick.diagnostics)) == sorted(map(key, whole.diagnostics))


async def test_both_ways_to_build_tell_the_same_of_an_exception(workbench: Workbench) -> None:
    files: Files = {"Program.cs": ON_SQLITE["efcore"]}
    environment = {"CONNECTION_STRING": "Data Source=empty.db"}
    quick = await dotnet(workbench, files, framework="efcore", environment=environment)
    whole = await dotnet(
        workbench,
        {**files, "Shop.csproj": project("efcore")},
        framework="efcore",
        entry_point="Program.cs",
        environment=environment,
    )
    assert quick.outcome is whole.outcome is Outcome.RUNTIME_ERROR
    (found,) = quick.diagnostics
    assert (found.line, found.code) == (7, "Microsoft.Data.Sqlite.SqliteException")
    assert whole.diagnostics == quick.diagnostics


ANTLR = '<PackageReference Include="Antlr3.Runtime" Version="3.5.1" />'
USES_ANTLR = "Console.WriteLine(typeof(Antlr.Runtime.IToken).Assembly.GetName().Name);"
FINGERPRINT = """
var names = Directory.GetFiles("/opt/uom/nuget/packages", "*", SearchOption.AllDirectories);
Console.WriteLine($"{names.Length} {names.Max(File.GetLastWriteTimeUtc):O}");
"""


async def test_a_package_outside_of_the_template_needs_a_network_and_is_fetched_with_one(workbench: Workbench) -> None:
    files: Files = {"Program.cs": USES_ANTLR, "Shop.csproj": project("dapper", ANTLR)}
    fields: dict[str, Any] = {"framework": "dapper", "entry_point": "Program.cs", "result": "none"}
    refused = await dotnet(workbench, files, **fields)
    assert refused.outcome is Outcome.COMPILE_ERROR
    (found,) = refused.diagnostics
    assert found.message.startswith("Antlr3.Runtime")
    assert found.message.endswith("is not in the snapshot, and the sandbox has no network to fetch it")
    assert (found.path, found.code) == ("Shop.csproj", "NU1101")
    assert "Antlr3.Runtime" in (found.excerpt or "")
    assert "network policy is `open`" in found.details[-1]

    before = await dotnet(workbench, {"Program.cs": FINGERPRINT})
    fetched = await dotnet(workbench, files, isolation="run", network=Network(mode="open"), **fields)
    assert fetched.outcome is Outcome.PASSED, (fetched.message, fetched.diagnostics)
    assert fetched.phases[-1].stdout.text == "Antlr3.Runtime\n"
    after = await dotnet(workbench, {"Program.cs": FINGERPRINT})
    assert after.phases[-1].stdout.text == before.phases[-1].stdout.text
    assert (await dotnet(workbench, files, **fields)).outcome is Outcome.COMPILE_ERROR
