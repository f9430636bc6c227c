"""Plain Java as a project of Maven's: what a caller may send, and what comes back."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.errors import ConfigurationError
from sandbox.models import Outcome, ValidationRequest, ValidationResult
from sandbox.profiles import Network
from tests.examples.workbench import Workbench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

Files = dict[str, str | bytes]

PROGRAM = """package shop;

import java.nio.file.*;

public class Main {
    public static void main(String[] args) throws Exception {
        System.out.println("žluťoučký 日本語 😀");
        Files.writeString(Path.of(System.getenv("UOM_RESULT_FILE")), "{\\"orders\\": 3}");
    }
}
"""

BROKEN = """package shop;

public class Main {
\tpublic static void main(String[] args) {
\t\tString text = 7;
        pay(text);
    }

    static void pay(int order, String customer) {}
}
"""

THROWS = """package shop;

public class Main {
    public static void main(String[] args) {
        throw new IllegalStateException("no orders");
    }
}
"""


def pom(rest: str = "", *, compiler: str = "") -> str:
    level = (
        "<maven.compiler.release>25</maven.compiler.release>"
        if compiler
        else ("<maven.compiler.source>25</maven.compiler.source>\n<maven.compiler.target>25</maven.compiler.target>")
    )
    plugin = (
        "<build><plugins><plugin><groupId>org.apache.maven.plugins</groupId>"
        f"<artifactId>maven-compiler-plugin</artifactId><version>{compiler}</version></plugin></plugins></build>"
    )
    return f"""<project>
<modelVersion>4.0.0</modelVersion>
<groupId>shop</groupId>
<artifactId>orders</artifactId>
<version>1.0-SNAPSHOT</version>
<properties>
{level}
<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
</properties>
{rest}
{plugin if compiler else ""}
</project>
"""


def library(group: str, artifact: str, version: str) -> str:
    return (
        "<dependencies>\n<dependency>\n"
        f"<groupId>{group}</groupId>\n<artifactId>{artifact}</artifactId>\n<version>{version}</version>\n"
        "</dependency>\n</dependencies>"
    )


def as_project(source: str, project: str | None = None) -> Files:
    return {"pom.xml": project or pom(), "src/main/java/shop/Main.java": source}


async def java(
    workbench: Workbench, files: Files, *, network: Network | None = None, **fields: object
) -> ValidationResult:
    request = ValidationRequest.model_validate({"profile": "java", "files": files, **fields})
    return await workbench.validate(request, network=network)


@pytest.mark.parametrize("compiler", ["", "3.8.1", "3.11.0", "3.14.1"])
async def test_source_and_project_give_the_same_result(workbench: Workbench, compiler: str) -> None:
    quick = await java(workbench, {"Main.java": PROGRAM})
    whole = await java(workbench, as_project(PROGRAM, pom(compiler=compiler)))
    assert quick.outcome is whole.outcome is Outcome.PASSED, (whole.message, whole.phases)
    assert quick.result == whole.result == {"orders": 3}
    assert quick.phases[-1].stdout.text == whole.phases[-1].stdout.text == "žluťoučký 日本語 😀\n"
    assert quick.diagnostics == whole.diagnostics == ()
    assert whole.sandbox is not None
    assert whole.sandbox.snapshot == "validation-snapshot-java-25-sandbox-maven"


@pytest.mark.parametrize("compiler", ["", "3.14.1"])
async def test_source_and_project_give_the_same_compiler_findings(workbench: Workbench, compiler: str) -> None:
    quick = await java(workbench, {"Main.java": BROKEN})
    whole = await java(workbench, as_project(BROKEN, pom(compiler=compiler)))
    assert quick.outcome is whole.outcome is Outcome.COMPILE_ERROR
    assert [item.line for item in quick.diagnostics] == [5, 6]
    for one, other in zip(quick.diagnostics, whole.diagnostics, strict=True):
        assert other.path == "src/main/java/shop/Main.java"
        assert (one.line, one.column, one.code, one.severity) == (other.line, other.column, other.code, other.severity)
        assert one.excerpt == other.excerpt


async def test_source_and_project_throw_alike(workbench: Workbench) -> None:
    quick = await java(workbench, {"Main.java": THROWS})
    whole = await java(workbench, as_project(THROWS))
    assert quick.outcome is whole.outcome is Outcome.RUNTIME_ERROR
    ((one,), (other,)) = (quick.diagnostics, whole.diagnostics)
    assert (one.code, one.message, one.line, one.phase) == (other.code, other.message, other.line, other.phase)
    assert (one.path, other.path) == ("Main.java", "src/main/java/shop/Main.java")


async def test_a_library_that_is_not_there_is_named(workbench: Workbench) -> None:
    files = as_project(PROGRAM, pom(library("com.example", "no-such", "1")))
    result = await java(workbench, files)
    assert result.outcome is Outcome.COMPILE_ERROR
    (found,) = result.diagnostics
    assert found.message == "com.example:no-such:1 is not in the snapshot, and the sandbox has no network to fetch it"
    assert (found.path, found.code, found.excerpt) == ("pom.xml", "offline", "<artifactId>no-such</artifactId>")


async def test_a_library_is_fetched_where_the_network_policy_permits(workbench: Workbench) -> None:
    source = PROGRAM.replace('{\\"orders\\": 3}', '" + new com.google.gson.Gson().toJson(new int[] {1, 2}) + "')
    files = as_project(source, pom(library("com.google.code.gson", "gson", "2.13.1")))
    result = await java(workbench, files, isolation="run", network=Network(mode="open"))
    assert result.outcome is Outcome.PASSED, (result.message, result.phases)
    assert result.result == [1, 2]


async def test_projects_built_at_once_pass(workbench: Workbench) -> None:
    projects = [as_project(PROGRAM.replace("žluťoučký", name)) for name in ("one", "two")]
    results = await asyncio.gather(*(java(workbench, files) for files in projects))
    assert [item.phases[-1].stdout.text.split()[0] for item in results] == ["one", "two"]


async def test_a_project_without_a_pom_is_told(workbench: Workbench) -> None:
    with pytest.raises(ConfigurationError, match=r"no .xml file is among the files. The program is pom.xml unless"):
        await java(workbench, {"src/main/java/shop/Main.java": PROGRAM}, framework="maven")
