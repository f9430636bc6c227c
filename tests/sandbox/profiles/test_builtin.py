"""The built-in profiles as data: what every one of them must be, on every runtime."""

from __future__ import annotations

import re

import pytest

from sandbox.diagnostics import PARSERS
from sandbox.local.control.dockerfile import Env, Run, parse
from sandbox.models import Outcome
from sandbox.profiles import Framework, Profile, builtin_profile, builtin_profile_names

NAMES = builtin_profile_names()
MAPPERS = ("efcore", "dapper", "nhibernate")
SPRING = ("spring-data-mongodb", "spring-data-neo4j")
PREPARED = [
    *((name, None) for name in NAMES),
    *(
        (name, key)
        for name in NAMES
        for key, item in builtin_profile(name).frameworks.items()
        if item.snapshot == "own"
    ),
]


@pytest.fixture(params=PREPARED, ids=lambda pair: "-".join(filter(None, pair)))
def profile(request: pytest.FixtureRequest) -> Profile:
    """Each profile as snapshots are made of it: with the frameworks that share one, and with each that has its own."""
    name, framework = request.param
    return builtin_profile(name).prepared_for(framework)


def frameworks_of(profile: Profile) -> dict[str, Framework]:
    """The frameworks that the profile's snapshot has."""
    return {name: item for name, item in profile.frameworks.items() if item.snapshot == "shared"}


def test_there_are_three() -> None:
    assert NAMES == ("dotnet", "java", "python")


@pytest.mark.parametrize(
    ("name", "type_", "image", "frameworks"),
    [
        (
            "dotnet",
            "dotnet-10-sandbox",
            "mcr.microsoft.com/dotnet/sdk:10.0",
            {"plain", "efcore", "dapper", "nhibernate"},
        ),
        ("java", "java-25-sandbox", "bellsoft/liberica-openjdk-debian:25-cds", {"plain", "maven", *SPRING}),
        ("python", "python-3-sandbox", "python:3.13-slim", {"plain"}),
    ],
)
def test_names_and_images(name: str, type_: str, image: str, frameworks: set[str]) -> None:
    profile = builtin_profile(name)
    assert (profile.name, profile.type, profile.image) == (name, type_, image)
    assert profile.snapshot_name == f"validation-snapshot-{type_}"
    assert profile.sandbox_name == f"validation-sandbox-{type_}"
    assert set(profile.frameworks) == frameworks
    assert profile.default_framework == "plain"


@pytest.mark.parametrize("framework", SPRING)
def test_spring_has_snapshots_of_its_own_so_that_plain_java_does_not_wait_for_them(framework: str) -> None:
    java = builtin_profile("java")
    prepared = java.prepared_for(framework)
    assert prepared.snapshot_name == f"validation-snapshot-java-25-sandbox-{framework}"
    assert prepared.sandbox_name == f"validation-sandbox-java-25-sandbox-{framework}"
    assert java.prepared_for("plain") is java
    assert "mvn" not in java.dockerfile({})


def test_nhibernate_has_a_snapshot_of_its_own_because_not_every_package_source_has_it() -> None:
    dotnet = builtin_profile("dotnet")
    assert dotnet.prepared_for("nhibernate").snapshot_name == "validation-snapshot-dotnet-10-sandbox-nhibernate"
    assert "NHibernate" not in dotnet.dockerfile({})
    prepared = dotnet.prepared_for("nhibernate")
    driver = prepared.frameworks["nhibernate"].files["SqliteDriver.cs"]
    assert driver in prepared.dockerfile({}), "the template is made with the driver that programs get"


@pytest.mark.parametrize(
    ("name", "framework", "told"),
    [
        ("dotnet", "efcore", ("CONNECTION_STRING", "EFCORE_RESULTS_PATH")),
        ("dotnet", "dapper", ("CONNECTION_STRING", "DAPPER_RESULTS_PATH")),
        ("dotnet", "nhibernate", ("CONNECTION_STRING", "NHIBERNATE_RESULTS_PATH", "Uom.SqliteDriver")),
        ("java", "spring-data-mongodb", ("MONGODB_URI", "MONGO_RESULTS_PATH")),
        ("java", "spring-data-neo4j", ("NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD", "NEO4J_RESULTS_PATH")),
    ],
)
def test_descriptions_say_what_a_program_reads_and_where_it_leaves_its_result(
    name: str, framework: str, told: tuple[str, ...]
) -> None:
    description = builtin_profile(name).frameworks[framework].description
    assert [word for word in told if word not in description] == []


def test_programs_live_in_universal_time_whatever_the_machine_does(profile: Profile) -> None:
    assert profile.environment["TZ"] == "UTC"


def test_idle_sandboxes_stop_after_an_hour_and_programs_reach_no_network(profile: Profile) -> None:
    assert profile.auto_stop_minutes == 60
    assert profile.network.mode == "none"


def test_the_definition_can_be_built_by_every_runtime(profile: Profile) -> None:
    definition = parse(profile.dockerfile({}))
    assert definition.image == profile.image
    steps = [step for step in definition.instructions if isinstance(step, Run)]
    assert len(steps) == len(profile.setup) + sum(len(item.setup) for item in frameworks_of(profile).values())
    for step in steps:
        assert step.script is not None, "a step is one here-document, whose word names it in build logs"
        assert re.search(r"<<'[A-Z][A-Z_]+'$", step.text), step.text


def test_scripts_of_the_definition_are_shell(profile: Profile, tmp_path: object) -> None:
    import subprocess

    for step in parse(profile.dockerfile({})).instructions:
        if isinstance(step, Run):
            checked = subprocess.run(["sh", "-n"], input=step.script, text=True, capture_output=True, check=False)
            assert (checked.returncode, checked.stderr) == (0, ""), step.text


def test_the_last_steps_prove_that_programs_work_without_a_network(profile: Profile) -> None:
    steps = [step for step in parse(profile.dockerfile({})).instructions if isinstance(step, Run)]
    assert not steps[-1].network


def test_texts_survive_because_the_locale_is_utf_8(profile: Profile) -> None:
    assert profile.environment["LANG"] == "C.UTF-8"
    values = [step for step in parse(profile.dockerfile({})).instructions if isinstance(step, Env)]
    assert any(name == "LANG" for step in values for name, _ in step.pairs)


def test_phases_name_parsers_that_exist(profile: Profile) -> None:
    for framework in profile.frameworks.values():
        for phase in framework.phases:
            assert phase.diagnostics
            assert set(phase.diagnostics) <= set(PARSERS)


def test_a_build_that_fails_is_a_compile_error_and_a_run_that_fails_a_runtime_error(profile: Profile) -> None:
    for framework in profile.frameworks.values():
        assert [(phase.name, phase.failure) for phase in framework.phases] == [
            ("build", Outcome.COMPILE_ERROR),
            ("run", Outcome.RUNTIME_ERROR),
        ]


def test_every_phase_command_is_one_that_the_snapshot_brings(profile: Profile) -> None:
    definition = profile.dockerfile({})
    for framework in frameworks_of(profile).values():
        for phase in framework.phases:
            program = phase.command.split()[0]
            assert f"cat > {program} <<'EOF'" in definition


def test_no_address_of_a_package_index_is_named(profile: Profile) -> None:
    addresses = re.findall(r"https?://[^\s\"'<]+", profile.dockerfile({}))
    assert addresses == []


def test_programs_that_must_write_a_result_are_those_of_object_mappers() -> None:
    rules = {name: item.result.value for name, item in builtin_profile("dotnet").frameworks.items()}
    assert rules == {"plain": "optional", **dict.fromkeys(MAPPERS, "required")}
    rules = {name: item.result.value for name, item in builtin_profile("java").frameworks.items()}
    assert rules == {"plain": "optional", "maven": "optional", **dict.fromkeys(SPRING, "required")}


def test_the_package_source_is_the_only_thing_taken_from_the_callers_environment() -> None:
    profile = builtin_profile("dotnet")
    environ = {"UOM_NUGET_SOURCE": "/srv/feed", "DAYTONA_API_KEY": "secret", "PATH": "/bin"}
    text = profile.dockerfile(environ)
    assert 'ENV UOM_NUGET_SOURCE="/srv/feed"' in text
    assert "secret" not in text
    assert profile.definition_hash(environ) != profile.definition_hash({})
    assert profile.definition_hash({}) == profile.definition_hash({"DAYTONA_API_KEY": "secret"})
