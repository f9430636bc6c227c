"""What makes starts cheap may be unfit or spoilt: then programs start later, and the result says so."""

from __future__ import annotations

import pytest

from sandbox.events import EventStream
from sandbox.models import Outcome, Severity, ValidationRequest, ValidationResult
from sandbox.profiles import Profile, builtin_profile
from sandbox.snapshots import ensure_snapshot
from sandbox.validation import Validation
from tests.examples.workbench import Workbench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
"""Each test builds a snapshot of its own."""

SPOIL_LIBRARY = """<<'SPOIL_A_LIBRARY'
set -eu
library=$(find /opt/uom/nuget/compiled -name Dapper.dll)
head -c 1000 "$library" > /tmp/uom-spoilt
mv /tmp/uom-spoilt "$library"
SPOIL_A_LIBRARY"""
SPOIL_CACHE = """<<'SPOIL_THE_CACHE'
set -eu
head -c 1000000 /opt/uom/cache/javac.aot > /tmp/uom-spoilt
mv /tmp/uom-spoilt /opt/uom/cache/javac.aot
SPOIL_THE_CACHE"""
# A cache fits the virtual machine that made it. Another one writes another identity into it.
SPOIL_IDENTITY = """<<'SPOIL_THE_IDENTITY'
set -eu
sed 's/OpenJDK 64-Bit Server VM (25/OpenJDK 64-Bit Server VM (24/g' /opt/uom/cache/javac.aot > /tmp/uom-spoilt
if cmp -s /tmp/uom-spoilt /opt/uom/cache/javac.aot; then exit 1; fi
mv /tmp/uom-spoilt /opt/uom/cache/javac.aot
SPOIL_THE_IDENTITY"""

DAPPER = """using Dapper;
using Microsoft.Data.Sqlite;

using var connection = new SqliteConnection("Data Source=:memory:");
Console.WriteLine(connection.ExecuteScalar<string>("select 'later'"));
"""
JAVA = 'void main() { IO.println("later"); }'


def spoilt(name: str, framework: str, *, step: str, kind: str) -> Profile:
    """A built-in profile with one framework, whose set-up ends with a further step."""
    profile = builtin_profile(name)
    chosen = profile.frameworks[framework]
    chosen = chosen.model_copy(update={"setup": (*chosen.setup, step)})
    return profile.model_copy(
        update={"type": f"{name}-{kind}", "default_framework": framework, "frameworks": {framework: chosen}}
    )


async def validated(workbench: Workbench, profile: Profile, files: dict[str, str | bytes]) -> ValidationResult:
    await workbench.profile(profile.name)  # skips where the tools are missing
    request = ValidationRequest(profile=profile.name, files=files, result="none").identified()
    async with EventStream(run_id=str(request.run_id), thread_id=str(request.thread_id)) as events:
        await ensure_snapshot(workbench.client, profile, events=events)
        return await Validation(request, profile=profile, client=workbench.client, events=events).run()


async def test_a_spoilt_library_that_was_compiled_ahead_is_a_warning(workbench: Workbench) -> None:
    profile = spoilt("dotnet", "dapper", step=SPOIL_LIBRARY, kind="spoilt-library")
    result = await validated(workbench, profile, {"Program.cs": DAPPER})
    assert result.outcome is Outcome.PASSED, (result.message, result.phases)
    assert result.phases[-1].stdout.text == "later\n"
    (found,) = result.diagnostics
    assert (found.phase, found.severity, found.code, found.tool) == ("run", Severity.WARNING, "aot-cache", "dotnet")


@pytest.mark.parametrize(
    ("step", "kind"), [(SPOIL_CACHE, "short-cache"), (SPOIL_IDENTITY, "foreign-cache")], ids=["short", "foreign"]
)
async def test_a_spoilt_cache_of_the_compiler_is_a_warning(workbench: Workbench, step: str, kind: str) -> None:
    result = await validated(workbench, spoilt("java", "plain", step=step, kind=kind), {"Main.java": JAVA})
    assert result.outcome is Outcome.PASSED, (result.message, result.phases)
    assert result.phases[-1].stdout.text == "later\n"
    (found,) = result.diagnostics
    assert (found.phase, found.severity, found.code, found.tool) == ("build", Severity.WARNING, "aot-cache", "javac")
