"""Artifacts: what they say, that nothing in them breaks, and that they never hold up or fail a run."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from prefect import flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import Artifact as Stored
from prefect.context import FlowRunContext
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows import validate
from flows.artifact_keys import artifact_key
from flows.artifacts import publish_verdict
from flows.console import Console, console_markdown
from flows.prefect_connection import prefect_api
from flows.publisher import FAILED_TRIES, PUBLISHER, Artifact, Publisher
from sandbox.connection import Credentials
from sandbox.events import Event
from sandbox.models import Outcome, ValidationRequest
from tests.flows.hostile import verdict


def test_keys_are_what_prefect_takes() -> None:
    assert artifact_key("console", "java", "spring-data-mongodb", "Build_1.x") == (
        "validation-console-java-spring-data-mongodb-build-1-x"
    )


def test_a_console_shows_the_text_as_it_is() -> None:
    markdown = console_markdown(phase="run", state="complete", text="a\n```\nb", total=7)
    assert "````text\na\n```\nb\n````" in markdown


async def stored(flow_run_id: UUID) -> dict[str, Stored]:
    await asyncio.to_thread(PUBLISHER.flush, 30)
    async with get_client() as client:
        found = await client.read_artifacts(
            artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[flow_run_id]))
        )
    assert len({artifact.key for artifact in found}) == len(found), "an update made a new version"
    return {artifact.key or "": artifact for artifact in found}


def output(text: str) -> Event:
    return Event(
        type="java_sandbox_command_execution_stdout", data=text, seq=1, at="", run_id="r", thread_id="t", phase="run"
    )


def marker(type_: str) -> Event:
    return Event(type=type_, data={}, seq=1, at="", run_id="r", thread_id="t", phase="run")


@flow
async def publishing(lines: int) -> UUID:
    context = FlowRunContext.get()
    assert context is not None
    assert context.flow_run is not None
    run_id = context.flow_run.id
    console = Console(profile="java", framework="plain", flow_run_id=run_id)
    console(marker("phase_started"))
    for number in range(lines):
        console(output(f"line {number}\n"))
    console(marker("phase_finished"))
    publish_verdict(verdict(), flow_run_id=run_id)
    return run_id


async def test_a_run_has_its_artifacts(prefect_server: str) -> None:
    async with prefect_api():
        run_id = await publishing(3)
    found = await stored(run_id)
    assert set(found) == {
        "validation-summary-java-plain",
        "validation-comparison-java-plain",
        "validation-results-java-plain",
        "validation-console-java-plain-run",
        "validation-diagnostics-java-plain",
        "validation-result-java-plain",
    }
    console = found["validation-console-java-plain-run"]
    assert "line 0\nline 1\nline 2" in str(console.data)
    assert "complete" in str(console.data)
    assert json.loads(str(found["validation-diagnostics-java-plain"].data))[0]["line"] == 3
    summary = str(found["validation-summary-java-plain"].data)
    assert f"[log](../../runs/flow-run/{run_id}?tab=Logs)" in summary
    for role in ("diagnostics", "results", "result", "comparison"):
        assert f"[{role}](../../artifacts/artifact/{found[f'validation-{role}-java-plain'].id})" in summary


async def test_a_long_console_ends_complete_within_its_limit(prefect_server: str) -> None:
    async with prefect_api():
        run_id = await publishing(200_000)
    data = str((await stored(run_id))["validation-console-java-plain-run"].data)
    assert len(data) < 60_000
    assert "line 0\n" in data
    assert "line 199999\n" in data
    assert "characters left out" in data
    assert data.startswith("**run** · complete · 2,288,890 characters · 2,240,890 of them left out in the middle")


async def test_a_console_is_shown_while_the_phase_runs(prefect_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    seen = asyncio.Event()

    def publish(artifact: Artifact, render: Any) -> None:
        shown.append(render())
        seen.set()

    monkeypatch.setattr(PUBLISHER, "publish", publish)
    monkeypatch.setattr("flows.console.UPDATE_SECONDS", 0.01)
    console = Console(profile="java", framework="plain", flow_run_id=uuid4())
    console(marker("phase_started"))
    for number in range(100):
        console(output(f"line {number}\n"))
    async with asyncio.timeout(10):
        await seen.wait()
    assert "running" in shown[0]
    assert "line 99" in shown[0]
    console(output("the end\n"))
    console(marker("phase_finished"))
    assert "complete" in shown[-1]
    assert "the end" in shown[-1]
    console.close()
    assert len(shown) <= 3


async def test_an_update_while_it_runs_is_in_place(prefect_server: str) -> None:
    async with prefect_api():
        run_id = await publishing(1)
        artifact = Artifact(key="validation-console-x", type="markdown", description="d", flow_run_id=run_id)
        PUBLISHER.publish(artifact, lambda: "first")
        assert (await stored(run_id))["validation-console-x"].data == "first"
        PUBLISHER.publish(artifact, lambda: "second")
    assert (await stored(run_id))["validation-console-x"].data == "second"


async def test_trouble_with_artifacts_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    publisher = Publisher()
    artifact = Artifact(key="validation-x", type="markdown", description="d", flow_run_id=uuid4())
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}), caplog.at_level(logging.WARNING):
        for _ in range(FAILED_TRIES):
            publisher.publish(artifact, lambda: "data")
            assert await asyncio.to_thread(publisher.flush, 30)
    assert caplog.text.count("an artifact could not be sent") == FAILED_TRIES
    publisher.publish(artifact, lambda: pytest.fail("it has been given up"))
    assert await asyncio.to_thread(publisher.flush, 5)


class Refusing:
    """Requests for artifacts that the server answers so, the next ones or all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, status: int, times: int | None = None) -> None:
        self.refused = 0
        original = SyncPrefectClient.request

        def request(client: SyncPrefectClient, method: Any, path: Any, *arguments: Any, **more: Any) -> Any:
            if not path.startswith("/artifacts/") or (times is not None and self.refused >= times):
                return original(client, method, path, *arguments, **more)
            self.refused += 1
            made = httpx.Request(method, f"http://server{path}")
            raise httpx.HTTPStatusError("refused", request=made, response=httpx.Response(status, request=made))

        monkeypatch.setattr(SyncPrefectClient, "request", request)


async def test_an_update_that_failed_once_does_not_keep_the_last_one_away(
    prefect_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with prefect_api():
        run_id = await publishing(1)
        artifact = Artifact(key="validation-console-y", type="markdown", description="d", flow_run_id=run_id)
        PUBLISHER.publish(artifact, lambda: "first")
        await stored(run_id)
        refusing = Refusing(monkeypatch, status=503, times=1)
        PUBLISHER.publish(artifact, lambda: "second")
        assert (await stored(run_id))["validation-console-y"].data == "first"
        PUBLISHER.publish(artifact, lambda: "complete")
    assert (await stored(run_id))["validation-console-y"].data == "complete"
    assert refusing.refused == 1


async def test_a_run_is_the_same_where_artifacts_are_refused(
    prefect_server: str,
    credentials: Credentials,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusing = Refusing(monkeypatch, status=413)
    source = "import os; print('out'); open(os.environ['UOM_RESULT_FILE'], 'w').write('[1]')"
    request = ValidationRequest(profile="python", files={"main.py": source}, expected=[2])
    async with prefect_api():
        result = await validate(request, credentials=credentials)
        assert result.outcome is Outcome.MISMATCH
        assert result.phases[-1].stdout.text == "out\n"
        assert await stored(UUID(result.flow_run_id)) == {}
    assert refusing.refused >= 4
    assert "an artifact could not be sent" in caplog.text


async def test_content_that_cannot_be_made_fails_alone(prefect_server: str, caplog: pytest.LogCaptureFixture) -> None:
    async with prefect_api():
        run_id = await publishing(1)
        bad = Artifact(key="validation-bad", type="markdown", description="d", flow_run_id=run_id)
        good = Artifact(key="validation-good", type="markdown", description="d", flow_run_id=run_id)
        PUBLISHER.publish(bad, lambda: 1 / 0)
        PUBLISHER.publish(good, lambda: "fine")
    found = await stored(run_id)
    assert "validation-good" in found
    assert "validation-bad" not in found
    assert "ZeroDivisionError" in caplog.text


async def test_publishing_never_waits_and_is_sent_once() -> None:
    publisher = Publisher()
    gate, sent = threading.Event(), []
    first = Artifact(key="validation-a", type="markdown", description="d", flow_run_id=uuid4())
    second = Artifact(key="validation-b", type="markdown", description="d", flow_run_id=uuid4())

    def slow() -> str:
        gate.wait(30)
        raise RuntimeError("not sent in this test")

    def content(number: int) -> str:
        sent.append(number)
        raise RuntimeError("not sent in this test")

    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        publisher.publish(first, slow)
        for number in range(100):
            publisher.publish(second, partial(content, number))
        gate.set()
        assert await asyncio.to_thread(publisher.flush, 30)
    assert sent == [99]
