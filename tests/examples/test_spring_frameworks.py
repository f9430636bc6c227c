"""What a caller of the Spring frameworks may send, and what comes back. No database is there."""

from __future__ import annotations

import asyncio
import re

import pytest
from pydantic import SecretStr

from sandbox.models import Outcome, RunLimits, Severity, ValidationRequest, ValidationResult
from sandbox.profiles import Network
from tests.examples.spring_sources import (
    BROKEN,
    FRAMEWORKS,
    MONGODB,
    NEO4J,
    QUERIES,
    TEXT,
    Files,
    application,
    as_project,
    pom,
)
from tests.examples.workbench import Workbench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
"""The snapshots of Spring take most of a minute."""

FRAMEWORK = pytest.mark.parametrize("framework", FRAMEWORKS)


async def spring(
    workbench: Workbench, files: Files, *, framework: str = MONGODB, network: Network | None = None, **fields: object
) -> ValidationResult:
    request = {"profile": "java", "framework": framework, "files": files, **fields}
    return await workbench.validate(ValidationRequest.model_validate(request), network=network)


def printed(result: ValidationResult) -> str:
    assert result.outcome is Outcome.PASSED, (result.message, result.phases)
    return result.phases[-1].stdout.text


@FRAMEWORK
@pytest.mark.parametrize("way", ["source", "project"])
async def test_an_application_starts_and_leaves_its_result(workbench: Workbench, framework: str, way: str) -> None:
    source = application(
        f"""System.out.println("{TEXT}");
        var path = Path.of(System.getenv("{"NEO4J" if framework == NEO4J else "MONGO"}_RESULTS_PATH"));
        var answers = new LinkedHashMap<String, Object>();
        answers.put("jackson3", context.getBean(tools.jackson.databind.ObjectMapper.class).readTree("[1]").size());
        answers.put("jackson2", new com.fasterxml.jackson.databind.ObjectMapper().readTree("[1, 2]").size());
        answers.put("text", "{TEXT}");
        Files.writeString(path, new com.google.gson.Gson().toJson(answers));"""
    )
    files: Files = {"Application.java": source} if way == "source" else as_project(source, framework=framework)
    result = await spring(workbench, files, framework=framework)
    assert printed(result) == f"{TEXT}\n"
    assert result.result == {"jackson3": 1, "jackson2": 2, "text": TEXT}
    assert result.diagnostics == ()
    assert result.sandbox is not None
    assert result.sandbox.snapshot == f"validation-snapshot-java-25-sandbox-{framework}"


@FRAMEWORK
async def test_both_ways_give_the_same_compiler_findings(workbench: Workbench, framework: str) -> None:
    quick = await spring(workbench, {"Application.java": BROKEN}, framework=framework)
    whole = await spring(workbench, as_project(BROKEN, framework=framework), framework=framework)
    assert quick.outcome is whole.outcome is Outcome.COMPILE_ERROR
    assert [item.line for item in quick.diagnostics] == [6, 12, 13, 14]
    # Inside of Maven the compiler writes names of types with their packages.
    plain = [re.sub(r"\b(?:[a-z]+\.)+(?=[A-Z])", "", item.message) for item in whole.diagnostics]
    assert plain == [re.sub(r"\b(?:[a-z]+\.)+(?=[A-Z])", "", item.message) for item in quick.diagnostics]
    for one, other in zip(quick.diagnostics, whole.diagnostics, strict=True):
        assert other.path == f"src/main/java/shop/{one.path}"
        assert (one.line, one.column, one.code, one.severity) == (other.line, other.column, other.code, other.severity)
        assert one.excerpt == other.excerpt
        assert one.tool == other.tool
        assert len(one.details) == len(other.details)


@FRAMEWORK
@pytest.mark.parametrize("way", ["source", "project"])
async def test_a_database_that_is_down_is_named_long_before_the_drivers_own_limit(
    workbench: Workbench, framework: str, way: str
) -> None:
    source = QUERIES[framework]
    files: Files = {"Application.java": source} if way == "source" else as_project(source, framework=framework)
    product, port = ("MongoDB", 27017) if framework == MONGODB else ("Neo4j", 7687)
    # Left to themselves, both drivers try for 30 s.
    result = await spring(workbench, files, framework=framework, limits=RunLimits(phase_seconds={"run": 25}))
    assert result.outcome is Outcome.DATABASE_UNREACHABLE, (result.message, result.phases)
    assert result.message == f"{product} at localhost:{port} did not answer: Connection refused."
    (found,) = result.diagnostics
    assert found.code == "database-unreachable"
    assert found.path is not None
    assert (found.excerpt or "").strip().startswith("System.out.println(context.getBean(Orders.class)")


@pytest.mark.parametrize(
    ("framework", "environment", "told"),
    [
        (MONGODB, {"MONGODB_URI": "mongodb://db.invalid:27018/shop"}, "MongoDB at db.invalid:27018 did not answer"),
        (MONGODB, {"MONGODB_URI": "mongodb://127.0.0.1:1"}, "MongoDB at 127.0.0.1:1 did not answer"),
        (NEO4J, {"NEO4J_URI": "bolt://db.invalid:7688"}, "Neo4j at db.invalid:7688 did not answer"),
        (NEO4J, {"NEO4J_URI": "neo4j://127.0.0.1:1"}, "Neo4j at 127.0.0.1:1 did not answer"),
    ],
)
async def test_a_connection_of_the_caller_wins_over_the_programs_settings(
    workbench: Workbench, framework: str, environment: dict[str, str], told: str
) -> None:
    settings = "spring.mongodb.uri=mongodb://other.invalid/x\nspring.neo4j.uri=bolt://other.invalid:7687\n"
    source = QUERIES[framework]
    if environment.get("MONGODB_URI") == "mongodb://127.0.0.1:1":
        settings += "spring.mongodb.database=shop\n"
    files: Files = {"Application.java": source, "src/main/resources/application.properties": settings}
    result = await spring(
        workbench, files, framework=framework, environment=environment, limits=RunLimits(phase_seconds={"run": 25})
    )
    assert result.outcome is Outcome.DATABASE_UNREACHABLE, (result.message, result.phases)
    assert result.message.startswith(told)


async def test_a_setting_of_the_program_wins_over_the_templates(workbench: Workbench) -> None:
    source = application(
        'System.out.println(environment.getProperty("logging.level.root") + " "'
        ' + environment.getProperty("spring.main.banner-mode")); result("{}");'
    )
    files: Files = {"Application.java": source, "application.properties": "logging.level.root=error\n"}
    assert printed(await spring(workbench, files)) == "error off\n"


async def test_credentials_of_a_connection_reach_the_program_and_no_command_line(workbench: Workbench) -> None:
    source = application(
        """String uri = environment.getProperty("spring.mongodb.uri");
        boolean seen = ProcessHandle.allProcesses().anyMatch(
            process -> process.info().commandLine().orElse("").contains("sesame"));
        System.out.println(uri.contains("sesame") + " " + seen);
        System.out.println(uri);
        result("{}");"""
    )
    secrets = {"MONGODB_URI": SecretStr("mongodb://anna:open-sesame@db.invalid/shop?replicaSet=rs0")}
    result = await spring(workbench, {"Application.java": source}, secrets=secrets)
    first, second = printed(result).splitlines()
    assert first == "true false"
    assert "sesame" not in second
    assert second.endswith("&serverSelectionTimeoutMS=3000&connectTimeoutMS=3000")


@pytest.mark.parametrize("way", ["source", "project"])
async def test_lombok_does_not_hide_errors_behind_a_wrong_import(workbench: Workbench, way: str) -> None:
    source = application(
        'Order order = new Order("Anna"); order.getCustomer(); order.getNothing(); result("{}");',
        imports="import lombok.Value;\nimport java.util.Lst;",
        rest="@Value class Order { String customer; }",
    )
    files: Files = {"Application.java": source} if way == "source" else as_project(source, framework=MONGODB)
    result = await spring(workbench, files)
    assert result.outcome is Outcome.COMPILE_ERROR
    assert [item.details[0] for item in result.diagnostics] == [
        "symbol:   class Lst",
        "symbol:   method getNothing()",
    ]


async def test_lombok_works_when_sources_ask_for_it(workbench: Workbench) -> None:
    source = application(
        'System.out.println(new Order("Anna").getCustomer()); result("{}");',
        imports="import lombok.Value;",
        rest="@Value class Order { String customer; }",
    )
    assert printed(await spring(workbench, {"Application.java": source})) == "Anna\n"
    assert printed(await spring(workbench, as_project(source, framework=MONGODB))) == "Anna\n"


async def test_a_project_may_be_the_entry_point(workbench: Workbench) -> None:
    files = as_project(application('System.out.println("found"); result("{}");'), framework=MONGODB)
    files["src/main/java/shop/Order.java"] = "package shop;\n\nclass Order {}\n"
    assert printed(await spring(workbench, files, entry_point="pom.xml")) == "found\n"


async def test_a_source_that_maven_would_not_compile_is_told(workbench: Workbench) -> None:
    files: Files = {"Application.java": application('result("{}");'), "pom.xml": pom(MONGODB)}
    result = await spring(workbench, files)
    assert result.outcome is Outcome.COMPILE_ERROR
    assert [item.message for item in result.diagnostics] == [
        "Maven compiles what lies in src/main/java; the entry point Application.java does not"
    ]


async def test_a_library_outside_of_the_template_is_named(workbench: Workbench) -> None:
    library = "<groupId>com.example</groupId>\n<artifactId>no-such</artifactId>\n<version>1</version>"
    files = as_project(application('result("{}");'), framework=MONGODB)
    files["pom.xml"] = pom(MONGODB).replace("</dependencies>", f"<dependency>{library}</dependency>\n</dependencies>")
    result = await spring(workbench, files)
    assert result.outcome is Outcome.COMPILE_ERROR
    (found,) = result.diagnostics
    assert found.message == "com.example:no-such:1 is not in the snapshot, and the sandbox has no network to fetch it"
    assert (found.path, found.code, found.excerpt) == ("pom.xml", "offline", "<artifactId>no-such</artifactId>")


async def test_a_library_outside_of_the_template_is_fetched_where_the_network_policy_permits(
    workbench: Workbench,
) -> None:
    library = "<groupId>org.postgresql</groupId>\n<artifactId>postgresql</artifactId>\n"
    source = application('System.out.println(org.postgresql.Driver.class.getName()); result("{}");')
    files = as_project(source, framework=MONGODB)
    files["pom.xml"] = pom(MONGODB).replace("</dependencies>", f"<dependency>{library}</dependency>\n</dependencies>")
    before = printed(await spring(workbench, {"Application.java": FINGERPRINT}))
    fetched = await spring(workbench, files, isolation="run", network=Network(mode="open"))
    assert printed(fetched) == "org.postgresql.Driver\n"
    assert printed(await spring(workbench, {"Application.java": FINGERPRINT})) == before
    refused = await spring(workbench, files)
    assert [(item.code, item.excerpt) for item in refused.diagnostics] == [
        ("offline", "<artifactId>postgresql</artifactId>")
    ]


async def test_another_version_of_spring_boot_is_named(workbench: Workbench) -> None:
    files = as_project(application('result("{}");'), framework=MONGODB)
    files["pom.xml"] = pom(MONGODB).replace("<version>4.1.2</version>", "<version>3.2.0</version>")
    result = await spring(workbench, files)
    assert result.outcome is Outcome.COMPILE_ERROR
    (found,) = result.diagnostics
    assert found.message.startswith("org.springframework.boot:spring-boot-starter-parent:3.2.0 is not in the snapshot")


async def test_a_query_that_cannot_be_derived_is_found_at_its_method(workbench: Workbench) -> None:
    source = QUERIES[MONGODB].replace("findByCustomer", "findByCustmer")
    result = await spring(workbench, {"Application.java": source})
    assert result.outcome is Outcome.RUNTIME_ERROR
    (found,) = result.diagnostics
    assert "No property 'custmer' found for type 'Order'" in found.message
    assert "interface Orders" not in (found.excerpt or "") or "findByCustmer" in (found.excerpt or "")
    assert found.path == "Application.java"


async def test_an_application_without_a_package_is_told_why_it_does_not_start(workbench: Workbench) -> None:
    source = application('result("{}");').replace("package shop;\n", "")
    result = await spring(workbench, {"Application.java": source})
    assert result.outcome is Outcome.RUNTIME_ERROR
    (found,) = result.diagnostics
    assert found.code == "default-package"
    assert "declare a package" in found.message


async def test_an_exception_of_the_program_is_found_at_its_line(workbench: Workbench) -> None:
    source = application('throw new IllegalStateException("no orders");')
    result = await spring(workbench, {"Application.java": source})
    assert result.outcome is Outcome.RUNTIME_ERROR
    (found,) = result.diagnostics
    assert (found.code, found.message) == (
        "java.lang.IllegalStateException",
        "java.lang.IllegalStateException: no orders",
    )
    assert (found.excerpt or "").strip() == 'throw new IllegalStateException("no orders");'


async def test_a_missing_result_is_told(workbench: Workbench) -> None:
    result = await spring(workbench, {"Application.java": application('System.out.println("done");')})
    assert result.outcome is Outcome.RESULT_MISSING


async def test_a_banner_changes_nothing(workbench: Workbench) -> None:
    source = application('System.out.println(System.getProperty("name")); result("{}");')
    environment = {"JAVA_TOOL_OPTIONS": "-Dname=value"}
    for files in ({"Application.java": source}, as_project(source, framework=MONGODB)):
        result = await spring(workbench, dict(files), environment=environment)
        assert printed(result) == "value\n"
        assert "Picked up JAVA_TOOL_OPTIONS" in result.phases[-1].stderr.text
        assert result.diagnostics == ()


async def test_a_rejected_cache_is_a_warning_and_no_output_of_the_program(workbench: Workbench) -> None:
    source = application('System.out.println("later"); result("{}");')
    # Other object headers than those the caches were made with.
    environment = {"JAVA_TOOL_OPTIONS": "-XX:+UseCompactObjectHeaders"}
    result = await spring(workbench, {"Application.java": source}, environment=environment)
    assert printed(result) == "later\n"
    assert [(item.phase, item.severity, item.code) for item in result.diagnostics] == [
        ("build", Severity.WARNING, "aot-cache"),
        ("run", Severity.WARNING, "aot-cache"),
    ]


FINGERPRINT = application(
    """var names = new TreeSet<String>();
    try (var files = Files.walk(Path.of("/opt/uom/maven/repository"))) {
        for (var file : (Iterable<Path>) files::iterator)
            names.add(file + " " + Files.size(file) + " " + Files.getLastModifiedTime(file));
    }
    System.out.println(names.size() + " " + names.hashCode());
    result("{}");"""
)


async def test_projects_built_at_once_pass_and_leave_the_repository_as_it_is(workbench: Workbench) -> None:
    before = printed(await spring(workbench, {"Application.java": FINGERPRINT}))
    projects = [as_project(application(f'System.out.println("{n}"); result("{{}}");'), framework=MONGODB) for n in "ab"]
    results = await asyncio.gather(*(spring(workbench, files) for files in projects))
    assert [printed(result) for result in results] == ["a\n", "b\n"]
    assert printed(await spring(workbench, {"Application.java": FINGERPRINT})) == before
