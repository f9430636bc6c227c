"""Parsers over what real tools said about the programs in ``programs`` (see ``record``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.diagnostics import MAX_DIAGNOSTICS, find_diagnostics, find_unreachable_database
from sandbox.models import Diagnostic, Severity
from tests.sandbox.diagnostics.expected import EXPECTED, Found
from tests.sandbox.diagnostics.record import PROGRAMS, RECORDED, WORKSPACE, program_files

RECORDINGS = sorted({path.name.rsplit(".", 2)[0] for path in RECORDED.iterdir()})


def parts(recording: str) -> tuple[str, str]:
    """Tool and case of a recording, without the version between them."""
    tool, _, case = recording.split("-", 2)
    return tool, case


def request_files(recording: str) -> dict[str, str | bytes]:
    """The files of the program a recording is about; a recording may add a word to the program's name."""
    name = "-".join(parts(recording))
    program = max((path.name for path in PROGRAMS.iterdir() if name.startswith(path.name)), key=len)
    return dict(program_files(program))


def stream(recording: str, name: str) -> str:
    path = RECORDED / f"{recording}.{name}.txt"
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""


def diagnostics_of(recording: str, *parsers: str, failed: bool = True, network: str = "open") -> tuple[Diagnostic, ...]:
    tool, _ = parts(recording)
    return find_diagnostics(
        parsers or [tool],
        stdout=stream(recording, "stdout"),
        stderr=stream(recording, "stderr"),
        phase="build",
        files=request_files(recording),
        workspace=WORKSPACE,
        failed=failed,
        network=network,
    )


def shown(found: Diagnostic, *, like: Found) -> Found:
    place = ":".join(str(part or "-") for part in (found.path, found.line, found.column))
    return found.severity, place, found.code, found.message[: len(like[3])]


@pytest.mark.parametrize("recording", [name for name in RECORDINGS if not name.endswith("-many-errors")])
def test_finds_what_the_tool_said_and_nothing_else(recording: str) -> None:
    tool, case = parts(recording)
    expected = EXPECTED.get(recording, EXPECTED.get(f"{tool}-{case}"))
    assert expected is not None, f"add {recording} to expected.py"
    found = diagnostics_of(recording)
    assert len(found) == len(expected), [item.message for item in found]
    assert [shown(item, like=like) for item, like in zip(found, expected, strict=True)] == expected


def test_every_expectation_has_a_recording() -> None:
    known = set(RECORDINGS) | {"-".join(parts(recording)) for recording in RECORDINGS}
    assert set(EXPECTED) <= known


@pytest.mark.parametrize("recording", RECORDINGS)
def test_excerpt_is_the_line_of_the_callers_file(recording: str) -> None:
    files = request_files(recording)
    for found in diagnostics_of(recording):
        assert found.phase == "build"
        if found.path is None or found.line is None:
            assert found.excerpt is None
            continue
        lines = bytes(files[found.path]).decode("utf-8", "replace").split("\n")  # type: ignore[arg-type]
        assert found.excerpt == lines[found.line - 1].rstrip()
        if found.column is not None:
            assert 1 <= found.column <= len(lines[found.line - 1]) + 1


def test_details_stay_with_their_error() -> None:
    lenght = diagnostics_of("javac-25.0.3-missing-symbol")[1]
    assert lenght.details == ("symbol:   method lenght()", "location: variable names of type List<String>")
    pay = next(item for item in diagnostics_of("javac-25.0.3-types") if item.line == 15)
    assert pay.details == (
        "required: int,String",
        "found:    int",
        "reason: actual and formal argument lists differ in length",
    )


def test_causes_and_further_lines_of_the_message_are_details() -> None:
    (java,) = diagnostics_of("jvm-25.0.3-uncaught")
    assert java.details[0] == "for customer 7"
    assert java.details[1].startswith("Caused by: java.lang.ArrayIndexOutOfBoundsException: Index 0")
    (python,) = diagnostics_of("python-3.13.0-chained")
    assert python.details == ("asked for by main", "orders start at 1", "caused by KeyError: 2 (main.py:7)")
    (dotnet,) = diagnostics_of("dotnet-10.0.12-uncaught")
    assert dotnet.details[0] == "for customer 7"
    assert dotnet.details[1].startswith("System.ArgumentOutOfRangeException: Index was out of range.")


def test_more_findings_than_fit_are_counted() -> None:
    found = diagnostics_of("javac-25.0.3-many-errors")
    assert len(found) == MAX_DIAGNOSTICS + 1
    assert [item.line for item in found[:3]] == [2, 3, 4]
    assert found[-1].severity is Severity.INFO
    assert found[-1].message == "30 more findings are left out"


def test_a_banner_changes_nothing() -> None:
    assert "Picked up JAVA_TOOL_OPTIONS" in stream("javac-25.0.3-missing-symbol-tool-options", "stderr")
    assert diagnostics_of("javac-25.0.3-missing-symbol-tool-options") == diagnostics_of("javac-25.0.3-missing-symbol")


def test_progress_codes_change_nothing() -> None:
    assert "\x1b]9;4;" in stream("msbuild-10.0.401-errors-terminal", "stdout")
    assert diagnostics_of("msbuild-10.0.401-errors-terminal") == diagnostics_of("msbuild-10.0.401-errors")


@pytest.mark.parametrize(
    "recording", ["jvm-25.0.3-uncaught", "python-3.13.0-uncaught", "dotnet-10.0.12-uncaught", "spring-4.1.2-throws"]
)
def test_a_program_that_ended_well_has_no_runtime_findings(recording: str) -> None:
    assert diagnostics_of(recording, failed=False) == ()


def test_warnings_of_a_compiler_count_when_it_succeeded() -> None:
    assert [item.code for item in diagnostics_of("javac-25.0.3-warnings", failed=False)] == [
        "unchecked",
        "deprecation",
        "removal",
    ]


@pytest.mark.parametrize("recording", [name for name in RECORDINGS if parts(name)[0] in ("jvm", "python", "dotnet")])
def test_no_compiler_is_heard_in_the_output_of_a_program(recording: str) -> None:
    tool, _ = parts(recording)
    others = [name for name in ("javac", "csc", "python", "jvm", "dotnet") if name != tool]
    if recording.endswith("-survived"):
        # These programs print a compiler's words, which is why phases name their parsers.
        others = [name for name in others if name not in ("javac", "csc")]
    assert diagnostics_of(recording, *others) == ()


def test_maven_repeats_its_list_and_each_finding_is_there_once() -> None:
    assert stream("maven-3.8.7-errors", "stdout").count("cannot find symbol") == 6
    found = diagnostics_of("maven-3.8.7-errors")
    assert [item.message for item in found].count("cannot find symbol") == 3
    assert found[0].details == (
        "symbol:   class MongoTemplte",
        "location: package org.springframework.data.mongodb.core",
    )


def test_maven_counts_columns_to_tab_stops_and_we_count_characters() -> None:
    assert "Application.java:[12,34]" in stream("maven-3.8.7-errors", "stdout")
    (found,) = (item for item in diagnostics_of("maven-3.8.7-errors") if item.line == 12)
    assert found.excerpt is not None
    assert found.column is not None
    assert found.excerpt[found.column - 1 :].startswith(".lenght()")


def test_a_library_that_the_snapshot_lacks_is_named_with_its_line_in_the_project() -> None:
    first, second = diagnostics_of("maven-3.8.7-missing-artifact")
    assert first.message.startswith(
        "org.postgresql:postgresql:42.7.14 is not in the snapshot, and the sandbox has no network"
    )
    assert (first.excerpt or "").strip() == "<artifactId>postgresql</artifactId>"
    assert second.message.startswith("com.example:no-such-library:1.0 is not in the snapshot")


def test_the_bean_that_was_being_made_is_a_detail_of_what_went_wrong() -> None:
    (found,) = diagnostics_of("spring-4.1.2-bean-fails")
    assert found.message == 'java.lang.NumberFormatException: For input string: "seven"'
    assert found.details[0].startswith(
        "while: org.springframework.beans.factory.BeanCreationException: Error creating bean"
    )


def test_what_spring_boot_advises_is_a_detail() -> None:
    (found,) = diagnostics_of("spring-4.1.2-missing-bean")
    assert found.details == (
        "action: Consider defining a bean of type 'shop.Application$Orders' in your configuration.",
    )


@pytest.mark.parametrize(
    ("recording", "told"),
    [
        ("spring-4.1.2-mongodb-down", "MongoDB at 127.0.0.1:1 did not answer: Connection refused"),
        (
            "spring-4.1.2-mongodb-down-unknown-host",
            "MongoDB at db.invalid:27017 did not answer: unknown host db.invalid",
        ),
        ("spring-4.1.2-mongodb-down-several", "MongoDB at 127.0.0.1:1, 127.0.0.1:2 did not answer: Connection refused"),
        ("spring-4.1.2-driver-down", "MongoDB at 127.0.0.1:1 did not answer: Connection refused"),
        ("spring-4.1.2-neo4j-down", "Neo4j at 127.0.0.1:1 did not answer: Connection refused"),
        ("spring-4.1.2-neo4j-down-unknown-host", "Neo4j at db.invalid:7687 did not answer: unknown host db.invalid"),
        ("spring-4.1.2-neo4j-down-routed", "Neo4j at 127.0.0.1:1 did not answer: Connection refused"),
    ],
)
def test_a_database_that_is_down_is_named(recording: str, told: str) -> None:
    streams = {name: stream(recording, name) for name in ("stdout", "stderr")}
    assert str(find_unreachable_database(["spring", "jvm"], **streams)) == told
    assert find_unreachable_database(["jvm"], **streams) is None, "only phases that name the parser are read"


@pytest.mark.parametrize(
    "recording", [name for name in RECORDINGS if parts(name)[0] == "spring" and "down" not in name]
)
def test_no_database_is_blamed_for_other_failures(recording: str) -> None:
    streams = {name: stream(recording, name) for name in ("stdout", "stderr")}
    assert find_unreachable_database(["spring"], **streams) is None


@pytest.mark.parametrize("recording", [name for name in RECORDINGS if parts(name)[0] == "spring"])
def test_no_compiler_is_heard_in_the_output_of_a_spring_program(recording: str) -> None:
    assert diagnostics_of(recording, "maven", "javac", "csc", "dotnet", "python") == ()


def test_recordings_name_no_directory_of_the_machine_they_were_made_on() -> None:
    for path in sorted(Path(RECORDED).iterdir()):
        assert b"uom-record-" not in path.read_bytes(), path.name


RELATIONAL = [
    ("dotnet-10.0.12-npgsql-down", "PostgreSQL at 127.0.0.1:1 did not answer: Connection refused"),
    ("dotnet-10.0.12-npgsql-down-logged", "PostgreSQL at 127.0.0.1:1 did not answer: Connection refused"),
    ("dotnet-10.0.12-npgsql-down-unknown-host", "PostgreSQL did not answer: Name or service not known"),
    ("dotnet-10.0.12-npgsql-down-silent", "PostgreSQL did not answer: The operation has timed out"),
    ("dotnet-10.0.12-ef-down", "PostgreSQL at 127.0.0.1:1 did not answer: Connection refused"),
    (
        "dotnet-10.0.12-sqlclient-down",
        "SQL Server did not answer: A network-related or instance-specific error occurred while establishing a "
        "connection to SQL Server",
    ),
    ("dotnet-10.0.12-sqlclient-down-unknown-host", "SQL Server did not answer: Name or service not known"),
    ("dotnet-10.0.12-sqlclient-down-silent", "SQL Server did not answer: Connection Timeout Expired"),
]


@pytest.mark.parametrize(("recording", "told"), RELATIONAL)
def test_a_relational_database_that_is_down_is_named(recording: str, told: str) -> None:
    streams = {name: stream(recording, name) for name in ("stdout", "stderr")}
    assert str(find_unreachable_database(["dotnet"], **streams)) == told
    assert find_unreachable_database(["csc"], **streams) is None, "only phases that name the parser are read"


@pytest.mark.parametrize(
    "recording", [name for name in RECORDINGS if parts(name)[0] == "dotnet" and "down" not in name]
)
def test_no_relational_database_is_blamed_for_other_failures(recording: str) -> None:
    streams = {name: stream(recording, name) for name in ("stdout", "stderr")}
    assert find_unreachable_database(["dotnet"], **streams) is None


@pytest.mark.parametrize(
    ("recording", "number"),
    [
        ("dotnet-10.0.12-sqlclient-down-unknown-host", "Error Number:11001,State:0,Class:20"),
        ("dotnet-10.0.12-sqlclient-down-silent", "Error Number:-2,State:0,Class:11"),
    ],
)
def test_the_number_of_an_error_of_sql_server_is_a_detail(recording: str, number: str) -> None:
    (found,) = diagnostics_of(recording)
    assert number in found.details


def test_what_ef_core_wraps_around_a_driver_is_a_detail() -> None:
    (found,) = diagnostics_of("dotnet-10.0.12-ef-down")
    assert found.details == (
        "System.InvalidOperationException: An exception has been raised that is likely due to a transient failure.",
        "Npgsql.NpgsqlException (0x80004005): Failed to connect to 127.0.0.1:1",
        "System.Net.Sockets.SocketException (111): Connection refused",
    )


def test_a_package_that_the_snapshot_lacks_is_named_with_its_line_and_what_would_help() -> None:
    (found,) = diagnostics_of("msbuild-10.0.401-missing-package")
    assert found.message == "No.Such.Package is not in the snapshot, and the sandbox has no network to fetch it"
    assert (found.excerpt or "").strip() == '<PackageReference Include="No.Such.Package" Version="1.2.3" />'
    assert found.details[0].startswith("Unable to find package No.Such.Package.")
    assert "network policy is `open`" in found.details[-1]


def test_a_version_that_the_snapshot_lacks_is_told_with_the_nearest_one() -> None:
    warning, error = diagnostics_of("msbuild-10.0.401-missing-version")
    assert warning.message.endswith("Newtonsoft.Json 13.0.4 was resolved instead.")
    assert error.message == "Dapper >= 99.0.0 is not in the snapshot, and the sandbox has no network to fetch it"
    assert "- Found 1 version(s) in snapshot [ Nearest version: 2.1.86 ]" in error.details


def test_a_package_source_that_does_not_answer_is_one_finding_with_its_reasons() -> None:
    (found,) = diagnostics_of("msbuild-10.0.401-no-index")
    assert found.details == ("Connection refused (127.0.0.1:1)", "Connection refused")


NO_NETWORK = [name for name in RECORDINGS if "-no-network" in name and parts(name)[0] != "maven"]


@pytest.mark.parametrize("recording", NO_NETWORK)
@pytest.mark.parametrize("network", ["none", "allow"])
def test_a_host_that_the_policy_keeps_away_is_told_as_such(recording: str, network: str) -> None:
    (found,) = diagnostics_of(recording, network=network)
    (plain,) = diagnostics_of(recording)
    told = {"none": "the sandbox has no network", "allow": "the sandbox reaches only what its network policy lists"}
    assert found.message == f"{told[network]}: {plain.message}"
    assert found.code == "no-network"
    assert (found.path, found.line, found.excerpt) == (plain.path, plain.line, plain.excerpt)
    assert found.path is not None
    assert "network policy is `open`" in found.details[-1]


@pytest.mark.parametrize("recording", NO_NETWORK)
def test_where_everything_may_be_reached_the_policy_is_not_blamed(recording: str) -> None:
    assert [item.code for item in diagnostics_of(recording) if item.code == "no-network"] == []


@pytest.mark.parametrize("recording", [name for name in RECORDINGS if name not in NO_NETWORK])
def test_the_policy_is_not_blamed_for_other_failures(recording: str) -> None:
    assert diagnostics_of(recording, network="none") == diagnostics_of(recording)
