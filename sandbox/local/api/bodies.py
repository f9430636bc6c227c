"""What requests carry: JSON bodies, query values and path segments, checked before anything happens.

Field names and limits are those of Daytona's published specification. Unknown fields are ignored, as there.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeVar

import orjson
from aiohttp import web
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from ..control.states import SandboxState
from ..wire_errors import WireError

BODY_LIMIT = 8 * 1024 * 1024
"""Bytes of a JSON body of the control plane; the largest part is a Dockerfile with its here-documents."""

MAX_MINUTES = 10 * 366 * 24 * 60


def _lenient_time(value: Any) -> Any:
    """The SDK writes offsets without a colon (``+0000``), which ``datetime.fromisoformat`` takes since Python 3.11."""
    if not isinstance(value, str):
        return value
    moment = datetime.fromisoformat(value.strip().replace(" ", "+"))
    return moment.timestamp()


Moment = Annotated[float, BeforeValidator(_lenient_time)]
"""Seconds since the epoch, from an ISO 8601 time."""

EnvName = Annotated[str, Field(pattern=r"^[^=\x00]+$")]
Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]


class _Wire(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, strict=True)


class BuildInfoBody(_Wire):
    """An image definition."""

    dockerfile_content: str
    context_hashes: list[str] | None = None


class CreateSandboxBody(_Wire):
    """``POST /sandbox``."""

    name: str | None = None
    snapshot: str | None = None
    user: str | None = None
    env: dict[EnvName, Text] | None = None
    labels: dict[str, str] | None = None
    public: bool | None = None
    target: str | None = None
    cpu: int | None = Field(default=None, ge=1)
    memory: int | None = Field(default=None, ge=1)
    disk: int | None = Field(default=None, ge=1)
    gpu: int | None = None
    gpu_type: list[str] | None = None
    auto_stop_interval: int | None = Field(default=None, ge=0, le=MAX_MINUTES)
    auto_pause_interval: int | None = None
    auto_archive_interval: int | None = Field(default=None, ge=0)
    auto_delete_interval: int | None = Field(default=None, le=MAX_MINUTES)
    ttl_minutes: int | None = Field(default=None, ge=0, le=MAX_MINUTES)
    volumes: list[dict[str, Any]] | None = None
    secrets: list[dict[str, str]] | None = None
    network_block_all: bool | None = None
    network_allow_list: str | None = None
    domain_allow_list: str | None = None
    outbound_proxy_url: str | None = None
    kvm: bool | None = None
    spot: bool | None = None
    linked_sandbox: str | None = None
    otel_endpoint_override: str | None = None
    build_info: BuildInfoBody | None = None

    def unsupported(self) -> str | None:
        """Returns the wire name of a field that asks for what the local platform does not have."""
        names = (
            "gpu",
            "gpu_type",
            "auto_pause_interval",
            "volumes",
            "secrets",
            "outbound_proxy_url",
            "kvm",
            "spot",
            "linked_sandbox",
            "otel_endpoint_override",
        )
        return next((to_camel(name) for name in names if getattr(self, name)), None)


class CreateSnapshotBody(_Wire):
    """``POST /snapshots``."""

    name: str
    image_name: str | None = None
    entrypoint: list[str] | None = None
    cpu: int | None = Field(default=None, ge=0)
    memory: int | None = Field(default=None, ge=0)
    disk: int | None = Field(default=None, ge=0)
    gpu: int | None = None
    gpu_type: list[str] | None = None
    build_info: BuildInfoBody | None = None
    region_id: str | None = None
    sandbox_class: str | None = None


class LabelsBody(_Wire):
    """``PUT /sandbox/{id}/labels``."""

    labels: dict[str, str]


class NetworkBody(_Wire):
    """``POST /sandbox/{id}/network-settings``."""

    network_block_all: bool | None = None
    network_allow_list: str | None = None
    domain_allow_list: str | None = None


class ResizeBody(_Wire):
    """``POST /sandbox/{id}/resize``."""

    cpu: int | None = Field(default=None, ge=1)
    memory: int | None = Field(default=None, ge=1)
    disk: int | None = Field(default=None, ge=1)


class _Query(BaseModel):
    # Not strict: every value of a query is text.
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class SandboxQuery(_Query):
    """``GET /sandbox``."""

    cursor: str | None = None
    limit: int = Field(default=100, ge=1, le=200)
    id: str | None = None
    name: str | None = None
    labels: str | None = None
    include_errored_deleted: bool = False
    states: list[SandboxState] | None = None
    snapshots: list[str] | None = None
    region_ids: list[str] | None = None
    sandbox_classes: list[str] | None = None
    min_cpu: float | None = None
    max_cpu: float | None = None
    min_memory: float | None = Field(default=None, alias="minMemoryGiB")
    max_memory: float | None = Field(default=None, alias="maxMemoryGiB")
    min_disk: float | None = Field(default=None, alias="minDiskGiB")
    max_disk: float | None = Field(default=None, alias="maxDiskGiB")
    is_public: bool | None = None
    is_recoverable: bool | None = None
    created_at_after: Moment | None = None
    created_at_before: Moment | None = None
    last_event_after: Moment | None = None
    last_event_before: Moment | None = None
    auto_destroy_at_after: Moment | None = None
    auto_destroy_at_before: Moment | None = None
    sort: Literal["name", "cpu", "memoryGib", "diskGib", "lastActivityAt", "createdAt"] = "lastActivityAt"
    order: Literal["asc", "desc"] = "desc"

    @classmethod
    def of(cls, request: web.Request) -> Self:
        """Reads the query of a request."""
        return _read_query(cls, request, lists=("states", "snapshots", "regionIds", "sandboxClasses"))


class SnapshotQuery(_Query):
    """``GET /snapshots``."""

    page: int = Field(default=1, ge=1)
    limit: int = Field(default=100, ge=1, le=200)
    name: str | None = None
    source_sandbox_id: str | None = None
    sort: Literal["name", "state", "lastUsedAt", "createdAt"] = "lastUsedAt"
    order: Literal["asc", "desc"] = "desc"

    @classmethod
    def of(cls, request: web.Request) -> Self:
        """Reads the query of a request."""
        return _read_query(cls, request, lists=())


M = TypeVar("M", bound=BaseModel)


async def read_body(request: web.Request, model: type[M]) -> M:
    """Returns the JSON body of a request.

    Raises:
        WireError: 400, it is not what the model says; 413, it is too large.
    """
    try:
        return model.model_validate(orjson.loads(await _bytes(request) or b"{}"))
    except orjson.JSONDecodeError as error:
        raise WireError(400, f"the body must be JSON: {error}", code="INVALID_REQUEST_BODY") from error
    except ValidationError as error:
        raise WireError(400, _explain(error)) from error


def query_flag(request: web.Request, name: str) -> bool:
    """Returns a boolean of the query, False if it is absent.

    Raises:
        WireError: 400, it is neither ``true`` nor ``false``.
    """
    return flag(request.query.get(name, "false"), field=name)


def flag(text: str, *, field: str) -> bool:
    """Returns ``true`` or ``false`` as a boolean.

    Raises:
        WireError: 400, it is neither.
    """
    if text.lower() not in ("true", "false"):
        raise WireError(400, f"{field} must be true or false, not {text!r}")
    return text.lower() == "true"


def path_integer(request: web.Request, name: str, *, low: int | None, high: int) -> int:
    """Returns a whole number of the path.

    Raises:
        WireError: 400, it is none or out of bounds.
    """
    text = request.match_info[name]
    try:
        number = int(text)
    except ValueError:
        raise WireError(400, f"{name} must be a whole number, not {text!r}") from None
    if (low is not None and number < low) or number > high:
        raise WireError(400, f"{name} must be {'at most' if low is None else f'{low} to'} {high}, not {number}")
    return number


def _read_query(model: type[M], request: web.Request, *, lists: tuple[str, ...]) -> M:
    values: dict[str, Any] = {}
    for name in request.query:
        given = request.query.getall(name)
        values[name] = given if name in lists else given[-1]
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise WireError(400, _explain(error)) from error


async def _bytes(request: web.Request) -> bytes:
    data = bytearray()
    async for chunk in request.content.iter_any():
        data += chunk
        if len(data) > BODY_LIMIT:
            raise WireError(413, f"the body must be at most {BODY_LIMIT} bytes")
    return bytes(data)


def _explain(error: ValidationError) -> str:
    """Names each wrong field; the values stay out, since they may be secrets."""
    return "; ".join(
        f"{'.'.join(str(part) for part in item['loc']) or 'body'}: {item['msg']}" for item in error.errors()
    )
