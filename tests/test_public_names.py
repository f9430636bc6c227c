"""The public names: what is promised is there, and nothing is promised by accident."""

from __future__ import annotations

import importlib

import pytest

import blocks
import flows
import sandbox

FORMER_SYSTEM = {
    "ValidationSandbox",
    "create_validation_sandbox",
    "execute_in_sandbox",
    "download_file_from_sandbox",
}
LIVE_EVENTS = {
    f"{language}_SANDBOX_{kind}"
    for language in ("DOTNET", "JAVA")
    for kind in ("COMMAND_EXECUTION_STDOUT", "COMMAND_EXECUTION_STDERR", "SNAPSHOT_CREATION")
}


@pytest.mark.parametrize("package", [blocks, flows, sandbox], ids=lambda package: package.__name__)
def test_every_public_name_exists(package: object) -> None:
    names = list(package.__all__)  # type: ignore[attr-defined]
    assert names == sorted(names)
    assert len(names) == len(set(names))
    for name in names:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = package.nonsense  # type: ignore[attr-defined]


def test_the_names_of_the_former_system_are_there() -> None:
    assert set(sandbox.__all__) >= FORMER_SYSTEM
    for method in ("create_snapshot", "create_validation_sandbox", "execute_in_sandbox", "download_file_from_sandbox"):
        assert callable(getattr(sandbox.ValidationSandbox, method))


def test_event_types_a_front_end_knows_keep_their_values() -> None:
    events = importlib.import_module("sandbox.events")
    for name in LIVE_EVENTS:
        assert getattr(events, name) == name.lower()


def test_the_verdict_and_the_request_keep_their_fields() -> None:
    assert set(sandbox.ValidationRequest.model_fields) >= {
        "profile", "framework", "files", "entry_point", "thread_id", "run_id", "environment", "secrets", "stdin",
        "limits", "result", "expected", "isolation",
    }  # fmt: skip
    assert set(sandbox.ValidationResult.model_fields) >= {
        "outcome", "message", "profile", "framework", "thread_id", "run_id", "phases", "diagnostics", "result",
        "comparison", "timings", "sandbox", "recoveries", "warnings", "flow_run_id",
    }  # fmt: skip
