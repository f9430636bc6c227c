"""The names of the former system, with their documented behaviour."""

from __future__ import annotations

import re

import pytest
from pydantic import SecretStr

import sandbox.lifecycle as lifecycle
from sandbox import (
    ConfigurationError,
    Outcome,
    ValidationSandbox,
    create_validation_sandbox,
    download_file_from_sandbox,
    execute_in_sandbox,
)
from sandbox.local.control.states import SandboxState as LocalState
from tests.sandbox.conftest import Faulty, credentials_of
from tests.sandbox.fault_proxy import Harm
from tests.sandbox.shell_profile import Recorded, shell_profile

PROFILE = shell_profile("true", type="legacy-sandbox")


def opened(faulty: Faulty, sink: Recorded | None = None) -> ValidationSandbox:
    credentials = credentials_of(faulty.platform).model_copy(update={"api_url": f"{faulty.proxy.url}/api"})
    return ValidationSandbox(PROFILE, credentials=credentials, on_event=sink)


async def test_a_command_runs_and_its_json_comes_back(faulty: Faulty) -> None:
    sink = Recorded()
    async with opened(faulty, sink) as box:
        snapshot = await box.create_snapshot()
        assert snapshot.snapshot_name == "validation-snapshot-legacy-sandbox"
        identity = await create_validation_sandbox(box)
        assert identity.sandbox_name == "validation-sandbox-legacy-sandbox"
        done = await execute_in_sandbox(
            box,
            'cat in.txt; echo "$A $B" >&2; echo \'{"q": 1}\' > "$UOM_RESULT_FILE"',
            thread_id="thread-7",
            files={"in.txt": "hello\n"},
            environment={"A": "plain"},
            secrets={"B": SecretStr("hidden-value")},
        )
        assert done.exit_code == 0
        assert done.phase.stdout.text == "hello\n"
        assert done.phase.stderr.text == "plain •••\n"
        assert re.fullmatch(
            r"validation-sandbox-legacy-sandbox-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
            done.session_id,
        )
        assert done.result_path.startswith("/sandbox/thread-7/")
        assert await download_file_from_sandbox(box, done.result_path, thread_id="thread-7") == {"q": 1}
    assert sink.text("shell_sandbox_command_execution_stdout") == "hello\n"


async def test_a_failing_command_is_a_result(faulty: Faulty) -> None:
    async with opened(faulty) as box:
        done = await execute_in_sandbox(box, "exit 3", thread_id="thread-7")
        assert done.exit_code == 3
        late = await execute_in_sandbox(box, "sleep 60", thread_id="thread-7", timeout=0.5)
        assert late.phase.outcome is Outcome.TIMEOUT


async def test_transient_faults_are_retried_and_refusals_are_not(faulty: Faulty) -> None:
    retry_at_once = {"Retry-After": "0"}
    faulty.proxy.harms = [Harm("GET /api/snapshots/", status=429, times=4, headers=retry_at_once)]
    async with opened(faulty) as box:
        await box.create_snapshot()
        assert faulty.proxy.count("GET /api/snapshots/validation") >= 5
        faulty.proxy.seen.clear()
        faulty.proxy.harms = [Harm("GET /api/snapshots/", status=401, times=9)]
        with pytest.raises(PermissionError):
            await box.create_snapshot()
        assert faulty.proxy.count("GET /api/snapshots/") == 1


@pytest.mark.parametrize("state", [LocalState.ERROR, LocalState.BUILD_FAILED])
async def test_zombies_are_replaced_and_sleepers_woken(
    faulty: Faulty, state: LocalState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "ZOMBIE_PAUSE_SECONDS", 0.05)
    async with opened(faulty) as box:
        first = await create_validation_sandbox(box)
        await (await faulty.daytona.get(first.sandbox_id)).stop()
        second = await create_validation_sandbox(box)
        assert second.sandbox_id == first.sandbox_id
        faulty.platform.plane.sandboxes.get(first.sandbox_id).state = state
        third = await create_validation_sandbox(box)
        assert third.sandbox_id != first.sandbox_id
        assert len(box.recoveries) == 2


@pytest.mark.parametrize(
    "path",
    [
        "../x/results/a.json",
        "/etc/results/passwd",
        "a.json",
        "results",
        "run/results/../a.json",
        "/sandbox/other/results/a",
    ],
)
async def test_only_results_directories_of_the_thread_are_read(faulty: Faulty, path: str) -> None:
    async with opened(faulty) as box:
        with pytest.raises(ConfigurationError) as caught:
            await download_file_from_sandbox(box, path, thread_id="thread-7")
        assert caught.value.field == "path"


async def test_a_file_that_is_not_there_or_no_json_says_so(faulty: Faulty) -> None:
    async with opened(faulty) as box:
        with pytest.raises(FileNotFoundError, match=r"nothing\.json"):
            await download_file_from_sandbox(box, "results/nothing.json", thread_id="thread-7")
        done = await execute_in_sandbox(box, 'echo "{" > "$UOM_RESULT_FILE"', thread_id="thread-7")
        with pytest.raises(ValueError, match="line"):
            await download_file_from_sandbox(box, done.result_path, thread_id="thread-7")
