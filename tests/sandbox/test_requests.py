"""Requests that no sandbox could carry are refused, by field, before anything is asked of a platform."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from sandbox.models import ValidationRequest
from sandbox.profiles import builtin_profile
from sandbox.task import task_of


@pytest.mark.parametrize(
    ("fields", "field", "part"),
    [
        ({"files": {"x" * 256: ""}}, "files", "255 bytes"),
        ({"files": {"d/" + "ž" * 128 + "/main.py": ""}}, "files", "255 bytes"),
        ({"files": {"\ud800.py": ""}}, "files", "surrogate"),
        ({"files": {"main.py": "ab\ud800"}}, "files", "character 2"),
        ({"stdin": "\udfff"}, "stdin", "surrogate"),
        ({"environment": {"A": "\ud800"}}, "environment", "'A'"),
        ({"secrets": {"A": "\ud800"}}, "secrets", "'A'"),
        ({"environment": {"A": "x" * 131_070}}, "environment", "131071"),
        ({"environment": {f"A{number}": "x" * 100_000 for number in range(3)}}, "environment", "together"),
        ({"environment": {"OPTIND": "abc"}}, "environment", "OPTIND"),
        ({"environment": {"UID": "0"}}, "environment", "UID"),
    ],
)
def test_what_cannot_be_carried_is_refused(fields: dict[str, Any], field: str, part: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ValidationRequest(**{"profile": "python", "files": {"main.py": ""}, **fields})
    (first, *_) = caught.value.errors()
    assert first["loc"][0] == field
    assert part in first["msg"]


def test_the_secret_of_a_refused_request_is_not_told() -> None:
    with pytest.raises(ValidationError) as caught:
        ValidationRequest.model_validate(
            {"profile": "python", "files": {"main.py": ""}, "secrets": {"A": "hunter2-hunter2\0"}}
        )
    assert "hunter2" not in str(caught.value)


def test_what_just_fits_is_taken() -> None:
    values = {"A": "x" * 131_069}
    assert ValidationRequest(profile="python", files={"x" * 255: ""}, environment=values).environment == values


@pytest.mark.parametrize(
    ("fields", "isolation"),
    [
        ({}, "shared"),
        ({"secrets": {"TOKEN": "hidden-token"}}, "run"),
        ({"secrets": {"TOKEN": "hidden-token"}, "isolation": "shared"}, "shared"),
        ({"connections": [{"kind": "postgresql", "url": "postgresql://anna:open-sesame@localhost/shop"}]}, "run"),
        ({"connections": [{"kind": "mongodb", "url": "mongodb://localhost/shop"}]}, "shared"),
    ],
)
def test_a_run_with_something_to_hide_is_alone_unless_it_asks_for_company(
    fields: dict[str, Any], isolation: str
) -> None:
    request = ValidationRequest.model_validate({"profile": "python", "files": {"main.py": ""}, **fields})
    assert task_of(request.identified(), builtin_profile("python")).isolation.value == isolation
