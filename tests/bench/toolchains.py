"""Compile and run with every template, network off: warm and cold, with the compiler alone and as a project."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from daytona import AsyncDaytona

from sandbox.errors import SandboxError
from sandbox.models import ResultExpectation, ValidationRequest, ValidationResult
from sandbox.profiles import builtin_profile
from tests.bench.figures import Figure
from tests.bench.validations import core
from tests.databases.maven import repository_networks
from tests.examples.spring_sources import FRAMEWORKS, application, as_project

ROOT = Path(__file__).parents[2]
PAGE_CACHE = Path("/proc/sys/vm/drop_caches")
WARM_ROUNDS = 7
COLD_ROUNDS = 3

HELLO_JAVA = 'public class Main { public static void main(String[] a) { System.out.println("hello"); } }'
HELLO_CSHARP = 'System.Console.WriteLine("hello");'


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A program and one way to build it.

    Attributes:
        name: Row of the table.
        request: What is validated; it passes.
        target: What compile and run may take together, as text; empty when there is no target for that way.
    """

    name: str
    request: ValidationRequest
    target: str = ""


def open_the_way_to_libraries() -> None:
    """Lets snapshots fetch libraries from a repository that has a private address on this machine."""
    networks = repository_networks()
    if networks:
        os.environ.setdefault("UOM_EXTRA_PUBLIC_CIDRS", ",".join(networks))


def cases() -> list[Case]:
    """Every template, with the compiler alone and, where projects are built, as a project of the caller's own."""
    found = [_case("plain Java", "java", "plain", {"Main.java": HELLO_JAVA}, target="<= 0.8")]
    mappers = {name: _sources(ROOT / f"examples/csharp-{name}-orders") for name in ("efcore", "dapper")}
    template = ROOT / "sandbox/builtin/dotnet"
    mappers["nhibernate"] = _sources(template / "nhibernate")
    for name, files, target in (
        ("plain", {"Program.cs": HELLO_CSHARP}, "<= 2"),
        ("efcore", mappers["efcore"], "<= 2.5"),
        ("dapper", mappers["dapper"], ""),
        ("nhibernate", mappers["nhibernate"], ""),
    ):
        project = {"Shop.csproj": (template / name / "Program.csproj").read_text(encoding="utf-8")}
        found.append(_case(f"C# {name}", "dotnet", name, files, target=target))
        found.append(_case(f"C# {name}, project", "dotnet", name, {**files, **project}))
    for name in FRAMEWORKS:
        source = application('result("{}");')
        found.append(_case(name, "java", name, {"Application.java": source}, target="<= 3"))
        project = {path: str(text) for path, text in as_project(source, framework=name).items()}
        found.append(
            _case(f"{name}, project", "java", name, project, entry_point="src/main/java/shop/Application.java")
        )
    return found


async def compile_and_run(client: AsyncDaytona) -> list[Figure]:
    """Phases of validations with every template whose tools and libraries are here."""
    figures: list[Figure] = []
    for case in cases():
        try:
            first = await core(case.request, client)
        except SandboxError as error:
            print(f"{case.name}: not measured: {str(error).splitlines()[0]}", flush=True)
            continue
        assert first.passed, (case.name, first.message)
        warm = [await core(case.request, client) for _ in range(WARM_ROUNDS)]
        figures += _rows(case.name, warm, target=case.target)
        cold, kept = [], ""
        for _ in range(COLD_ROUNDS):
            if not await _cool(case.request, client):
                kept = ", page cache kept"
            cold.append(await core(case.request, client))
        figures += _rows(f"{case.name}, cold{kept}", cold)
    return figures


def _rows(name: str, results: list[ValidationResult], *, target: str = "") -> list[Figure]:
    samples: dict[str, list[float]] = {}
    for result in results:
        assert result.passed, (name, result.message)
        for phase, seconds in (*result.timings.phases.items(), ("total", sum(result.timings.phases.values()))):
            samples.setdefault(phase, []).append(seconds)
    return [
        Figure(name=f"{name}: {phase}", samples=values, unit="s", target=target if phase == "total" else "")
        for phase, values in samples.items()
    ]


async def _cool(request: ValidationRequest, client: AsyncDaytona) -> bool:
    """Ends the sandbox, so that the next validation is the first in a new one, and forgets what was read from disk.

    Returns:
        Whether the page cache could be dropped; that is the administrator's right.
    """
    name = builtin_profile(request.profile).prepared_for(request.framework).sandbox_name
    await (await client.get(name)).delete(timeout=60)
    return await asyncio.to_thread(_drop_page_cache)


def _drop_page_cache() -> bool:
    try:
        os.sync()
        PAGE_CACHE.write_text("3")
    except OSError:
        return False
    return True


def _sources(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.cs"))}


def _case(
    name: str, profile: str, framework: str, files: dict[str, str], *, target: str = "", entry_point: str | None = None
) -> Case:
    request = ValidationRequest(
        profile=profile,
        framework=framework,
        files=dict(files),
        entry_point=entry_point or ("Program.cs" if profile == "dotnet" else None),
        result=ResultExpectation.OPTIONAL,
    )
    return Case(name=name, request=request, target=target)
