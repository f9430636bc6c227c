"""Submitted to a real worker: the verdict, the fault and the events come back through the Prefect API alone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from prefect.client.orchestration import get_client

from flows import SubmittedRun, prefect_api, submit, watch
from flows.failures import failure_document, failure_from
from flows.validation import validate
from flows.verdict_transport import encoded_verdict
from sandbox.connection import Credentials
from sandbox.errors import ConfigurationError, RateLimitedError, SandboxError, SnapshotBuildError
from sandbox.events import OUTCOME
from sandbox.models import Outcome, ValidationRequest, ValidationResult
from tests.cli.conftest import Done, command, ended
from tests.flows.test_deployments import POOL, environment, prefect, worker

STDOUT = "python_sandbox_command_execution_stdout"
LARGE = "import json, os\njson.dump(list(range(300_000)), open(os.environ['UOM_RESULT_FILE'], 'w'))\n"


def python(source: str) -> ValidationRequest:
    return ValidationRequest(profile="python", files={"main.py": source})


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_worker_answers_through_the_api_alone(
    prefect_server: str, credentials: Credentials, tmp_path: Path
) -> None:
    env = environment(prefect_server, credentials)
    # Another test may have made it.
    await prefect("work-pool", "create", POOL, "--type", "process", "--overwrite", env=env)
    await prefect("--no-prompt", "deploy", "--all", env=env)
    async with worker(env):
        good, bad, wrong, endless = await asyncio.gather(
            submit(python(LARGE + "print('made by a worker')\n")),
            submit(python("def broken(:")),
            submit(python("print(1)").model_copy(update={"framework": "cobol"})),
            submit(python("import time\nprint('here', flush=True)\ntime.sleep(500)")),
        )

        async def cancelled() -> bool:
            async for event in watch(endless):
                if event["type"] == STDOUT:
                    break
            return await endless.cancel(timeout=90)

        stopping = asyncio.create_task(cancelled())
        events = [event async for event in watch(good)]
        result = await good.result(timeout=200)
        assert result.passed
        assert result.result == list(range(300_000))
        assert result.flow_run_id == str(good.id)
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert "made by a worker" in "".join(str(event["data"]) for event in events if event["type"] == STDOUT)
        assert events[-1]["type"] == OUTCOME
        assert (await bad.result(timeout=200)).outcome is Outcome.COMPILE_ERROR
        with pytest.raises(ConfigurationError, match="framework") as caught:
            await wrong.result(timeout=200)
        assert caught.value.field
        assert await stopping
        assert (await endless.result()).outcome is Outcome.CANCELLED
        program = tmp_path / "main.py"
        program.write_text("import os, sys\nprint(os.environ['WORD'])\nprint('to err', file=sys.stderr)\n")
        words = (program, "--profile", "python", "--env", "WORD=submitted", "--watch")
        async with command("submit", *words, environment={"PREFECT_API_URL": prefect_server}, cwd=tmp_path) as process:
            done = await ended(process)
        assert (done.code, done.output) == (0, "submitted\n"), done.errors
        assert "to err\n" in done.errors
        assert "✔ passed" in done.errors
    await commands(prefect_server, bad, tmp_path)


async def commands(url: str, run: SubmittedRun, cwd: Path) -> None:
    """The command tells the same about a run, also by JSON."""
    for words in ((), ("--json", "--from", "2")):
        async with command("watch", str(run.id), *words, environment={"PREFECT_API_URL": url}, cwd=cwd) as process:
            done = await ended(process)
        assert done.code == 10, done.errors
        if words:
            lines = [json.loads(line) for line in done.output.splitlines()]
            assert [line["seq"] for line in lines] == list(range(2, len(lines) + 2))
            assert lines[-1]["data"]["outcome"] == "compile_error"
        else:
            assert "main.py:1" in done.errors


async def test_a_command_submits_and_tells_the_run(prefect_server: str, tmp_path: Path) -> None:
    async def command_of(*words: str) -> Done:
        environment = {"PREFECT_API_URL": prefect_server}
        async with command("submit", "main.py", *words, environment=environment, cwd=tmp_path) as process:
            return await ended(process)

    (tmp_path / "main.py").write_text("print(1)")
    deployment = await validate.ato_deployment("kept-for-later")
    await deployment.aapply()
    done = await command_of(
        *("--profile", "python", "--deployment", "validate/kept-for-later", "--thread", "mine", "--json"),
        *("--secret-block", "KEY=vault", "--connection", "shop"),
    )
    assert done.code == 0, done.errors
    told = json.loads(done.output)
    async with prefect_api(), get_client() as api:
        run = await api.read_flow_run(UUID(told["id"]))
    assert told["name"] == run.name
    assert str(run.id) in told["url"]
    assert run.parameters["files"] == {"main.py": "print(1)"}
    assert run.parameters["thread_id"] == "mine"
    assert run.parameters["secret_blocks"] == {"KEY": "vault"}
    assert run.parameters["connection_blocks"] == ["shop"]
    missing = await command_of("--profile", "python", "--deployment", "validate/nothing")
    assert missing.code == 64
    assert "validate/nothing" in missing.errors


def test_a_verdict_too_large_to_travel_keeps_samples_and_says_so() -> None:
    rows = [{"id": str(uuid4()), "n": n} for n in range(5000)]
    result = ValidationResult(
        outcome=Outcome.PASSED,
        message="fine",
        profile="python",
        framework="plain",
        thread_id="thread",
        run_id="run",
        result={"orders": {"count": 5000, "rows": rows}},
    )
    from flows.verdict_transport import _decoded

    whole = ValidationResult.model_validate(_decoded(encoded_verdict(result))["verdict"])
    assert whole == result
    text = encoded_verdict(result, limit=20_000)
    assert len(text) <= 20_000
    partial = ValidationResult.model_validate(_decoded(text)["verdict"])
    assert partial.result_partial
    assert partial.result == {"orders": {"count": 5000, "rows": [*rows[:5], *rows[-5:]]}}
    assert "too large" in partial.warnings[-1]


@pytest.mark.parametrize(
    "error",
    [
        ConfigurationError("is wrong", field="files", remedy="Mend it."),
        RateLimitedError("slowly", retry_after=3.0, step="reconcile_sandbox"),
        SnapshotBuildError("failed", log_tail=("one", "two"), sandbox="snapshot"),
        SandboxError("odd", step="validate", sandbox="box", state="error"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_fault_comes_back_as_it_was(error: SandboxError) -> None:
    again = failure_from(json.loads(json.dumps(failure_document(error))))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
