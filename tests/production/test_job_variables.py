"""The job variables that the documentation shows are those of Prefect's own workers."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from tests.production.compose import ROOT

PAGE = ROOT / "docs" / "production.md"
METADATA = "api/collections_data/views/aggregate-worker-metadata.json"


def schema(worker: str) -> dict[str, Any]:
    """What the variables of a worker's default job template may be."""
    listed = json.loads((Path(str(files("prefect.server"))) / METADATA).read_text())
    found: dict[str, Any] = listed[f"prefect-{worker}"][worker]["default_base_job_configuration"]["variables"]
    return {**found, "additionalProperties": False}


@pytest.mark.parametrize("worker", ["docker", "kubernetes"])
def test_the_page_shows_variables_the_worker_has(worker: str) -> None:
    found = re.search(rf"^{worker.capitalize()}:\n\n```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    variables = yaml.safe_load(found[1])["job_variables"]
    jsonschema.validate(variables, schema(worker))
    assert set(variables["env"]) == {"PREFECT_API_URL", "PREFECT_FLOWS_HEARTBEAT_FREQUENCY"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**variables, "no_such_variable": 1}, schema(worker))
