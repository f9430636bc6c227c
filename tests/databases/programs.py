"""The example programs over the orders, per framework and database, and the mistakes that are put into them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from sandbox.databases import DatabaseConnection
from sandbox.models import ValidationRequest

EXAMPLES = Path(__file__).parents[2] / "examples"
Files = dict[str, str | bytes]


@dataclass(frozen=True, slots=True)
class Edit:
    """Text of the entry point, exactly once there, and what to put in its place."""

    find: str
    put: str

    def of(self, text: str) -> str:
        assert text.count(self.find) == 1, f"{self.find!r} is there {text.count(self.find)} times"
        return text.replace(self.find, self.put)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An example, and how it goes wrong.

    Attributes:
        name: What tests call it.
        example: Name of the example.
        kind: The kind of its database.
        broken: A mistake the compiler finds, and the finding's code.
        throws: A statement the database refuses, the code of the finding, and what the finding repeats of the database.
        wrong: A mistake in a query.
        wrong_paths: Where the result then differs.
        project: The project file of the same program, its name and its text.
        project_entry: Where the entry point lies in that project.
        package: What its project file has to say to need a package outside of the template, and after which text.
        missing: What the finding about the package says.
        dialect: What to replace before anything else, for a database other than the example's.
    """

    name: str
    example: str
    kind: str
    broken: tuple[Edit, str]
    throws: tuple[Edit, str, str]
    wrong: Edit
    wrong_paths: frozenset[str]
    project: tuple[str, str]
    project_entry: str
    package: Edit
    missing: str
    dialect: dict[str, str] = field(default_factory=dict)

    @property
    def description(self) -> dict[str, Any]:
        return tomllib.loads((EXAMPLES / self.example / "example.toml").read_text(encoding="utf-8"))

    def text(self, *edits: Edit) -> str:
        """Its entry point with mistakes."""
        entry_point: str = self.description["entry_point"]
        text = (EXAMPLES / self.example / entry_point).read_text(encoding="utf-8")
        for find, put in self.dialect.items():
            assert find in text, find
            text = text.replace(find, put)
        for edit in edits:
            text = edit.of(text)
        return text

    def request(self, connection: DatabaseConnection, *edits: Edit, **fields: Any) -> ValidationRequest:
        """The whole program, with a database and mistakes."""
        described = self.description
        files: Files = {
            name: (EXAMPLES / self.example / name).read_text(encoding="utf-8") for name in described["files"]
        }
        files[described["entry_point"]] = self.text(*edits)
        files.update(fields.pop("files", {}))
        values = {
            "profile": described["profile"],
            "framework": described["framework"],
            "entry_point": described["entry_point"],
            "files": files,
            "connections": (connection,),
            "expected": orjson.loads((EXAMPLES / "orders-expected.json").read_bytes()),
        }
        return ValidationRequest.model_validate(values | fields)

    def project_request(self, connection: DatabaseConnection, *, spoilt: bool, **fields: Any) -> ValidationRequest:
        """The program with a project file, which may need a package outside of the template."""
        name, text = self.project
        request = self.request(connection, **fields)
        files = {path: content for path, content in request.files.items() if path != request.entry_point}
        files |= {name: self.package.of(text) if spoilt else text, self.project_entry: self.text()}
        return request.model_copy(update={"files": files, "entry_point": None})


def _rows(query: str, *members: str) -> frozenset[str]:
    return frozenset(f"$.{query}.{row}.{member}" for row in ("firstSample", "lastSample") for member in members)


def _csproj(*packages: tuple[str, str]) -> tuple[str, str]:
    references = "".join(
        f'    <PackageReference Include="{name}" Version="{version}" />\n' for name, version in packages
    )
    text = f"""<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>net10.0</TargetFramework>
    <ImplicitUsings>enable</ImplicitUsings>
    <Nullable>enable</Nullable>
  </PropertyGroup>
  <ItemGroup>
{references}  </ItemGroup>
</Project>
"""
    return "Shop.csproj", text


def _pom(framework: str) -> tuple[str, str]:
    template = EXAMPLES.parent / "sandbox/builtin/java" / framework / "pom.xml"
    return "pom.xml", template.read_text(encoding="utf-8")


_HUMANIZER = Edit("</ItemGroup>", '<PackageReference Include="Humanizer" Version="3.0.1" />\n  </ItemGroup>')
_NO_SUCH = Edit(
    "</dependencies>",
    """<dependency>
      <groupId>com.example</groupId>
      <artifactId>no-such</artifactId>
      <version>1</version>
    </dependency>
  </dependencies>""",
)
_CSHARP_BROKEN = Edit("new Dictionary<string, object>();", "new Dictionary<string, objct>();"), "CS0246"
_CSHARP_NEXT = "var answers = new Dictionary<string, object>();"
_OPEN_ORDERS = _rows("openOrders", "orderId", "customer", "placed", "note")
_PRODUCTS = _rows("productsInSeveralOrders", "product", "quantity", "lowestPrice")
_JAVA_SORT = Edit('Sort.Order.desc("quantity")', 'Sort.Order.asc("quantity")')

EFCORE = Program(
    name="efcore-postgresql",
    example="csharp-efcore-postgresql-orders",
    kind="postgresql",
    broken=_CSHARP_BROKEN,
    throws=(
        Edit(_CSHARP_NEXT, f'shop.Database.ExecuteSqlRaw("update nowhere set x = 1");\n{_CSHARP_NEXT}'),
        "Npgsql.PostgresException",
        'relation "nowhere" does not exist',
    ),
    wrong=Edit(".OrderByDescending(order => order.Placed)", ".OrderBy(order => order.Placed)"),
    wrong_paths=_OPEN_ORDERS,
    project=_csproj(("Npgsql.EntityFrameworkCore.PostgreSQL", "10.0.3")),
    project_entry="Program.cs",
    package=_HUMANIZER,
    missing="Humanizer",
)
DAPPER = Program(
    name="dapper-postgresql",
    example="csharp-dapper-postgresql-orders",
    kind="postgresql",
    broken=_CSHARP_BROKEN,
    throws=(
        Edit(_CSHARP_NEXT, f'connection.Execute("update nowhere set x = 1");\n{_CSHARP_NEXT}'),
        "Npgsql.PostgresException",
        'relation "nowhere" does not exist',
    ),
    wrong=Edit("order by o.placed desc", "order by o.placed"),
    wrong_paths=_OPEN_ORDERS,
    project=_csproj(("Dapper", "2.1.86"), ("Npgsql", "10.0.3")),
    project_entry="Program.cs",
    package=_HUMANIZER,
    missing="Humanizer",
)
EFCORE_SQLITE = Program(
    name="efcore-sqlite",
    example="csharp-efcore-postgresql-orders",
    kind="sqlite",
    dialect={".UseNpgsql(": ".UseSqlite("},
    broken=_CSHARP_BROKEN,
    throws=(EFCORE.throws[0], "Microsoft.Data.Sqlite.SqliteException", "no such table: nowhere"),
    wrong=EFCORE.wrong,
    wrong_paths=_OPEN_ORDERS,
    project=_csproj(("Microsoft.EntityFrameworkCore.Sqlite", "10.0.15")),
    project_entry="Program.cs",
    package=_HUMANIZER,
    missing="Humanizer",
)
DAPPER_SQLITE = Program(
    name="dapper-sqlite",
    example="csharp-dapper-postgresql-orders",
    kind="sqlite",
    # SQLite has no dates and no decimals: dates are text, and sums are rounded to what they are sums of.
    dialect={
        "using Npgsql;": "using Microsoft.Data.Sqlite;",
        "new NpgsqlConnection(": "new SqliteConnection(",
        "sum(l.quantity * l.price)": "round(sum(l.quantity * l.price), 2)",
        "min(l.price)": "min(cast(l.price as real))",
        "to_char(o.placed, 'YYYY-MM')": "strftime('%Y-%m', o.placed)",
        "DateOnly? LastPlaced": "string? LastPlaced",
        "DateOnly Placed": "required string Placed",
        "DateOnly Joined": "required string Joined",
    },
    broken=_CSHARP_BROKEN,
    throws=(DAPPER.throws[0], "Microsoft.Data.Sqlite.SqliteException", "no such table: nowhere"),
    wrong=DAPPER.wrong,
    wrong_paths=_OPEN_ORDERS,
    project=_csproj(("Dapper", "2.1.86"), ("Microsoft.Data.Sqlite", "10.0.15")),
    project_entry="Program.cs",
    package=_HUMANIZER,
    missing="Humanizer",
)
MONGODB = Program(
    name="spring-data-mongodb",
    example="java-spring-mongodb-orders",
    kind="mongodb",
    broken=(Edit('Aggregation.unwind("customer"),', 'Aggregation.unwnd("customer"),'), "compiler.err.cant.resolve"),
    throws=(
        Edit("var answers = new", 'template.executeCommand("{ noSuchCommand: 1 }");\n        var answers = new'),
        "org.springframework.dao.InvalidDataAccessApiUsageException",
        "noSuchCommand",
    ),
    wrong=_JAVA_SORT,
    wrong_paths=_PRODUCTS,
    project=_pom("spring-data-mongodb"),
    project_entry="src/main/java/orders/Application.java",
    package=_NO_SUCH,
    missing="com.example:no-such:1",
)
NEO4J = Program(
    name="spring-data-neo4j",
    example="java-spring-neo4j-orders",
    kind="neo4j",
    broken=(Edit("client.query(cypher).fetch()", "client.query(cypher).fech()"), "compiler.err.cant.resolve"),
    throws=(
        Edit("var answers = new", 'client.query("RETURN nothing").run();\n        var answers = new'),
        "org.springframework.dao.InvalidDataAccessResourceUsageException",
        "Variable `nothing` not defined",
    ),
    wrong=Edit("ORDER BY quantity DESC, product", "ORDER BY quantity, product"),
    wrong_paths=_PRODUCTS,
    project=_pom("spring-data-neo4j"),
    project_entry="src/main/java/orders/Application.java",
    package=_NO_SUCH,
    missing="com.example:no-such:1",
)
PROGRAMS = {one.name: one for one in (EFCORE, DAPPER, EFCORE_SQLITE, DAPPER_SQLITE, MONGODB, NEO4J)}
