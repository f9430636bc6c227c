"""What a person sees of a validation in the Prefect UI, read from a real browser; pictures are kept in build/."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from uuid import UUID

import pytest
import pytest_asyncio
from playwright.async_api import expect

from flows import prefect_api, validate, validate_translation
from sandbox.connection import Credentials, client
from sandbox.models import Outcome, ValidationRequest
from sandbox.profiles import builtin_profile
from tests.browser.pages import PATIENCE, Ui
from tests.browser.runs import FAILS, PASSES, WAITS, artifacts_of, everything_is_there, running_with_log

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.usefixtures("prefect_server")]

TASKS = 7


@pytest_asyncio.fixture(autouse=True)
async def _api(credentials: Credentials) -> AsyncIterator[None]:
    async with prefect_api(), client(credentials):
        yield


def python(source: str, **fields: object) -> ValidationRequest:
    return ValidationRequest.model_validate({"profile": "python", "files": {"main.py": source}, **fields})


async def test_a_passed_validation(ui: Ui, credentials: Credentials) -> None:
    request = python(PASSES, thread_id="seen-passing")
    result = await validate(request, credentials=credentials)
    assert result.outcome is Outcome.PASSED
    run_id = UUID(result.flow_run_id)
    await everything_is_there(run_id, tasks=TASKS)

    await ui.open_run(run_id)
    await ui.shows("validate-python-plain-seen-passing", "[stdout] hello from the program")
    await expect(ui.text("Passed", exact=True)).to_be_visible(timeout=PATIENCE)
    await expect(ui.page).to_have_title(re.compile("validate-python-plain-seen-passing"), timeout=PATIENCE)
    await ui.shows_a_graph()
    await ui.picture("passed-run-graph-and-log")

    await ui.turn_to("Task Runs")
    await ui.shows("ensure_snapshot-python", "reconcile_sandbox-python", "execute_session-run", "stream_logs-run")
    await ui.shows("execute_session-build", "collect_results-python")
    await ui.picture("passed-task-runs")

    await ui.turn_to("Details")
    await ui.shows("The program passed.", "outcome:passed", "profile:python", "framework:plain", "thread:seen-passing")
    await ui.picture("passed-details")

    await ui.turn_to("Artifacts")
    keys = {name: f"validation-{name}-python-plain" for name in ("summary", "console-run", "result", "results")}
    keys["console-run"] = "validation-console-python-plain-run"
    await ui.shows(*keys.values())
    await ui.picture("passed-artifacts")

    artifacts = await artifacts_of(run_id, wanted=keys.values())
    await ui.open_artifact(artifacts[keys["summary"]])
    await expect(ui.page.get_by_role("heading", name="✔ Passed")).to_be_visible(timeout=PATIENCE)
    await ui.shows("The program passed.", "total", "█")
    await ui.picture("passed-summary")
    await ui.page.get_by_role("link", name="results", exact=True).click()
    await ui.shows("first row", "orders", '{"id": 0, "customer": "c0", "total": 0.0}')
    await ui.picture("passed-results")

    await ui.open_artifact(artifacts[keys["summary"]])
    await ui.page.get_by_role("link", name="log", exact=True).click()
    await ui.shows("[stdout] hello from the program")

    await ui.open_artifact(artifacts[keys["result"]])
    await expect(ui.page.get_by_role("heading", name="orders (30 rows)")).to_be_visible(timeout=PATIENCE)
    await ui.shows("and 10 more rows", "The first and the last row")
    await ui.picture("passed-result")

    await ui.open_artifact(artifacts[keys["console-run"]])
    await ui.shows("complete", "hello from the program")
    await ui.picture("passed-console")


async def test_a_failed_validation_whose_program_is_hostile(ui: Ui, credentials: Credentials) -> None:
    result = await validate(python(FAILS, thread_id="seen-failing", expected=1), credentials=credentials)
    assert result.outcome is Outcome.RUNTIME_ERROR
    run_id = UUID(result.flow_run_id)
    await everything_is_there(run_id, tasks=TASKS)

    await ui.open_run(run_id)
    await ui.shows("[stdout] <img src=http://evil.example/x.png", "<script>alert(2)</script>")
    await expect(ui.text("RuntimeError", exact=True)).to_be_visible(timeout=PATIENCE)
    await ui.shows_a_graph()
    await ui.picture("failed-run-graph-and-log")
    await ui.turn_to("Details")
    await ui.shows("outcome:runtime_error")
    await ui.picture("failed-details")

    keys = {name: f"validation-{name}-python-plain" for name in ("summary", "diagnostics")}
    keys["console"] = "validation-console-python-plain-run"
    artifacts = await artifacts_of(run_id, wanted=keys.values())
    await ui.open_artifact(artifacts[keys["summary"]])
    await expect(ui.page.get_by_role("heading", name="✘ RuntimeError")).to_be_visible(timeout=PATIENCE)
    await ui.shows("<img src=http://evil.example/x.png")
    await ui.links_nowhere_else()
    await ui.picture("failed-summary")
    await ui.open_artifact(artifacts[keys["diagnostics"]])
    await ui.shows("ValueError", "raise ValueError(TEXT)", "main.py")
    await ui.links_nowhere_else()
    await ui.picture("failed-diagnostics")
    await ui.open_artifact(artifacts[keys["console"]])
    await ui.shows("the end of the output", "of them left out in the middle")
    await ui.links_nowhere_else()
    await ui.picture("failed-console")

    # The older UI takes cells of tables for markdown.
    for name in ("summary", "diagnostics", "console"):
        await ui.open_artifact(artifacts[keys[name]], version=1)
        await ui.shows("ValueError" if name != "console" else "the end of the output")
        await ui.links_nowhere_else()
        await ui.picture(f"failed-{name}-older-ui")


async def test_a_running_validation(ui: Ui, credentials: Credentials) -> None:
    running = asyncio.create_task(validate(python(WAITS, thread_id="seen-running"), credentials=credentials))
    try:
        run_id = await running_with_log("seen-running", "still at it: 1")
        await ui.open_run(run_id)
        await ui.shows("validate-python-plain-seen-running", "[stdout] still at it: 1")
        await expect(ui.text("Running", exact=True)).to_be_visible(timeout=PATIENCE)
        await ui.shows_a_graph()
        await ui.picture("running-run-graph-and-log")

        console = "validation-console-python-plain-run"
        artifacts = await artifacts_of(run_id, wanted=[console])
        await ui.open_artifact(artifacts[console])
        await ui.shows("running", "still at it: 1")
        await ui.picture("running-console")
        assert not running.done()
    finally:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_a_run_that_waits_for_its_snapshot(ui: Ui, credentials: Credentials) -> None:
    profile = builtin_profile("python")
    profile = profile.model_copy(update={"type": "python-slow", "setup": (*profile.setup, "echo so far; sleep 60")})
    request = python("print(1)", thread_id="seen-waiting", isolation="run")
    running = asyncio.create_task(validate(request, profile=profile, credentials=credentials))
    try:
        run_id = await running_with_log("seen-waiting", "so far")
        progress = "validation-progress-python-plain"
        artifacts = await artifacts_of(run_id, wanted=[progress])
        await ui.open_artifact(artifacts[progress])
        await ui.shows("validation-snapshot-python-slow", "80% · step 5 of 5", "so far", "█")
        await ui.picture("running-progress-of-a-snapshot")
        assert not running.done()
    finally:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        async with client(credentials) as daytona:
            await daytona.snapshot.delete(await daytona.snapshot.get(profile.snapshot_name))


async def test_a_translation_that_differs(ui: Ui, credentials: Credentials) -> None:
    other = PASSES.replace("n % 3", "n % 4")
    result = await validate_translation(
        python(PASSES, thread_id="seen-translating"), python(other), credentials=credentials
    )
    run_id = UUID(result.flow_run_id)
    await everything_is_there(run_id, tasks=1)

    await ui.open_run(run_id, tab="SubflowRuns")
    await ui.shows("translation-python-python-seen-translating", "validate-python-plain-seen-translating")
    await ui.picture("translation-subflow-runs")
    keys = [f"validation-{name}-python-plain-python-plain" for name in ("translation", "translation-queries")]
    artifacts = await artifacts_of(run_id, wanted=keys)
    await ui.open_artifact(artifacts[keys[0]])
    await expect(ui.page.get_by_role("heading", name="✘ Different")).to_be_visible(timeout=PATIENCE)
    await ui.shows("$.orders[3].customer", '"⟦c0⟧"', '"⟦c3⟧"')
    await ui.picture("translation-verdict")
    await ui.open_artifact(artifacts[keys[1]])
    await ui.shows("orders", "different")
    await ui.picture("translation-queries")
