"""Two programs' output on one terminal: whole lines, each marked with its side."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from sandbox.events import PHASE_FINISHED, Event

LONGEST_LINE: Final = 16 * 1024
"""A line longer than this is shown in pieces."""


class SideLines:
    """A sink of the events of both runs in front of another one.

    Args:
        sink: Takes the events, with whole lines only.
    """

    def __init__(self, sink: Callable[[Event], Awaitable[object]]) -> None:
        self._sink = sink
        self._begun: dict[tuple[str, str], tuple[Event, str]] = {}

    async def on_event(self, event: Event) -> None:
        """Takes one event; one of ``validate_translation`` has a member ``side``."""
        side = str(dict(event).get("side", ""))
        data = event["data"]
        if event["type"].endswith(("_stdout", "_stderr")) and isinstance(data, str):
            key = (side, event["type"])
            text = self._begun.pop(key, (event, ""))[1] + data
            whole, _, begun = text.rpartition("\n")
            if len(begun) > LONGEST_LINE:
                whole, begun = text, ""
            if begun:
                self._begun[key] = (event, begun)
            if whole:
                await self._say(event, side, whole)
            return
        if event["type"] == PHASE_FINISHED:
            await self._finish(side)
        phase = f"{side} {event['phase']}" if event["phase"] else event["phase"]
        await self._sink(_changed(event, phase=phase))

    async def close(self) -> None:
        """Shows lines that have no end."""
        for side in {side for side, _ in self._begun}:
            await self._finish(side)

    async def _finish(self, side: str) -> None:
        for key in [key for key in self._begun if key[0] == side]:
            event, text = self._begun.pop(key)
            await self._say(event, side, text)

    async def _say(self, event: Event, side: str, text: str) -> None:
        await self._sink(_changed(event, data="".join(f"{side} │ {line}\n" for line in text.split("\n"))))


def _changed(event: Event, **members: Any) -> Event:
    changed: Any = {**event, **members}
    made: Event = changed
    return made
