"""Errors of the toolbox, and how the runtime's faults look on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..runtime.errors import BoxFileError, BoxLostError, BoxSpawnError, FileErrorKind, RuntimeFault, SessionEndedError
from ..wire_errors import WireError

_FILE_ERRORS: Final[Mapping[FileErrorKind, tuple[int, str]]] = {
    "not_found": (404, "FILE_NOT_FOUND"),
    "access_denied": (403, "FILE_ACCESS_DENIED"),
    "invalid_path": (400, "INVALID_FILE_PATH"),
    "exists": (409, "CONFLICT"),
    "is_directory": (400, "INVALID_FILE_PATH"),
    "not_a_directory": (400, "INVALID_FILE_PATH"),
    "not_empty": (400, "BAD_REQUEST"),
    "no_space": (507, "INSUFFICIENT_STORAGE"),
    "failed": (500, "FILE_READ_FAILED"),
}


def daemon_error(
    status: int, message: str, *, code: str | None = None, extra: Mapping[str, object] | None = None
) -> WireError:
    """Returns an error that the toolbox itself raises.

    Args:
        status: HTTP status.
        message: What went wrong and what to do about it.
        code: Code of the daemon (``FILE_NOT_FOUND``, ``SESSION_ENDED`` …); by default the generic one of the status.
        extra: Additional members of the body.
    """
    return WireError(status, message, code=code, source="DAYTONA_DAEMON", extra=extra)


def session_ended(session_id: str) -> WireError:
    """Returns the error for a session whose shell has gone."""
    return daemon_error(
        410,
        f"the shell of session {session_id!r} has ended (by exit, exec or a signal); create a new session",
        code="SESSION_ENDED",
    )


def box_lost() -> WireError:
    """Returns the error for a box that has gone although the control plane believes in it."""
    return WireError(400, "the sandbox does not answer; is it started?", code="BAD_REQUEST", source="DAYTONA_PROXY")


def from_runtime(fault: RuntimeFault) -> WireError:
    """Returns what the client is told about a fault of the runtime."""
    if isinstance(fault, BoxFileError):
        status, code = _FILE_ERRORS[fault.kind]
        return daemon_error(status, str(fault), code=code)
    if isinstance(fault, BoxLostError):
        return box_lost()
    if isinstance(fault, SessionEndedError):
        return daemon_error(410, str(fault), code="SESSION_ENDED")
    if isinstance(fault, BoxSpawnError):
        return daemon_error(400, str(fault))
    return daemon_error(500, str(fault))
