"""The flow ``validate-translation``: both programs at once as runs of ``validate``, then the comparison."""

from __future__ import annotations

import asyncio
import inspect
import tempfile
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Cancelled, Completed

from flows.call import CALL, Call
from flows.cancellation import ENDED_AS_CANCELLED, RunCancelledError, ended_when_cancelled, tell_that_it_ended
from flows.parameters import parameters_of
from flows.publisher import PUBLISHER
from flows.translation_artifacts import publish_translation
from flows.validation import call_from_parameters, current_flow_run_id, tags_with, validate_in_process
from flows.validation import validate as validate_flow
from sandbox.comparison import ComparisonRules, checked_rules
from sandbox.errors import ConfigurationError, SandboxError
from sandbox.models import ValidationResult
from sandbox.translation import TranslationResult, conclude_translation, sides_of


@dataclass(slots=True, kw_only=True)
class TranslationCall:
    """One in-process call of the flow; see ``flows.call``.

    Attributes:
        source: The call for the program that was translated.
        target: The call for its translation.
        rules: Which differences are accepted.
        result: Set by the flow when there is a verdict.
    """

    source: Call
    target: Call
    rules: ComparisonRules
    result: TranslationResult | None = None


@dataclass(slots=True, kw_only=True)
class _Comparing:
    """What the task ``compare_results`` works on; too large to be a task's parameter or result."""

    source: ValidationResult
    target: ValidationResult
    rules: ComparisonRules
    seconds: float
    flow_run_id: str
    result: TranslationResult | None = None


TRANSLATION: ContextVar[TranslationCall | None] = ContextVar("uom_sandbox_translation", default=None)
_COMPARING: ContextVar[_Comparing] = ContextVar("uom_sandbox_comparing")


@task(
    name="compare_results",
    task_run_name="compare_results-{source}-{target}",
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def compare_results(source: str, target: str) -> None:
    """Compares what both sides computed, query by query."""
    comparing = _COMPARING.get()
    comparing.result = await asyncio.to_thread(
        conclude_translation,
        comparing.source,
        comparing.target,
        rules=comparing.rules,
        seconds=comparing.seconds,
        flow_run_id=comparing.flow_run_id,
    )


@flow(
    name="validate-translation",
    description="Runs a program and its translation in sandboxes, both at once, and compares what they compute.",
    persist_result=False,
    result_storage=Path(tempfile.gettempdir()),  # see ``validate``
)
async def validate_translation(
    source: dict[str, Any],
    target: dict[str, Any],
    rules: dict[str, Any] = {},  # noqa: B006 - Prefect shows the default in the form; nobody changes it
) -> State[TranslationResult]:
    """Runs a program and its translation in sandboxes, both at once, and compares what they compute.

    In-process callers use ``flows.validate_translation`` instead.

    Args:
        source: The program that was translated: parameters of the flow ``validate`` by name.
        target: Its translation, likewise.
        rules: Which differences are accepted: fields of ``ComparisonRules``; empty accepts none.

    Returns:
        A completed state named after the outcome, such as ``Equivalent`` or ``TargetFailed``, with the verdict as its
        data (not for ``flows.validate_translation``, which takes it from the call).

    Raises:
        SandboxError: There is no verdict; the text names step, sandbox and state.
    """
    started = time.monotonic()
    call, in_process = TRANSLATION.get(), True
    TRANSLATION.set(None)
    if call is None:
        call, in_process = await _call_from(source, target, rules), False
    flow_run_id = current_flow_run_id()
    names = (call.source.request.profile, call.target.request.profile)
    name = f"translation-{names[0]}-{names[1]}-{call.source.request.thread_id}"
    about = (f"source:{names[0]}", f"target:{names[1]}", f"thread:{call.source.request.thread_id}")
    PUBLISHER.describe_flow_run(flow_run_id, name=name, tags=tags_with(*about))
    try:
        async with ended_when_cancelled(flow_run_id):
            one, other = await _both_sides(call)
    except RunCancelledError as cancelled:
        return Cancelled(message=f"{cancelled}, and so were both sides.")
    comparing = _Comparing(
        source=one,
        target=other,
        rules=call.rules,
        seconds=time.monotonic() - started,
        flow_run_id=str(flow_run_id),
    )
    token = _COMPARING.set(comparing)
    try:
        await compare_results(*names)
    finally:
        _COMPARING.reset(token)
    verdict = comparing.result
    if verdict is None:
        raise SandboxError("the comparison ended without a verdict", step="compare_results")
    call.result = verdict
    PUBLISHER.describe_flow_run(flow_run_id, name=name, tags=tags_with(*about, f"outcome:{verdict.outcome.value}"))
    publish_translation(verdict, flow_run_id=flow_run_id)
    data = None if in_process else verdict
    return Completed(name=verdict.outcome.state_name, message=verdict.message, data=data)


translate_in_process = validate_translation.with_options(on_cancellation=[tell_that_it_ended])
"""The same where no worker looks after the run."""


async def _both_sides(call: TranslationCall) -> tuple[ValidationResult, ValidationResult]:
    """Validates both sides at once; when one cannot be validated, the other one is cancelled and cleaned up."""
    try:
        async with asyncio.TaskGroup() as group:
            source = group.create_task(_side("source", call.source))
            target = group.create_task(_side("target", call.target))
    except BaseExceptionGroup as faults:
        ours = [fault for fault in faults.exceptions if isinstance(fault, SandboxError)]
        raise (ours or faults.exceptions)[0] from None
    return source.result(), target.result()


async def _side(name: str, call: Call) -> ValidationResult:
    CALL.set(call)  # in this asyncio task's own context
    try:
        await validate_in_process(**parameters_of(call.request, connection_blocks=call.connection_blocks))
    except ENDED_AS_CANCELLED:
        # Its verdict says so, or had been reached before.
        get_run_logger().warning("the %s was cancelled", name)
    except SandboxError as error:
        get_run_logger().error("the %s could not be validated: %s", name, error)
        raise
    if call.result is None:
        raise SandboxError(f"the {name} ended without a verdict", step="validate")
    return call.result


async def _call_from(source: Mapping[str, Any], target: Mapping[str, Any], rules: Mapping[str, Any]) -> TranslationCall:
    """Makes the call of a run that a deployment started."""
    checked = checked_rules(rules)
    one = await _side_from("source", source)
    other = await _side_from("target", target)
    requests = sides_of(one.request, other.request)
    return TranslationCall(
        source=replace(one, request=requests[0]), target=replace(other, request=requests[1]), rules=checked
    )


async def _side_from(name: str, parameters: Mapping[str, Any]) -> Call:
    try:
        bound = inspect.signature(validate_flow.fn).bind(**parameters)
        bound.apply_defaults()
        return await call_from_parameters(bound.arguments)
    except TypeError as error:
        raise ConfigurationError(f"{error}; these are parameters of the flow validate", field=name) from None
    except ConfigurationError as error:
        raise ConfigurationError(error.message, field=name, remedy=error.remedy) from None
