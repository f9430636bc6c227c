"""What the sandbox does to a program is told under one code in every language; real boxes, real runtimes."""

from __future__ import annotations

import pytest

from sandbox.models import Diagnostic, Outcome, ValidationRequest, ValidationResult
from tests.examples.workbench import Workbench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
"""The snapshot of .NET takes most of a minute."""

FETCH = {
    "python": (
        "main.py",
        'import urllib.request\n\nurllib.request.urlopen("https://api.example.com/orders", timeout=5)\n',
    ),
    "java": (
        "Main.java",
        "import java.net.URI;\n\nvoid main() throws Exception {\n"
        '    IO.println(new String(URI.create("https://api.example.com/orders").toURL().openStream().readAllBytes()));\n}\n',
    ),
    "dotnet": (
        "Program.cs",
        'using var client = new HttpClient();\nConsole.WriteLine(await client.GetStringAsync("https://api.example.com"));\n',
    ),
}
CONNECT = {
    "python": ("main.py", 'import socket\n\nsocket.create_connection(("192.0.2.1", 443), timeout=5)\n'),
    "java": (
        "Main.java",
        'import java.net.Socket;\n\nvoid main() throws Exception {\n    new Socket("192.0.2.1", 443);\n}\n',
    ),
    "dotnet": (
        "Program.cs",
        'using System.Net.Sockets;\n\nusing var client = new TcpClient("192.0.2.1", 443);\n',
    ),
}
FILL = {
    "python": ("main.py", 'with open("/dev/full", "w") as rows:\n    rows.write("order" * 100_000)\n'),
    "java": (
        "Main.java",
        "import java.nio.file.*;\n\nvoid main() throws Exception {\n"
        '    Files.writeString(Path.of("/dev/full"), "order".repeat(100_000));\n}\n',
    ),
    "dotnet": (
        "Program.cs",
        'using var rows = File.OpenWrite("/dev/full");\nrows.Write(new byte[1 << 20]);\nrows.Flush();\n',
    ),
}
CLOCK = {
    "python": (
        "main.py",
        'import datetime, os\n\nprint(os.environ["TZ"], datetime.datetime.now().astimezone().utcoffset())\n',
    ),
    "java": (
        "Main.java",
        'void main() { IO.println(System.getenv("TZ") + " " + java.time.ZonedDateTime.now().getOffset()); }\n',
    ),
    "dotnet": (
        "Program.cs",
        'Console.WriteLine($"{Environment.GetEnvironmentVariable("TZ")} {DateTimeOffset.Now.Offset}");\n',
    ),
}
LANGUAGES = pytest.mark.parametrize("profile", ["python", "java", "dotnet"])


async def validated(workbench: Workbench, profile: str, program: tuple[str, str]) -> ValidationResult:
    name, source = program
    return await workbench.validate(ValidationRequest(profile=profile, files={name: source}))


def only(result: ValidationResult) -> Diagnostic:
    assert len(result.diagnostics) == 1, (result.message, result.diagnostics, result.phases[-1].stderr.text)
    return result.diagnostics[0]


@LANGUAGES
@pytest.mark.parametrize("programs", [FETCH, CONNECT], ids=["name", "address"])
async def test_a_program_that_wants_the_network_is_told_of_the_policy(
    workbench: Workbench, profile: str, programs: dict[str, tuple[str, str]]
) -> None:
    name, source = programs[profile]
    result = await validated(workbench, profile, programs[profile])
    assert result.outcome is Outcome.RUNTIME_ERROR
    found = only(result)
    assert found.code == "no-network", found
    assert found.message.startswith("the sandbox has no network: ")
    assert found.path == name
    assert (found.excerpt or "") in source
    assert "network policy is `open`" in found.details[-1]


@LANGUAGES
async def test_a_disk_without_space_is_told_by_its_code(workbench: Workbench, profile: str) -> None:
    result = await validated(workbench, profile, FILL[profile])
    assert result.outcome is Outcome.RUNTIME_ERROR
    found = only(result)
    assert (found.code, found.path) == ("disk-full", FILL[profile][0])


async def test_a_program_that_kills_itself_is_killed_by_nobody_knows_whom(workbench: Workbench) -> None:
    result = await validated(workbench, "python", ("main.py", "import os\n\nos.kill(os.getpid(), 9)\n"))
    assert result.outcome is Outcome.RUNTIME_ERROR
    found = only(result)
    assert (found.code, found.message) == ("killed", result.message)


async def test_memory_that_the_box_has_not_is_told_by_its_code(workbench: Workbench) -> None:
    result = await validated(workbench, "python", ("main.py", "kept = [bytes(1 << 20) for _ in iter(int, 1)]\n"))
    assert result.outcome is Outcome.MEMORY_EXCEEDED
    assert "out-of-memory" in {found.code for found in result.diagnostics}


async def test_a_program_that_exits_without_a_reason_leaves_its_last_words(workbench: Workbench) -> None:
    source = 'import sys\n\nprint("order 7")\nsys.stderr.write("no such order: 7\\n")\nsys.exit(3)\n'
    found = only(await validated(workbench, "python", ("main.py", source)))
    assert (found.code, found.severity.value, found.details) == ("last-lines", "info", ("no such order: 7",))


@LANGUAGES
async def test_programs_live_in_universal_time_unless_they_are_told_otherwise(
    workbench: Workbench, profile: str
) -> None:
    zones = {"python": "JST-9", "java": "Asia/Tokyo", "dotnet": "UTC"}
    told = {
        "python": ("UTC 0:00:00\n", "JST-9 9:00:00\n"),
        "java": ("UTC Z\n", "Asia/Tokyo +09:00\n"),
        "dotnet": ("UTC 00:00:00\n", "UTC 00:00:00\n"),
    }
    name, source = CLOCK[profile]
    for environment, expected in zip(({}, {"TZ": zones[profile]}), told[profile], strict=True):
        request = ValidationRequest(profile=profile, files={name: source}, environment=environment)
        result = await workbench.validate(request)
        assert result.phases[-1].stdout.text == expected, result.message
