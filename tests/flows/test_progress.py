"""Progress while a snapshot is built or Maven fetches libraries."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from flows.progress import Progress, Seen, progress_markdown
from flows.publisher import PUBLISHER, Artifact
from sandbox.events import Event
from tests.flows.hostile import HOSTILE, assert_harmless


class Shown(list[str]):
    """What was published."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[str] = set()
        self.arrived = asyncio.Event()

    def publish(self, artifact: Artifact, render: Any) -> None:
        self.keys.add(artifact.key)
        self.append(render())
        self.arrived.set()


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    collected = Shown()
    monkeypatch.setattr(PUBLISHER, "publish", collected.publish)
    return collected


def build(text: str) -> Event:
    return event("java_sandbox_snapshot_creation", text)


def event(type_: str, data: Any, phase: str | None = None) -> Event:
    return Event(type=type_, data=data, seq=1, at="", run_id="r", thread_id="t", phase=phase)


def progress() -> Progress:
    return Progress(profile="java", framework="maven", flow_run_id=uuid4())


async def test_the_steps_of_a_build(shown: Shown) -> None:
    sink = progress()
    sink(event("sandbox_state", {"subject": "snapshot", "name": "snap-1", "state": "building", "elapsed": 2.0}))
    sink(build("[1/4] FROM debian\n[2/4] RUN apt-get"))
    sink(build(" update\nreading\n[2/4] done in 1.2 s\n[3/4] RUN <<'TRAIN'\nhalf a line"))
    sink.close()
    assert shown.keys == {"validation-progress-java-maven"}
    assert len(shown) == 1
    assert "## Snapshot snap\\-1: building" in shown[0]
    assert f"`{'█' * 15}{'░' * 15}` 50% · step 3 of 4 · 2 s" in shown[0]
    assert "Now: RUN &lt;&lt;'TRAIN'" in shown[0]
    assert "[2/4] RUN apt-get update\nreading\n" in shown[0]


@pytest.mark.parametrize("line", ["#8 [stage-1 3/7] RUN x", "#8 [3/7] RUN x", "Step 3/7 : RUN x", "[3/7] RUN x"])
async def test_the_words_of_other_builders(shown: Shown, line: str) -> None:
    sink = progress()
    sink(build(f"{line}\n"))
    sink.close()
    assert "29% · step 3 of 7" in shown[-1]
    assert "Now: RUN x" in shown[-1]


async def test_a_build_that_ended_is_whole(shown: Shown) -> None:
    sink = progress()
    sink(build("[4/4] RUN x\n"))
    sink(event("sandbox_state", {"subject": "snapshot", "name": "s", "state": "active", "elapsed": 9.0}))
    sink.close()
    assert "## Snapshot s: active" in shown[-1]
    assert "100% · step 4 of 4" in shown[-1]


async def test_the_files_that_maven_fetches(shown: Shown) -> None:
    sink = progress()
    sink(event("phase_started", {}, "build"))
    lines = [
        "Downloading from central: https://repo.example/org/a/a-1.0.pom",
        "Downloaded from central: https://repo.example/org/a/a-1.0.pom (1.2 kB at 30 kB/s)",
        "[INFO] Downloading from central: https://repo.example/org/b/b-2.jar",
    ]
    sink(event("java_sandbox_command_execution_stdout", "\n".join(lines) + "\n", "build"))
    sink.close()
    assert "## Maven fetches for the phase build" in shown[-1]
    assert "1 files came, 1 asked for besides; the last: b\\-2.jar" in shown[-1]


async def test_the_files_that_a_snapshot_fetches(shown: Shown) -> None:
    sink = progress()
    sink(build("[5/7] RUN <<'MAKE'\nfetched 25 files, the last: a-1.jar\nfetched 1050 files, the last: b-2.jar\n"))
    sink.close()
    assert "## Maven fetches for the snapshot\n\n1,050 files came; the last: b\\-2.jar\n" in shown[-1]


async def test_what_a_program_prints_is_no_progress(shown: Shown) -> None:
    sink = progress()
    text = "Downloading from central: https://repo.example/x.jar\n[1/2] RUN x\n"
    sink(event("java_sandbox_command_execution_stdout", text, "run"))
    sink(event("sandbox_state", {"subject": "sandbox", "name": "s", "state": "started"}))
    sink(event("sandbox_state", {"subject": "snapshot", "name": "s", "state": "active", "elapsed": 0.0}))
    sink.close()
    assert shown == []


async def test_it_is_shown_while_it_goes_on_and_not_at_each_line(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.progress.UPDATE_SECONDS", 0.05)
    sink = progress()
    for number in range(10_000):
        sink(build(f"line {number}\n"))
    assert shown == []
    async with asyncio.timeout(10):
        await shown.arrived.wait()
    assert len(shown) == 1
    assert "line 9999" in shown[0]
    assert "line 9000" not in shown[0]
    sink.close()
    assert len(shown) == 1, "nothing new, nothing sent"


async def test_a_hostile_log_is_harmless(shown: Shown) -> None:
    sink = progress()
    sink(event("sandbox_state", {"subject": "snapshot", "name": HOSTILE, "state": HOSTILE, "elapsed": "x"}))
    sink(build(f"[1/2] {HOSTILE}\n{HOSTILE}{'x' * 1_000_000}\n[9/2] x\n"))
    sink(build(f"Downloading from x: http://y/{'z' * 10_000}<img>\n"))
    sink.close()
    assert_harmless(shown[-1])
    assert len(shown[-1]) < 20_000
    assert_harmless(progress_markdown(Seen(where=HOSTILE, file=HOSTILE, title=HOSTILE, steps=2, step=1)))
