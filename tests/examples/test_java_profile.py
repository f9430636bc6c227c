"""What a caller of the java profile may send, and what comes back."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.models import Outcome, Severity, ValidationRequest, ValidationResult
from tests.examples.workbench import Workbench

TEXT = "žluťoučký 日本語 😀"


async def java(workbench: Workbench, files: dict[str, str | bytes], **fields: object) -> ValidationResult:
    return await workbench.validate(ValidationRequest.model_validate({"profile": "java", "files": files, **fields}))


def printed(result: ValidationResult) -> str:
    assert result.outcome is Outcome.PASSED, (result.message, result.phases)
    return result.phases[-1].stdout.text


async def test_text_of_every_script_survives_source_output_file_and_name(workbench: Workbench) -> None:
    source = f"""
    import java.nio.file.*;

    void main() throws Exception {{
        IO.println("{TEXT}");
        Files.writeString(Path.of("{TEXT}.txt"), "{TEXT}");
        try (var files = Files.list(Path.of("."))) {{
            IO.println(files.map(file -> file.getFileName().toString()).filter(name -> name.endsWith(".txt")).toList());
        }}
        Files.writeString(Path.of(System.getenv("UOM_RESULT_FILE")), "{{\\"text\\": \\"{TEXT}\\"}}");
    }}
    """
    result = await java(workbench, {"Main.java": source})
    assert printed(result) == f"{TEXT}\n[{TEXT}.txt]\n"
    assert result.result == {"text": TEXT}


async def test_a_compact_source_file_of_any_name_starts(workbench: Workbench) -> None:
    result = await java(workbench, {"Hello.java": 'void main() { IO.println("compact"); }'})
    assert printed(result) == "compact\n"


async def test_classes_in_packages_are_compiled_together(workbench: Workbench) -> None:
    files: dict[str, str | bytes] = {
        "com/acme/Main.java": "/* first */\npackage com.acme;\nimport com.acme.shop.Order;\n"
        "public class Main { public static void main(String[] a) { System.out.println(new Order(7)); } }",
        "com/acme/shop/Order.java": "package com.acme.shop;\npublic record Order(int id) {}",
    }
    assert printed(await java(workbench, files, entry_point="com/acme/Main.java")) == "Order[id=7]\n"


async def test_a_class_named_unlike_its_file_starts(workbench: Workbench) -> None:
    source = 'final class App { public static void main(String[] a) { System.out.println("app"); } }\nclass Other {}'
    assert printed(await java(workbench, {"Program.java": source})) == "app\n"


async def test_a_file_name_with_blanks_and_quotes_compiles(workbench: Workbench) -> None:
    files: dict[str, str | bytes] = {
        "Main.java": "void main() { IO.println(new Helper().name()); }",
        "odd \"name\" of 'a' $file.java": 'class Helper { String name() { return "found"; } }',
    }
    assert printed(await java(workbench, files, entry_point="Main.java")) == "found\n"


async def test_a_file_beside_the_classes_is_a_resource(workbench: Workbench) -> None:
    source = """
    public class Main {
        public static void main(String[] args) throws Exception {
            try (var stream = Main.class.getResourceAsStream("/data/orders.csv")) {
                System.out.print(new String(stream.readAllBytes()));
            }
        }
    }
    """
    files: dict[str, str | bytes] = {"Main.java": source, "data/orders.csv": "1;Anna\n"}
    assert printed(await java(workbench, files, entry_point="Main.java")) == "1;Anna\n"


async def test_heap_and_processors_are_those_of_the_sandbox(workbench: Workbench) -> None:
    source = """
    void main() {
        var runtime = Runtime.getRuntime();
        IO.println(runtime.maxMemory() / 1048576 + " " + System.getenv("UOM_HEAP_MIB") + " "
            + runtime.availableProcessors() + " " + System.getenv("UOM_CPU"));
    }
    """
    heap, allowed, processors, share = map(int, printed(await java(workbench, {"Main.java": source})).split())
    assert allowed * 0.9 <= heap <= allowed
    assert processors == share


async def test_a_program_that_eats_all_memory_is_told_so(workbench: Workbench) -> None:
    source = "void main() { var kept = new java.util.ArrayList<byte[]>(); while (true) kept.add(new byte[1 << 20]); }"
    result = await java(workbench, {"Main.java": source})
    assert result.outcome is Outcome.MEMORY_EXCEEDED
    (found,) = result.diagnostics
    assert (found.path, found.line, found.code) == ("Main.java", 1, "out-of-memory")
    assert found.message.startswith("java.lang.OutOfMemoryError")


async def test_a_warning_does_not_hide_that_the_program_passed(workbench: Workbench) -> None:
    source = "void main() { java.util.List raw = new java.util.ArrayList(); raw.add(1); IO.println(raw); }"
    result = await java(workbench, {"Main.java": source})
    assert printed(result) == "[1]\n"
    (found,) = result.diagnostics
    assert (found.severity, found.code, found.phase) == (Severity.WARNING, "unchecked", "build")


async def test_a_banner_of_the_virtual_machine_is_no_finding(workbench: Workbench) -> None:
    environment = {"JAVA_TOOL_OPTIONS": "-Dname=value"}
    source = 'void main() { IO.println(System.getProperty("name")); }'
    result = await java(workbench, {"Main.java": source}, environment=environment)
    assert printed(result) == "value\n"
    assert "Picked up JAVA_TOOL_OPTIONS" in result.phases[-1].stderr.text
    assert result.diagnostics == ()


async def test_a_rejected_cache_of_the_compiler_is_a_warning(workbench: Workbench) -> None:
    # Other object headers than those the cache was made with.
    environment = {"JAVA_TOOL_OPTIONS": "-XX:+UseCompactObjectHeaders"}
    result = await java(workbench, {"Main.java": 'void main() { IO.println("slower"); }'}, environment=environment)
    assert printed(result).endswith("slower\n")
    (found,) = result.diagnostics
    assert (found.severity, found.code) == (Severity.WARNING, "aot-cache")


async def test_a_program_without_a_main_method_is_told_so(workbench: Workbench) -> None:
    result = await java(workbench, {"Main.java": "public class Main { static int add(int a) { return a; } }"})
    assert result.outcome is Outcome.RUNTIME_ERROR
    (found,) = result.diagnostics
    assert found.code == "launcher"


@pytest.mark.parametrize("code", [1, 3, 42])
async def test_the_exit_code_is_the_programs(workbench: Workbench, code: int) -> None:
    result = await java(workbench, {"Main.java": f"void main() {{ System.exit({code}); }}"})
    assert result.outcome is Outcome.RUNTIME_ERROR
    assert result.phases[-1].exit_code == code


async def test_what_a_program_prints_is_no_compiler_error(workbench: Workbench) -> None:
    line = "Main.java:1: error: cannot find symbol"
    result = await java(workbench, {"Main.java": f'void main() {{ System.err.println("{line}"); System.exit(5); }}'})
    assert result.outcome is Outcome.RUNTIME_ERROR
    (found,) = result.diagnostics
    assert (found.severity, found.code, found.path, found.details) == (Severity.INFO, "last-lines", None, (line,))


async def test_two_at_once_do_not_disturb_each_other(workbench: Workbench) -> None:
    def source(name: str) -> dict[str, str | bytes]:
        return {"Main.java": f'void main() {{ IO.println("{name} " + new Part().text()); }}', "Part.java": part(name)}

    def part(name: str) -> str:
        return f'class Part {{ String text() {{ return "{name}"; }} }}'

    names = ["one", "two", "three", "four"]
    results = await asyncio.gather(*(java(workbench, source(name), entry_point="Main.java") for name in names))
    assert [printed(result) for result in results] == [f"{name} {name}\n" for name in names]
