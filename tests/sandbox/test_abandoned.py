"""Sessions that a killed client left in a shared sandbox."""

from __future__ import annotations

import time
import uuid

import pytest
from daytona import AsyncDaytona, SessionExecuteRequest

from sandbox.abandoned import LEASE_MARGIN_SECONDS, MARKS, lease_end, lease_word
from tests.sandbox.shell_profile import shell_profile, validate


def test_a_phase_leases_its_session_for_its_limit_and_a_margin() -> None:
    end = lease_end([f"sh phase.sh run 5 {lease_word(5)}"])
    assert end is not None
    assert 0 <= end - time.time() - LEASE_MARGIN_SECONDS <= 5


@pytest.mark.parametrize(
    ("commands", "end"),
    [
        ((), None),
        (("true",), None),
        (("echo lease=never",), None),
        (("echo lease=5 more",), None),
        (("a lease=7", "b lease=12", "c lease=3", "d"), 12),
    ],
)
def test_the_latest_lease_counts(commands: tuple[str, ...], end: int | None) -> None:
    assert lease_end(commands) == end


async def test_a_run_ends_the_sessions_whose_lease_is_over(daytona: AsyncDaytona) -> None:
    profile = shell_profile("true", type="abandoned-sandbox")
    assert (await validate(daytona, profile)).passed
    sandbox = await daytona.get(profile.sandbox_name)
    commands = {
        "abandoned": f": lease={int(time.time()) - 1}",
        "in-use": f": lease={int(time.time()) + 60}",
        "somebody-elses": "sleep 600",
    }
    for session, command in commands.items():
        await sandbox.process.create_session(session)
        await sandbox.process.execute_session_command(session, SessionExecuteRequest(command=command, run_async=True))

    assert (await validate(daytona, profile)).passed

    left = {session.session_id for session in await sandbox.process.list_sessions()}
    assert left == {"in-use", "somebody-elses"}
    await daytona.delete(sandbox)


async def test_a_session_without_a_command_is_ended_when_it_was_marked_long_ago(daytona: AsyncDaytona) -> None:
    profile = shell_profile("true", type="opened-sandbox")
    assert (await validate(daytona, profile)).passed
    sandbox = await daytona.get(profile.sandbox_name)
    forgotten, opening = (f"{sandbox.name}-{uuid.uuid4()}" for _ in range(2))
    await sandbox.process.create_session(forgotten)
    await sandbox.process.create_session("somebody-elses")

    assert (await validate(daytona, profile)).passed
    assert len(await sandbox.process.list_sessions()) == 2, "it may be just opening"

    await sandbox.process.exec(f"touch -d '-10 minutes' {MARKS}/{forgotten}")
    await sandbox.process.create_session(opening)
    assert (await validate(daytona, profile)).passed
    left = {session.session_id for session in await sandbox.process.list_sessions()}
    assert left == {opening, "somebody-elses"}
    await daytona.delete(sandbox)
