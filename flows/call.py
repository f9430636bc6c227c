"""What travels beside a flow's parameters when it is called in process: live objects and secrets.

Prefect serialises, hashes and stores parameters; a sink, a client's credentials or a secret have no place there. They
wait in a context variable, which the flow takes as its first act.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox.connection import Credentials
from sandbox.events import Sink
from sandbox.models import ValidationRequest, ValidationResult
from sandbox.profiles import Profile

if TYPE_CHECKING:
    from flows.run_log import RunLog
    from sandbox.validation import Validation


@dataclass(slots=True, kw_only=True)
class Call:
    """One in-process call of the flow.

    Attributes:
        request: What to validate, identified.
        connection_blocks: Names of DatabaseConnection blocks; the flow adds them to the request.
        profile: Taken instead of the stored or built-in profile of the request's name.
        credentials: Taken instead of what the environment says.
        sinks: Where events go besides the run's own log and artifacts.
        result: Set by the flow when there is a verdict.
    """

    request: ValidationRequest
    connection_blocks: Sequence[str] = ()
    profile: Profile | None = None
    credentials: Credentials | None = None
    sinks: Sequence[Sink] = field(default_factory=tuple)
    result: ValidationResult | None = None


@dataclass(slots=True, kw_only=True)
class Running:
    """The live objects that the tasks of one flow run share.

    Attributes:
        validation: The validation itself.
        log: The run's log.
        started: Set when the phase's command has been started.
        verdict: Set by the last task.
    """

    validation: Validation
    log: RunLog
    started: asyncio.Event = field(default_factory=asyncio.Event)
    verdict: ValidationResult | None = None


CALL: ContextVar[Call | None] = ContextVar("uom_sandbox_call", default=None)
RUNNING: ContextVar[Running] = ContextVar("uom_sandbox_running")
