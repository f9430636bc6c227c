"""The live console of a run: one markdown artifact per phase, brought up to date at most once a second."""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import UUID

from flows.artifact_keys import artifact_key
from flows.plain_text import HeadAndTail, escaped, fenced, printable
from flows.publisher import PUBLISHER, Artifact
from flows.run_log import stream_of
from sandbox.events import PHASE_FINISHED, PHASE_STARTED, Event

CONSOLE_HEAD: Final = 16_000
CONSOLE_TAIL: Final = 32_000
UPDATE_SECONDS: Final = 1.0


class Console:
    """A sink of events that keeps one artifact per phase up to date.

    A phase that is over before the first update appears once, complete. A phase that is repeated is a new version.

    Args:
        profile: Name of the profile.
        framework: Name of the project template.
        flow_run_id: The run.
    """

    def __init__(self, *, profile: str, framework: str, flow_run_id: UUID) -> None:
        self._names = (profile, framework)
        self._flow_run_id = flow_run_id
        self._artifact: Artifact | None = None
        self._phase = ""
        self._text = HeadAndTail(head=CONSOLE_HEAD, tail=CONSOLE_TAIL)
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, event: Event) -> None:
        """Takes an event."""
        phase = event["phase"]
        if event["type"] == PHASE_STARTED and phase:
            self.close()
            self._phase = phase
            self._text = HeadAndTail(head=CONSOLE_HEAD, tail=CONSOLE_TAIL)
            self._artifact = Artifact(
                key=artifact_key("console", *self._names, phase),
                type="markdown",
                description=f"What the {phase} phase printed, as it came",
                flow_run_id=self._flow_run_id,
            )
        elif event["type"] == PHASE_FINISHED:
            self.close()
        elif stream_of(event["type"]) in ("stdout", "stderr") and isinstance(event["data"], str):
            self._text.add(event["data"])
            if self._timer is None and self._artifact is not None:
                self._timer = asyncio.get_running_loop().call_later(UPDATE_SECONDS, self._update)

    def close(self) -> None:
        """Publishes the last state of the phase; a phase that printed nothing has no console."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._artifact is not None:
            self._publish("complete")
            self._artifact = None

    def _update(self) -> None:
        self._timer = None
        self._publish("running")

    def _publish(self, state: str) -> None:
        if self._artifact is None or not self._text.total:
            return
        phase, text = self._phase, self._text.text()
        total, left_out = self._text.total, self._text.left_out
        PUBLISHER.publish(
            self._artifact,
            lambda: console_markdown(phase=phase, state=state, text=text, total=total, left_out=left_out),
        )


def console_markdown(*, phase: str, state: str, text: str, total: int, left_out: int = 0) -> str:
    """Returns the console of a phase.

    Args:
        phase: Its name.
        state: ``running`` or ``complete``.
        text: What was kept of its output.
        total: Characters it printed altogether.
        left_out: How many of them are not shown.
    """
    words = [f"**{escaped(phase)}**", state, f"{total:,} characters"]
    if left_out:
        words.append(f"{left_out:,} of them left out in the middle: see the logs of the run")
    return f"{' · '.join(words)}\n\n{fenced(printable(text))}\n"
