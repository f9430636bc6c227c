"""What a hostile program, compiler or result can put into an artifact, and what must not come of it."""

from __future__ import annotations

from typing import Any, Final

from sandbox.models import (
    Comparison,
    Diagnostic,
    Difference,
    Outcome,
    PhaseResult,
    Severity,
    ValidationResult,
)

HOSTILE: Final = (
    "<img src=http://evil.example/x.png onerror=alert(1)> <script>alert(2)</script> | a | b |\n"
    "```\n````\n~~~\n# big\n===\n- [x](javascript:alert(3)) ![i](http://evil.example/y.png) [r]\n\n"
    "[r]: http://evil.example/z\n"
    "</details></td></table> <!-- &lt;b&gt; **bold** `code` $math$ \\\\ \\| :smile: @all \n"
    "\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\ "
    "\x1b]0;title \x1b(B \x1bc \x9b1m \x00 \x07 \x7f\n"
    "10%\r20%\rdone\n\u202egnp.exe\u2066 \ud800 \ufffd\ufffd\n"
)
"""HTML, markdown, terminal codes, NUL, marks of direction, half a character; what bytes that are no UTF-8 become."""

IN_A_RESULT: Final = HOSTILE.replace("\ud800", "")
"""The same as far as JSON can hold it."""

NEVER: Final = ("\x1b", "\x00", "\x07", "\x9b", "\r", "\u202e", "\u2066", "\ud800")


def verdict(**changes: Any) -> ValidationResult:
    """A verdict with hostile text wherever a program, a compiler or a result decides about it."""
    fields: dict[str, Any] = {
        "outcome": Outcome.MISMATCH,
        "message": HOSTILE,
        "profile": "java",
        "framework": "plain",
        "thread_id": "t",
        "run_id": "r",
        "phases": (PhaseResult(name="run", command="x", exit_code=None, outcome=Outcome.RUNTIME_ERROR),),
        "diagnostics": (
            Diagnostic(
                severity=Severity.ERROR,
                message=HOSTILE,
                path=HOSTILE,
                line=3,
                code=HOSTILE,
                excerpt=HOSTILE,
                tool="javac",
            ),
        ),
        "comparison": Comparison(
            equal=False,
            total_differences=30,
            differences=(
                Difference(path="$.a" + HOSTILE, expected=1, actual=HOSTILE),
                Difference(path="$.b", expected=HOSTILE, actual=HOSTILE + "!"),
                Difference(path="$.c", expected=10**30, actual=HOSTILE, kind="type"),
            ),
        ),
        "recoveries": (HOSTILE,),
        "warnings": (HOSTILE,),
        "result": {IN_A_RESULT: {"rows": [{IN_A_RESULT: IN_A_RESULT, "n": 1}, IN_A_RESULT]}, "other": IN_A_RESULT},
        "result_path": "/x/" + HOSTILE,
    }
    return ValidationResult(**{**fields, **changes})


def outside_fences(markdown: str) -> str:
    """The markdown without its code blocks."""
    kept, fence = [], ""
    for line in markdown.split("\n"):
        if not fence and line.startswith("```"):
            fence = line[: len(line) - len(line.lstrip("`"))]
        elif fence and line == fence:
            fence = ""
        elif not fence:
            kept.append(line)
    assert not fence, "a fence was not closed"
    return "\n".join(kept)


def assert_harmless(markdown: str) -> None:
    """Nothing of a hostile text may be interpreted by who shows the markdown."""
    for sign in NEVER:
        assert sign not in markdown
    plain = outside_fences(markdown)
    for sign in (
        "<img",
        "<script",
        "](javascript",
        "![i]",
        "</td",
        "<!--",
        "\n# big",
        "\n===",
        "\n[r]:",
        "~~~",
        "://evil",
    ):
        assert sign not in plain
