"""The suite leaves no process, mount or directory behind, and checks that itself when it ends."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

import pytest

from tests.scratch import PARENT, scratch_prefix

MARKER = "UOM_TEST_SESSION"
PATIENCE = 15.0
"""Seconds that processes on their way out are given: a dying box needs up to a tenth of one, a busy machine more."""


def _mounts() -> set[str]:
    return {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()}


def _scratch() -> set[str]:
    return {entry.name for entry in PARENT.iterdir() if entry.name.startswith(scratch_prefix())}


def _processes(marker: str) -> list[str]:
    """Command lines of living processes that descend from this session, by the marker in their environment."""
    found = []
    needle = f"{MARKER}={marker}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if needle not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            if (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                continue
            found.append(f"{entry.name} {(entry / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()[:200]}")
        except OSError:
            continue
    return found


class Hygiene:
    """Remembers what was there before, compares after."""

    def __init__(self) -> None:
        self.marker = uuid.uuid4().hex
        os.environ[MARKER] = self.marker
        self.mounts = _mounts()
        self.left: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            self.left = [f"process {line}" for line in _processes(self.marker)]
            self.left += [f"mount {path}" for path in sorted(_mounts() - self.mounts)]
            self.left += [f"directory {PARENT / name}" for name in sorted(_scratch())]
            if not self.left or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        if self.left and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.left:
            terminalreporter.section("left behind by the tests", red=True)
            for line in self.left:
                terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Hygiene(), "hygiene")
