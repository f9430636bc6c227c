"""The flow's parameters: flat and plain, and how they become a request and back.

Prefect stores parameters in clear, shows them as a form and hands them to workers as JSON. So they are plain values,
secrets are names of Secret blocks, and the checks that matter are those of ``ValidationRequest``, whose errors name
the field.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import SecretStr, ValidationError

from sandbox.errors import ConfigurationError
from sandbox.models import ValidationRequest

PARAMETER_BYTES: Final = 256 * 1024
"""File contents above this stay out of the parameters of an in-process run; Prefect refuses parameters over 512 kB."""

# Names of the flow's parameters that are fields of the request's limits, which have names of their own there.
_LIMITS: Final = {
    "timeout_seconds": "total_seconds",
    "phase_seconds": "phase_seconds",
    "no_output_seconds": "no_output_seconds",
    "output_bytes": "output_bytes",
    "result_bytes": "result_bytes",
    "platform_seconds": "platform_seconds",
}
_FIELD: Final = re.compile(r"(?P<field>connections\[\d+\]\.\w+): ")
_BLOCK_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN: Final = (
    "profile",
    "framework",
    "entry_point",
    "thread_id",
    "run_id",
    "environment",
    "stdin",
    "result",
    "expected",
    "isolation",
)


def request_from_parameters(parameters: Mapping[str, Any], *, secrets: Mapping[str, SecretStr]) -> ValidationRequest:
    """Makes the request of a run that was started with parameters only.

    Args:
        parameters: The flow's parameters by name.
        secrets: Environment variables read from the Secret blocks that the parameters name.

    Raises:
        ConfigurationError: A parameter is wrong; the text names it.
    """
    files: dict[str, str | bytes] = dict(parameters["files"] or {})
    for path, text in (parameters["files_base64"] or {}).items():
        if path in files:
            raise ConfigurationError("is in `files` too; keep one", field=f"files_base64.{path}")
        try:
            files[path] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise ConfigurationError("is not base64", field=f"files_base64.{path}") from None
    document = {name: parameters[name] for name in _PLAIN if parameters[name] is not None}
    document["limits"] = {
        field: parameters[name] for name, field in _LIMITS.items() if parameters[name] not in (None, {})
    }
    return checked_request({**document, "files": files, "secrets": dict(secrets)})


def checked_request(document: Mapping[str, Any]) -> ValidationRequest:
    """Validates a request given as a mapping.

    Raises:
        ConfigurationError: A field is wrong; the text names every wrong one, by its name in the request.
    """
    try:
        return ValidationRequest.model_validate(document)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        wrong = [_told(item["loc"], _plain(item)) for item in found]
        # A file may be text or bytes, so pydantic reports one fault twice; the first says it.
        field, text = wrong[0]
        rest = "; ".join(f"{name}: {message}" for name, message in wrong[1:])
        raise ConfigurationError(f"{text}; {rest}" if rest else text, field=field or "request") from None


def _plain(item: Mapping[str, Any]) -> str:
    if item["type"] == "too_short" and item["loc"] == ("files",):
        return "there must be at least one"
    return str(item["msg"]).removeprefix("Value error, ")


def _told(place: Sequence[int | str], message: str) -> tuple[str, str]:
    """Returns field and text of a fault; what is wrong between several fields names its field in the text."""
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    if not field and (named := _FIELD.match(message)):
        return named["field"], message[named.end() :]
    return field, message


def parameters_of(request: ValidationRequest, *, connection_blocks: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the parameters under which an in-process run of the request is recorded.

    Values of secrets and databases are left out altogether; so are the files' contents when they are large, since the
    run has them at hand and Prefect would refuse them.

    Args:
        request: The request.
        connection_blocks: Names of DatabaseConnection blocks.

    Raises:
        ConfigurationError: One of these is no name.
    """
    check_block_names(connection_blocks, field="connection_blocks")
    total = sum(len(content) for content in request.files.values())
    kept = request.files if total <= PARAMETER_BYTES else {}
    limits = request.limits
    parameters: dict[str, Any] = {
        "profile": request.profile,
        "framework": request.framework,
        "files": {path: content for path, content in kept.items() if isinstance(content, str)},
        "files_base64": {
            path: base64.b64encode(content).decode() for path, content in kept.items() if isinstance(content, bytes)
        },
        "entry_point": request.entry_point,
        "thread_id": request.thread_id,
        "run_id": request.run_id,
        "environment": request.environment,
        "connection_blocks": list(connection_blocks),
        "result": request.result.value if request.result else None,
        "isolation": request.isolation.value if request.isolation else None,
        **{name: getattr(limits, field) for name, field in _LIMITS.items()},
    }
    return {name: value for name, value in parameters.items() if value not in (None, {}, [])}


def check_block_names(names: Iterable[str], *, field: str) -> None:
    """Refuses what cannot be the name of a block, such as an address with its password in place of one.

    Args:
        names: Said to be names of documents.
        field: Where they stand, for error texts.

    Raises:
        ConfigurationError: One is no name. It is not shown.
    """
    if not all(_BLOCK_NAME.fullmatch(name) for name in names):
        raise ConfigurationError(
            "an address is not written down here, where others see its password, and a block's name has only letters, "
            "digits and dashes",
            field=field,
            remedy="Name a DatabaseConnection block, or on the command line KIND=env:VARIABLE.",
        )
