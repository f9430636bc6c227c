"""A worker's answer on its way to a caller on another machine: verdict or fault, through the Prefect API alone.

The answer is JSON, compressed, as text in parts that any proxy lets pass. Each part is an artifact of the run without a
key, so it is seen on the page of its run only. A verdict that would need more than ``ENCODED_CHARACTERS`` travels with
samples in place of its result; ``result_partial`` and a warning tell it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final
from uuid import UUID

import httpx
import orjson
from prefect import get_run_logger
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, ArtifactFilterType
from prefect.client.schemas.sorting import ArtifactSort
from prefect.exceptions import PrefectException
from pydantic import JsonValue

from flows.failures import failure_document, failure_from
from sandbox.errors import PlatformUnavailableError, SandboxError
from sandbox.models import PhaseResult, StreamOutput, ValidationResult

ARTIFACT_TYPE: Final = "uom-sandbox-answer"
PART_CHARACTERS: Final = 512 * 1024
"""Half of the megabyte that proxies commonly let through."""

ENCODED_CHARACTERS: Final = 8 * 1024 * 1024
"""Longest answer, compressed and as text."""

JSON_BYTES: Final = 128 * 1024 * 1024
"""Longest answer before it is compressed, and after it is unpacked."""

SAMPLE_MEMBERS: Final = 500
SAMPLE_ROWS: Final = 5
SAMPLE_CHARACTERS: Final = 2_000
SAMPLE_DEPTH: Final = 12
_KEPT_OUTPUT: Final = 4_000
_KEPT_FINDINGS: Final = 100
_READ_AT_ONCE: Final = 4


async def send_verdict(result: ValidationResult, *, flow_run_id: UUID) -> None:
    """Sends the verdict of a run to whoever asks for it later.

    Raises:
        httpx.HTTPError: The Prefect API did not take it.
    """
    text = await asyncio.to_thread(encoded_verdict, result)
    await _send(text, flow_run_id)


async def send_failure(error: SandboxError, *, flow_run_id: UUID) -> None:
    """Sends why a run has no verdict.

    Raises:
        httpx.HTTPError: The Prefect API did not take it.
    """
    await _send(_packed(orjson.dumps({"failure": failure_document(error)})), flow_run_id)


@asynccontextmanager
async def answered(
    flow_run_id: UUID, *, in_process: bool
) -> AsyncIterator[Callable[[ValidationResult], Awaitable[None]]]:
    """Yields what sends a worker's verdict, and sends the fault that ends the block; trouble with it is only logged.

    Args:
        flow_run_id: The run.
        in_process: Whether the caller is in this process; then there is nothing to send.
    """

    async def answer(result: ValidationResult) -> None:
        if not in_process:
            with _told_in_log():
                await send_verdict(result, flow_run_id=flow_run_id)

    try:
        yield answer
    except SandboxError as error:
        if not in_process:
            with _told_in_log():
                await send_failure(error, flow_run_id=flow_run_id)
        raise


@contextmanager
def _told_in_log() -> Iterator[None]:
    try:
        yield
    except (httpx.HTTPError, PrefectException) as error:
        get_run_logger().error("the verdict could not be sent to the caller: %s: %s", type(error).__name__, error)


async def read_verdict(client: PrefectClient, flow_run_id: UUID) -> ValidationResult | None:
    """Returns the verdict that the run's last attempt sent, ``None`` when it sent nothing.

    Args:
        client: Of the Prefect API.
        flow_run_id: The run.

    Raises:
        SandboxError: What the run sent instead of a verdict.
        PlatformUnavailableError: Parts of the answer are missing.
    """
    parts = await _parts(client, flow_run_id)
    if not parts:
        return None
    digest = parts[0]["digest"]
    texts = {part["part"]: part["text"] for part in parts if part["digest"] == digest}
    text = "".join(texts.get(number, "") for number in range(parts[0]["parts"]))
    if _digest(text) != digest:
        raise PlatformUnavailableError(
            f"the verdict of run {flow_run_id} is not whole: {len(texts)} of {parts[0]['parts']} parts are there",
            step="result",
        )
    document = await asyncio.to_thread(_decoded, text)
    if "failure" in document:
        raise failure_from(document["failure"])
    return ValidationResult.model_validate(document["verdict"])


def encoded_verdict(result: ValidationResult, *, limit: int = ENCODED_CHARACTERS) -> str:
    """Returns the verdict as text of at most ``limit`` characters; where it is longer, with less in it, and told."""
    text = _encoded({"verdict": result.model_dump(mode="json")})
    if text is not None and len(text) <= limit:
        return text
    size = len(orjson.dumps(result.result))
    told = f"the result of {size:,} bytes was too large to travel from the worker; samples of it are kept"
    small = result.model_copy(
        update={"result": sample(result.result), "result_partial": True, "warnings": (*result.warnings, told)}
    )
    text = _encoded({"verdict": small.model_dump(mode="json")})
    if text is not None and len(text) <= limit:
        return text
    told = "the verdict was too large to travel from the worker: it is without its result and most of its output"
    smallest = result.model_copy(
        update={
            "result": None,
            "result_partial": True,
            "comparison": None,
            "unexpected_files": result.unexpected_files[:_KEPT_FINDINGS],
            "diagnostics": result.diagnostics[:_KEPT_FINDINGS],
            "phases": tuple(_short_phase(phase) for phase in result.phases),
            "warnings": (*result.warnings[:_KEPT_FINDINGS], told),
        }
    )
    return _packed(orjson.dumps({"verdict": smallest.model_dump(mode="json")}))


def sample(value: JsonValue, *, depth: int = SAMPLE_DEPTH) -> JsonValue:
    """Returns a small image of a JSON value: first and last rows of lists, the beginnings of texts."""
    if isinstance(value, dict):
        if depth == 0:
            return {}
        return {name: sample(inner, depth=depth - 1) for name, inner in list(value.items())[:SAMPLE_MEMBERS]}
    if isinstance(value, list):
        if depth == 0:
            return []
        rows = value if len(value) <= 2 * SAMPLE_ROWS else [*value[:SAMPLE_ROWS], *value[-SAMPLE_ROWS:]]
        return [sample(inner, depth=depth - 1) for inner in rows]
    if isinstance(value, str) and len(value) > SAMPLE_CHARACTERS:
        return f"{value[:SAMPLE_CHARACTERS]}…"
    return value


def _short_phase(phase: PhaseResult) -> PhaseResult:
    return phase.model_copy(update={"stdout": _short(phase.stdout), "stderr": _short(phase.stderr)})


def _short(output: StreamOutput) -> StreamOutput:
    whole = output.head + output.tail
    if len(whole) <= 2 * _KEPT_OUTPUT:
        return output
    return StreamOutput(
        head=output.head[:_KEPT_OUTPUT], tail=whole[-_KEPT_OUTPUT:], total_bytes=output.total_bytes, truncated=True
    )


def _encoded(document: Mapping[str, Any]) -> str | None:
    raw = orjson.dumps(document)
    return _packed(raw) if len(raw) <= JSON_BYTES else None


def _packed(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw, 6)).decode("ascii")


def _decoded(text: str) -> dict[str, Any]:
    raw = zlib.decompressobj().decompress(base64.b64decode(text), JSON_BYTES)
    document: dict[str, Any] = orjson.loads(raw)
    return document


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


async def _send(text: str, flow_run_id: UUID) -> None:
    pieces = [text[at : at + PART_CHARACTERS] for at in range(0, len(text), PART_CHARACTERS)]
    digest = _digest(text)
    async with get_client() as client:
        for number, piece in enumerate(pieces):
            part = {"digest": digest, "part": number, "parts": len(pieces), "text": piece}
            body = {
                "type": ARTIFACT_TYPE,
                "description": f"The answer for the caller, part {number + 1} of {len(pieces)}",
                "data": orjson.dumps(part).decode(),
                "flow_run_id": str(flow_run_id),
            }
            # Through the plain request: the client's own method also emits an event with the whole content.
            await client.request("POST", "/artifacts/", json=body)


async def _parts(client: PrefectClient, flow_run_id: UUID) -> Sequence[dict[str, Any]]:
    """The parts that a run sent, the newest first."""
    wanted = ArtifactFilter(
        flow_run_id=ArtifactFilterFlowRunId(any_=[flow_run_id]), type=ArtifactFilterType(any_=[ARTIFACT_TYPE])
    )
    found: list[dict[str, Any]] = []
    try:
        while True:
            page = await client.read_artifacts(
                artifact_filter=wanted, sort=ArtifactSort.CREATED_DESC, limit=_READ_AT_ONCE, offset=len(found)
            )
            found += [orjson.loads(str(artifact.data)) for artifact in page]
            if len(page) < _READ_AT_ONCE or len(found) >= found[0]["parts"]:
                return found
    except httpx.HTTPError as error:
        raise PlatformUnavailableError(f"the verdict could not be read: {error}", step="result") from error
