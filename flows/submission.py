"""Validation by a worker: ``run = await submit(request)``, and wherever one likes ``await run.result()``."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import httpx
import orjson
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.deployments import arun_deployment
from prefect.exceptions import ObjectNotFound, PrefectException

from flows.parameters import check_block_names, checked_request, parameters_of
from flows.prefect_connection import prefect_api
from flows.runs import AnyRun, find_run, read_run
from flows.verdict_transport import read_verdict
from flows.watching import watch
from sandbox.errors import ConfigurationError, PlatformUnavailableError, SandboxError, WaitTimeoutError
from sandbox.events import Event
from sandbox.models import Outcome, ValidationRequest, ValidationResult

PARAMETERS_BYTES: Final = 500_000
"""Prefect refuses parameters over 512 kB."""

POLL_SECONDS: Final = 0.5
CANCEL_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedRun:
    """A run of a deployment, or any other flow run of ``validate``.

    Attributes:
        id: Id of the flow run.
        name: Name that the flow run had when it was found.
        url: Address of its page in the Prefect UI.
    """

    id: UUID
    name: str
    url: str

    async def result(self, *, timeout: float | None = None) -> ValidationResult:
        """Waits for the run's end and returns the verdict; a run that was cancelled has the outcome ``cancelled``.

        Args:
            timeout: Seconds to wait at most; ``None`` waits as long as it takes.

        Raises:
            SandboxError: There is no verdict: what the worker raised, or that the run crashed.
            WaitTimeoutError: The run has not ended within ``timeout``; it goes on.
        """
        async with prefect_api(), get_client() as client:
            run = await self._end(client, timeout)
            verdict = await read_verdict(client, self.id)
        if verdict is not None:
            return verdict
        state = run.state
        if state is not None and state.type is StateType.CANCELLED:
            given = run.parameters
            return ValidationResult(
                outcome=Outcome.CANCELLED,
                message="The run was cancelled.",
                profile=str(given.get("profile") or ""),
                framework=str(given.get("framework") or ""),
                thread_id=str(given.get("thread_id") or ""),
                run_id=str(given.get("run_id") or ""),
                flow_run_id=str(self.id),
            )
        told = f"{state.name}: {state.message}" if state is not None else "unknown"
        raise SandboxError(
            f"the run {run.name} ended without a verdict for callers elsewhere ({told})",
            step="result",
            remedy="A run in its caller's own process gives its verdict to that caller only; else see the run's log.",
        )

    def watch(self, *, from_seq: int = 1) -> AsyncIterator[Event]:
        """Yields the run's events; see ``flows.watch``."""
        return watch(self, from_seq=from_seq)

    async def cancel(self, *, timeout: float = CANCEL_SECONDS) -> bool:
        """Cancels the run and waits until it has ended; returns whether it was cancelled and not over already.

        Args:
            timeout: Seconds to wait at most; a worker needs about ten.

        Raises:
            WaitTimeoutError: The run has not ended within ``timeout``.
        """
        async with prefect_api(), get_client() as client:
            run = await read_run(client, self.id)
            if run.state is None or not run.state.is_final():
                try:
                    await client.set_flow_run_state(self.id, State(type=StateType.CANCELLING))
                except (httpx.HTTPError, PrefectException) as error:
                    raise PlatformUnavailableError(f"the run could not be cancelled: {error}") from error
                run = await self._end(client, timeout)
        return run.state is not None and run.state.type is StateType.CANCELLED

    async def _end(self, client: PrefectClient, timeout: float | None) -> FlowRun:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            run = await read_run(client, self.id)
            if run.state is not None and run.state.is_final():
                return run
            if deadline is not None and time.monotonic() > deadline:
                state = run.state.name if run.state is not None else "unknown"
                raise WaitTimeoutError(
                    f"the run {run.name} has not ended within {timeout:g} s",
                    step="result",
                    state=state,
                    remedy="Is a worker running? `prefect worker start --pool uom-sandbox`",
                )
            await asyncio.sleep(POLL_SECONDS)


async def submit(
    request: ValidationRequest | Mapping[str, Any],
    *,
    deployment: str | None = None,
    secret_blocks: Mapping[str, str] = {},
    connection_blocks: Sequence[str] = (),
    credentials_block: str | None = None,
) -> SubmittedRun:
    """Has a worker validate a program; returns as soon as the run is made.

    Args:
        request: The program, or the request's fields as a mapping. Secrets and addresses of databases cannot be in it,
            since Prefect shows parameters to everybody: name their blocks instead.
        deployment: Name of the deployment, ``flow/name``; by default the one of the request's profile.
        secret_blocks: Environment variable → name of the Prefect Secret block that holds its value.
        connection_blocks: Names of DatabaseConnection blocks.
        credentials_block: Name of a DaytonaCredentials block; by default the worker's environment says where to run.

    Raises:
        ConfigurationError: The request is wrong or cannot travel, or there is no such deployment.
        PlatformUnavailableError: The Prefect API failed.
    """
    checked = request if isinstance(request, ValidationRequest) else checked_request(request)
    checked = checked.identified()
    parameters = _parameters(checked, connection_blocks)
    check_block_names(secret_blocks.values(), field="secret_blocks")
    if secret_blocks:
        parameters["secret_blocks"] = dict(secret_blocks)
    if credentials_block:
        parameters["credentials_block"] = credentials_block
    if (size := len(orjson.dumps(parameters))) > PARAMETERS_BYTES:
        raise ConfigurationError(
            f"the request needs {size:,} bytes; a deployment takes {PARAMETERS_BYTES:,}",
            field="files",
            remedy="Validate it in process with flows.validate.",
        )
    name = deployment or f"validate/validate-{checked.profile}"
    async with prefect_api() as api_url:
        try:
            run = await arun_deployment(
                name, parameters=parameters, timeout=0, as_subflow=False, idempotency_key=uuid.uuid4().hex
            )
        except ObjectNotFound:
            raise ConfigurationError(
                f"there is no deployment {name!r}", field="deployment", remedy="`prefect --no-prompt deploy --all`"
            ) from None
        except (httpx.HTTPError, PrefectException) as error:
            raise PlatformUnavailableError(f"the run could not be made: {type(error).__name__}: {error}") from error
        return _handle(run, api_url)


async def submitted(run: AnyRun) -> SubmittedRun:
    """Returns the handle of a run that exists: by its id, or its name, of several the newest.

    Raises:
        ConfigurationError: There is no such run.
    """
    async with prefect_api() as api_url, get_client() as client:
        return _handle(await find_run(client, run), api_url)


def _handle(run: FlowRun, api_url: str) -> SubmittedRun:
    return SubmittedRun(id=run.id, name=run.name, url=f"{api_url.removesuffix('/api')}/runs/flow-run/{run.id}")


def _parameters(request: ValidationRequest, connection_blocks: Sequence[str]) -> dict[str, Any]:
    for field, remedy in (("secrets", "secret_blocks"), ("connections", "connection_blocks")):
        if getattr(request, field):
            raise ConfigurationError(
                "cannot travel to a worker, since Prefect shows parameters to everybody",
                field=field,
                remedy=f"Name blocks that hold them in `{remedy}`.",
            )
    parameters = parameters_of(request, connection_blocks=connection_blocks)
    if "files" not in parameters and "files_base64" not in parameters:
        raise ConfigurationError(
            "are too large for a deployment", field="files", remedy="Validate them in process with flows.validate."
        )
    if request.stdin is not None:
        try:
            parameters["stdin"] = request.stdin if isinstance(request.stdin, str) else request.stdin.decode()
        except UnicodeDecodeError:
            raise ConfigurationError("must be UTF-8 to travel to a worker", field="stdin") from None
    if request.expected is not None:
        parameters["expected"] = request.expected
    return parameters
