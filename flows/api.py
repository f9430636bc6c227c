"""The orchestrator's way in: ``await validate(request)`` from any async Python program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx
from prefect.exceptions import PrefectException

from flows.call import CALL, Call
from flows.cancellation import ENDED_AS_CANCELLED
from flows.parameters import checked_request, parameters_of
from flows.prefect_connection import prefect_api
from flows.validation import validate_in_process
from sandbox.connection import Credentials
from sandbox.errors import PlatformUnavailableError, SandboxError
from sandbox.events import Sink
from sandbox.models import ValidationRequest, ValidationResult
from sandbox.profiles import Profile


async def validate(
    request: ValidationRequest | Mapping[str, Any],
    *,
    on_event: Sink | None = None,
    connection_blocks: Sequence[str] = (),
    profile: Profile | None = None,
    credentials: Credentials | None = None,
    progress: Callable[[str], None] | None = None,
) -> ValidationResult:
    """Compiles and runs one program in a sandbox and returns the verdict.

    The call is a Prefect flow run in this process: it appears in the Prefect UI with its tasks, log and artifacts. A
    program that does not compile, throws or never ends is a result, not an exception.

    Without a configured Prefect API a background server on this machine is started once and reused; without a Daytona
    key, so is the local platform. Around many validations, hold ``prefect_api()`` and ``sandbox.connection.client``
    open: connections are then kept between them.

    Args:
        request: The program, or the request's fields as a mapping.
        on_event: Takes every event as it happens, sync or async; a LangGraph stream writer works as it is.
        connection_blocks: Names of DatabaseConnection blocks: databases beside those of the request.
        profile: Taken instead of the stored or built-in profile of the request's name.
        credentials: Taken instead of what the environment says.
        progress: Called with a line of text when a server has to be started first.

    Raises:
        ConfigurationError: The request, the profile or a setting is wrong; the text names the field.
        SandboxError: There is no verdict because the infrastructure failed; the text names step, sandbox and state.
    """
    checked = request if isinstance(request, ValidationRequest) else checked_request(request)
    call = Call(
        request=checked.identified(),
        connection_blocks=tuple(connection_blocks),
        profile=profile,
        credentials=credentials,
        sinks=(on_event,) if on_event is not None else (),
    )
    async with prefect_api(progress=progress):
        token = CALL.set(call)
        try:
            await validate_in_process(**parameters_of(call.request, connection_blocks=connection_blocks))
        except ENDED_AS_CANCELLED:
            # The verdict says so, or had been reached before.
            if call.result is None:
                raise SandboxError("the run was cancelled in Prefect before it began", step="validate") from None
        except (httpx.HTTPError, PrefectException) as error:
            raise PlatformUnavailableError(f"the Prefect API failed: {type(error).__name__}: {error}") from error
        finally:
            CALL.reset(token)
    if call.result is None:
        raise SandboxError("the flow ended without a verdict", step="validate")
    return call.result
