"""The flow ``validate`` and its five tasks.

A program's failure is a completed run whose state carries the outcome's name; the run fails only when there is no
verdict. Tasks are thin: what they do is ``sandbox.validation.Validation``.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, Literal
from uuid import UUID

import anyio
from prefect import flow, get_run_logger, task
from prefect.blocks.system import Secret
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import FlowRunContext, TaskRunContext
from prefect.states import Cancelled, Completed
from prefect.tasks import Task
from pydantic import SecretStr

from blocks.credentials import DaytonaCredentials
from flows.artifacts import publish_failure, publish_verdict
from flows.call import CALL, RUNNING, Call, Running
from flows.cancellation import RunCancelledError, ended_when_cancelled, tell_that_it_ended
from flows.connections import with_stored_connections
from flows.console import Console
from flows.event_relay import EventRelay, relayed
from flows.parameters import request_from_parameters
from flows.profile_choice import choose_profile
from flows.progress import Progress
from flows.publisher import PUBLISHER
from flows.run_limit import place_within_limit
from flows.run_log import RunLog
from flows.verdict_transport import answered
from sandbox.cleanup import to_the_end
from sandbox.connection import Credentials, client, platform_credentials
from sandbox.errors import ConfigurationError, RetryClass, SandboxError, SandboxLostError
from sandbox.events import EventStream
from sandbox.models import Outcome, PhaseResult, ValidationResult
from sandbox.profiles import Phase, Profile
from sandbox.retry import ATTEMPTS, SOON, delay_before_retry
from sandbox.validation import Validation

CLEANUP_SECONDS: Final = 20.0
"""Prefect gives a cancelled worker run 30 s between the request and the kill."""


async def is_transient(task: Task[Any, Any], task_run: TaskRun, state: State[Any]) -> bool:
    """Tells Prefect whether another attempt can help: by the class of the fault, never by its text.

    Prefect's own delays are the same for every fault. What a fault asks for beyond them is waited for here: the time a
    platform names in ``Retry-After``, or until there may be room again.
    """
    try:
        await state.aresult()
    except Exception as error:
        attempt = task_run.run_count
        delay = delay_before_retry(error, attempt=attempt)
        if delay is None or not isinstance(error, SandboxError):
            return False
        RUNNING.get().validation.note_retry(error, attempt, delay)
        if error.retry is not RetryClass.SOON:
            await asyncio.sleep(delay)
        return True
    return False


@task(
    name="ensure_snapshot",
    task_run_name="ensure_snapshot-{profile}",
    retries=ATTEMPTS - 1,
    retry_delay_seconds=list(SOON),
    retry_jitter_factor=0.3,
    retry_condition_fn=is_transient,
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def ensure_snapshot(profile: str) -> None:
    """Sees to it that the profile's snapshot exists and is active."""
    await RUNNING.get().validation.ensure_snapshot()


@task(
    name="reconcile_sandbox",
    task_run_name="reconcile_sandbox-{profile}",
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def reconcile_sandbox(profile: str) -> None:
    """Ends with a started sandbox whose toolbox answers, and a session with the workspace in it."""
    running = RUNNING.get()
    await running.validation.reconcile_sandbox()
    await running.validation.open_session()


@task(
    name="execute_session",
    task_run_name="execute_session-{phase}",
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def execute_session(phase: str, profile: str) -> PhaseResult:
    """Starts the phase's command in the session and waits for its end and its last output."""
    running = RUNNING.get()
    validation = running.validation
    await validation.start_phase(next(item for item in validation.phases if item.name == phase))
    running.started.set()
    return await validation.finish_phase()


@task(
    name="stream_logs",
    task_run_name="stream_logs-{phase}",
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def stream_logs(phase: str, profile: str) -> None:
    """Follows both output streams of the phase's command until it ends."""
    running = RUNNING.get()
    running.log.belongs_to(_task_run_id())
    try:
        await running.validation.stream_phase()
    finally:
        running.log.belongs_to(None)


@task(
    name="collect_results",
    task_run_name="collect_results-{profile}",
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def collect_results(profile: str) -> None:
    """Downloads and checks the result file, compares, and words the verdict."""
    running = RUNNING.get()
    # Not returned: Prefect walks through everything a task returns, 1.2 s for a result of 100,000 rows.
    running.verdict = await running.validation.collect_results()


@flow(
    name="validate",
    description="Compiles and runs one program in an isolated sandbox and returns the verdict.",
    persist_result=False,
    # Nothing is stored there. Without a path, Prefect asks the server for a default storage at every run, by a blocking
    # request in the event loop.
    result_storage=Path(tempfile.gettempdir()),
)
async def validate(
    profile: str,
    files: dict[str, str] = {},  # noqa: B006 - Prefect shows the default in the form; nobody changes it
    framework: str | None = None,
    entry_point: str | None = None,
    files_base64: dict[str, str] = {},  # noqa: B006
    thread_id: str | None = None,
    run_id: str | None = None,
    environment: dict[str, str] = {},  # noqa: B006
    secret_blocks: dict[str, str] = {},  # noqa: B006
    connection_blocks: list[str] = [],  # noqa: B006
    credentials_block: str | None = None,
    stdin: str | None = None,
    timeout_seconds: float | None = None,
    phase_seconds: dict[str, float] = {},  # noqa: B006
    no_output_seconds: float | None = None,
    output_bytes: int | None = None,
    result_bytes: int | None = None,
    platform_seconds: float | None = None,
    result: Literal["required", "optional", "none"] | None = None,
    expected: Any = None,
    isolation: Literal["shared", "thread", "run"] | None = None,
) -> State[ValidationResult]:
    """Compiles and runs one program in an isolated sandbox and returns the verdict.

    The parameters are plain so that a form, a schedule or an event can give them; a wrong one fails the run with its
    name. In-process callers use ``flows.validate`` instead.

    Args:
        profile: Name of the profile: a stored SandboxProfile block, or a built-in one.
        files: The program: relative path → text.
        framework: Project template; empty takes the profile's default.
        entry_point: The file that is the program, where there are several.
        files_base64: Further files: relative path → base64.
        thread_id: The conversation this run belongs to.
        run_id: Identity of the run; empty makes a new one.
        environment: Plain environment variables; no secrets.
        secret_blocks: Environment variable → name of the Prefect Secret block that holds its value.
        connection_blocks: Databases the program may talk to: names of DatabaseConnection blocks.
        credentials_block: Name of a DaytonaCredentials block; empty takes the environment of the worker.
        stdin: Standard input of the last phase.
        timeout_seconds: Seconds for all phases together.
        phase_seconds: Seconds by phase name.
        no_output_seconds: Silence after which a phase ends as stalled.
        output_bytes: Bytes a phase may print.
        result_bytes: Largest result file in bytes.
        platform_seconds: How long the platform may keep the run waiting by not answering; 40 by default.
        result: Whether the program must leave a result file.
        expected: JSON value that the result must equal.
        isolation: Who shares the sandbox; empty takes the profile's.

    Returns:
        A completed state named after the outcome, such as ``Passed`` or ``CompileError``, with the verdict as its data
        (not for ``flows.validate``, which takes it from the call).

    Raises:
        SandboxError: There is no verdict; the text names step, sandbox and state.
    """
    parameters = dict(locals())
    call, in_process = CALL.get(), CALL.get() is not None
    CALL.set(None)
    flow_run_id = current_flow_run_id()
    async with (
        relayed(flow_run_id=flow_run_id, attempt=current_attempt(), wait=not in_process) as relay,
        answered(flow_run_id, in_process=in_process) as answer,
    ):
        if call is None:
            call = await call_from_parameters(parameters)
        verdict = await _described(call, flow_run_id=flow_run_id, relay=relay)
        await answer(verdict)
    # The caller in this process has the verdict already; see ``collect_results`` for what returning it would cost.
    data = None if in_process else verdict
    if verdict.outcome is Outcome.CANCELLED:
        return Cancelled(name=verdict.outcome.state_name, message=verdict.message, data=data)
    return Completed(name=verdict.outcome.state_name, message=verdict.message, data=data)


validate_in_process = validate.with_options(on_cancellation=[tell_that_it_ended])
"""The same where no worker looks after the run."""


async def _described(call: Call, *, flow_run_id: UUID, relay: EventRelay) -> ValidationResult:
    """Runs the call, and sees to it that the run is named after what it does."""
    logger = get_run_logger()
    chosen = call.profile or await choose_profile(call.request.profile, logger=logger)
    call.request = await with_stored_connections(call.request, (*call.connection_blocks, *chosen.connections))
    chosen = chosen.model_copy(update={"connections": ()})
    framework_name = chosen.framework_for(call.request)
    name = f"validate-{chosen.name}-{framework_name}-{call.request.thread_id}"
    about = (f"profile:{chosen.name}", f"framework:{framework_name}", f"thread:{call.request.thread_id}")
    PUBLISHER.describe_flow_run(flow_run_id, name=name, tags=tags_with(*about))
    try:
        async with ended_when_cancelled(flow_run_id):
            verdict = await _run(call, profile=chosen, framework=framework_name, flow_run_id=flow_run_id, relay=relay)
    except SandboxError as error:
        publish_failure(error, profile=chosen.name, framework=framework_name, flow_run_id=flow_run_id)
        raise
    except RunCancelledError as cancelled:
        verdict = ValidationResult(
            outcome=Outcome.CANCELLED,
            message=f"{cancelled}.",
            profile=chosen.name,
            framework=framework_name,
            thread_id=str(call.request.thread_id),
            run_id=str(call.request.run_id),
            flow_run_id=str(flow_run_id),
        )
    call.result = verdict
    PUBLISHER.describe_flow_run(flow_run_id, name=name, tags=tags_with(*about, f"outcome:{verdict.outcome.value}"))
    publish_verdict(verdict, flow_run_id=flow_run_id)
    return verdict


async def _run(
    call: Call, *, profile: Profile, framework: str, flow_run_id: UUID, relay: EventRelay
) -> ValidationResult:
    """Runs the tasks, and cleans up whatever happens."""
    log = RunLog(flow_run_id=flow_run_id)
    console = Console(profile=profile.name, framework=framework, flow_run_id=flow_run_id)
    progress = Progress(profile=profile.name, framework=framework, flow_run_id=flow_run_id)
    request = call.request
    async with AsyncExitStack() as stack:
        daytona = await stack.enter_async_context(client(call.credentials or await platform_credentials()))
        stack.callback(log.close)
        stack.callback(console.close)
        stack.callback(progress.close)
        events = EventStream(
            run_id=request.run_id or "",
            thread_id=request.thread_id or "",
            sinks=(*call.sinks, log, console, progress, relay),
        )
        await stack.enter_async_context(events)
        validation = Validation(request, profile=profile, client=daytona, events=events, flow_run_id=str(flow_run_id))
        with validation.queueing():
            await stack.enter_async_context(place_within_limit(profile.name, flow_run_id=flow_run_id, events=events))
        running = Running(validation=validation, log=log)
        token = RUNNING.set(running)
        try:
            await ensure_snapshot(profile.name)
            await reconcile_sandbox(profile.name)
            await _phases_and_results(running, profile.name)
        finally:
            RUNNING.reset(token)
            await _clean_up(validation)
    if running.verdict is None:
        raise SandboxError("the run ended without a verdict", step="collect_results")
    return running.verdict


async def _clean_up(validation: Validation) -> None:
    # The shield holds against Prefect's scopes, ``to_the_end`` against a cancellation of the task that comes meanwhile.
    with anyio.CancelScope(shield=True):
        await to_the_end(_close(validation))


async def _close(validation: Validation) -> None:
    with anyio.move_on_after(CLEANUP_SECONDS) as scope:
        await validation.close()
    if scope.cancelled_caught:
        get_run_logger().warning("the clean-up did not end within %g s; the platform's leases do it", CLEANUP_SECONDS)


async def _phases_and_results(running: Running, profile: str) -> None:
    """Runs the phases up to the first that fails; once more from the first when the sandbox is lost meanwhile."""
    again = False
    while True:
        try:
            for phase in running.validation.phases:
                if (await _run_phase(running, phase, profile, again=again)).outcome is not Outcome.PASSED:
                    break
            await collect_results(profile)
        except SandboxLostError as error:
            if not await running.validation.begin_again(error):
                raise
            again = True
        else:
            return


async def _run_phase(running: Running, phase: Phase, profile: str, *, again: bool) -> PhaseResult:
    execute, stream = execute_session, stream_logs
    if again:
        execute = execute.with_options(task_run_name="execute_session-{phase}-again")
        stream = stream.with_options(task_run_name="stream_logs-{phase}-again")
    running.started.clear()
    try:
        async with asyncio.TaskGroup() as group:
            execution = group.create_task(execute(phase.name, profile))
            await running.started.wait()
            group.create_task(stream(phase.name, profile))
    except BaseExceptionGroup as faults:
        # Both tasks of a phase fail when its sandbox is lost; one of the faults tells it.
        ours = [fault for fault in faults.exceptions if isinstance(fault, SandboxError)]
        raise (ours or faults.exceptions)[0] from None
    return execution.result()


async def call_from_parameters(parameters: Mapping[str, Any]) -> Call:
    """Makes the call of a run that a deployment started: nothing but parameters and blocks.

    Args:
        parameters: All parameters of ``validate`` by name.

    Raises:
        ConfigurationError: A parameter or block is wrong; the text names it.
    """
    secrets: dict[str, SecretStr] = {}
    for variable, name in parameters["secret_blocks"].items():
        secrets[variable] = await _secret(variable, name)
    credentials = await stored_credentials(parameters["credentials_block"])
    request = request_from_parameters(parameters, secrets=secrets).identified()
    return Call(
        request=request, connection_blocks=tuple(parameters["connection_blocks"] or ()), credentials=credentials
    )


async def stored_credentials(name: str | None) -> Credentials | None:
    """Returns the credentials of a DaytonaCredentials block; ``None`` when no name is given.

    Raises:
        ConfigurationError: There is no such block.
    """
    if not name:
        return None
    try:
        block: DaytonaCredentials = await DaytonaCredentials.aload(name)
    except ValueError as error:
        raise ConfigurationError(str(error), field="credentials_block") from None
    return block.credentials()


async def _secret(variable: str, name: str) -> SecretStr:
    try:
        block: Secret[Any] = await Secret.aload(name)
    except ValueError as error:
        raise ConfigurationError(str(error), field=f"secret_blocks.{variable}") from None
    value = block.value.get_secret_value()
    if not isinstance(value, str):
        raise ConfigurationError(f"the Secret block {name!r} does not hold text", field=f"secret_blocks.{variable}")
    return SecretStr(value)


def current_flow_run_id() -> UUID:
    """Returns the id of the flow run whose body calls this."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise RuntimeError("the flow body runs outside a flow run")
    return context.flow_run.id


def current_attempt() -> int:
    """Returns which execution of the flow run this is, from 1."""
    context = FlowRunContext.get()
    return max(1, context.flow_run.run_count) if context is not None and context.flow_run is not None else 1


def tags_with(*tags: str) -> list[str]:
    """Returns the tags that the flow run was made with, and more; each once."""
    context = FlowRunContext.get()
    given = context.flow_run.tags if context is not None and context.flow_run is not None else []
    return list(dict.fromkeys((*given, *tags)))


def _task_run_id() -> UUID | None:
    context = TaskRunContext.get()
    return context.task_run.id if context is not None else None
