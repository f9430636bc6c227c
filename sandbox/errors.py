"""Faults of the infrastructure: raised when we could not find out what the program does.

What a program does wrong is an outcome (see ``models.Outcome``), never one of these.

SandboxError
├── ConfigurationError        (ValueError)        a setting, profile or request is wrong; names the field
├── BadRequestError           (ValueError)        the platform refused the call as malformed
├── AuthenticationError       (PermissionError)   the key is missing, wrong or revoked
├── AccessDeniedError         (PermissionError)   the key is valid but may not do this
├── QuotaExceededError                            the account's limit is reached
├── CapacityError                                 the platform has no room now
├── RateLimitedError                              the platform asks to wait; carries how long
├── SnapshotBuildError                            the snapshot's build failed; carries the end of its log
├── SandboxLostError          (ConnectionError)   the sandbox vanished or no longer answers
├── EndUnconfirmedError                           a program was told to end, and nobody knows whether it did
├── ClientClosedError         (RuntimeError)      a client of the platform was used after its context had ended
├── WaitTimeoutError          (TimeoutError)      a state was not reached in time; tells the story of the wait
└── PlatformUnavailableError  (ConnectionError)   the platform cannot be reached or answers 5xx
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


class Source(StrEnum):
    """Whose side a fault is on."""

    CONFIG = "config"
    PLATFORM = "platform"
    SANDBOX = "sandbox"
    TOOLCHAIN = "toolchain"


class RetryClass(StrEnum):
    """What a caller may do after a fault."""

    NEVER = "never"
    SOON = "soon"
    AS_TOLD = "as_told"
    SLOWLY = "slowly"


class SandboxError(Exception):
    """Root of all faults that are ours to raise.

    Attributes:
        step: The step of the validation that failed (``ensure_snapshot``, ``reconcile_sandbox``, …), if known.
        sandbox: Name or id of the sandbox or snapshot, if there is one.
        state: Last state that was read, if any.
        remedy: What the reader can do about it; each class has words of its own for when the fault gives none.
    """

    code: ClassVar[str] = "sandbox_error"
    advice: ClassVar[str | None] = None
    source: ClassVar[Source] = Source.PLATFORM
    retry: ClassVar[RetryClass] = RetryClass.NEVER

    def __init__(
        self,
        message: str,
        *,
        step: str | None = None,
        sandbox: str | None = None,
        state: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.step = step
        self.sandbox = sandbox
        self.state = state
        self.remedy = remedy or self.advice

    def __str__(self) -> str:
        facts = [
            f"{name} {value}"
            for name, value in (("step", self.step), ("sandbox", self.sandbox), ("state", self.state))
            if value is not None
        ]
        text = f"{self.message} ({', '.join(facts)})" if facts else self.message
        return f"{text}. {self.remedy}" if self.remedy else text


class ConfigurationError(SandboxError, ValueError):
    """A setting, a profile or a request is wrong.

    Attributes:
        field: Path of the wrong field (``resources.memory``), or the name of the environment variable.
    """

    code = "configuration"
    source = Source.CONFIG

    def __init__(self, message: str, *, field: str | None = None, remedy: str | None = None) -> None:
        super().__init__(f"{field}: {message}" if field else message, remedy=remedy)
        self.field = field


class BadRequestError(SandboxError, ValueError):
    """The platform refused the call as malformed or impossible; repeating it cannot help."""

    code = "bad_request"
    advice = "Correct what the platform names; the same call would be refused again."


class AuthenticationError(SandboxError, PermissionError):
    """The API key is missing, wrong or revoked."""

    code = "authentication"
    advice = "Check DAYTONA_API_KEY and DAYTONA_API_URL."
    source = Source.CONFIG


class AccessDeniedError(SandboxError, PermissionError):
    """The API key is valid but lacks a permission for this call."""

    code = "access_denied"
    advice = "Give the key the permission that is named."
    source = Source.CONFIG


class QuotaExceededError(SandboxError):
    """The account's own limit is reached; waiting does not help, freeing something does."""

    code = "quota"
    advice = "Delete sandboxes or snapshots, or ask for a higher limit."


class CapacityError(SandboxError):
    """The platform has no room for another sandbox or build right now."""

    code = "capacity"
    advice = "Try again later, run fewer validations at a time, or ask for less in the profile's `resources`."
    retry = RetryClass.SLOWLY


class RateLimitedError(SandboxError):
    """The platform asks callers to slow down.

    Attributes:
        retry_after: Seconds to wait as the platform told, or ``None`` when it did not say.
    """

    code = "rate_limited"
    advice = "Try again after the time the platform names, or run fewer validations at a time."
    retry = RetryClass.AS_TOLD

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        step: str | None = None,
        sandbox: str | None = None,
        state: str | None = None,
    ) -> None:
        if retry_after is not None:
            message = f"{message} (the platform asks to wait {retry_after:g} s)"
        super().__init__(message, step=step, sandbox=sandbox, state=state)
        self.retry_after = retry_after


class SnapshotBuildError(SandboxError):
    """A snapshot could not be built from the profile's definition.

    Attributes:
        log_tail: The last lines of the build log, at most 50.
    """

    code = "snapshot_build"
    source = Source.TOOLCHAIN

    def __init__(
        self,
        message: str,
        *,
        log_tail: tuple[str, ...] = (),
        sandbox: str | None = None,
        state: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, step="ensure_snapshot", sandbox=sandbox, state=state, remedy=remedy)
        self.log_tail = log_tail

    def __str__(self) -> str:
        text = super().__str__()
        if not self.log_tail:
            return text
        return "\n".join((text, "The build log ended with:", *(f"  {line}" for line in self.log_tail)))


class SandboxLostError(SandboxError, ConnectionError):
    """The sandbox vanished, or its toolbox no longer answers, while it was needed."""

    code = "sandbox_lost"
    advice = "Run the validation again: another sandbox takes its place."
    source = Source.SANDBOX
    retry = RetryClass.SOON


class SandboxSpoiltError(SandboxLostError):
    """Former programs have left the sandbox in a state that a restart would not change, such as a full disk."""

    code = "sandbox_spoilt"


class EndUnconfirmedError(SandboxError):
    """A program was to be ended, and something of it is still there, or nobody knows.

    It changes no verdict: results carry it as a warning that begins with its code.
    """

    code = "end_unconfirmed"
    advice = "Restart or delete the sandbox if later runs in it are slow."
    source = Source.SANDBOX


class ClientClosedError(SandboxError, RuntimeError):
    """A client of the platform was used after its context had ended; keep the context open around every use."""

    code = "client_closed"
    source = Source.CONFIG
    advice = "Use it inside `async with client(credentials)`."


class WaitTimeoutError(SandboxError, TimeoutError):
    """A state was not reached in time; the text tells limit, elapsed seconds, number of reads and last state.

    A wait has all the time it may take, so it is not begun again.
    """

    code = "wait_timeout"
    advice = "Try again; if it stays in that state, delete it on the platform."


class PlatformUnavailableError(SandboxError, ConnectionError):
    """The platform cannot be reached, or answers with a server error."""

    code = "platform_unavailable"
    advice = "Try again later; `uom-sandbox doctor` tells what works on this machine."
    retry = RetryClass.SOON
