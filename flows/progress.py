"""What a run waits for before its program runs: the build of a snapshot, and libraries that Maven fetches.

One markdown artifact, brought up to date at most once a second; a run that waits for neither has none.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from flows.artifact_keys import artifact_key
from flows.plain_text import escaped, fenced, printable, shortened
from flows.publisher import PUBLISHER, Artifact
from flows.run_log import stream_of
from sandbox.events import PHASE_FINISHED, PHASE_STARTED, SANDBOX_STATE, Event

UPDATE_SECONDS: Final = 1.0
SHOWN_LINES: Final = 15
LINE_CHARACTERS: Final = 300
_BAR_COLUMNS: Final = 30
_LONGEST_REST: Final = 4_000

# ``[3/7] RUN …`` of the local platform and of BuildKit, which writes ``#8 [stage-1 3/7] RUN …``; ``Step 3/7 : RUN …``.
_STEP: Final = re.compile(
    r"(?:#\d+ )?(?:\[(?:\S+ )?|Step )(?P<number>\d{1,4})/(?P<total>\d{1,4})\]?(?: : | )?(?P<what>.*)"
)
# A line for many files, as our own snapshots tell it.
_BUNDLE: Final = re.compile(r"fetched (?P<count>\d{1,9}) files, the last: (?P<file>\S+)")
_TRANSFER: Final = re.compile(r"(?:\[INFO\] )?Download(?P<kind>ing|ed) from \S+: (?P<address>\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known at some moment.

    Attributes:
        snapshot: Name of the snapshot; empty when none was waited for.
        state: Its state.
        elapsed: Seconds since the wait began.
        step: Step of the build that runs, from 1; 0 before the first.
        steps: How many there are.
        done: Whether the step has ended.
        title: What it does.
        lines: The last lines of the build's log.
        where: What Maven resolves for: a phase, or the snapshot; empty when it fetched nothing.
        asked: Files that it asked for.
        fetched: Files that came.
        file: The last one.
    """

    snapshot: str = ""
    state: str = ""
    elapsed: float = 0.0
    step: int = 0
    steps: int = 0
    done: bool = False
    title: str = ""
    lines: tuple[str, ...] = ()
    where: str = ""
    asked: int = 0
    fetched: int = 0
    file: str = ""


class Progress:
    """A sink of events that keeps the artifact up to date.

    Args:
        profile: Name of the profile.
        framework: Name of the project template.
        flow_run_id: The run.
    """

    def __init__(self, *, profile: str, framework: str, flow_run_id: UUID) -> None:
        self._artifact = Artifact(
            key=artifact_key("progress", profile, framework),
            type="markdown",
            description="What the run waits for: its snapshot, libraries",
            flow_run_id=flow_run_id,
        )
        self._seen = Seen()
        self._lines: deque[str] = deque(maxlen=SHOWN_LINES)
        self._rest = ""
        self._timer: asyncio.TimerHandle | None = None
        self._changed = False

    def __call__(self, event: Event) -> None:
        """Takes an event."""
        data, stream = event["data"], stream_of(event["type"])
        if isinstance(data, str):
            if stream == "snapshot":
                for line in self._whole_lines(data):
                    self._read_build(line)
            elif stream == "stdout" and event["phase"] not in (None, "run"):
                for line in self._whole_lines(data):
                    self._read_transfer(line, where=f"the phase {event['phase']}")
        elif event["type"] in (PHASE_STARTED, PHASE_FINISHED):
            self._rest = ""
        elif event["type"] == SANDBOX_STATE and isinstance(data, dict) and data.get("subject") == "snapshot":
            elapsed = data.get("elapsed")
            self._saw(
                snapshot=str(data.get("name") or ""),
                state=str(data.get("state") or "waiting"),
                elapsed=float(elapsed) if isinstance(elapsed, int | float) else 0.0,
            )

    def close(self) -> None:
        """Publishes what was seen last."""
        if self._timer is not None:
            self._timer.cancel()
            self._publish()

    def _whole_lines(self, text: str) -> list[str]:
        *lines, rest = (self._rest + text).split("\n")
        self._rest = rest[:_LONGEST_REST]
        return lines

    def _read_build(self, line: str) -> None:
        shown = shortened(printable(line[: 4 * LINE_CHARACTERS]), characters=LINE_CHARACTERS)
        if self._read_transfer(line, where="the snapshot"):
            return
        self._lines.append(shown)
        if found := _STEP.match(shown):
            number, total, what = int(found["number"]), int(found["total"]), found["what"].strip()
            if 0 < number <= total:
                done = what.startswith("done in ")
                title = self._seen.title if done else what
                self._saw(step=number, steps=total, done=done, title=title, lines=tuple(self._lines))
                return
        self._saw(lines=tuple(self._lines))

    def _read_transfer(self, line: str, *, where: str) -> bool:
        if bundle := _BUNDLE.match(line):
            count = int(bundle["count"])
            self._saw(where=where, asked=count, fetched=count, file=bundle["file"][:LINE_CHARACTERS])
            return False
        if "Download" not in line[:20]:
            return False
        found = _TRANSFER.match(line)
        if found is None:
            return False
        seen = self._seen if self._seen.where == where else replace(self._seen, asked=0, fetched=0)
        came = found["kind"] == "ed"
        file = found["address"].rpartition("/")[2][:LINE_CHARACTERS]
        self._saw(where=where, asked=seen.asked + (not came), fetched=seen.fetched + came, file=file)
        return True

    def _saw(self, **changes: object) -> None:
        self._seen = replace(self._seen, **changes)  # type: ignore[arg-type]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(UPDATE_SECONDS, self._update)

    def _update(self) -> None:
        self._timer = None
        self._publish()

    def _publish(self) -> None:
        seen = self._seen
        # A snapshot that was found ready, or was waited for without anything to tell, is no news.
        if seen.steps or seen.lines or seen.where:
            PUBLISHER.publish(self._artifact, lambda: progress_markdown(seen))


def progress_markdown(seen: Seen) -> str:
    """Returns the progress as markdown."""
    lines: list[str] = []
    if seen.snapshot or seen.lines:
        lines += [f"## Snapshot {escaped(seen.snapshot)}: {escaped(seen.state) or 'building'}", ""]
        if seen.steps:
            share = 1.0 if seen.state == "active" else (seen.step - (not seen.done)) / seen.steps
            full = round(_BAR_COLUMNS * share)
            bar = "█" * full + "░" * (_BAR_COLUMNS - full)
            lines += [f"`{bar}` {share:.0%} · step {seen.step} of {seen.steps} · {seen.elapsed:.0f} s", ""]
            if seen.title:
                lines += [f"{'Last' if seen.done else 'Now'}: {escaped(seen.title)}", ""]
        if seen.lines:
            lines += [fenced("\n".join(seen.lines)), ""]
    if seen.where:
        besides = f", {seen.asked - seen.fetched:,} asked for besides" if seen.asked > seen.fetched else ""
        lines += [
            f"## Maven fetches for {escaped(seen.where)}",
            "",
            f"{seen.fetched:,} files came{besides}; the last: {escaped(seen.file)}",
            "",
        ]
    return "\n".join(lines)
