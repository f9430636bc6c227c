"""From the facts about a phase to the verdict's word: one table, the first rule that holds decides.

How an out-of-memory kill is known. Daytona's API reports an exit code and nothing else, so signal 9 alone proves
nothing: a program may kill itself. It counts as ``memory_exceeded`` when one of these agrees:

- the platform says so (an ``endReason`` of ``memory`` beside the exit code, which the local platform adds),
- the kernel's count of out-of-memory kills, read inside the sandbox before and after the phase, has risen,
- the runtime says so in its own words (``java.lang.OutOfMemoryError``, ``MemoryError``, ``Out of memory.``).

Otherwise it is the phase's failure, as a full disk (``endReason`` of ``disk``) always is, and the message says that the
reason of the signal is unknown.

When a database counts as unreachable. The preflight asks the databases that the request names; one that does not
answer ends the run as ``database_unreachable`` before anything is compiled. A driver that gives up while the program
runs gives the same outcome only when there was no preflight: the program then talks to a database that nobody has seen.
After a preflight that passed, the server was there a moment before, so the program has most likely gone to another
address than the one it was given. That is a fault of the program, ``runtime_error``; the finding
``database-unreachable`` names the address that it tried.
"""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sandbox.diagnostics import find_unreachable_database
from sandbox.diagnostics.causes import DATABASE_UNREACHABLE, DISK_FULL, KILLED, OUT_OF_MEMORY, TOOL_MISSING
from sandbox.execution import GRACE_SECONDS, Stop
from sandbox.models import Outcome
from sandbox.profiles import Phase

TIMEOUT_CODE: Final = 124
"""What ``timeout`` of coreutils exits with when its limit ended the program."""

EVIDENCE_CHARACTERS: Final = 16 * 1024
"""How much of the end of each stream is searched for a runtime's own words."""

_OUT_OF_MEMORY: Final = re.compile(
    r"java\.lang\.OutOfMemoryError"
    r"|There is insufficient memory for the Java Runtime Environment"
    r"|System\.OutOfMemoryException"
    r"|^MemoryError\b"
    r"|^Out of memory\.$"
    r"|\(12\): Cannot allocate memory"
    r"|Cannot allocate memory$",
    re.MULTILINE,
)
# A shell's own words, after the phase's name or the path of a script of the profile: `build: 1: mvn: not found` (dash),
# `build: line 1: mvn: command not found` (bash), `/opt/uom/bin/java-run: 2: exec: java: not found`.
_NOT_FOUND: Final = re.compile(
    r"^(?:/\S+|[a-z][a-z0-9-]*): (?:line )?\d+: (?:exec: )?(?P<tool>[^:\n]+): (?:command )?(?:cannot execute: )?"
    r"(?:not found|No such file or directory|Permission denied|required file not found)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the phase script noted, see ``phase.sh``.

    Attributes:
        elapsed: Seconds the program took inside the sandbox; ``None`` when unknown.
        oom_kills: How many out-of-memory kills the kernel counted meanwhile.
        result_kind: What lies where the result should be: ``file``, ``missing``, ``link``, ``directory``, ``other``.
        left: How many processes the script could not end.
        unfit: True when the run's directories could not be made, so the program was not started.
    """

    elapsed: float | None = None
    oom_kills: int = 0
    result_kind: str | None = None
    left: int = 0
    unfit: bool = False

    @classmethod
    def parse(cls, text: str) -> Status:
        """Reads the script's note; a program may have spoilt it, so anything unreadable is left out."""
        fields: dict[str, list[str]] = {}
        for line in text.splitlines():
            name, *values = line.split() or [""]
            fields[name] = values
        kind = fields.get("result")
        started, ended = _number(fields.get("started")), _number(fields.get("ended"))
        before, after = _number(fields.get("oom")), _number((fields.get("oom") or [])[1:])
        return cls(
            elapsed=None if started is None or ended is None else max(0.0, ended - started),
            oom_kills=0 if before is None or after is None else max(0, int(after - before)),
            result_kind=kind[0] if kind else None,
            left=int(_number(fields.get("left")) or 0),
            unfit="unfit" in fields,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about a phase that has ended.

    Attributes:
        phase: Which.
        limit: Seconds it had.
        seconds: Seconds it took, as seen from outside.
        exit_code: ``None`` when nobody knows.
        end_reason: The platform's word beyond the exit code.
        stop: The limit by which we ended it.
        silence: Seconds it might be silent.
        output_limit: Bytes it might print.
        status: The phase script's note, read when the phase did not end with 0 or its time is counted.
        stdout: End of its standard output.
        stderr: End of its standard error.
        memory_mib: Its share of the sandbox's memory, MiB.
        sandbox_mib: Memory of the sandbox, MiB.
        snapshot: Name of the environment, for a tool that is missing there.
        unreachable: Databases that did not answer the preflight, one sentence each.
        answered: Whether there was a preflight and all databases answered it.
    """

    phase: Phase
    limit: float
    seconds: float
    exit_code: int | None
    end_reason: str | None = None
    stop: Stop | None = None
    silence: float | None = None
    output_limit: int = 0
    status: Status = Status()
    stdout: str = ""
    stderr: str = ""
    memory_mib: int = 0
    sandbox_mib: int = 0
    snapshot: str = ""
    unreachable: tuple[str, ...] = ()
    answered: bool = False

    @property
    def signal(self) -> int | None:
        """Number of the signal that ended the program, as a shell reports it (128 + n)."""
        if self.exit_code is None or self.exit_code <= 128:
            return None
        number = self.exit_code - 128
        return number if number in signal.valid_signals() else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome and one sentence for a person.

    Attributes:
        outcome: Its word.
        message: The sentence.
        cause: Code of what the facts about the process show, see ``diagnostics.causes``; ``None`` when they show none.
    """

    outcome: Outcome
    message: str
    cause: str | None = None


def phase_verdict(facts: Facts) -> Verdict:
    """Returns the verdict on one phase."""
    for rule in _RULES:
        verdict = rule(facts)
        if verdict is not None:
            return verdict
    raise AssertionError("the last rule always holds")


def _database_down(facts: Facts) -> Verdict | None:
    """Before the program: what the phase ``preflight`` found, whatever its exit code is."""
    return Verdict(Outcome.DATABASE_UNREACHABLE, " ".join(facts.unreachable)) if facts.unreachable else None


def _stopped(facts: Facts) -> Verdict | None:
    name = facts.phase.name
    match facts.stop:
        case Stop.TIMEOUT:
            return Verdict(Outcome.TIMEOUT, f"The phase {name} did not end within {facts.limit:g} s.")
        case Stop.STALLED:
            return Verdict(Outcome.STALLED, f"The phase {name} was silent for {facts.silence:g} s.")
        case Stop.OUTPUT:
            return Verdict(Outcome.OUTPUT_EXCEEDED, f"The phase {name} printed more than {facts.output_limit} bytes.")
    return None


def _passed(facts: Facts) -> Verdict | None:
    return Verdict(Outcome.PASSED, f"The phase {facts.phase.name} passed.") if facts.exit_code == 0 else None


def _timed_out(facts: Facts) -> Verdict | None:
    """Ended by the phase script's deadline: its exit code, and the time it took inside the sandbox."""
    elapsed = facts.seconds if facts.status.elapsed is None else facts.status.elapsed
    # The script's clock counts hundredths. SIGKILL follows after the grace, when SIGTERM did not do.
    needed = facts.limit if facts.exit_code == TIMEOUT_CODE else facts.limit + GRACE_SECONDS
    if facts.exit_code in (TIMEOUT_CODE, 128 + signal.SIGKILL) and elapsed >= needed - 0.05:
        return Verdict(Outcome.TIMEOUT, f"The phase {facts.phase.name} did not end within {facts.limit:g} s.")
    return None


def _out_of_memory(facts: Facts) -> Verdict | None:
    name = facts.phase.name
    killed = facts.exit_code == 128 + signal.SIGKILL
    if facts.end_reason == "memory" or (killed and facts.status.oom_kills):
        message = f"The phase {name} was killed because the sandbox ran out of its {facts.sandbox_mib} MiB of memory."
        return Verdict(Outcome.MEMORY_EXCEEDED, message, OUT_OF_MEMORY)
    for text in (facts.stderr, facts.stdout):
        found = _OUT_OF_MEMORY.search(text[-EVIDENCE_CHARACTERS:])
        if found:
            message = f"The phase {name} ran out of memory, its share is {facts.memory_mib} MiB: {found.group()}."
            return Verdict(Outcome.MEMORY_EXCEEDED, message, OUT_OF_MEMORY)
    return None


def _disk_full(facts: Facts) -> Verdict | None:
    if facts.end_reason != "disk":
        return None
    message = f"The phase {facts.phase.name} was killed because the sandbox ran out of disk space."
    return Verdict(Outcome(facts.phase.failure), message, DISK_FULL)


def _tool_missing(facts: Facts) -> Verdict | None:
    if facts.exit_code not in (126, 127):
        return None
    found = list(_NOT_FOUND.finditer(facts.stderr[-EVIDENCE_CHARACTERS:]))
    if not found:
        return None
    return Verdict(
        Outcome.TOOL_MISSING,
        f"The phase {facts.phase.name} needs {found[-1].group('tool').strip()!r}, "
        f"which the snapshot {facts.snapshot} does not have.",
        TOOL_MISSING,
    )


def _database_unreachable(facts: Facts) -> Verdict | None:
    if facts.answered:
        return None
    server = find_unreachable_database(facts.phase.diagnostics, stdout=facts.stdout, stderr=facts.stderr)
    return None if server is None else Verdict(Outcome.DATABASE_UNREACHABLE, f"{server}.", DATABASE_UNREACHABLE)


def _unknown(facts: Facts) -> Verdict | None:
    if facts.exit_code is not None:
        return None
    return Verdict(
        Outcome(facts.phase.failure), f"How the phase {facts.phase.name} ended is unknown: its shell vanished with it."
    )


def _failed(facts: Facts) -> Verdict:
    name = facts.phase.name
    number = facts.signal
    if number is None:
        return Verdict(Outcome(facts.phase.failure), f"The phase {name} failed with exit code {facts.exit_code}.")
    named = number in set(signal.Signals)
    word = signal.Signals(number).name if named else f"signal {number}"  # real-time signals have no names
    hint, cause = "", None
    if number == signal.SIGKILL:
        cause = KILLED
        if facts.status.elapsed is None:
            # The script notes the end of any program; without its note it was ended, too.
            hint = ", and so was what watches over it: by the program itself, or because memory ran out"
        else:
            hint = "; nothing tells who sent it, memory is the usual reason"
    return Verdict(Outcome(facts.phase.failure), f"The phase {name} was ended by {word}{hint}.", cause)


_RULES: Final[tuple[Callable[[Facts], Verdict | None], ...]] = (
    _database_down,
    _stopped,
    _passed,
    _timed_out,
    _out_of_memory,
    _disk_full,
    _tool_missing,
    _database_unreachable,
    _unknown,
    _failed,
)


def _number(values: list[str] | None) -> float | None:
    try:
        number = float(values[0]) if values else None
    except ValueError:
        return None
    return number if number is None or math.isfinite(number) else None
