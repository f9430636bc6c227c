"""The flow ``validate-translation`` on a real Prefect server and the local platform."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from prefect.blocks.system import Secret
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    FlowRunFilter,
    FlowRunFilterParentFlowRunId,
)
from prefect.client.schemas.objects import FlowRun, StateType
from pydantic import SecretStr

import flows.translation as flow_module
from blocks import DaytonaCredentials
from flows import prefect_api, validate_translation
from sandbox.comparison import TranslationOutcome
from sandbox.connection import Credentials, client
from sandbox.errors import AuthenticationError, ConfigurationError
from sandbox.models import Isolation, Outcome, ValidationRequest
from sandbox.translation import TranslationResult
from tests.conftest import send_what_waits

pytestmark = pytest.mark.usefixtures("prefect_server")

WRITES = "import json, os\njson.dump({answer}, open(os.environ['UOM_RESULT_FILE'], 'w'))\n"
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest_asyncio.fixture(autouse=True)
async def _api(credentials: Credentials) -> AsyncIterator[None]:
    async with prefect_api(), client(credentials):
        yield


def writing(answer: Any, before: str = "", **fields: Any) -> ValidationRequest:
    return ValidationRequest(profile="python", files={"main.py": before + WRITES.format(answer=repr(answer))}, **fields)


async def runs_of(result: TranslationResult) -> tuple[FlowRun, list[FlowRun]]:
    """The run and its sub-runs."""
    run_id = UUID(str(result.flow_run_id))
    async with get_client() as api:
        children = await api.read_flow_runs(
            flow_run_filter=FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run_id]))
        )
        return await api.read_flow_run(run_id), children


async def artifacts_of(result: TranslationResult) -> dict[str, Any]:
    await asyncio.to_thread(send_what_waits)
    async with get_client() as api:
        found = await api.read_artifacts(
            artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[UUID(str(result.flow_run_id))]))
        )
    return {str(artifact.key): artifact.data for artifact in found}


async def test_equivalent_under_rules(credentials: Credentials) -> None:
    events: list[dict[str, Any]] = []
    result = await validate_translation(
        writing({"q": [{"OrderId": 1, "Total": "1.50"}]}, before="print('I am the source')\n", thread_id="talk"),
        writing({"q": [{"order_id": 1, "total": 1.5}]}, before="print('I am the target')\n"),
        rules={"names": "words", "numeric_text": True},
        on_event=lambda event: events.append(dict(event)),
        credentials=credentials,
    )
    assert result.outcome is TranslationOutcome.EQUIVALENT, result.text()
    assert result.comparison is not None
    assert {one.rule for one in result.comparison.accepted} == {"names", "numeric_text"}
    assert result.source.thread_id == result.target.thread_id == "talk"

    for side, verdict in (("source", result.source), ("target", result.target)):
        own = [event for event in events if event["side"] == side]
        said = "".join(event["data"] for event in own if event["type"].endswith("_stdout"))
        assert said == f"I am the {side}\n"
        assert {event["run_id"] for event in own} == {verdict.run_id}
        assert [event["seq"] for event in own] == list(range(1, len(own) + 1))

    artifacts = await artifacts_of(result)
    summary = artifacts["validation-translation-python-plain-python-plain"]
    assert summary.startswith("# ✔ Equivalent")
    assert "Accepted by rules" in summary
    table = artifacts["validation-translation-queries-python-plain-python-plain"]
    assert [row["verdict"] for row in (json.loads(table) if isinstance(table, str) else table)] == ["equivalent"]
    run, sides = await runs_of(result)
    assert run.state is not None
    assert (run.state.type, run.state.name) == (StateType.COMPLETED, "Equivalent")
    assert run.name == "translation-python-python-talk"
    assert {str(side.id) for side in sides} == {result.source.flow_run_id, result.target.flow_run_id}
    assert all(side.state and side.state.name == "Passed" for side in sides)


async def test_different_is_a_completed_run(credentials: Credentials) -> None:
    source, target = writing({"q": [1, 2], "p": 1}), writing({"q": [1, 3], "r": 1})
    result = await validate_translation(source, target, credentials=credentials)
    assert result.outcome is TranslationOutcome.DIFFERENT
    assert {query.name: query.status.value for query in result.queries} == {
        "q": "different",
        "p": "missing_in_target",
        "r": "missing_in_source",
    }
    assert "$.q[1]: source 2, target 3" in result.feedback()
    run, _ = await runs_of(result)
    assert run.state is not None
    assert (run.state.type, run.state.name, run.state.message) == (StateType.COMPLETED, "Different", result.message)
    summary = (await artifacts_of(result))["validation-translation-python-plain-python-plain"]
    assert summary.startswith("# ✘ Different")


@pytest.mark.parametrize(
    ("target", "outcome", "side_outcome"),
    [
        ("def broken(:\n", "TargetFailed", Outcome.COMPILE_ERROR),
        ("print('no result')\n", "TargetFailed", Outcome.RESULT_MISSING),
    ],
)
async def test_a_side_that_fails(target: str, outcome: str, side_outcome: Outcome, credentials: Credentials) -> None:
    result = await validate_translation(
        writing({"q": [1]}),
        ValidationRequest(profile="python", files={"main.py": target}),
        credentials=credentials,
    )
    assert result.outcome.state_name == outcome
    assert result.source.passed
    assert result.target.outcome is side_outcome
    assert [(query.name, query.status.value) for query in result.queries] == [("q", "failed")]
    run, _ = await runs_of(result)
    assert run.state is not None
    assert (run.state.type, run.state.name) == (StateType.COMPLETED, outcome)


async def test_both_sides_run_at_once(credentials: Credentials) -> None:
    # Each side ends only when it has seen the other's mark; one after the other they would wait for ever.
    meet = (
        "import os, time\n"
        "place = os.path.dirname(os.environ['UOM_WORKSPACE'].rstrip('/'))\n"
        "os.makedirs(f'{{place}}/meeting', exist_ok=True)\n"
        "open(f'{{place}}/meeting/{me}', 'w').close()\n"
        "while not os.path.exists(f'{{place}}/meeting/{other}'): time.sleep(0.05)\n"
    )
    together = {"isolation": Isolation.SHARED}
    result = await validate_translation(
        writing({"q": 1}, before=meet.format(me="source", other="target")).model_copy(update=together),
        writing({"q": 1}, before=meet.format(me="target", other="source")).model_copy(update=together),
        credentials=credentials,
    )
    assert result.equivalent, result.text()


async def test_no_verdict_when_a_side_cannot_be_validated(credentials: Credentials) -> None:
    wrong = credentials.model_copy(update={"api_key": SecretStr("uom_wrong")})
    with pytest.raises(AuthenticationError, match="ensure_snapshot"):
        await validate_translation(writing({"q": 1}), writing({"q": 1}), credentials=wrong)


async def test_cancelling_ends_both_sides(credentials: Credentials) -> None:
    heard: dict[str, asyncio.Event] = {"source": asyncio.Event(), "target": asyncio.Event()}

    def listen(event: Any) -> None:
        if event["type"].endswith("_stdout"):
            heard[event["side"]].set()

    endless = "import time\nprint('on', flush=True)\ntime.sleep(600)\n"
    running = asyncio.create_task(
        validate_translation(
            writing(1, before=endless), writing(1, before=endless), on_event=listen, credentials=credentials
        )
    )
    async with asyncio.timeout(60):
        for sign in heard.values():
            await sign.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    async with client(credentials) as daytona:
        sandbox = await daytona.get("validation-sandbox-python-3-sandbox")
        assert await sandbox.process.list_sessions() == []


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"rules": {"row": 1}}, r"rules\.row"),
        ({"source": {"profile": "python", "files": {"../x": ""}}}, "files"),
        ({"target": {"profile": "python", "files": {"main.py": ""}, "result": "none"}}, r"target\.result"),
        ({"target": {"profile": "cobol", "files": {"main.cob": ""}}}, "profile"),
    ],
)
async def test_what_is_wrong_is_named(fields: dict[str, Any], named: str, credentials: Credentials) -> None:
    program = {"profile": "python", "files": {"main.py": "print(1)"}}
    given: dict[str, Any] = {"source": program, "target": program, **fields}
    with pytest.raises(ConfigurationError, match=named):
        await validate_translation(**given, credentials=credentials)


async def test_a_run_from_parameters_alone_as_a_deployment_starts_it(credentials: Credentials) -> None:
    await DaytonaCredentials(api_key=credentials.api_key, api_url=credentials.api_url).asave("there", overwrite=True)
    await Secret(value="hunter2-77").asave("translation-password", overwrite=True)
    source = "import os\nassert os.environ['PASSWORD'] == 'hunter2-77'\n" + WRITES.format(answer="{'q': [1, 2]}")
    side = {"profile": "python", "credentials_block": "there"}
    result: Any = await flow_module.validate_translation(
        source={**side, "files": {"main.py": source}, "secret_blocks": {"PASSWORD": "translation-password"}},
        target={**side, "files": {"main.py": WRITES.format(answer="{'q': [2, 1]}")}},
        rules={"rows": "unordered"},
    )
    assert isinstance(result, TranslationResult)
    assert result.outcome is TranslationOutcome.EQUIVALENT, result.text()


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"rules": {"row": 1}}, "rules.row"),
        ({"source": {"profil": "python"}}, "source: "),
        ({"target": {"profile": "python", "files": {"../x.py": ""}}}, "target: files"),
        ({"target": {"profile": "python", "files": {"x.py": ""}, "credentials_block": "none-here"}}, "none-here"),
    ],
)
async def test_a_wrong_parameter_fails_the_run_with_its_name(parameters: dict[str, Any], named: str) -> None:
    program = {"profile": "python", "files": {"main.py": "print(1)"}}
    given: dict[str, Any] = {"source": program, "target": program, **parameters}
    state: Any = await flow_module.validate_translation(**given, return_state=True)
    assert state.type is StateType.FAILED
    assert named in state.message
