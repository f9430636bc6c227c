"""The flat parameters and the request they stand for."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from pydantic import SecretStr

from flows.parameters import PARAMETER_BYTES, checked_request, parameters_of, request_from_parameters
from flows.validation import validate
from sandbox.errors import ConfigurationError
from sandbox.models import Isolation, RunLimits, ValidationRequest


def all_parameters(**given: Any) -> dict[str, Any]:
    """The flow's parameters with their defaults, as Prefect fills them in."""
    signature = inspect.signature(validate.fn)
    return {"profile": "python", **{n: p.default for n, p in signature.parameters.items() if n != "profile"}, **given}


def test_every_parameter_reaches_the_request() -> None:
    parameters = all_parameters(
        files={"main.py": "print(1)"},
        files_base64={"data.bin": "AP8="},
        framework="plain",
        entry_point="main.py",
        thread_id="t-1",
        run_id="r-1",
        environment={"A": "1"},
        stdin="in",
        timeout_seconds=5,
        phase_seconds={"run": 2},
        no_output_seconds=3,
        output_bytes=4096,
        result_bytes=10,
        platform_seconds=7,
        result="required",
        expected={"q": 1},
        isolation="run",
    )
    request = request_from_parameters(parameters, secrets={"S": SecretStr("hidden")})
    assert request.files == {"main.py": "print(1)", "data.bin": b"\x00\xff"}
    assert request.limits == RunLimits(
        total_seconds=5,
        phase_seconds={"run": 2},
        no_output_seconds=3,
        output_bytes=4096,
        result_bytes=10,
        platform_seconds=7,
    )
    assert request.isolation is Isolation.RUN
    assert request.expected == {"q": 1}
    assert request.secrets["S"].get_secret_value() == "hidden"
    assert (request.thread_id, request.run_id, request.stdin) == ("t-1", "r-1", "in")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"files": {"../x": "1"}}, "files"),
        ({"files": {}}, "files: there must be at least one"),
        ({"files": {"a": "1"}, "files_base64": {"a": "AA=="}}, "files_base64.a"),
        ({"files": {"a": "1"}, "files_base64": {"b": "no base64!"}}, "files_base64.b"),
        ({"files": {"a": "1"}, "timeout_seconds": -1}, "limits.total_seconds"),
        ({"files": {"a": "1"}, "thread_id": "../up"}, "thread_id"),
        ({"files": {"a": "1"}, "environment": {"1A": "x"}}, "environment"),
    ],
)
def test_a_wrong_parameter_is_named(given: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        request_from_parameters(all_parameters(**given), secrets={})
    assert f"{caught.value}:".startswith(f"{field}:")


def test_parameters_of_a_request_lead_back_to_it() -> None:
    request = ValidationRequest(
        profile="java",
        framework="plain",
        files={"Main.java": "void main() {}", "logo.png": b"\x89PNG"},
        environment={"A": "1"},
        limits=RunLimits(total_seconds=9.0, phase_seconds={"build": 3.0}),
        isolation=Isolation.THREAD,
    ).identified()
    parameters = all_parameters(**parameters_of(request))
    assert request_from_parameters(parameters, secrets={}) == request


def test_secrets_and_large_files_stay_out_of_the_parameters() -> None:
    request = ValidationRequest(
        profile="java",
        files={"Main.java": "x" * (PARAMETER_BYTES + 1)},
        secrets={"PASSWORD": SecretStr("hunter2")},
        stdin="from the caller",
    )
    parameters = parameters_of(request)
    assert "files" not in parameters
    assert "hunter2" not in repr(parameters)
    assert "PASSWORD" not in repr(parameters)
    assert "from the caller" not in repr(parameters)


def test_a_wrong_secret_is_not_repeated_in_the_error() -> None:
    with pytest.raises(ConfigurationError) as caught:
        checked_request({"profile": "java", "files": {"a": "1"}, "secrets": {"KEY": "hun\0ter2"}})
    assert "KEY" in str(caught.value)
    assert "ter2" not in str(caught.value)
