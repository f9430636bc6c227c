from __future__ import annotations

from typing import Any

import pytest

from sandbox.execution import Stop
from sandbox.models import Outcome
from sandbox.outcomes import Facts, Status, phase_verdict
from sandbox.profiles import Phase

BUILD = Phase(name="build", command="x", failure=Outcome.COMPILE_ERROR)
RUN = Phase(name="run", command="x")


def facts(**fields: Any) -> Facts:
    defaults: dict[str, Any] = {"phase": RUN, "limit": 10.0, "seconds": 1.0, "exit_code": 1, "snapshot": "snap"}
    return Facts(**(defaults | fields))


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"exit_code": 0}, Outcome.PASSED),
        ({"exit_code": 1}, Outcome.RUNTIME_ERROR),
        ({"exit_code": 1, "phase": BUILD}, Outcome.COMPILE_ERROR),
        ({"exit_code": None}, Outcome.RUNTIME_ERROR),
        ({"exit_code": None, "stop": Stop.TIMEOUT}, Outcome.TIMEOUT),
        ({"exit_code": None, "stop": Stop.STALLED, "silence": 2.0}, Outcome.STALLED),
        ({"exit_code": None, "stop": Stop.OUTPUT, "output_limit": 9}, Outcome.OUTPUT_EXCEEDED),
        ({"exit_code": 124, "status": Status(elapsed=9.99)}, Outcome.TIMEOUT),
        ({"exit_code": 124, "status": Status(elapsed=3.0)}, Outcome.RUNTIME_ERROR),
        ({"exit_code": 124, "seconds": 10.2}, Outcome.TIMEOUT),
        ({"exit_code": 137, "status": Status(elapsed=11.0)}, Outcome.TIMEOUT),
        ({"exit_code": 137}, Outcome.RUNTIME_ERROR),
        ({"exit_code": 137, "end_reason": "memory"}, Outcome.MEMORY_EXCEEDED),
        ({"exit_code": 137, "end_reason": "disk"}, Outcome.RUNTIME_ERROR),
        ({"exit_code": 137, "status": Status(oom_kills=1)}, Outcome.MEMORY_EXCEEDED),
        ({"exit_code": 1, "status": Status(oom_kills=1)}, Outcome.RUNTIME_ERROR),
        ({"stderr": 'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space'}, Outcome.MEMORY_EXCEEDED),
        ({"stderr": "Traceback\n  x\nMemoryError\n"}, Outcome.MEMORY_EXCEEDED),
        ({"stderr": "MemoryError: cannot"}, Outcome.MEMORY_EXCEEDED),
        ({"exit_code": 134, "stderr": "Out of memory.\nAborted"}, Outcome.MEMORY_EXCEEDED),
        ({"exit_code": 134, "stderr": "Unhandled exception. System.OutOfMemoryException: x"}, Outcome.MEMORY_EXCEEDED),
        ({"exit_code": 134, "stderr": "Win32Exception (12): Cannot allocate memory"}, Outcome.MEMORY_EXCEEDED),
        ({"stderr": "the MemoryErrorHandler said so"}, Outcome.RUNTIME_ERROR),
        ({"exit_code": 0, "stderr": "java.lang.OutOfMemoryError caught"}, Outcome.PASSED),
        ({"exit_code": 127, "stderr": "build: 1: mvn: not found\n"}, Outcome.TOOL_MISSING),
        ({"exit_code": 127, "stderr": "build: line 1: mvn: command not found\n"}, Outcome.TOOL_MISSING),
        ({"exit_code": 127, "stderr": "/opt/uom/bin/java-run: 2: exec: java: not found\n"}, Outcome.TOOL_MISSING),
        ({"exit_code": 127, "stderr": "my own: not found"}, Outcome.RUNTIME_ERROR),
        ({"exit_code": 127}, Outcome.RUNTIME_ERROR),
        ({"exit_code": 1, "stderr": "build: 1: mvn: not found\n"}, Outcome.RUNTIME_ERROR),
        ({"exit_code": 126, "stderr": "run: 1: ./tool: Permission denied\n"}, Outcome.TOOL_MISSING),
    ],
)
def test_facts_give_the_outcome(fields: dict[str, Any], outcome: Outcome) -> None:
    verdict = phase_verdict(facts(**fields))
    assert verdict.outcome is outcome
    assert verdict.message.endswith(".")


def test_every_code_but_zero_is_a_failure() -> None:
    assert [code for code in range(256) if phase_verdict(facts(exit_code=code)).outcome is Outcome.PASSED] == [0]


@pytest.mark.parametrize(("code", "signal"), [(137, 9), (143, 15), (0, None), (1, None), (128, None), (255, None)])
def test_signals_are_read_from_the_code(code: int, signal: int | None) -> None:
    assert facts(exit_code=code).signal == signal


def test_the_name_of_the_signal_and_the_doubt_are_told() -> None:
    assert "SIGSEGV" in phase_verdict(facts(exit_code=139)).message
    assert "nothing tells who sent it" in phase_verdict(facts(exit_code=137, status=Status(elapsed=0.5))).message
    assert "by the program itself" in phase_verdict(facts(exit_code=137)).message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "exit",
        "started x\nended 2\noom a b\nresult",
        "\0\0",
        "oom - -\nresult file",
        "exit 1\nstarted\nended\noom 5",
    ],
)
def test_a_spoilt_note_is_no_evidence(text: str) -> None:
    status = Status.parse(text)
    assert status.oom_kills == 0
    assert status.elapsed is None


def test_a_note_is_read() -> None:
    status = Status.parse("exit 137\nstarted 10.50\nended 12.00\noom 3 5\nresult link\n")
    assert status == Status(elapsed=1.5, oom_kills=2, result_kind="link")
