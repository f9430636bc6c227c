"""The orchestrator's way in for translations: ``await validate_translation(source, target)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import httpx
from prefect.exceptions import PrefectException

from flows.call import Call
from flows.cancellation import ENDED_AS_CANCELLED
from flows.parameters import checked_request, parameters_of
from flows.prefect_connection import prefect_api
from flows.translation import TRANSLATION, TranslationCall, translate_in_process
from sandbox.comparison import ComparisonRules, checked_rules
from sandbox.connection import Credentials
from sandbox.errors import PlatformUnavailableError, SandboxError
from sandbox.events import Event, Sink
from sandbox.models import ValidationRequest
from sandbox.profiles import Profile
from sandbox.translation import TranslationResult, sides_of


class SideEvent(Event):
    """An event of one of the two runs.

    Attributes:
        side: ``source`` or ``target``.
    """

    side: Literal["source", "target"]


async def validate_translation(
    source: ValidationRequest | Mapping[str, Any],
    target: ValidationRequest | Mapping[str, Any],
    *,
    rules: ComparisonRules | Mapping[str, Any] | None = None,
    on_event: Sink | None = None,
    source_connection_blocks: Sequence[str] = (),
    target_connection_blocks: Sequence[str] = (),
    source_profile: Profile | None = None,
    target_profile: Profile | None = None,
    credentials: Credentials | None = None,
    progress: Callable[[str], None] | None = None,
) -> TranslationResult:
    """Runs a program and its translation in sandboxes, both at once, and compares what they compute.

    The call is a Prefect flow run in this process with a run of ``validate`` for each side. A side that does not
    compile, throws or leaves no result is a verdict, not an exception. Both sides share a thread unless they name
    their own, and a result is required of each.

    Args:
        source: The program that was translated, or its request's fields as a mapping.
        target: Its translation.
        rules: Which differences are accepted; none by default.
        on_event: Takes the events of both runs as they happen; each has a further member ``side``.
        source_connection_blocks: Names of DatabaseConnection blocks: databases of the source beside its request's.
        target_connection_blocks: The same for the target.
        source_profile: Taken instead of the stored or built-in profile of the source's name.
        target_profile: The same for the target.
        credentials: Taken instead of what the environment says.
        progress: Called with a line of text when a server has to be started first.

    Raises:
        ConfigurationError: A request, a rule, a profile or a setting is wrong; the text names the field.
        SandboxError: There is no verdict because the infrastructure failed; the text names step, sandbox and state.
    """
    checked = rules if isinstance(rules, ComparisonRules) else checked_rules(rules or {})
    one, other = sides_of(_checked(source), _checked(target))
    call = TranslationCall(
        source=Call(
            request=one,
            connection_blocks=tuple(source_connection_blocks),
            profile=source_profile,
            credentials=credentials,
            sinks=_sinks("source", on_event),
        ),
        target=Call(
            request=other,
            connection_blocks=tuple(target_connection_blocks),
            profile=target_profile,
            credentials=credentials,
            sinks=_sinks("target", on_event),
        ),
        rules=checked,
    )
    async with prefect_api(progress=progress):
        token = TRANSLATION.set(call)
        try:
            await translate_in_process(
                source=_recorded(call.source),
                target=_recorded(call.target),
                rules=checked.model_dump(mode="json", exclude_defaults=True),
            )
        except ENDED_AS_CANCELLED:
            if call.result is None:
                raise SandboxError("the run was cancelled in Prefect", step="validate-translation") from None
        except (httpx.HTTPError, PrefectException) as error:
            raise PlatformUnavailableError(f"the Prefect API failed: {type(error).__name__}: {error}") from error
        finally:
            TRANSLATION.reset(token)
    if call.result is None:
        raise SandboxError("the flow ended without a verdict", step="validate-translation")
    return call.result


def _checked(request: ValidationRequest | Mapping[str, Any]) -> ValidationRequest:
    return request if isinstance(request, ValidationRequest) else checked_request(request)


def _recorded(call: Call) -> dict[str, Any]:
    """The parameters of one side; its files stay with the side's own run, where they are once already."""
    parameters = parameters_of(call.request, connection_blocks=call.connection_blocks)
    return {name: value for name, value in parameters.items() if name not in ("files", "files_base64")}


def _sinks(side: Literal["source", "target"], on_event: Sink | None) -> tuple[Sink, ...]:
    if on_event is None:
        return ()

    def with_side(event: Event) -> object:
        named: SideEvent = {**event, "side": side}
        return on_event(named)

    return (with_side,)
