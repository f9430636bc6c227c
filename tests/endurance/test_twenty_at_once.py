"""Twenty validations together on one platform: every verdict is right and nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from pydantic import SecretStr

from flows import validate
from sandbox.connection import Credentials
from sandbox.models import Isolation, Outcome, ValidationRequest
from tests.endurance.processes import until
from tests.local.platforms import running_platform, sdk

JAVA = """
public class Main {
    public static void main(String[] arguments) throws Exception {
        System.out.println("run " + arguments.length);
        java.nio.file.Files.writeString(java.nio.file.Path.of(System.getenv("UOM_RESULT_FILE")), "{\\"n\\": %d}");
    }
}
"""
PYTHON = """
import json, os, pathlib
pathlib.Path(os.environ["UOM_RESULT_FILE"]).write_text(json.dumps({"n": %d}))
"""


def requests() -> list[tuple[ValidationRequest, Outcome]]:
    """Twenty programs of two languages and every isolation, a third of which must fail."""
    made = []
    for number in range(20):
        isolation = (Isolation.SHARED, Isolation.THREAD, Isolation.RUN)[number % 10 % 3]
        profile, source, entry = ("java", JAVA, "Main.java") if number % 4 == 0 else ("python", PYTHON, "main.py")
        expected = {"n": number} if number % 3 else {"n": -1}
        request = ValidationRequest(
            profile=profile,
            files={entry: source % number},
            thread_id=f"thread-{number % 5}",
            isolation=isolation,
            expected=expected,
        )
        made.append((request, Outcome.PASSED if number % 3 else Outcome.MISMATCH))
    return made


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_twenty_at_once(java_25: None, prefect_server: str) -> None:
    async with running_platform() as platform:  # what Prefect keeps open after a first run is not ours to count
        credentials = Credentials(api_key=SecretStr(platform.api_key), api_url=platform.api_url)
        assert (
            await validate(ValidationRequest(profile="python", files={"main.py": ""}), credentials=credentials)
        ).passed
    sockets = open_sockets()
    async with running_platform() as platform, sdk(platform) as client:
        credentials = Credentials(api_key=SecretStr(platform.api_key), api_url=platform.api_url)
        wanted = requests()
        results = await asyncio.gather(*(validate(request, credentials=credentials) for request, _ in wanted))

        assert [result.outcome for result in results] == [outcome for _, outcome in wanted]
        assert [result.result for result in results] == [{"n": number} for number in range(20)]
        assert len({result.run_id for result in results}) == 20
        left = [sandbox async for sandbox in client.list()]
        assert all(sandbox.labels["uom-isolation"] != Isolation.RUN.value for sandbox in left)
        for sandbox in left:
            assert await sandbox.process.list_sessions() == []
            alive = (await sandbox.process.exec("ps -eo comm=")).result.split()
            assert set(alive) <= {"ld-linux-x86-64", "bash", "ps"}, alive  # the agent and this very command
    assert await until(lambda: open_sockets() <= sockets, seconds=30)  # Prefect closes some of its own a little later


def open_sockets() -> int:
    """How many sockets this process has."""
    targets = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            targets.append(str(descriptor.readlink()))
    return sum(target.startswith("socket:") for target in targets)
