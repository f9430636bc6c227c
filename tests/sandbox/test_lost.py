"""A sandbox lost under a run: replaced once, the run repeated once where that is harmless, and both told."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import sandbox.heartbeat as heartbeat
from sandbox.databases import DatabaseConnection
from sandbox.errors import SandboxLostError
from sandbox.local.faults import dead_toolbox
from sandbox.models import Outcome
from sandbox.profiles import Profile
from tests.sandbox.conftest import Faulty
from tests.sandbox.database_fakes import SPEAKERS, address, fake_server
from tests.sandbox.fault_proxy import Harm
from tests.sandbox.shell_profile import Recorded, shell_profile, validate

LOG = "/process/session/.*follow=true"
SOURCE = "echo begun; sleep 1; echo ended"


def lossy(*commands: str, repeatable: bool | None = None) -> Profile:
    """A profile whose last phase is as repeatable as that."""
    made = shell_profile(*commands, type="lost-sandbox")
    framework = made.frameworks["plain"]
    last = framework.phases[-1].model_copy(update={"repeatable": repeatable})
    changed = framework.model_copy(update={"phases": (*framework.phases[:-1], last)})
    return made.model_copy(update={"frameworks": {"plain": changed}})


def deleting(faulty: Faulty, profile: Profile, *, at: int = 1) -> Callable[[str], Coroutine[Any, Any, None]]:
    """Deletes the sandbox under its phase number ``at``, once."""
    phases = 0

    async def before(line: str) -> None:
        nonlocal phases
        if re.search(LOG, line):
            phases += 1
            if phases == at:
                await faulty.daytona.delete(await faulty.daytona.get(profile.sandbox_name))

    return before


async def test_a_toolbox_killed_under_a_run_is_restarted_and_the_run_repeated(faulty: Faulty) -> None:
    profile = lossy(SOURCE)
    killed = False

    async def kill(line: str) -> None:
        nonlocal killed
        if re.search(LOG, line) and not killed:
            killed = True
            box = await faulty.daytona.get(profile.sandbox_name)
            faulty.platform.faults.add(dead_toolbox(box.id))

    faulty.proxy.before = kill
    # The stream that was opened before is refused too.
    faulty.proxy.harms = [Harm(LOG, status=502)]
    result = await validate(faulty.daytona, profile)
    assert result.outcome is Outcome.PASSED, result
    assert result.phases[0].stdout.text == "begun\nended\n"
    assert sum("it was restarted" in line for line in result.recoveries) == 1
    assert sum("repeated once" in line for line in result.recoveries) == 1


async def test_a_replacement_and_a_repetition_are_told_and_beat(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "INTERVAL_SECONDS", 0.05)
    profile = lossy(SOURCE)
    sink = Recorded()
    faulty.proxy.before = deleting(faulty, profile)
    result = await validate(faulty.daytona, profile, sink=sink)
    assert result.outcome is Outcome.PASSED, result
    assert sum("had vanished; it was made again" in line for line in result.recoveries) == 1
    assert sum("the run was repeated once" in line for line in result.recoveries) == 1
    states = [event["data"] for event in sink.events if event["type"] == "sandbox_state"]
    assert all(isinstance(data, dict) and {"elapsed", "limit"} <= set(data) for data in states)
    assert any(isinstance(data, dict) and data["state"] == "absent" for data in states)


async def test_a_phase_that_is_not_repeatable_is_not_repeated_and_says_so(faulty: Faulty) -> None:
    profile = lossy("echo built", SOURCE, repeatable=False)
    faulty.proxy.before = deleting(faulty, profile, at=2)
    with pytest.raises(SandboxLostError, match="phase two may have changed something outside") as caught:
        await validate(faulty.daytona, profile)
    assert caught.value.sandbox == profile.sandbox_name


async def test_what_comes_before_it_is_repeated(faulty: Faulty) -> None:
    profile = lossy(SOURCE, "echo ran", repeatable=False)
    faulty.proxy.before = deleting(faulty, profile, at=1)
    result = await validate(faulty.daytona, profile)
    assert result.outcome is Outcome.PASSED, result
    assert sum("repeated once" in line for line in result.recoveries) == 1


@pytest.mark.parametrize("repeatable", [None, True])
async def test_a_program_with_a_database_is_repeated_only_where_the_profile_allows_it(
    faulty: Faulty, repeatable: bool | None
) -> None:
    profile = lossy(SOURCE, repeatable=repeatable)
    async with fake_server(SPEAKERS["postgresql"]) as server:
        connection = DatabaseConnection.model_validate(
            {"kind": "postgresql", "url": address("postgresql", server.port)}
        )
        name = ""

        async def before(line: str) -> None:
            nonlocal name
            if re.search(LOG, line):
                boxes = [box async for box in faulty.daytona.list() if box.name.startswith(profile.sandbox_name)]
                phases = faulty.proxy.count(LOG)
                if phases == 2:
                    name = boxes[0].name
                    await asyncio.gather(*(faulty.daytona.delete(box) for box in boxes))

        faulty.proxy.before = before
        run = validate(faulty.daytona, profile, connections=(connection,))
        if repeatable:
            result = await run
            assert result.outcome is Outcome.PASSED, result
            assert sum("repeated once" in line for line in result.recoveries) == 1
        else:
            with pytest.raises(SandboxLostError, match="phase one may have changed something outside"):
                await run
        assert name
