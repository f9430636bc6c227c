"""Which parsers there are, and what a phase's output gives when its parsers read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from sandbox.diagnostics import dotnet_drivers, spring_drivers
from sandbox.diagnostics.aot import parse_aot
from sandbox.diagnostics.causes import by_cause
from sandbox.diagnostics.csc import parse_csc
from sandbox.diagnostics.dotnet import parse_dotnet
from sandbox.diagnostics.javac import parse_javac
from sandbox.diagnostics.jvm import parse_jvm
from sandbox.diagnostics.maven import parse_maven
from sandbox.diagnostics.python import parse_python
from sandbox.diagnostics.spring import parse_spring
from sandbox.diagnostics.transcript import Sources, Transcript
from sandbox.diagnostics.unreachable import UnreachableServer
from sandbox.errors import ConfigurationError
from sandbox.models import Diagnostic, Severity

Parser = Callable[[Transcript], Iterable[Diagnostic]]

PARSERS: Final[Mapping[str, Parser]] = {
    "javac": parse_javac,
    "csc": parse_csc,
    "msbuild": parse_csc,
    "python": parse_python,
    "jvm": parse_jvm,
    "maven": parse_maven,
    "spring": parse_spring,
    "aot": parse_aot,
    "dotnet": parse_dotnet,
}
"""Parsers by the name that ``Phase.diagnostics`` uses."""

RUNTIMES: Final = frozenset({"python", "jvm", "spring", "dotnet"})
"""Parsers that tell why a program ended; of one that ended well they have nothing to tell."""

DATABASES: Final[Mapping[str, Callable[[Transcript], UnreachableServer | None]]] = {
    "spring": spring_drivers.unreachable_server,
    "dotnet": dotnet_drivers.unreachable_server,
}
"""By parser, what reads from the output of a failed phase that a database did not answer."""

MAX_DIAGNOSTICS: Final = 200


def find_diagnostics(
    parsers: Sequence[str],
    *,
    stdout: str,
    stderr: str,
    phase: str,
    files: Mapping[str, str | bytes],
    workspace: str,
    failed: bool = True,
    network: str = "open",
) -> tuple[Diagnostic, ...]:
    """Reads the output of one phase.

    Args:
        parsers: Names of the parsers, as the phase lists them.
        stdout: What it printed on standard output; control sequences may be in it.
        stderr: What it printed on standard error.
        phase: Name of the phase.
        files: The request's files, relative path → text or bytes.
        workspace: Absolute path of the directory that holds them in the sandbox.
        failed: Whether the phase failed; if not, only compilers are read (their warnings).
        network: Mode of the network policy: where it is not ``open``, a host that cannot be reached is its doing.

    Returns:
        At most 200 findings in the order found, each once; when there were more, errors are kept before warnings and a
        last one says how many are left out.

    Raises:
        ConfigurationError: There is no parser of such a name.
    """
    unknown = sorted(set(parsers) - PARSERS.keys())
    if unknown:
        raise ConfigurationError(
            f"no parser {', '.join(map(repr, unknown))}", field="diagnostics", remedy=f"Known: {', '.join(PARSERS)}."
        )
    transcript = Transcript(stdout=stdout, stderr=stderr, phase=phase, sources=Sources(files, workspace=workspace))
    chosen = dict.fromkeys(PARSERS[name] for name in parsers if failed or name not in RUNTIMES)
    found: dict[tuple[object, ...], Diagnostic] = {}
    for parser in chosen:
        for told in parser(transcript):
            item = by_cause(told, network=network)
            found.setdefault((item.severity, item.path, item.line, item.column, item.code, item.message), item)
    return _bounded(list(found.values()), phase=phase)


def find_unreachable_database(parsers: Sequence[str], *, stdout: str, stderr: str) -> UnreachableServer | None:
    """Returns the database that a failed phase could not reach, ``None`` when its output does not say so.

    Args:
        parsers: Names of the parsers, as the phase lists them.
        stdout: What it printed on standard output.
        stderr: What it printed on standard error.
    """
    readers = [DATABASES[name] for name in parsers if name in DATABASES]
    if not readers:
        return None
    transcript = Transcript(stdout=stdout, stderr=stderr, phase="", sources=Sources({}, workspace="/"))
    return next((found for read in readers if (found := read(transcript))), None)


def _bounded(found: list[Diagnostic], *, phase: str) -> tuple[Diagnostic, ...]:
    if len(found) <= MAX_DIAGNOSTICS:
        return tuple(found)
    order = list(Severity)
    ranked = sorted(range(len(found)), key=lambda position: (order.index(found[position].severity), position))
    kept = [found[position] for position in sorted(ranked[:MAX_DIAGNOSTICS])]
    rest = len(found) - MAX_DIAGNOSTICS
    note = Diagnostic(
        severity=Severity.INFO,
        message=f"{rest} more {'finding is' if rest == 1 else 'findings are'} left out",
        tool=found[0].tool,
        code="left-out",
        phase=phase,
    )
    return (*kept, note)
