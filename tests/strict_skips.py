"""With UOM_STRICT_SKIPS set, a skipped test fails the run unless its reason is on the list of allowed ones."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ALLOWED = Path(__file__).with_name("allowed_skips.txt")


def _allowed_patterns() -> list[re.Pattern[str]]:
    lines = ALLOWED.read_text(encoding="utf-8").splitlines()
    return [re.compile(line) for line in lines if line and not line.startswith("#")]


class StrictSkips:
    """Collects the skips whose reason nobody has allowed."""

    def __init__(self) -> None:
        self.patterns = _allowed_patterns()
        self.refused: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if not any(pattern.fullmatch(reason) for pattern in self.patterns):
                self.refused.append(f"{report.nodeid}: {reason}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if not any(pattern.fullmatch(reason) for pattern in self.patterns):
                self.refused.append(f"{report.nodeid}: {reason}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.refused and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.refused:
            terminalreporter.section("skips that are not on the allowed list", red=True)
            for line in self.refused:
                terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("UOM_STRICT_SKIPS"):
        config.pluginmanager.register(StrictSkips(), "strict-skips")
