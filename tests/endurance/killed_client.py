"""The client that is killed: one validation against a platform, in a process of its own."""

from __future__ import annotations

import asyncio
import logging

# The SDK imports its parts when they are first used, which is what takes long: here it is once, before the fork.
from daytona import AsyncDaytona, AsyncSandbox, FileUpload, SessionExecuteRequest  # noqa: F401
from pydantic import SecretStr

from sandbox.connection import Credentials, client
from sandbox.events import EventStream
from sandbox.models import Isolation, ValidationRequest
from sandbox.profiles import builtin_profile
from sandbox.validation import Validation


def run(request: ValidationRequest, api_url: str, api_key: str) -> None:
    """Validates; what becomes of it does not matter."""
    logging.disable()
    asyncio.run(_run(request.identified(), api_url, api_key))


async def _run(request: ValidationRequest, api_url: str, api_key: str) -> None:
    credentials = Credentials(api_key=SecretStr(api_key), api_url=api_url)
    async with (
        client(credentials) as daytona,
        EventStream(run_id=str(request.run_id), thread_id=str(request.thread_id)) as events,
    ):
        validation = Validation(
            request, profile=builtin_profile(request.profile), client=daytona, events=events, owner="killed"
        )
        await validation.run()


def request(source: str, isolation: Isolation) -> ValidationRequest:
    """A Python program with a limit of one second."""
    return ValidationRequest.model_validate(
        {
            "profile": "python",
            "files": {"main.py": source},
            "limits": {"total_seconds": 1},
            "stdin": "one\n",
            "isolation": isolation,
            "secrets": {"TOKEN": "hidden-from-everybody"},
        }
    )
