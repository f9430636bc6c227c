"""Kinds of failure that every tool tells in words of its own, or none tells at all: one code each, for all languages.

======================  ===============================================================================
``tool-missing``        a phase needs a program that the snapshot does not have
``out-of-memory``       the kernel, the platform or the runtime says that there was no memory left
``killed``              ended by SIGKILL, and nothing tells who sent it
``disk-full``           the platform or the system says that there was no space left
``no-network``          a host could not be reached, and the network policy is the reason
``database-unreachable``  the preflight or a driver says that a database did not answer
``last-lines``          none of these, and no tool said anything that a parser knows: what was printed last
======================  ===============================================================================

The first six come from facts about the process, or from the exception that ended it; text that a program merely
printed makes none of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sandbox.diagnostics.ansi import strip_ansi
from sandbox.models import Diagnostic, Severity

TOOL_MISSING: Final = "tool-missing"
OUT_OF_MEMORY: Final = "out-of-memory"
KILLED: Final = "killed"
DISK_FULL: Final = "disk-full"
NO_NETWORK: Final = "no-network"
DATABASE_UNREACHABLE: Final = "database-unreachable"
LAST_LINES: Final = "last-lines"

PLATFORM: Final = "platform"
"""The ``tool`` of findings that come from facts about the process."""

OUTPUT_LINES: Final = 40
OUTPUT_CHARACTERS: Final = 500

_RUNTIMES: Final = frozenset({"jvm", "dotnet", "python", "spring"})
_OUT_OF_MEMORY: Final = re.compile(
    r"java\.lang\.OutOfMemoryError\b|System\.OutOfMemoryException\b|MemoryError\b|Out of memory\.$"
)
_DISK_FULL: Final = re.compile(
    r"(?:caused by |Caused by: )?(?:"
    r"System\.IO\.IOException: (?:No space left on device|Disk quota exceeded)"
    r"|java\.io\.IOException: (?:No space left on device|Disk quota exceeded)"
    r"|java\.nio\.file\.FileSystemException: .*: (?:No space left on device|Disk quota exceeded)"
    r"|OSError: \[Errno (?:28|122)\] )"
)
_COMPILER_DISK_FULL: Final = re.compile(r"error (?:while )?writing .*No space left on device")
_UNREACHABLE: Final = re.compile(
    r"(?:caused by |Caused by: )?(?:"
    r"java\.net\.(?:UnknownHostException|NoRouteToHostException)\b"
    r"|java\.nio\.channels\.UnresolvedAddressException"
    r"|java\.net\.(?:Socket|Connect)Exception: Network is unreachable"
    r"|System\.Net\.(?:Sockets\.SocketException|Http\.HttpRequestException)\b.*?: "
    r"(?:Resource temporarily unavailable|Name or service not known|Network is unreachable|No route to host)"
    r"|(?:socket\.gaierror|OSError|urllib\.error\.URLError): .*\[Errno (?:-2|-3|101|113)\] )"
)


def by_cause(found: Diagnostic, *, network: str) -> Diagnostic:
    """Returns a finding under the code of its cause, unchanged when its cause is none of those above.

    Args:
        found: What a parser read. Of runtimes it is the exception that ended the program, with its causes as details.
        network: Mode of the network policy.
    """
    if found.severity is not Severity.ERROR:
        return found
    if found.tool not in _RUNTIMES:
        full = (found.tool == "javac" and _COMPILER_DISK_FULL.match(found.message) is not None) or (
            found.code == "CS0016" and "No space left on device" in found.message
        )
        return found.model_copy(update={"code": DISK_FULL}) if full else found
    if _OUT_OF_MEMORY.match(found.message):
        return found.model_copy(update={"code": OUT_OF_MEMORY})
    told = (found.message, *found.details)
    if any(map(_DISK_FULL.match, told)):
        return found.model_copy(update={"code": DISK_FULL})
    if network != "open" and found.code != DATABASE_UNREACHABLE and any(map(_UNREACHABLE.match, told)):
        allowed = "has no network" if network == "none" else "reaches only what its network policy lists"
        return found.model_copy(
            update={
                "code": NO_NETWORK,
                "message": f"the sandbox {allowed}: {found.message}",
                "details": (*found.details, WHAT_OPENS_IT),
            }
        )
    return found


WHAT_OPENS_IT: Final = "Only a profile whose network policy is `open`, or `allow` with what is needed, reaches it."


def with_cause(
    found: Sequence[Diagnostic], *, cause: str | None, message: str, phase: str, stdout: str, stderr: str
) -> tuple[Diagnostic, ...]:
    """Returns the findings of a failed phase, completed so that something says why it failed.

    Args:
        found: What the parsers read.
        cause: Code of the cause, as the facts about the process give it; ``None`` when they give none.
        message: The verdict's sentence.
        phase: Name of the phase.
        stdout: What it printed on standard output.
        stderr: What it printed on standard error.
    """
    if cause is not None and not any(item.code == cause for item in found):
        told = Diagnostic(severity=Severity.ERROR, message=message, tool=PLATFORM, code=cause, phase=phase)
        return (*found, told)
    if any(item.severity is Severity.ERROR for item in found):
        return tuple(found)
    lines = _last_lines(stderr) or _last_lines(stdout)
    if not lines:
        return tuple(found)
    last = Diagnostic(
        severity=Severity.INFO,
        message=f"the last {'line' if len(lines) == 1 else f'{len(lines)} lines'} that the phase {phase} printed",
        tool=PLATFORM,
        code=LAST_LINES,
        details=lines,
        phase=phase,
    )
    return (*found, last)


def _last_lines(text: str) -> tuple[str, ...]:
    end = text[-OUTPUT_LINES * OUTPUT_CHARACTERS :]
    lines = [strip_ansi(line).rstrip()[:OUTPUT_CHARACTERS] for line in end.splitlines()]
    return tuple([line for line in lines if line][-OUTPUT_LINES:])
