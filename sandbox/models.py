"""What is asked for and what is answered: the request and the verdict of a validation.

Field names are stable: they are what orchestrators, Prefect parameters and stored results rely on.
"""

from __future__ import annotations

import re
import uuid
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Self

from pydantic import Field, JsonValue, SecretStr, field_validator, model_validator

from sandbox.databases.connection import DatabaseConnection
from sandbox.databases.environment import check_endpoints, program_variables
from sandbox.frozen_model import Model as Model
from sandbox.request_checks import ENVIRONMENT_NAME as ENVIRONMENT_NAME
from sandbox.request_checks import check_environment, utf8
from sandbox.request_checks import check_relative_path as check_relative_path

MAX_FILES: Final = 500
MAX_REQUEST_BYTES: Final = 32 * 1024 * 1024
IDENTIFIER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


class Outcome(StrEnum):
    """The verdict's word."""

    PASSED = "passed"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    MEMORY_EXCEEDED = "memory_exceeded"
    OUTPUT_EXCEEDED = "output_exceeded"
    RESULT_MISSING = "result_missing"
    RESULT_INVALID = "result_invalid"
    MISMATCH = "mismatch"
    TOOL_MISSING = "tool_missing"
    DATABASE_UNREACHABLE = "database_unreachable"
    CANCELLED = "cancelled"

    @property
    def state_name(self) -> str:
        """The name of the Prefect state that carries this outcome, such as ``CompileError``."""
        return "".join(word.capitalize() for word in self.value.split("_"))


class Isolation(StrEnum):
    """Who shares a sandbox: one per profile, one per thread, or a fresh one for each run."""

    SHARED = "shared"
    THREAD = "thread"
    RUN = "run"


class ResultExpectation(StrEnum):
    """Whether a validation must leave a result file behind."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    NONE = "none"


class Severity(StrEnum):
    """How bad a diagnostic is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class RunLimits(Model):
    """Limits a caller may set for one run; ``None`` takes the profile's."""

    total_seconds: Annotated[float, Field(gt=0, le=86_400)] | None = Field(
        default=None, description="Seconds for all phases together."
    )
    phase_seconds: dict[str, Annotated[float, Field(gt=0, le=86_400)]] = Field(
        default_factory=dict, description="Seconds per phase name; overrides the profile's."
    )
    no_output_seconds: Annotated[float, Field(gt=0, le=86_400)] | None = Field(
        default=None, description="A phase silent for so many seconds ends as `stalled`."
    )
    output_bytes: Annotated[int, Field(ge=1024, le=2**40)] | None = Field(
        default=None,
        description="Bytes both streams of a phase may print together before it ends as `output_exceeded`.",
    )
    result_bytes: Annotated[int, Field(ge=1, le=2**30)] | None = Field(
        default=None, description="Largest result file in bytes."
    )
    platform_seconds: Annotated[float, Field(gt=0, le=240)] | None = Field(
        default=None, description="Seconds the platform may keep the run waiting by not answering; 40 by default."
    )


class ValidationRequest(Model):
    """One program to validate.

    Attributes:
        profile: Name of the profile, such as ``java``.
        framework: Project template inside the profile; ``None`` takes the profile's default.
        files: Relative path → text or bytes. At most 500 files and 32 MiB together.
        entry_point: The file that is the program; ``None`` takes the template's, or the only file.
        thread_id: The orchestrator's conversation; ``None`` makes a new one.
        run_id: Identity of this run; ``None`` makes a new one.
        environment: Plain environment variables of the program.
        secrets: Environment variables whose values never appear in logs, artifacts, parameters or process lists.
        connections: Databases that the program talks to, at most 10 endpoints together. The sandbox may reach exactly
            these, they are checked before anything is compiled, and the last phase finds them in its environment.
        stdin: Given to the program's last phase; by default its input is empty.
        limits: Time, output and result limits.
        result: Whether a result file is required; ``None`` takes the template's rule.
        expected: When given, the result must equal this JSON value, else the outcome is ``mismatch``.
        isolation: Who shares the sandbox; ``None`` takes the profile's.
    """

    profile: str = Field(min_length=1, max_length=80)
    framework: str | None = Field(default=None, max_length=80)
    files: dict[str, str | bytes] = Field(min_length=1, max_length=MAX_FILES)
    entry_point: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    environment: dict[str, str] = Field(default_factory=dict)
    secrets: dict[str, SecretStr] = Field(default_factory=dict)
    connections: tuple[DatabaseConnection, ...] = ()
    stdin: str | bytes | None = None
    limits: RunLimits = RunLimits()
    result: ResultExpectation | None = None
    expected: JsonValue = None
    isolation: Isolation | None = None

    @field_validator("files")
    @classmethod
    def _files_stay_inside(cls, files: dict[str, str | bytes]) -> dict[str, str | bytes]:
        total = 0
        for path, content in files.items():
            check_relative_path(path)
            total += len(utf8(content, f"the file {path!r}"))
        if total > MAX_REQUEST_BYTES:
            raise ValueError(f"the files hold {total} bytes together; the limit is {MAX_REQUEST_BYTES}")
        for path in files:
            for parent in PurePosixPath(path).parents:
                if str(parent) in files:
                    raise ValueError(f"{str(parent)!r} is a file and also a directory of {path!r}")
        return files

    @field_validator("stdin")
    @classmethod
    def _stdin_is_text(cls, value: str | bytes | None) -> str | bytes | None:
        utf8(value or "", "the text")
        return value

    @field_validator("thread_id", "run_id")
    @classmethod
    def _identifier(cls, value: str | None) -> str | None:
        if value is not None and not IDENTIFIER.fullmatch(value):
            raise ValueError(
                "use 1 to 80 letters, digits, dots, dashes or underscores, starting with a letter or digit: "
                "it names a directory of the sandbox"
            )
        return value

    @field_validator("environment", "secrets")
    @classmethod
    def _environment_names(cls, values: dict[str, Any]) -> dict[str, Any]:
        check_environment(
            {
                name: value.get_secret_value() if isinstance(value, SecretStr) else value
                for name, value in values.items()
            }
        )
        return values

    @field_validator("connections")
    @classmethod
    def _few_endpoints(cls, connections: tuple[DatabaseConnection, ...]) -> tuple[DatabaseConnection, ...]:
        check_endpoints(connections)
        return connections

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.entry_point is not None:
            check_relative_path(self.entry_point)
        both = sorted(self.environment.keys() & self.secrets.keys())
        if both:
            raise ValueError(f"{', '.join(both)}: given in `environment` and in `secrets`; keep one")
        program_variables(self.connections, given={"environment": self.environment, "secrets": self.secrets})
        return self

    def identified(self) -> Self:
        """Returns the same request with ``thread_id`` and ``run_id`` filled in."""
        return self.model_copy(
            update={
                "thread_id": self.thread_id or f"thread-{uuid.uuid4().hex[:12]}",
                "run_id": self.run_id or uuid.uuid4().hex,
            }
        )


class Diagnostic(Model):
    """A finding of a compiler or runtime.

    Attributes:
        severity: See ``Severity``.
        message: The tool's text, first line.
        path: The file as the caller sent it; ``None`` when the finding belongs to no file.
        line: 1-based line.
        column: 1-based column.
        code: The tool's code (``CS0103``, ``compiler.err.cant.resolve``, an exception's type name), or one of
            those that are the same for all tools (``out-of-memory`` …, see ``sandbox.diagnostics.causes``).
        tool: Whose finding it is: ``javac``, ``csc``, ``msbuild``, ``maven``, ``python``, ``jvm``, ``spring``,
            ``dotnet``; ``platform`` for facts about the process.
        details: Further lines of the tool that belong to it.
        excerpt: The line of source it points at.
        phase: Name of the phase in whose output it was found.
    """

    severity: Severity
    message: str
    path: str | None = None
    line: int | None = None
    column: int | None = None
    code: str | None = None
    tool: str
    details: tuple[str, ...] = ()
    excerpt: str | None = None
    phase: str | None = None


class StreamOutput(Model):
    """What one stream of one phase printed, within bounds.

    Attributes:
        head: The first bytes, decoded as UTF-8 with U+FFFD for invalid ones.
        tail: The last bytes; empty when ``head`` holds everything.
        total_bytes: Bytes printed altogether.
        truncated: True when something between head and tail is left out.
    """

    head: str = ""
    tail: str = ""
    total_bytes: int = 0
    truncated: bool = False

    @property
    def text(self) -> str:
        """Head and tail with a line between them that says how much was left out."""
        if not self.truncated:
            return self.head + self.tail
        kept = len(self.head.encode()) + len(self.tail.encode())
        return f"{self.head}\n[… {max(0, self.total_bytes - kept)} bytes left out …]\n{self.tail}"


class PhaseResult(Model):
    """How one phase went.

    Attributes:
        name: ``restore``, ``build``, ``run`` or another name of the profile.
        command: The shell text that ran.
        exit_code: As a shell reports it; ``None`` when it is unknown, which never counts as success.
        signal: Number of the signal that ended it.
        seconds: Wall time of the program.
        outcome: ``passed`` or what went wrong in this phase.
        stdout: Its standard output.
        stderr: Its standard error.
    """

    name: str
    command: str
    exit_code: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    outcome: Outcome = Outcome.PASSED
    stdout: StreamOutput = StreamOutput()
    stderr: StreamOutput = StreamOutput()


class Difference(Model):
    """One place where the result is not what was expected.

    Attributes:
        path: JSON path such as ``$.orders[3].total``.
        expected: The value there, ``None`` when absent or null (see ``kind``).
        actual: The value found.
        kind: ``value``, ``type``, ``missing``, ``unexpected`` or ``length``.
    """

    path: str
    expected: JsonValue = None
    actual: JsonValue = None
    kind: str = "value"


class Comparison(Model):
    """Result against expectation: the first differences and how many there are."""

    equal: bool
    total_differences: int = 0
    differences: tuple[Difference, ...] = ()


class Timings(Model):
    """Seconds spent, by step.

    ``queue`` is the wait for a free place in a shared sandbox; ``overhead`` is what was neither snapshot, sandbox,
    queue, phases nor results.
    """

    snapshot: float = 0.0
    sandbox: float = 0.0
    queue: float = 0.0
    phases: dict[str, float] = Field(default_factory=dict)
    results: float = 0.0
    overhead: float = 0.0
    total: float = 0.0


class SnapshotIdentity(Model):
    """Which prepared environment a sandbox is cloned from.

    Attributes:
        snapshot_id: Daytona's id of the snapshot.
        snapshot_name: ``validation-snapshot-<type>``.
        definition: SHA-256 of the definition it was made from, hexadecimal; ``None`` when the platform does not tell.
        built: True when this call built it.
    """

    snapshot_id: str
    snapshot_name: str
    definition: str | None = None
    built: bool = False


class SandboxIdentity(Model):
    """Where the program ran."""

    sandbox_id: str
    sandbox_name: str
    snapshot: str
    isolation: Isolation


class ValidationResult(Model):
    """The verdict on one program.

    Attributes:
        outcome: The verdict's word.
        message: One sentence for a person.
        profile: Name of the profile.
        framework: Name of the project template.
        thread_id: The orchestrator's conversation.
        run_id: This run.
        phases: What ran, in order.
        diagnostics: Findings of compilers and runtimes, in the order found.
        result: The parsed result file, ``None`` when there is none.
        result_partial: True when ``result`` is only a sample, since it was too large to travel from a worker.
        result_path: Path of the result file in the sandbox.
        unexpected_files: Other files the program left in its results directory.
        comparison: Present when the request had an expected result.
        timings: Seconds by step.
        sandbox: Where it ran; ``None`` if no sandbox was reached.
        recoveries: What had to be recovered on the way, one sentence each.
        warnings: What the reader should know but did not change the verdict.
        flow_run_id: Id of the Prefect flow run, when there was one.
    """

    outcome: Outcome
    message: str
    profile: str
    framework: str
    thread_id: str
    run_id: str
    phases: tuple[PhaseResult, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    result: JsonValue = None
    result_partial: bool = False
    result_path: str | None = None
    unexpected_files: tuple[str, ...] = ()
    comparison: Comparison | None = None
    timings: Timings = Timings()
    sandbox: SandboxIdentity | None = None
    recoveries: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    flow_run_id: str | None = None

    @property
    def passed(self) -> bool:
        """True only for the outcome ``passed``."""
        return self.outcome is Outcome.PASSED

    def feedback(self, budget_chars: int = 4000) -> str:
        """Returns what a language model needs to correct the program: outcome, first findings, end of the output.

        Args:
            budget_chars: The longest text, in characters; at least 200.

        Raises:
            ValueError: The budget is too small.
        """
        from sandbox.feedback import result_feedback

        return result_feedback(self, budget_chars=budget_chars)
