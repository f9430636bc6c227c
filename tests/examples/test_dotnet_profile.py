"""What a caller of the dotnet profile may send, and what comes back; quick builds and builds with a project agree."""

from __future__ import annotations

import pytest

from sandbox.models import Outcome, ValidationRequest, ValidationResult
from tests.examples.workbench import Workbench

# The snapshot of .NET takes most of a minute; the first test that needs it waits for it.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TEXT = "žluťoučký 日本語 😀"
PROJECT = """
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>net10.0</TargetFramework>
    <ImplicitUsings>enable</ImplicitUsings>
    <Nullable>enable</Nullable>
  </PropertyGroup>
  <ItemGroup>{references}</ItemGroup>
</Project>
"""
EF_REFERENCE = '<PackageReference Include="Microsoft.EntityFrameworkCore.Sqlite" Version="10.0.15" />'


async def dotnet(workbench: Workbench, files: dict[str, str | bytes], **fields: object) -> ValidationResult:
    return await workbench.validate(ValidationRequest.model_validate({"profile": "dotnet", "files": files, **fields}))


def printed(result: ValidationResult) -> str:
    assert result.outcome is Outcome.PASSED, (result.message, result.phases)
    return result.phases[-1].stdout.text


async def test_text_of_every_script_survives_source_output_file_and_name(workbench: Workbench) -> None:
    source = f"""
    Console.WriteLine("{TEXT}");
    File.WriteAllText("{TEXT}.txt", "{TEXT}");
    Console.WriteLine(Path.GetFileName(Directory.GetFiles(".", "*.txt").Single()));
    var result = Environment.GetEnvironmentVariable("UOM_RESULT_FILE")!;
    File.WriteAllText(result, "{{\\"text\\": \\"{TEXT}\\"}}", System.Text.Encoding.UTF8);
    """
    result = await dotnet(workbench, {"Program.cs": source})
    assert printed(result) == f"{TEXT}\n{TEXT}.txt\n"
    assert result.result == {"text": TEXT}


async def test_sources_are_compiled_together(workbench: Workbench) -> None:
    files: dict[str, str | bytes] = {
        "Program.cs": "using Shop;\nConsole.WriteLine(new Order(7));",
        'Models/odd "name" of a file.cs': "namespace Shop;\npublic record Order(int Id);",
    }
    assert printed(await dotnet(workbench, files, entry_point="Program.cs")) == "Order { Id = 7 }\n"


async def test_generated_code_is_generated_when_sources_ask_for_it(workbench: Workbench) -> None:
    source = """
    using System.Text.Json;
    using System.Text.Json.Serialization;
    using System.Text.RegularExpressions;

    Console.WriteLine(Words.Number().Match("order 107").Value);
    Console.WriteLine(JsonSerializer.Serialize(new Order(7), Context.Default.Order));

    record Order(int Id);

    [JsonSerializable(typeof(Order))]
    partial class Context : JsonSerializerContext { }

    static partial class Words
    {
        [GeneratedRegex("[0-9]+")]
        public static partial Regex Number();
    }
    """
    assert printed(await dotnet(workbench, {"Program.cs": source})) == '107\n{"Id":7}\n'


async def test_heap_and_processors_are_those_of_the_sandbox(workbench: Workbench) -> None:
    source = """
    Console.WriteLine($"{GC.GetGCMemoryInfo().TotalAvailableMemoryBytes / 1048576} "
        + $"{Environment.GetEnvironmentVariable("UOM_HEAP_MIB")} {Environment.ProcessorCount} "
        + $"{Environment.GetEnvironmentVariable("UOM_CPU")}");
    """
    heap, allowed, processors, share = map(int, printed(await dotnet(workbench, {"Program.cs": source})).split())
    assert heap == allowed
    assert processors == share


async def test_a_program_that_eats_all_memory_is_told_so(workbench: Workbench) -> None:
    source = "var kept = new List<byte[]>(); while (true) { kept.Add(new byte[1 << 20]); }"
    result = await dotnet(workbench, {"Program.cs": source})
    assert result.outcome is Outcome.MEMORY_EXCEEDED, result.message


async def test_an_uncaught_exception_points_at_the_callers_line(workbench: Workbench) -> None:
    source = 'var names = new Dictionary<int, string> { [1] = "Anna" };\nConsole.WriteLine(names[2]);\n'
    result = await dotnet(workbench, {"Program.cs": source})
    assert result.outcome is Outcome.RUNTIME_ERROR
    (found,) = result.diagnostics
    assert (found.path, found.line, found.code) == ("Program.cs", 2, "System.Collections.Generic.KeyNotFoundException")
    assert found.excerpt == "Console.WriteLine(names[2]);"


async def test_the_exit_code_is_the_programs(workbench: Workbench) -> None:
    result = await dotnet(workbench, {"Program.cs": "Environment.Exit(42);"})
    assert result.phases[-1].exit_code == 42


@pytest.mark.parametrize("framework", ["efcore", "dapper"])
async def test_programs_for_other_databases_compile(workbench: Workbench, framework: str) -> None:
    source = """
    using Microsoft.Data.SqlClient;
    using Npgsql;

    using var first = new SqlConnection("Server=nowhere");
    using var second = new NpgsqlConnection("Host=nowhere");
    Console.WriteLine($"{first.DataSource} {second.DataSource}");
    """
    result = await dotnet(workbench, {"Program.cs": source}, framework=framework, result="none")
    assert printed(result) == "nowhere tcp://nowhere:5432\n"


async def test_a_program_of_an_object_mapper_must_leave_a_result(workbench: Workbench) -> None:
    result = await dotnet(workbench, {"Program.cs": 'Console.WriteLine("done");'}, framework="dapper")
    assert result.outcome is Outcome.RESULT_MISSING


async def test_a_project_of_its_own_builds_without_a_network(workbench: Workbench) -> None:
    files: dict[str, str | bytes] = {
        "app/Shop.csproj": PROJECT.format(references=EF_REFERENCE),
        "app/Program.cs": "Console.WriteLine(typeof(Microsoft.EntityFrameworkCore.DbContext).Assembly.GetName().Name);",
    }
    result = await dotnet(workbench, files, entry_point="app/Program.cs", framework="efcore", result="none")
    assert printed(result) == "Microsoft.EntityFrameworkCore\n"


async def test_both_ways_to_build_tell_the_same(workbench: Workbench) -> None:
    source = "int unused = 1;\nstring name = null;\nConsole.WriteLine(nmae.Lenght);\n"
    quick = await dotnet(workbench, {"Program.cs": source})
    full = await dotnet(workbench, {"Program.cs": source, "App.csproj": PROJECT.format(references="")})
    assert quick.outcome is full.outcome is Outcome.COMPILE_ERROR
    assert len(quick.diagnostics) >= 1
    key = lambda found: (found.severity, found.path, found.line, found.column, found.code, found.message)  # noqa: E731
    assert sorted(map(key, quick.diagnostics)) == sorted(map(key, full.diagnostics))


async def test_both_ways_to_build_give_the_same_result(workbench: Workbench) -> None:
    source = """\
        using System.Text.Json;

        var orders = new[] { (Id: 1, Total: 12.50m), (Id: 2, Total: 0.1m + 0.2m) };
        Console.Error.WriteLine($"{orders.Length} orders on {Environment.Version.Major}");
        var rows = orders.Select(order => new { order.Id, order.Total, Tag = (string?)null });
        await File.WriteAllTextAsync(
            Environment.GetEnvironmentVariable("UOM_RESULT_FILE")!, JsonSerializer.Serialize(new { rows })
        );
        if (orders.Sum(order => order.Total) != 12.80m) throw new InvalidOperationException("money is not exact");
        """
    quick = await dotnet(workbench, {"Program.cs": source})
    full = await dotnet(workbench, {"Program.cs": source, "App.csproj": PROJECT.format(references="")})
    assert quick.passed, quick.message
    assert full.passed, full.message
    assert quick.result == full.result
    assert quick.result == {"rows": [{"Id": 1, "Total": 12.5, "Tag": None}, {"Id": 2, "Total": 0.3, "Tag": None}]}
    assert quick.phases[-1].stderr.text == full.phases[-1].stderr.text == "2 orders on 10\n"


async def test_both_ways_to_build_tell_the_same_of_an_exception(workbench: Workbench) -> None:
    source = 'Console.WriteLine("before");\nint[] none = [];\nConsole.WriteLine(none[1]);\n'
    quick = await dotnet(workbench, {"Program.cs": source})
    full = await dotnet(workbench, {"Program.cs": source, "App.csproj": PROJECT.format(references="")})
    assert quick.outcome is full.outcome is Outcome.RUNTIME_ERROR
    both = [
        [(found.severity, found.path, found.line, found.code, found.message) for found in result.diagnostics]
        for result in (quick, full)
    ]
    assert both[0] == both[1]
    assert quick.diagnostics[0].line == 3


async def test_a_package_that_the_snapshot_lacks_is_named(workbench: Workbench) -> None:
    reference = '<PackageReference Include="No.Such.Package" Version="1.2.3" />'
    files: dict[str, str | bytes] = {"App.csproj": PROJECT.format(references=reference), "Program.cs": "return;"}
    result = await dotnet(workbench, files, entry_point="Program.cs")
    assert result.outcome is Outcome.COMPILE_ERROR
    (found,) = result.diagnostics
    assert (found.path, found.code) == ("App.csproj", "NU1101")
    assert "No.Such.Package" in found.message


async def test_several_projects_without_a_chosen_one_are_refused_with_their_names(workbench: Workbench) -> None:
    files: dict[str, str | bytes] = {
        "a/A.csproj": PROJECT.format(references=""),
        "b/B.csproj": PROJECT.format(references=""),
        "a/Program.cs": 'Console.WriteLine("a");',
        "b/Program.cs": 'Console.WriteLine("b");',
    }
    result = await dotnet(workbench, files, entry_point="a/Program.cs")
    assert result.outcome is Outcome.COMPILE_ERROR
    (found,) = result.diagnostics
    assert "./a/A.csproj ./b/B.csproj" in found.message
    assert printed(await dotnet(workbench, files, entry_point="b/B.csproj")) == "b\n"


async def test_a_compiler_server_that_stays_holds_nothing_up_and_is_gone(workbench: Workbench) -> None:
    source = """
    using System.Diagnostics;
    var places = new EnumerationOptions { RecurseSubdirectories = true, IgnoreInaccessible = true };
    var host = File.ResolveLinkTarget("/proc/self/exe", true)!.FullName;
    var server = Directory.GetFiles(Path.GetDirectoryName(host)!, "VBCSCompiler.dll", places).First();
    Process.Start(new ProcessStartInfo(host, ["exec", server, "-pipename:stays"]) { UseShellExecute = false });
    Thread.Sleep(1000);
    Console.WriteLine(Process.GetProcesses().Any(one => File.ReadAllText($"/proc/{one.Id}/cmdline").Contains("stays")));
    """
    result = await dotnet(workbench, {"Program.cs": source}, isolation="shared")
    assert printed(result) == "True\n"
    assert result.phases[-1].seconds < 30, "the server would stay for ten minutes"
    assert result.sandbox is not None
    sandbox = await workbench.client.get(result.sandbox.sandbox_name)
    assert (await sandbox.process.exec("pgrep -f '[p]ipename:stays'; true")).result == ""
