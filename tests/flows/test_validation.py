"""The flow ``validate`` on a real Prefect server and the local platform."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from daytona import AsyncDaytona, DaytonaNotFoundError
from prefect.blocks.system import Secret
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    FlowRunFilter,
    FlowRunFilterId,
    LogFilter,
    LogFilterFlowRunId,
)
from prefect.client.schemas.objects import FlowRun, StateType
from pydantic import SecretStr

import flows.validation as flow_module
from blocks import DaytonaCredentials, SandboxProfile
from flows import prefect_api, validate
from flows.publisher import PUBLISHER
from sandbox.connection import Credentials, client
from sandbox.errors import AuthenticationError, ConfigurationError, PlatformUnavailableError
from sandbox.events import Event
from sandbox.models import Isolation, Outcome, ValidationRequest, ValidationResult
from sandbox.naming import sandbox_name
from sandbox.profiles import builtin_profile
from tests.conftest import send_what_waits

pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest_asyncio.fixture(autouse=True)
async def _api(credentials: Credentials) -> AsyncIterator[None]:
    """Connections that a program with many validations keeps open."""
    async with prefect_api(), client(credentials):
        yield


def python(source: str, **fields: Any) -> ValidationRequest:
    return ValidationRequest(profile="python", files={"main.py": source}, **fields)


async def heard_from(running: asyncio.Task[ValidationResult], heard: asyncio.Event) -> None:
    """Waits for the sign of life of a run that must not be over yet."""
    sign = asyncio.create_task(heard.wait())
    async with asyncio.timeout(60):
        await asyncio.wait({running, sign}, return_when=asyncio.FIRST_COMPLETED)
    assert not running.done(), await running
    await sign


async def flow_run_of(result: ValidationResult) -> FlowRun:
    assert result.flow_run_id is not None
    async with get_client() as api:
        return await api.read_flow_run(UUID(result.flow_run_id))


async def newest_run(api: PrefectClient) -> FlowRun:
    """The run that was begun last: deployments with a schedule have runs that lie ahead, too."""
    from prefect.client.schemas.filters import FlowRunFilterState, FlowRunFilterStateType
    from prefect.client.schemas.sorting import FlowRunSort

    begun = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(not_any_=[StateType.SCHEDULED])))
    return (await api.read_flow_runs(flow_run_filter=begun, sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=1))[0]


async def everything_stored(run_id: UUID, *, tasks_named: Collection[str] = ()) -> str:
    """All that Prefect keeps of a run, as text; waits for the tasks, which the server records when it comes to it."""
    await asyncio.to_thread(send_what_waits)
    async with asyncio.timeout(60), get_client() as api:
        of_the_run = FlowRunFilter(id=FlowRunFilterId(any_=[run_id]))
        while True:
            tasks = await api.read_task_runs(flow_run_filter=of_the_run)
            if set(tasks_named) <= {task.name for task in tasks}:
                break
            await asyncio.sleep(0.2)
        run = await api.read_flow_run(run_id)
        artifacts = await api.read_artifacts(
            artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run_id]))
        )
        logs = await api.read_logs(log_filter=LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run_id])), limit=200)
    return json.dumps([item.model_dump(mode="json") for item in (run, *artifacts, *logs, *tasks)])


async def test_a_program_that_passes(credentials: Credentials) -> None:
    events: list[Event] = []
    source = "import json, os\nprint('hello')\njson.dump({'q': {'count': 2}}, open(os.environ['UOM_RESULT_FILE'], 'w'))"
    result = await validate(python(source, thread_id="talk-1"), on_event=events.append, credentials=credentials)

    assert result.outcome is Outcome.PASSED
    assert result.result == {"q": {"count": 2}}
    assert [phase.exit_code for phase in result.phases] == [0, 0]
    said = "".join(str(e["data"]) for e in events if e["type"] == "python_sandbox_command_execution_stdout")
    assert said == "hello\n"
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))

    await asyncio.to_thread(PUBLISHER.flush, 30)
    run = await flow_run_of(result)
    assert run.state is not None
    assert (run.state.type, run.state.name) == (StateType.COMPLETED, "Passed")
    assert run.name == "validate-python-plain-talk-1"
    assert set(run.tags) == {"profile:python", "framework:plain", "thread:talk-1", "outcome:passed"}
    tasks = (
        "ensure_snapshot-python",
        "reconcile_sandbox-python",
        "execute_session-build",
        "stream_logs-build",
        "execute_session-run",
        "stream_logs-run",
        "collect_results-python",
    )
    stored = await everything_stored(run.id, tasks_named=tasks)
    assert "[stdout] hello" in stored
    for key in ("summary", "console", "result"):
        assert f"validation-{key}-python-plain" in stored


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        ("def broken(:\n", Outcome.COMPILE_ERROR),
        ("raise ValueError('no')", Outcome.RUNTIME_ERROR),
        ("import os; open(os.environ['UOM_RESULT_FILE'], 'w').write('{')", Outcome.RESULT_INVALID),
    ],
)
async def test_a_program_that_fails_is_a_completed_run(source: str, outcome: Outcome, credentials: Credentials) -> None:
    result = await validate({"profile": "python", "files": {"main.py": source}}, credentials=credentials)
    assert result.outcome is outcome
    run = await flow_run_of(result)
    assert run.state is not None
    assert (run.state.type, run.state.name) == (StateType.COMPLETED, outcome.state_name)
    assert run.state.message == result.message


async def test_output_arrives_while_the_program_runs(credentials: Credentials) -> None:
    heard = asyncio.Event()

    def listen(event: Event) -> None:
        if event["type"].endswith("_stdout"):
            heard.set()

    source = "import time\nprint('first', flush=True)\ntime.sleep(600)"
    running = asyncio.create_task(validate(python(source), on_event=listen, credentials=credentials))
    await heard_from(running, heard)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_cancelled_run_leaves_nothing_in_the_sandbox(credentials: Credentials) -> None:
    heard = asyncio.Event()
    request = python("import time\nprint('on', flush=True)\ntime.sleep(600)", thread_id="cancelled").identified()

    def listen(event: Event) -> None:
        if event["type"].endswith("_stdout"):
            heard.set()

    async with client(credentials) as daytona:
        before = await session_ids(daytona)
    running = asyncio.create_task(validate(request, on_event=listen, credentials=credentials))
    await heard_from(running, heard)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    async with client(credentials) as daytona:
        sandbox = await daytona.get("validation-sandbox-python-3-sandbox")
        assert await session_ids(daytona) <= before
        processes = await sandbox.process.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "main.py" not in processes.result
    async with get_client() as api:
        run = await newest_run(api)
    assert run.state is not None
    assert run.state.type is StateType.CRASHED
    assert (await validate(python("print(1)"), credentials=credentials)).passed


async def session_ids(daytona: AsyncDaytona) -> set[str]:
    """The sessions of the shared Python sandbox, none where there is no such sandbox yet."""
    try:
        sandbox = await daytona.get("validation-sandbox-python-3-sandbox")
    except DaytonaNotFoundError:
        return set()
    return {session.session_id for session in await sandbox.process.list_sessions()}


async def test_a_secret_is_nowhere(credentials: Credentials) -> None:
    secret = "hunter2-4f7c1a"
    events: list[Event] = []
    source = (
        "import json, os, sys\n"
        "s = os.environ['DATABASE_PASSWORD']\n"
        "print(s); print(s, file=sys.stderr)\n"
        "json.dump({'q': s}, open(os.environ['UOM_RESULT_FILE'], 'w'))\n"
        "raise ValueError(s)\n"
    )
    request = python(source, secrets={"DATABASE_PASSWORD": SecretStr(secret)})
    result = await validate(request, on_event=events.append, credentials=credentials)
    assert result.outcome is Outcome.RUNTIME_ERROR
    assert secret not in result.model_dump_json()
    assert secret not in json.dumps(events)
    assert result.flow_run_id is not None
    stored = await everything_stored(UUID(result.flow_run_id))
    assert "ValueError" in stored
    assert secret not in stored


async def test_a_wrong_key_fails_the_run_at_once_and_says_where(credentials: Credentials) -> None:
    wrong = credentials.model_copy(update={"api_key": SecretStr("uom_wrong")})
    with pytest.raises(AuthenticationError, match="ensure_snapshot"):
        await validate(python("print(1)"), credentials=wrong)
    async with get_client() as api:
        run = await newest_run(api)
        assert run.state is not None
        assert run.state.type is StateType.FAILED
        assert "ensure_snapshot" in (run.state.message or "")
        tasks = await api.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run.id])))
    assert all(task.run_count == 1 for task in tasks)
    stored = await everything_stored(run.id)
    assert "# ! No verdict" in stored
    assert "validation-summary-python-plain" in stored


async def test_a_platform_that_cannot_be_reached_is_tried_five_times(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        if b"/snapshots/" in await reader.readline():
            calls += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    monkeypatch.setattr(flow_module, "ensure_snapshot", flow_module.ensure_snapshot.with_options(retry_delay_seconds=0))
    async with await asyncio.start_server(count, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        down = Credentials(api_key=SecretStr("key"), api_url=f"http://127.0.0.1:{port}/api")
        with pytest.raises(PlatformUnavailableError):
            await validate(python("print(1)"), credentials=down)
    assert calls == 5
    await asyncio.to_thread(send_what_waits)
    async with asyncio.timeout(60), get_client() as api:
        of_the_run = FlowRunFilter(id=FlowRunFilterId(any_=[(await newest_run(api)).id]))
        while True:
            tasks = await api.read_task_runs(flow_run_filter=of_the_run)
            if [(task.name, task.run_count) for task in tasks] == [("ensure_snapshot-python", 5)]:
                break
            await asyncio.sleep(0.2)


async def test_phases_that_are_repeated_say_so(credentials: Credentials) -> None:
    deleted = False

    async def delete_the_sandbox(event: Event) -> None:
        nonlocal deleted
        if event["type"].endswith("_stdout") and not deleted:
            deleted = True
            async with client(credentials) as daytona:
                await daytona.delete(await daytona.get(name))

    request = python("import time\nprint('on', flush=True)\ntime.sleep(2)", isolation="run").identified()
    assert request.thread_id is not None
    assert request.run_id is not None
    name = sandbox_name(
        builtin_profile("python"), isolation=Isolation.RUN, thread_id=request.thread_id, run_id=request.run_id
    )
    result = await validate(request, on_event=delete_the_sandbox, credentials=credentials)
    assert result.passed, result
    assert deleted
    assert result.flow_run_id is not None
    again = ("execute_session-build-again", "stream_logs-build-again", "execute_session-run-again", "stream_logs-run")
    stored = await everything_stored(UUID(result.flow_run_id), tasks_named=again)
    assert "## Recovered on the way" in stored


async def test_a_wrong_request_names_the_field_and_starts_no_run(credentials: Credentials) -> None:
    with pytest.raises(ConfigurationError, match="files"):
        await validate({"profile": "python", "files": {"/etc/passwd": "x"}}, credentials=credentials)
    with pytest.raises(ConfigurationError, match="framework"):
        await validate(python("print(1)", framework="spring"), credentials=credentials)
    with pytest.raises(ConfigurationError, match="profile"):
        await validate(ValidationRequest(profile="cobol", files={"main.cob": "x"}), credentials=credentials)


async def test_a_stored_profile_wins_and_a_broken_one_is_an_error(credentials: Credentials) -> None:
    block = SandboxProfile.from_profile(builtin_profile("python"))
    block.environment = {**block.environment, "FROM_THE_BLOCK": "yes"}
    await block.asave("python-stored")
    source = "import os; print(os.environ['FROM_THE_BLOCK'])"
    request = ValidationRequest(profile="python-stored", files={"main.py": source}, isolation=Isolation.RUN)
    result = await validate(request, credentials=credentials)
    assert result.outcome is Outcome.PASSED, result
    assert result.profile == "python-stored"

    block.resources = {"memory": "much"}
    await block.asave("python-stored", overwrite=True)
    with pytest.raises(ConfigurationError, match=r"python-stored.*resources\.memory"):
        await validate(request, credentials=credentials)
    await SandboxProfile.adelete("python-stored")


async def test_a_run_from_parameters_alone_as_a_deployment_starts_it(credentials: Credentials) -> None:
    await DaytonaCredentials(api_key=credentials.api_key, api_url=credentials.api_url).asave("here", overwrite=True)
    await Secret(value="hunter2-99").asave("orders-password", overwrite=True)
    source = "import os; print(len(os.environ['PASSWORD']), os.environ['PLAIN'])"
    result: Any = await flow_module.validate(
        profile="python",
        files={"main.py": source},
        environment={"PLAIN": "text"},
        secret_blocks={"PASSWORD": "orders-password"},
        credentials_block="here",
        timeout_seconds=30,
    )
    assert isinstance(result, ValidationResult)
    assert result.outcome is Outcome.PASSED
    assert result.phases[-1].stdout.text == "10 text\n"
    assert result.flow_run_id is not None
    stored = await everything_stored(UUID(result.flow_run_id))
    assert "orders-password" in stored
    assert "hunter2-99" not in stored


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"files": {"../x.py": "1"}}, "files"),
        ({"timeout_seconds": -1}, "limits.total_seconds"),
        ({"secret_blocks": {"PASSWORD": "there-is-none"}}, "secret_blocks.PASSWORD"),
        ({"credentials_block": "there-is-none"}, "credentials_block"),
    ],
)
async def test_a_wrong_parameter_fails_the_run_with_its_name(parameters: dict[str, Any], field: str) -> None:
    given: dict[str, Any] = {"profile": "python", "files": {"main.py": "print(1)"}, **parameters}
    state: Any = await flow_module.validate(**given, return_state=True)
    assert state.type is StateType.FAILED
    assert field in state.message


async def test_eight_at_once(credentials: Credentials) -> None:
    sources = [f"print({number})" for number in range(8)]
    results = await asyncio.gather(*(validate(python(source), credentials=credentials) for source in sources))
    assert [result.phases[-1].stdout.text for result in results] == [f"{number}\n" for number in range(8)]


async def test_a_sink_that_raises_changes_nothing(credentials: Credentials) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("the sink is broken")

    result = await validate(python("print('out')"), on_event=broken, credentials=credentials)
    assert result.passed
    assert result.phases[-1].stdout.text == "out\n"
