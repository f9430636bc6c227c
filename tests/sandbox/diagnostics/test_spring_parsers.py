"""Maven, Spring and their drivers beyond the recordings: other forms of the same words, and forged ones."""

from __future__ import annotations

import pytest

from sandbox.diagnostics import find_diagnostics, find_unreachable_database
from sandbox.models import Diagnostic, Severity

WORKSPACE = "/sandbox/thread-1/run-1"


def find(
    parser: str, *, stdout: str = "", stderr: str = "", files: dict[str, str | bytes] | None = None
) -> tuple[Diagnostic, ...]:
    return find_diagnostics([parser], stdout=stdout, stderr=stderr, phase="run", files=files or {}, workspace=WORKSPACE)


def test_a_rejected_cache_of_the_program_is_one_warning() -> None:
    log = "[0.006s][warning][aot] Unable to use AOT cache.\n[0.006s][error  ][aot] An error has occurred.\n"
    (found,) = find("aot", stderr=log)
    assert (found.severity, found.code) == (Severity.WARNING, "aot-cache")
    assert found.details == ("Unable to use AOT cache.", "An error has occurred.")
    assert find("aot", stdout=log) == ()


@pytest.mark.parametrize(
    ("text", "message", "code"),
    [
        (
            "[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.15.0:compile (c) "
            "on project p: Fatal error compiling: error: release version 26 not supported -> [Help 1]",
            "Fatal error compiling: error: release version 26 not supported",
            "goal",
        ),
        (
            "[ERROR] Plugin org.example:some-maven-plugin:1.0 or one of its dependencies could not be resolved: Cannot "
            "access central (feed://host/maven2) in offline mode and the artifact "
            "org.example:some-maven-plugin:jar:1.0 has not been downloaded from it before. -> [Help 1]",
            "org.example:some-maven-plugin:1.0 is not in the snapshot, and the sandbox has no network to fetch it",
            "offline",
        ),
        (
            "[ERROR] Failed to execute goal on project p: Could not resolve dependencies for project a:p:jar:1: Could "
            "not find artifact com.example:lost:jar:tests:2.0 in central (feed://host/maven2) -> [Help 1]",
            "the repository has no com.example:lost:tests:2.0",
            "not-found",
        ),
        ("[ERROR] No plugin found for prefix 'no' in the current project -> [Help 1]", "No plugin found", "plugin"),
    ],
)
def test_what_keeps_maven_from_compiling_is_found(text: str, message: str, code: str) -> None:
    (found,) = find("maven", stdout=f"{text}\n[ERROR] \n[ERROR] To see the full stack trace of the errors, …\n")
    assert found.message.startswith(message)
    assert (found.severity, found.tool, found.code) == (Severity.ERROR, "maven", code)


def test_a_compilation_failure_without_a_list_keeps_what_maven_says() -> None:
    text = (
        "[ERROR] Failed to execute goal g:p:1:compile (default-compile) on project p: Compilation failure\n"
        "[ERROR] An unknown compilation problem occurred\n[ERROR] -> [Help 1]\n[ERROR] \n[ERROR] To see the …\n"
    )
    (found,) = find("maven", stdout=text)
    assert found.message == "Compilation failure"
    assert found.details == ("goal g:p:1:compile", "An unknown compilation problem occurred")


def test_a_crash_of_the_compiler_inside_of_maven_has_its_trace() -> None:
    text = "An exception has occurred in the compiler (25.0.3). Please file a bug\njava.lang.Error: no\n\tat a.B\n"
    found = find("maven", stdout=text)
    assert found[0].code == "compiler_crash"
    assert found[0].details == ("java.lang.Error: no", "\tat a.B")


def test_details_that_only_the_second_list_has_are_kept() -> None:
    head = f"[ERROR] {WORKSPACE}/src/main/java/A.java:[1,7] cannot find symbol\n"
    goal = "[ERROR] Failed to execute goal g:p:1:compile (c) on project p: Compilation failure\n"
    (found,) = find("maven", stdout=f"{head}{goal}{head}[ERROR]   symbol:   class B\n[ERROR]   location: class A\n")
    assert found.details == ("symbol:   class B", "location: class A")
    assert (found.path, found.line, found.column) == ("src/main/java/A.java", 1, 7)


@pytest.mark.parametrize(
    ("line", "column", "character"),
    [("int a;", 5, 5), ("\tint a;", 13, 6), ("a\tb", 9, 3), ("\t\tx", 17, 3), ("\t", 8, 1), ("", 4, 4), ("\tx", 40, 3)],
)
def test_columns_become_characters(line: str, column: int, character: int) -> None:
    text = f"[ERROR] {WORKSPACE}/A.java:[1,{column}] not a statement\n"
    (found,) = find("maven", stdout=text, files={"A.java": line})
    assert found.column == character


LOG = "2026-12-01T00:30:39.608Z ERROR 6938 --- [app] [           main] o.s.boot.SpringApplication               : "


def test_a_name_of_the_application_in_the_log_changes_nothing() -> None:
    (found,) = find("spring", stdout=f"{LOG}Application run failed\n\njava.lang.Error: no\n\tat a.B.c(B.java:1)\n")
    assert (found.code, found.message) == ("java.lang.Error", "java.lang.Error: no")


@pytest.mark.parametrize(
    "text",
    [
        "Application run failed\n\njava.lang.Error: no\n\tat a.B.c(B.java:1)\n",
        f"{LOG}it failed\n\njava.lang.Error: no\n\tat a.B.c(B.java:1)\n",
        f"{LOG}Application run failed\n",
        f"{LOG}Application run failed\n\nno exception follows\n",
        "APPLICATION FAILED TO START\n\nnothing to read\n",
    ],
)
def test_other_words_of_a_program_are_no_finding(text: str) -> None:
    assert find("spring", stdout=text) == ()


def test_the_file_of_a_frame_is_found_wherever_the_caller_put_it() -> None:
    text = f"{LOG}Application run failed\n\njava.lang.Error: no\n\tat shop.Main.run(Main.java:3) ~[classes/:na]\n"
    source = "package shop;\nclass Main {\n  boom();\n}\n"
    for path in ("Main.java", "src/main/java/shop/Main.java", "anywhere/Main.java"):
        (found,) = find("spring", stdout=text, files={path: source})
        assert (found.path, found.line, found.excerpt) == (path, 3, "  boom();")
    (found,) = find("spring", stdout=text, files={"Main.java": source.replace("shop", "other")})
    assert found.path is None, "a library may have a file of this name"


TIMED_OUT = (
    "com.mongodb.MongoTimeoutException: Timed out while waiting for a server that matches X. Client view of cluster "
    "state is {type=UNKNOWN, servers=[{address=db:27017, type=UNKNOWN, state=CONNECTING}]"
)


def test_a_server_that_never_answered_has_no_reason() -> None:
    trace = f"{TIMED_OUT}\n\tat com.mongodb.internal.connection.BaseCluster.selectServer(BaseCluster.java:165)\n"
    found = find_unreachable_database(["spring"], stdout="", stderr=trace)
    assert str(found) == "MongoDB at db:27017 did not answer"


def test_text_without_the_drivers_own_frames_proves_nothing() -> None:
    for text in (TIMED_OUT, f"{TIMED_OUT}\n\tat shop.Fake.main(Fake.java:1)\n"):
        assert find_unreachable_database(["spring"], stdout=text, stderr=text) is None


def test_endless_output_is_read_in_bounded_time() -> None:
    noise = f"{LOG}Application run failed\n\n" + "a" * 300_000 + "\n" + "java.lang.Error: x\n" * 20_000
    assert find("spring", stdout=noise) == ()
    assert find("maven", stdout="[ERROR] " * 50_000) == ()
