"""What can go wrong in a runtime.

RuntimeFault
├── RuntimeUnavailableError   this machine cannot isolate
├── BoxLostError              the box has gone
├── BoxSpawnError             a process could not be started in the box
├── SessionEndedError         the session's shell has gone
└── BoxFileError              a file operation failed inside the box
"""

from __future__ import annotations

from typing import Literal

FileErrorKind = Literal[
    "not_found",
    "access_denied",
    "invalid_path",
    "exists",
    "is_directory",
    "not_a_directory",
    "not_empty",
    "no_space",
    "failed",
]


class RuntimeFault(Exception):  # noqa: N818 - a fault of the platform, told apart from the Error classes below
    """Root of what a runtime raises."""


class RuntimeUnavailableError(RuntimeFault):
    """This machine cannot isolate; the text says why and what to do about it."""


class BoxLostError(RuntimeFault):
    """The box has ended, or its agent no longer answers."""


class BoxSpawnError(RuntimeFault):
    """A process could not be started in the box.

    Attributes:
        exit_code: What a shell would report: 127 not found, 126 not executable or not a directory.
    """

    def __init__(self, message: str, *, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class SessionEndedError(RuntimeFault):
    """The shell of the session has gone; a new session is needed."""


class BoxFileError(RuntimeFault):
    """A file operation failed inside the box.

    Attributes:
        kind: What went wrong, one of ``FileErrorKind``.
        path: The path as it was asked for.
    """

    def __init__(self, message: str, *, kind: FileErrorKind, path: str) -> None:
        super().__init__(message)
        self.kind: FileErrorKind = kind
        self.path = path
