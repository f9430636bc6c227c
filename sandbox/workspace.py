"""The directory of a run in the sandbox: where things lie, what is uploaded, which variables point there.

``/sandbox/<thread_id>/<run_id>/`` holds the program, ``results/`` below it what the program leaves, ``.uom/`` what we
need: the phase script with the run's settings, build output, the private home. All goes up in one request.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from typing import Final

from sandbox.abandoned import lease_word
from sandbox.errors import ConfigurationError
from sandbox.models import ValidationRequest
from sandbox.profiles import Framework, Phase, Profile

ROOT: Final = "/sandbox"
RESULTS: Final = "results"
OURS: Final = ".uom"
RESULT_FILE: Final = "result.json"

LEGACY_RESULT_VARIABLES: Final = (
    "EFCORE_RESULTS_PATH",
    "DAPPER_RESULTS_PATH",
    "NHIBERNATE_RESULTS_PATH",
    "MONGO_RESULTS_PATH",
    "NEO4J_RESULTS_PATH",
)
"""Names under which programs written for the former system look for the result file's path."""

SWEEP: Final = """\
command -v grep >/dev/null || { echo "the sandbox has no grep"; exit; }
for round in 1 2 3 4 5 6 7 8 9 10; do
    [ "$round" -lt 5 ] || sleep 0.2
    n=0
    for file in $(grep -lasF UOM_SESSION=MARK /proc/[0-9]*/environ 2>/dev/null); do
        file=${file#/proc/}
        ! kill -s KILL "${file%/environ}" 2>/dev/null || n=$((n + 1))
    done
    [ "$n" != 0 ] || break
done
echo "$n"
"""

PRUNE_EVERY: Final = 20
"""One run in so many looks for old ones: the search takes longer than a small program."""

PRUNE: Final = """\
find /sandbox -mindepth 3 -maxdepth 3 -type d -name .uom -mmin +2880 -exec sh -c 'rm -rf "${0%/.uom}"' {} ';'
"""

LONGEST_COMMAND: Final = 100_000
"""Bytes of a phase's command: Linux takes 128 KiB for one argument."""

HEAP_SHARE: Final = 0.75
HEAP_FLOOR_MIB: Final = 128
"""A managed heap gets three quarters of the memory: the rest is for code, threads and native buffers."""


@cache
def phase_script() -> str:
    """Returns the text of the script that runs a phase, the same for every run."""
    return resources.files("sandbox").joinpath("phase.sh").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Where a run's things lie in the sandbox; all paths absolute.

    Attributes:
        thread_id: The conversation.
        run_id: The run.
        mark: Unique to one execution of it; names its private directory and marks its processes.
    """

    thread_id: str
    run_id: str
    mark: str
    directory: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "directory", f"{ROOT}/{self.thread_id}/{self.run_id}")

    @property
    def results(self) -> str:
        """Where the program leaves its results."""
        return f"{self.directory}/{RESULTS}"

    @property
    def result(self) -> str:
        """The declared result file."""
        return f"{self.results}/{RESULT_FILE}"

    @property
    def ours(self) -> str:
        """What the program has no business with; removed at the end."""
        return f"{self.directory}/{OURS}"

    @property
    def temporary(self) -> str:
        """The private temporary directory. Its path is short: Unix sockets allow about a hundred characters."""
        return f"/tmp/uom-{self.mark[:12]}"  # noqa: S108

    def status(self, phase: str) -> str:
        """The file in which the phase script says how a phase went."""
        return f"{self.ours}/{phase}.status"

    def start_command(self, phase: Phase, *, limit: float, grace: float, values: bool, stdin: bool, fresh: bool) -> str:
        """Returns the text that a session runs for a phase. No part of it needs quoting, and none of it is secret.

        Its last word says until when the session is somebody's (see ``abandoned``); the script itself ignores it.
        """
        words = (
            "/bin/sh",
            f"{self.ours}/phase.sh",
            phase.name,
            _seconds(limit),
            _seconds(grace),
            "values" if values else "-",
            f"{self.ours}/stdin" if stdin else "/dev/null",
            "fresh" if fresh else "-",
            lease_word(limit),
        )
        return " ".join(words)

    def sweep_command(self) -> str:
        """Returns shell text that kills what carries this execution's mark and prints how many were left at the end."""
        return SWEEP.replace("MARK", self.mark)

    def tidy_command(self) -> str:
        """Returns shell text that removes what nobody reads after the run; some runs also remove old ones."""
        tidy = f"rm -rf {self.ours}/* {self.temporary}"
        return f"{tidy}\n{PRUNE}" if int(self.mark, 16) % PRUNE_EVERY == 0 else tidy


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one program may use of its sandbox.

    Attributes:
        memory_mib: MiB of memory.
        cpu: CPUs.
    """

    memory_mib: int
    cpu: int

    @property
    def heap_mib(self) -> int:
        """MiB a managed heap should stay below."""
        return max(HEAP_FLOOR_MIB, int(self.memory_mib * HEAP_SHARE))


def entry_point(request: ValidationRequest, framework: Framework) -> str:
    """Returns the file that is the program: the request's word, its only file, or the one called as in the template.

    Raises:
        ConfigurationError: The request names a file that neither it nor the template has, or leaves it open.
    """
    files = request.files
    if request.entry_point is not None:
        if request.entry_point not in files and request.entry_point not in framework.files:
            raise ConfigurationError(
                f"{request.entry_point!r} is none of the files",
                field="entry_point",
                remedy=f"Given: {', '.join(sorted(files)[:10])}.",
            )
        return request.entry_point
    if framework.entry_point in files or framework.entry_point in framework.files:
        return framework.entry_point
    suffix = PurePosixPath(framework.entry_point).suffix
    candidates = [path for path in files if PurePosixPath(path).suffix == suffix]
    named = [path for path in candidates if PurePosixPath(path).name == PurePosixPath(framework.entry_point).name]
    for found in (candidates, named):
        if len(found) == 1:
            return found[0]
    if not candidates:
        raise ConfigurationError(
            f"no {suffix} file is among the files",
            field="files",
            remedy=f"The program is {framework.entry_point} unless `entry_point` names another file.",
        )
    raise ConfigurationError(
        f"several files may be the program: {', '.join(sorted(candidates)[:10])}",
        field="entry_point",
        remedy=f"Name it, or call it {framework.entry_point}.",
    )


def uploads(
    workspace: Workspace, request: ValidationRequest, framework: Framework, *, variables: Mapping[str, str]
) -> dict[str, bytes]:
    """Returns everything that goes up, absolute path → content.

    Args:
        workspace: Where to.
        request: The program; its files win over the template's.
        framework: The template.
        variables: What every phase finds in its environment, from ``phase_variables``.

    Raises:
        ConfigurationError: A file lies where ours lie, or cannot be written as UTF-8.
    """
    files: dict[str, bytes] = {}
    for path, content in {**framework.files, **request.files}.items():
        if path.split("/", 1)[0] in (RESULTS, OURS):
            raise ConfigurationError(
                f"{path!r} lies where the run keeps its own files", field="files", remedy="Use another directory."
            )
        files[f"{workspace.directory}/{path}"] = _encoded(content, f"files.{path}")
    files[f"{workspace.ours}/phase.sh"] = (_settings(workspace, framework, variables) + phase_script()).encode()
    for phase in framework.phases:
        if len(phase.command.encode()) > LONGEST_COMMAND:
            raise ConfigurationError(
                f"the command of phase {phase.name!r} has more than {LONGEST_COMMAND} bytes", field="phases.command"
            )
    if request.stdin is not None:
        files[f"{workspace.ours}/stdin"] = _encoded(request.stdin, "stdin")
    return files


def phase_variables(workspace: Workspace, *, program: str, share: Share, network: str = "none") -> dict[str, str]:
    """Returns the variables that every phase gets and that a request cannot change.

    Args:
        workspace: Where the run's things lie.
        program: Path of the entry point, relative to the workspace.
        share: What the program may use.
        network: Mode of the profile's network policy; a build may fetch packages unless it is ``none``.
    """
    return {
        "UOM_SESSION": workspace.mark,
        "UOM_WORKSPACE": workspace.directory,
        "UOM_ENTRY_POINT": program,
        "UOM_BUILD_DIR": f"{workspace.ours}/build",
        "UOM_RESULTS_DIR": workspace.results,
        "UOM_RESULT_FILE": workspace.result,
        **dict.fromkeys(LEGACY_RESULT_VARIABLES, workspace.result),
        "UOM_MEMORY_MIB": str(share.memory_mib),
        "UOM_HEAP_MIB": str(share.heap_mib),
        "UOM_CPU": str(share.cpu),
        "UOM_NETWORK": network,
        "HOME": f"{workspace.ours}/home",
        "TMPDIR": workspace.temporary,
    }


def assignments(values: Mapping[str, str]) -> str:
    """Returns shell text that exports variables, one line each, whatever is in their values."""
    return "".join(f"export {name}={_quoted(value)}\n" for name, value in values.items())


def share_of(profile: Profile, *, memory_gib: int, cpu: int, shared: bool) -> Share:
    """Returns what one program may use of a sandbox.

    Args:
        profile: Says how many run at a time in a shared one.
        memory_gib: Memory of the sandbox.
        cpu: Its CPUs.
        shared: Whether other runs use it at the same time.
    """
    runs = profile.parallel if shared else 1
    return Share(memory_mib=max(HEAP_FLOOR_MIB, memory_gib * 1024 // runs), cpu=max(1, cpu // runs))


def _settings(workspace: Workspace, framework: Framework, variables: Mapping[str, str]) -> str:
    places = {
        "here": workspace.ours,
        "workspace": workspace.directory,
        "results": workspace.results,
        "result": workspace.result,
        "build": variables["UOM_BUILD_DIR"],
        "home": variables["HOME"],
        "tmp": variables["TMPDIR"],
        "session": workspace.mark,
    }
    commands = (f"{phase.name}) command={_quoted(phase.command)} ;;\n" for phase in framework.phases)
    return "".join(
        (
            "nl='\n'\n",
            *(f"{name}={_quoted(value)}\n" for name, value in places.items()),
            f"defaults() {{\n:\n{assignments(framework.environment)}}}\n",
            f"variables() {{\n{assignments(variables)}}}\n",
            f"choose_command() {{\ncase $phase in\n{''.join(commands)}esac\n}}\n",
        )
    )


def _quoted(value: str) -> str:
    # Line ends come from the first argument, so that an assignment is one line and can be read as one.
    return "'" + value.replace("'", "'\\''").replace("\n", "'\"$1\"'") + "'"


def _seconds(value: float) -> str:
    return str(int(value)) if value == math.floor(value) else f"{value:.3f}"


def _encoded(content: str | bytes, name: str) -> bytes:
    if isinstance(content, bytes):
        return content
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"character {error.start} cannot be written as UTF-8 (half of a surrogate pair)", field=name
        ) from None
