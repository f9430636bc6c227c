"""The orchestrator's way in: ``await validate(request)`` from any async Python program."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_ANALYTICS_ENABLED, temporary_settings

from flows.call import CALL, Call
from flows.parameters import checked_request, parameters_of
from flows.prefect_server import PrefectServer
from flows.validation import validate as validate_flow
from sandbox.connection import Credentials
from sandbox.errors import SandboxError
from sandbox.events import Sink
from sandbox.models import ValidationRequest, ValidationResult
from sandbox.profiles import Profile


async def validate(
    request: ValidationRequest | Mapping[str, Any],
    *,
    on_event: Sink | None = None,
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
        profile=profile,
        credentials=credentials,
        sinks=(on_event,) if on_event is not None else (),
    )
    async with prefect_api(progress=progress):
        token = CALL.set(call)
        try:
            await validate_flow(**parameters_of(call.request))
        finally:
            CALL.reset(token)
    if call.result is None:
        raise SandboxError("the flow ended without a verdict", step="validate")
    return call.result


@contextlib.asynccontextmanager
async def prefect_api(*, progress: Callable[[str], None] | None = None) -> AsyncIterator[str]:
    """Yields the address of the Prefect API and makes it the one in use.

    The configured one (``PREFECT_API_URL`` in the environment or in the active Prefect profile), else that of the
    background server, which is started if it does not run.

    Args:
        progress: Called with a line of text when the server has to be started.

    Raises:
        PlatformUnavailableError: The background server does not start; the text holds the end of its log.
    """
    if url := PREFECT_API_URL.value():
        yield str(url)
        return
    server = await PrefectServer().start(progress=progress)
    _keep_proxies_away()
    settings = {PREFECT_API_URL: server.api_url, PREFECT_SERVER_ANALYTICS_ENABLED: False}
    with temporary_settings(settings):
        yield server.api_url


def _keep_proxies_away() -> None:
    """Lists 127.0.0.1 in ``NO_PROXY``: Prefect's client obeys proxy variables, and no proxy reaches this machine."""
    for name in ("NO_PROXY", "no_proxy"):
        listed = [item.strip() for item in os.environ.get(name, "").split(",") if item.strip()]
        if "127.0.0.1" not in listed and "*" not in listed:
            os.environ[name] = ",".join((*listed, "127.0.0.1"))
