"""Validation of untrusted programs in Daytona sandboxes, without Prefect.

    from sandbox import EventStream, Validation, ValidationRequest, builtin_profile, client, platform_credentials

    request = ValidationRequest(profile="python", files={"main.py": "print('hello')"}).identified()
    async with (
        client(await platform_credentials()) as daytona,
        EventStream(run_id=request.run_id, thread_id=request.thread_id, sinks=[print]) as events,
    ):
        result = await Validation(request, profile=builtin_profile("python"), client=daytona, events=events).run()

Importing the package is cheap; what needs the SDK is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sandbox.errors import (
    AccessDeniedError,
    AuthenticationError,
    BadRequestError,
    CapacityError,
    ClientClosedError,
    ConfigurationError,
    PlatformUnavailableError,
    QuotaExceededError,
    RateLimitedError,
    SandboxError,
    SandboxLostError,
    SnapshotBuildError,
    WaitTimeoutError,
)

if TYPE_CHECKING:
    from sandbox.comparison import (
        ComparisonRules,
        QueryStatus,
        ResultsComparison,
        TranslationOutcome,
        compare,
        compare_results,
    )
    from sandbox.connection import Credentials, client, platform_credentials, resolve_credentials
    from sandbox.databases import DatabaseConnection, DatabaseKind
    from sandbox.events import Event, EventStream, Sink
    from sandbox.models import (
        Comparison,
        Diagnostic,
        Difference,
        Isolation,
        Outcome,
        PhaseResult,
        ResultExpectation,
        RunLimits,
        SandboxIdentity,
        Severity,
        SnapshotIdentity,
        StreamOutput,
        Timings,
        ValidationRequest,
        ValidationResult,
    )
    from sandbox.profiles import (
        Framework,
        Network,
        Phase,
        Profile,
        Resources,
        builtin_profile,
        builtin_profile_names,
        load_profile_file,
        parse_profile,
    )
    from sandbox.translation import TranslationResult, conclude_translation
    from sandbox.validation import Validation
    from sandbox.validation_sandbox import (
        ValidationSandbox,
        create_validation_sandbox,
        download_file_from_sandbox,
        execute_in_sandbox,
    )

_LAZY = {
    **dict.fromkeys(
        (
            "ComparisonRules",
            "QueryStatus",
            "ResultsComparison",
            "TranslationOutcome",
            "compare",
            "compare_results",
        ),
        "comparison",
    ),
    **dict.fromkeys(("TranslationResult", "conclude_translation"), "translation"),
    **dict.fromkeys(("Credentials", "client", "platform_credentials", "resolve_credentials"), "connection"),
    **dict.fromkeys(("DatabaseConnection", "DatabaseKind"), "databases"),
    **dict.fromkeys(("Event", "EventStream", "Sink"), "events"),
    **dict.fromkeys(
        (
            "Comparison",
            "Diagnostic",
            "Difference",
            "Isolation",
            "Outcome",
            "PhaseResult",
            "ResultExpectation",
            "RunLimits",
            "SandboxIdentity",
            "Severity",
            "SnapshotIdentity",
            "StreamOutput",
            "Timings",
            "ValidationRequest",
            "ValidationResult",
        ),
        "models",
    ),
    **dict.fromkeys(
        (
            "Framework",
            "Network",
            "Phase",
            "Profile",
            "Resources",
            "builtin_profile",
            "builtin_profile_names",
            "load_profile_file",
            "parse_profile",
        ),
        "profiles",
    ),
    "Validation": "validation",
    **dict.fromkeys(
        ("ValidationSandbox", "create_validation_sandbox", "download_file_from_sandbox", "execute_in_sandbox"),
        "validation_sandbox",
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "AccessDeniedError",
    "AuthenticationError",
    "BadRequestError",
    "CapacityError",
    "ClientClosedError",
    "Comparison",
    "ComparisonRules",
    "ConfigurationError",
    "Credentials",
    "DatabaseConnection",
    "DatabaseKind",
    "Diagnostic",
    "Difference",
    "Event",
    "EventStream",
    "Framework",
    "Isolation",
    "Network",
    "Outcome",
    "Phase",
    "PhaseResult",
    "PlatformUnavailableError",
    "Profile",
    "QueryStatus",
    "QuotaExceededError",
    "RateLimitedError",
    "Resources",
    "ResultExpectation",
    "ResultsComparison",
    "RunLimits",
    "SandboxError",
    "SandboxIdentity",
    "SandboxLostError",
    "Severity",
    "Sink",
    "SnapshotBuildError",
    "SnapshotIdentity",
    "StreamOutput",
    "Timings",
    "TranslationOutcome",
    "TranslationResult",
    "Validation",
    "ValidationRequest",
    "ValidationResult",
    "ValidationSandbox",
    "WaitTimeoutError",
    "builtin_profile",
    "builtin_profile_names",
    "client",
    "compare",
    "compare_results",
    "conclude_translation",
    "create_validation_sandbox",
    "download_file_from_sandbox",
    "execute_in_sandbox",
    "load_profile_file",
    "parse_profile",
    "platform_credentials",
    "resolve_credentials",
]
