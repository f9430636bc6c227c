"""The log of a snapshot's build: whole lines to the event stream, the last ones kept for the error text.

Losing the log never changes what becomes of the build. A reader that starts late or again gets the log from its
beginning, so lines that were told are skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from sandbox.events import EventStream, snapshot_event
from sandbox.platform_api import build_log
from sandbox.retry import Pace

if TYPE_CHECKING:
    from daytona import AsyncDaytona

logger = logging.getLogger(__name__)

TAIL_LINES: Final = 50
"""Lines kept for the error of a failed build."""

LONGEST_LINE: Final = 16 * 1024
"""Characters after which a line without end is told in parts."""

DRAIN_SECONDS: Final = 5.0
"""How long the end of a build waits for the end of its log."""

_TRIES: Final = 10


class BuildLog:
    """Follows the log of one build in the background; an async context manager.

    Args:
        client: The platform.
        snapshot_id: Whose build.
        events: Where the lines go, each with its line end.
        language: First word of the events' type.
    """

    def __init__(self, client: AsyncDaytona, snapshot_id: str, *, events: EventStream, language: str) -> None:
        self._client = client
        self._snapshot_id = snapshot_id
        self._events = events
        self._type = snapshot_event(language)
        self._task: asyncio.Task[None] | None = None
        self._told = 0
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)

    @property
    def tail(self) -> tuple[str, ...]:
        """The last lines, without line ends."""
        return tuple(self._tail)

    async def __aenter__(self) -> BuildLog:
        self._task = asyncio.create_task(self._follow(), name=f"build log {self._snapshot_id}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    async def drain(self) -> None:
        """The build has ended: waits for the end of the log, within bounds."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=DRAIN_SECONDS)
        await self._stop()

    async def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _follow(self) -> None:
        pace = Pace(0.1, longest=2.0)
        for attempt in range(1, _TRIES + 1):
            before = self._told
            try:
                await self._read()
            except Exception as error:
                # Refused before the build has a log, or cut on the way. The build itself is watched elsewhere.
                level = logging.WARNING if attempt == _TRIES else logging.DEBUG
                logger.log(level, "the build log of %s broke off: %s", self._snapshot_id, error)
            else:
                return
            if self._told > before:
                pace.reset()
            await asyncio.sleep(pace.next())

    async def _read(self) -> None:
        seen = 0
        rest = ""

        def line(text: str, end: str) -> None:
            nonlocal seen
            seen += 1
            if seen > self._told:
                self._told = seen
                self._tail.append(text)
                self._events.emit(self._type, text + end)

        async for text in build_log(self._client, self._snapshot_id):
            *lines, rest = (rest + text).split("\n")
            for whole in lines:
                line(whole.removesuffix("\r"), "\n")
            while len(rest) > LONGEST_LINE:
                line(rest[:LONGEST_LINE], "")
                rest = rest[LONGEST_LINE:]
        if rest:
            line(rest, "\n")
