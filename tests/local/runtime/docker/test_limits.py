"""The checks of ``tests.local.runtime.test_limits`` against containers, and what only containers do."""

from __future__ import annotations

import pytest

from sandbox.local.runtime.docker_box import ContainerAccount
from sandbox.local.runtime.interface import MIB, EndReason
from tests.local.runtime.test_limits import *  # noqa: F403

from ..driving import run, shell
from .conftest import BoxMaker

# Takes the cgroups away from the bubblewrap runtime; those of a container are the engine's.
del test_the_agent_watches_memory_where_the_kernel_does_not  # noqa: F821
# The image has no Java.
del test_a_java_program_starts_under_the_limits  # noqa: F821


async def test_a_box_that_starts_again_has_the_limits_asked_for_then(make_box: BoxMaker) -> None:
    box = await make_box(memory=512 * MIB)
    assert (await run(box, "python3", "-c", "x = bytearray(300 << 20)")).exit_code == 0
    await box.stop()
    again = await make_box(box_id=box.spec.box_id, memory=200 * MIB)
    outcome = await run(again, "python3", "-c", "x = bytearray(300 << 20)")
    assert (outcome.exit_code, outcome.status.reason) == (137, EndReason.MEMORY)


async def test_the_agent_watches_memory_where_the_server_cannot_see_the_cgroup(
    make_box: BoxMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.local.runtime.docker.account_of", lambda pid: ContainerAccount(None))
    box = await make_box(memory=256 * MIB)
    # Slowly: the kernel, whose reason is not heard here, comes a sixteenth later.
    eater = "import time\nblocks = []\nwhile True:\n blocks.append(b'x' * (2 << 20))\n time.sleep(0.05)"
    outcome = await run(box, "python3", "-c", eater)
    assert (outcome.exit_code, outcome.status.reason) == (137, EndReason.MEMORY)


async def test_the_engine_measures_the_disk_for_a_server_that_may_not(
    make_box: BoxMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    box = await make_box(disk=64 * MIB)
    outcome = await shell(box, "for i in 1 2 3 4 5 6 7 8 9; do head -c 9000000 /dev/zero >fill$i; done; sleep 1000")
    assert (outcome.exit_code, outcome.status.reason) == (137, EndReason.DISK)
    assert (await box.usage()).disk > 64 * MIB
