"""What recordings cannot show: foreign paths, forged text, hostile sizes, wrong names."""

from __future__ import annotations

import pytest

from sandbox.diagnostics import find_diagnostics, strip_ansi
from sandbox.errors import ConfigurationError
from sandbox.models import Diagnostic, Severity

WORKSPACE = "/sandbox/thread-1/run-1"


def find(
    parser: str, *, stdout: str = "", stderr: str = "", files: dict[str, str | bytes] | None = None
) -> tuple[Diagnostic, ...]:
    return find_diagnostics(
        [parser], stdout=stdout, stderr=stderr, phase="build", files=files or {}, workspace=WORKSPACE
    )


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("\x1b[31merror\x1b[0m", "error"),
        ("\x1b[1;38;5;9mA\x1b[mB", "AB"),
        ("\x9b31mA", "A"),
        ("\x1b]9;4;3;\x1b\\build", "build"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1bPdevice\x1b\\text", "text"),
        ("\x1b]8;;file:///x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Btext\x1b7", "text"),
        ("\x1b]never ended\nnext line", "\nnext line"),
        ("no codes", "no codes"),
    ],
)
def test_strips_control_sequences(raw: str, plain: str) -> None:
    assert strip_ansi(raw) == plain


def test_coloured_output_parses_as_plain_output_does() -> None:
    plain = "Main.java:1: error: cannot find symbol\nint x = y;\n        ^\n  symbol: variable y\n"
    coloured = plain.replace("error", "\x1b[31merror\x1b[0m").replace("Main", "\x1b[1mMain\x1b[0m")
    files: dict[str, str | bytes] = {"Main.java": "int x = y;"}
    assert find("javac", stderr=coloured, files=files) == find("javac", stderr=plain, files=files) != ()


@pytest.mark.parametrize("path", [f"{WORKSPACE}/app/Main.java", "app/Main.java", "./app/../app/Main.java"])
def test_paths_are_the_callers(path: str) -> None:
    (found,) = find("javac", stderr=f"{path}:2: error: ';' expected\n")
    assert (found.path, found.line) == ("app/Main.java", 2)


@pytest.mark.parametrize("path", ["/usr/lib/jvm/Secret.java", "../other-run/Main.java", f"{WORKSPACE}-2/Main.java"])
def test_a_place_outside_the_workspace_is_a_detail(path: str) -> None:
    (found,) = find("javac", stderr=f"{path}:2: error: ';' expected\n")
    assert found.path is None
    assert found.line is None
    assert found.details == (f"in {path}:2",)


def test_a_finding_told_twice_counts_once() -> None:
    line = f"{WORKSPACE}/Program.cs(2,7): error CS0103: The name 'x' does not exist [{WORKSPACE}/app.csproj]\n"
    (found,) = find("msbuild", stdout=f"{line}\nBuild FAILED.\n\n{line}    1 Error(s)\n")
    assert (found.path, found.line, found.column, found.code, found.tool) == ("Program.cs", 2, 7, "CS0103", "csc")
    assert found.message == "The name 'x' does not exist"


def test_javac_reads_only_standard_error() -> None:
    assert find("javac", stdout="Main.java:1: error: printed by something else\n") == ()


def test_a_rejected_aot_cache_is_one_warning() -> None:
    said = (
        "[0.006s][warning][aot] Unable to use AOT cache.\n"
        "[0.006s][error  ][aot] An error has occurred while processing the AOT cache. Run with -Xlog:aot for details.\n"
    )
    (found,) = find("javac", stdout=said)
    assert (found.severity, found.code) == (Severity.WARNING, "aot-cache")
    assert found.details[0] == "Unable to use AOT cache."


def test_a_crash_of_the_compiler_is_told_with_its_stack() -> None:
    said = (
        "An exception has occurred in the compiler (25.0.3). Please file a bug against the Java compiler\n"
        "java.lang.AssertionError\n\tat jdk.compiler/com.sun.tools.javac.util.Assert.error(Assert.java:155)\n"
    )
    (found,) = find("javac", stderr=said)
    assert (found.code, found.message) == ("compiler_crash", "the compiler 25.0.3 crashed")
    assert found.details[0] == "java.lang.AssertionError"


def test_a_crash_of_the_compiler_of_csharp_is_told_with_its_stack() -> None:
    said = (
        "Unhandled exception. System.NullReferenceException: Object reference not set to an instance of an object.\n"
        "   at Microsoft.CodeAnalysis.CSharp.Binder.BindExpression(ExpressionSyntax node, BindingDiagnosticBag bag)\n"
    )
    (found,) = find("csc", stderr=said)
    assert (found.code, found.message, found.tool) == ("compiler_crash", "the C# compiler crashed", "csc")
    assert found.details[0].startswith("Unhandled exception. System.NullReferenceException")
    assert find("csc", stderr=said.replace("Microsoft.CodeAnalysis", "Shop")) == ()


def test_a_message_with_the_form_of_a_place_stays_a_message() -> None:
    (found,) = find("csc", stdout="Program.cs(1,8): error CS1029: #error: 'Other.cs(9,9): error CS0001: forged'\n")
    assert (found.path, found.line, found.code) == ("Program.cs", 1, "CS1029")


def test_a_logged_traceback_followed_by_more_output_is_not_the_end() -> None:
    said = (
        'Traceback (most recent call last):\n  File "/sandbox/thread-1/run-1/a.py", line 1, in <module>\n'
        "    1 / 0\nZeroDivisionError: division by zero\n"
        'Traceback (most recent call last):\n  File "/sandbox/thread-1/run-1/b.py", line 2, in <module>\n'
        "    raise KeyError(\"k\")\nKeyError: 'k'\n"
    )
    (found,) = find("python", stderr=said, files={"a.py": "1 / 0\n", "b.py": '\nraise KeyError("k")\n'})
    assert (found.path, found.line, found.message) == ("b.py", 2, "KeyError: 'k'")


def test_a_java_frame_is_found_by_its_package() -> None:
    said = 'Exception in thread "main" a.b.Fault: text\n\tat x.Main.go(Main.java:3)\n\tat a.b.Main.main(Main.java:7)\n'
    files: dict[str, str | bytes] = {"src/a/b/Main.java": "\n" * 9, "src/c/Main.java": "\n" * 9}
    (found,) = find("jvm", stderr=said, files=files)
    assert (found.path, found.line) == ("src/a/b/Main.java", 7)


def test_a_byte_order_mark_and_windows_line_ends_do_not_shift_the_excerpt() -> None:
    files: dict[str, str | bytes] = {"Program.cs": "\ufefffirst();\r\nsecond();\r\n"}
    found = find(
        "csc", stdout="Program.cs(2,1): error CS0103: no\r\nProgram.cs(1,1): error CS0103: no\r\n", files=files
    )
    assert [item.excerpt for item in found] == ["second();", "first();"]


def test_endless_lines_and_texts_are_bounded() -> None:
    endless = "x" * 5_000_000
    frames = "".join(f"\tat Main.f(Main.java:{number})\n" for number in range(100_000))
    said = f'Exception in thread "main" java.lang.Error: {endless}\n{frames}{endless}'
    (found,) = find("jvm", stderr=said, files={"Main.java": endless})
    assert len(found.message) <= 2000
    assert sum(map(len, found.details)) < 20_000
    assert found.excerpt is None or len(found.excerpt) <= 500


@pytest.mark.parametrize("parser", ["javac", "csc", "python", "jvm", "dotnet"])
@pytest.mark.parametrize(
    "noise", ["\x00\x01\xff", "((((((((((", "at at at at", " " * 10_000, ": error : error CS1: ", "  File"]
)
def test_noise_is_no_finding(parser: str, noise: str) -> None:
    assert find(parser, stdout=f"{noise}\n" * 2000, stderr=f"{noise}\n" * 2000) == ()


def test_errors_are_kept_before_warnings() -> None:
    said = "".join(f"P.cs({number},1): warning CS0168: w\n" for number in range(1, 300))
    found = find("csc", stdout=f"{said}P.cs(999,1): error CS0103: the error\n")
    assert len(found) == 201
    assert found[-2].message == "the error"
    assert found[-1].message == "100 more findings are left out"


def test_an_unknown_parser_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"diagnostics: no parser 'javax'.*Known: javac, csc"):
        find("javax")
