"""The output of one phase, prepared for parsers, and the caller's sources beside it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Final

from sandbox.diagnostics.ansi import strip_ansi
from sandbox.diagnostics.banners import is_banner
from sandbox.models import Diagnostic, Severity

MAX_LINE: Final = 4000
"""Characters of a line that parsers see; tools write none that long, and programs may write endless ones."""

MAX_MESSAGE: Final = 2000
MAX_DETAILS: Final = 30
MAX_EXCERPT: Final = 500


class Sources:
    """The files of a request.

    Args:
        files: Relative path → text or bytes.
        workspace: Absolute path of the directory they are stored in.
    """

    def __init__(self, files: Mapping[str, str | bytes], *, workspace: str) -> None:
        self._files = files
        self._workspace = posixpath.normpath(workspace)
        self._lines: dict[str, list[str]] = {}

    def relative(self, path: str) -> str | None:
        """Returns a tool's path as the caller knows it, ``None`` for one outside the workspace."""
        if not path or "\0" in path:
            return None
        joined = posixpath.normpath(posixpath.join(self._workspace, path))
        if not joined.startswith(self._workspace + "/"):
            return None
        return joined[len(self._workspace) + 1 :]

    def is_given(self, path: str | None) -> bool:
        """Returns whether the caller sent this file."""
        return path is not None and path in self._files

    def by_suffix(self, suffix: str) -> str | None:
        """Returns the caller's file whose path ends so (whole path parts), if there is exactly one."""
        found = [path for path in self._files if path == suffix or path.endswith(f"/{suffix}")]
        return found[0] if len(found) == 1 else None

    def of_class(self, name: str, *, file: str) -> str | None:
        """Returns the caller's file that holds a Java class, wherever the caller put it.

        Args:
            name: With its package, such as ``com.acme.Main`` or ``com.acme.Main$Row``.
            file: Name of the source file, as a stack trace has it.
        """
        package = name.split(".")[:-1]
        if found := self.by_suffix("/".join([*package, file])):
            return found
        found = self.by_suffix(file)
        if found is None:
            return None
        declared = re.compile(rf"\s*package\s+{re.escape('.'.join(package))}\s*;.*") if package else None
        return found if declared is None or any(map(declared.fullmatch, self._split(found))) else None

    def find(self, pattern: re.Pattern[str], *, suffix: str) -> tuple[str, int] | None:
        """Returns path and number of the caller's first line that matches as a whole.

        Args:
            pattern: What to look for.
            suffix: What the names of the files end with.
        """
        for path in self._files:
            if path.endswith(suffix):
                for number, line in enumerate(self._split(path), start=1):
                    if pattern.fullmatch(line):
                        return path, number
        return None

    def line(self, path: str | None, number: int | None) -> str | None:
        """Returns a line of a file the caller sent, ``None`` if there is none such.

        Args:
            path: As the caller sent it.
            number: 1-based.
        """
        if path is None or number is None or path not in self._files:
            return None
        lines = self._split(path)
        return lines[number - 1] if 1 <= number <= len(lines) else None

    def _split(self, path: str) -> list[str]:
        if path not in self._lines:
            content = self._files[path]
            text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
            self._lines[path] = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
        return self._lines[path]


class Transcript:
    """What a phase printed, without control sequences and banners.

    Args:
        stdout: Text of standard output.
        stderr: Text of standard error.
        phase: Name of the phase.
        sources: The caller's files.
    """

    def __init__(self, *, stdout: str, stderr: str, phase: str, sources: Sources) -> None:
        self.stdout = _lines(stdout)
        self.stderr = _lines(stderr)
        self.phase = phase
        self.sources = sources

    def diagnostic(
        self,
        message: str,
        *,
        tool: str,
        severity: Severity = Severity.ERROR,
        path: str | None = None,
        line: int | None = None,
        column: int | None = None,
        code: str | None = None,
        details: Sequence[str] = (),
        excerpt: str | None = None,
    ) -> Diagnostic:
        """Makes a finding of this phase: path as the caller sent it, bounded texts, the source line it points at.

        Args:
            message: The tool's text.
            tool: The parser.
            severity: How bad it is.
            path: As the tool names it.
            line: 1-based.
            column: 1-based.
            code: The tool's code.
            details: Further lines.
            excerpt: The source line as the tool shows it; used when the caller's file cannot tell.
        """
        known = None if path is None else self.sources.relative(path)
        source = self.sources.line(known, line)
        shown = (excerpt or "") if source is None else source
        if path is not None and known is None:
            details = (f"in {path}" + (f":{line}" if line else ""), *details)
            line = column = None
        return Diagnostic(
            severity=severity,
            message=_cut(message.strip(), MAX_MESSAGE) or (code or tool),
            path=known,
            line=line,
            column=column,
            code=code,
            tool=tool,
            details=tuple(_cut(detail.rstrip(), MAX_EXCERPT) for detail in details[:MAX_DETAILS]),
            excerpt=_cut(shown.rstrip(), MAX_EXCERPT) or None,
            phase=self.phase,
        )


def _lines(text: str) -> tuple[str, ...]:
    stripped = (strip_ansi(line.removesuffix("\r"))[:MAX_LINE] for line in text.split("\n"))
    return tuple(line for line in stripped if not is_banner(line))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
