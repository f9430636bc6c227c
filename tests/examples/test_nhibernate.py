"""NHibernate, whose package not every index has: the clear error where it is missing, the template elsewhere."""

from __future__ import annotations

import pytest

from sandbox.errors import SnapshotBuildError
from sandbox.events import EventStream
from sandbox.models import Outcome, ValidationRequest, ValidationResult
from sandbox.profiles import builtin_profile
from sandbox.snapshots import ensure_snapshot
from tests.examples.workbench import Workbench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """
using NHibernate.Cfg;
using NHibernate.Dialect;
using NHibernate.Driver;
using NHibernate.Linq;
using NHibernate.Mapping.ByCode;
using NHibernate.Mapping.ByCode.Conformist;
using NHibernate.Tool.hbm2ddl;

var configuration = new Configuration()
    .SetProperty("connection.connection_string", "Data Source=orders.db")
    .SetProperty("connection.driver_class", typeof(Uom.SqliteDriver).AssemblyQualifiedName)
    .SetProperty("dialect", typeof(SQLiteDialect).AssemblyQualifiedName)
    .SetProperty("hbm2ddl.keywords", "none");
var mapper = new ModelMapper();
mapper.AddMapping<PurchaseMapping>();
configuration.AddMapping(mapper.CompileMappingForAllExplicitlyAddedEntities());
new SchemaExport(configuration).Create(false, true);
using var factory = configuration.BuildSessionFactory();
using var session = factory.OpenSession();
session.Save(new Purchase { Customer = "žluťoučký 日本語 😀" });
session.Flush();
var rows = await session.Query<Purchase>().Where(row => row.Id > 0).ToListAsync();
var path = System.Environment.GetEnvironmentVariable("NHIBERNATE_RESULTS_PATH")!;
File.WriteAllText(path, Newtonsoft.Json.JsonConvert.SerializeObject(rows.Select(row => row.Customer)));
Console.WriteLine($"{typeof(MicrosoftDataSqlClientDriver).Name} {typeof(NpgsqlDriver).Name}");

public class Purchase
{
    public virtual int Id { get; set; }
    public virtual string Customer { get; set; } = "";
}

public class PurchaseMapping : ClassMapping<Purchase>
{
    public PurchaseMapping()
    {
        Table("purchase");
        Id(row => row.Id, id => id.Generator(Generators.Native));
        Property(row => row.Customer);
    }
}
"""


async def nhibernate(workbench: Workbench, files: dict[str, str | bytes], **fields: object) -> ValidationResult:
    request = {"profile": "dotnet", "framework": "nhibernate", "files": files, **fields}
    return await workbench.validate(ValidationRequest.model_validate(request))


async def test_a_package_source_without_it_fails_the_snapshot_with_its_name_and_the_remedy(
    workbench: Workbench,
) -> None:
    await workbench.profile("dotnet")  # the tools are here, whether or not the package is
    profile = builtin_profile("dotnet").prepared_for("nhibernate")
    async with EventStream(run_id="prepare", thread_id="prepare") as events:
        try:
            await ensure_snapshot(workbench.client, profile, events=events)
        except SnapshotBuildError as error:
            log = "\n".join(error.log_tail)
        else:
            pytest.skip("the package source has NHibernate")
    assert "error NU1101: Unable to find package NHibernate." in log
    assert "The packages of nhibernate could not be fetched; the package source has no NHibernate" in log
    assert "Set UOM_NUGET_SOURCE to a source that has all packages of nhibernate" in log


@pytest.mark.parametrize("way", ["source", "project"])
async def test_a_program_on_sqlite_leaves_its_result(workbench: Workbench, way: str) -> None:
    await workbench.profile("dotnet", framework="nhibernate")
    project = builtin_profile("dotnet").prepared_for("nhibernate").dockerfile({})
    files: dict[str, str | bytes] = {"Program.cs": PROGRAM}
    if way == "project":
        start = project.index('<Project Sdk="Microsoft.NET.Sdk">', project.index("nhibernate/project/Program.csproj"))
        files["App.csproj"] = project[start : project.index("</Project>", start)] + "</Project>\n"
    result = await nhibernate(workbench, files, entry_point="Program.cs")
    assert result.outcome is Outcome.PASSED, (result.message, result.diagnostics)
    assert result.result == ["žluťoučký 日本語 😀"]
    assert result.phases[-1].stdout.text == "MicrosoftDataSqlClientDriver NpgsqlDriver\n"


async def test_the_ambiguous_environment_is_found_at_its_line(workbench: Workbench) -> None:
    source = 'using NHibernate.Cfg;\n\nConsole.WriteLine(Environment.GetEnvironmentVariable("HOME"));\n'
    result = await nhibernate(workbench, {"Program.cs": source})
    assert result.outcome is Outcome.COMPILE_ERROR
    (found,) = result.diagnostics
    assert (found.path, found.line, found.code) == ("Program.cs", 3, "CS0104")
