"""Programs in shell: a profile whose phases are what a test writes, and a short way to validate one."""

from __future__ import annotations

import asyncio
from typing import Any

from daytona import AsyncDaytona

from sandbox.events import Event, EventStream
from sandbox.models import ValidationRequest, ValidationResult
from sandbox.profiles import Profile, parse_profile
from sandbox.validation import Validation


def shell_profile(*commands: str, type: str = "shell-sandbox", **fields: Any) -> Profile:
    """A profile whose phases ``one``, ``two``, … run these commands; ``fields`` replace those of the profile."""
    names = ("one", "two", "three")
    phases = [
        {"name": name, "command": command, "timeout_seconds": 20}
        for name, command in zip(names, commands, strict=False)
    ]
    document: dict[str, Any] = {
        "name": "shell",
        "type": type,
        "language": "shell",
        "image": "debian:12-slim",
        "resources": {"cpu": 1, "memory": 1, "disk": 1},
        "parallel": 4,
        "default_framework": "plain",
        "frameworks": {"plain": {"entry_point": "main.sh", "phases": phases, "environment": {"FROM_TEMPLATE": "yes"}}},
    }
    return parse_profile(document | fields, origin="a test")


class Recorded:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._awaited: list[tuple[str, asyncio.Event]] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        for wanted, seen in self._awaited:
            if wanted in str(event["data"]):
                seen.set()

    async def until(self, text: str) -> None:
        """Returns when an event's data holds ``text``."""
        if not any(text in str(event["data"]) for event in self.events):
            seen = asyncio.Event()
            self._awaited.append((text, seen))
            await seen.wait()

    def text(self, type_: str) -> str:
        return "".join(str(event["data"]) for event in self.events if event["type"] == type_)

    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


async def validate(
    daytona: AsyncDaytona, profile: Profile, *, sink: Recorded | None = None, **fields: Any
) -> ValidationResult:
    """Runs one validation of ``profile`` from beginning to end."""
    fields.setdefault("files", {"main.sh": "exit 0\n"})
    request = ValidationRequest(profile=profile.name, **fields).identified()
    events = EventStream(
        run_id=str(request.run_id), thread_id=str(request.thread_id), sinks=() if sink is None else (sink,)
    )
    async with events:
        return await Validation(request, profile=profile, client=daytona, events=events).run()
