"""A fault as JSON and back, so that a caller elsewhere gets the typed error that a worker raised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sandbox.errors import ConfigurationError, RateLimitedError, SandboxError, SnapshotBuildError

_PLACE: Final = ("step", "sandbox", "state", "remedy")


def failure_document(error: SandboxError) -> dict[str, Any]:
    """Returns a fault as JSON; ``failure_from`` makes it again."""
    document: dict[str, Any] = {"code": error.code, "message": error.message}
    document.update({name: getattr(error, name) for name in _PLACE})
    if isinstance(error, ConfigurationError) and error.field:
        document["field"] = error.field
        document["message"] = error.message.removeprefix(f"{error.field}: ")
    if isinstance(error, RateLimitedError):
        document["retry_after"] = error.retry_after
    if isinstance(error, SnapshotBuildError):
        document["log_tail"] = list(error.log_tail)
    return document


def failure_from(document: Mapping[str, Any]) -> SandboxError:
    """Makes the fault that ``failure_document`` described; of a code that is unknown here, a plain ``SandboxError``."""
    kind = {known.code: known for known in _classes(SandboxError)}.get(document["code"], SandboxError)
    message = str(document["message"])
    place = {name: document.get(name) for name in _PLACE}
    if issubclass(kind, ConfigurationError):
        return kind(message, field=document.get("field"), remedy=place["remedy"])
    if issubclass(kind, RateLimitedError):
        limited = kind(message, step=place["step"], sandbox=place["sandbox"], state=place["state"])
        # Afterwards: given at once it would be told a second time in the message.
        limited.retry_after = document.get("retry_after")
        return limited
    if issubclass(kind, SnapshotBuildError):
        tail = tuple(document.get("log_tail") or ())
        return kind(message, log_tail=tail, sandbox=place["sandbox"], state=place["state"], remedy=place["remedy"])
    return kind(message, **place)


def _classes(kind: type[SandboxError]) -> Iterator[type[SandboxError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _classes(below)
