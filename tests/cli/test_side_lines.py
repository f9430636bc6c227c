"""Two programs' output on one terminal."""

from __future__ import annotations

from typing import Any

from flows.cli.side_lines import LONGEST_LINE, SideLines
from sandbox.events import Event


class Heard:
    def __init__(self) -> None:
        self.events: list[Event] = []

    async def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def text(self) -> str:
        return "".join(str(event["data"]) for event in self.events if isinstance(event["data"], str))


def event(side: str, data: Any, *, type: str = "java_sandbox_command_execution_stdout") -> Event:
    made: Any = {"type": type, "data": data, "side": side, "phase": "run"}
    result: Event = made
    return result


async def test_lines_are_whole_and_marked() -> None:
    heard = Heard()
    lines = SideLines(heard)
    await lines.on_event(event("source", "one\ntw"))
    await lines.on_event(event("target", "a"))
    await lines.on_event(event("source", "o\n"))
    await lines.on_event(event("target", "b\n\nc"))
    await lines.close()
    assert heard.text == "source │ one\nsource │ two\ntarget │ ab\ntarget │ \ntarget │ c\n"


async def test_the_end_of_a_phase_ends_its_line() -> None:
    heard = Heard()
    lines = SideLines(heard)
    await lines.on_event(event("source", "no end"))
    await lines.on_event(event("source", {}, type="phase_finished"))
    assert heard.text == "source │ no end\n"
    assert heard.events[-1]["phase"] == "source run"


async def test_a_line_without_end_is_shown_in_pieces() -> None:
    heard = Heard()
    lines = SideLines(heard)
    await lines.on_event(event("source", "x" * (LONGEST_LINE + 1)))
    assert heard.text == f"source │ {'x' * (LONGEST_LINE + 1)}\n"
