"""Toolchain directories: which are taken, and how they look from inside."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.local.runtime.bubblewrap import BubblewrapRuntime
from sandbox.local.runtime.errors import RuntimeUnavailableError
from sandbox.local.runtime.interface import BoxSpec
from sandbox.local.runtime.toolchains import resolve_toolchains
from tests.scratch import scratch_directory

from .driving import mounts, run, shell


@pytest.fixture
def place() -> Iterator[Path]:
    made = scratch_directory()
    yield made
    shutil.rmtree(made)


def tool(directory: Path, name: str, answer: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\necho {answer}\n")
    (directory / name).chmod(0o755)


async def test_tools_run_from_their_own_path_and_cannot_be_changed(place: Path) -> None:
    tool(place / "sdk", "top-tool", "top")
    tool(place / "sdk/bin", "bin-tool", "bin")
    (place / "link").symlink_to(place / "sdk")
    (place / "beside").write_text("not for boxes")
    runtime = BubblewrapRuntime(data_directory=place / "data", toolchains=[place / "link"])
    await runtime.prepare()
    try:
        box = await runtime.start(BoxSpec(box_id="tools"))
        outcome = await shell(box, f"top-tool; bin-tool; command -v bin-tool; ls {place}; echo x >{place}/sdk/new")
        assert outcome.stdout == f"top\nbin\n{place}/sdk/bin/bin-tool\nsdk\n"
        assert "Read-only file system" in outcome.stderr
        assert (
            await run(box, "printenv", "PATH")
        ).stdout == f"{place}/sdk:{place}/sdk/bin:/usr/local/bin:/usr/bin:/bin\n"
    finally:
        await runtime.close()


async def test_the_fingerprint_follows_the_toolchains(place: Path) -> None:
    fingerprints = []
    for toolchains in ([], [place / "sdk"]):
        tool(place / "sdk/bin", "tool", "x")
        runtime = BubblewrapRuntime(data_directory=place / "data", toolchains=toolchains)
        await runtime.prepare()
        await runtime.close()
        fingerprints.append(runtime.fingerprint)
    assert fingerprints[0] != fingerprints[1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops to another uid")
async def test_a_toolchain_below_a_closed_directory(place: Path) -> None:
    """As a version manager's below /root: root mounts it where the dropped uid can reach it."""
    tool(place / "closed/sdk/bin", "hidden-tool", "found")
    (place / "closed/secret").write_text("secret")
    (place / "closed").chmod(0o700)
    before = mounts()
    runtime = BubblewrapRuntime(data_directory=place / "data", toolchains=[place / "closed/sdk"])
    await runtime.prepare()
    try:
        box = await runtime.start(BoxSpec(box_id="tools"))
        outcome = await shell(box, f"hidden-tool; ls {place}/closed; cat {place}/closed/secret")
        assert outcome.stdout == "found\nsdk\n"
        assert mounts() == before
    finally:
        await runtime.close()


@pytest.mark.parametrize(
    "path", ["/", "/root", "/home", "/etc", "/etc/ssl", "/proc", "/sys", "/dev", "/run", "/var", "/usr"]
)
def test_directories_that_hold_more_than_tools(path: str, place: Path) -> None:
    with pytest.raises(RuntimeUnavailableError, match="toolchain"):
        resolve_toolchains([Path(path)], data_directory=place, dropped=False)


def test_a_home_directory_and_what_contains_one(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = place / "homes/user"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for path in (home, home.parent):
        with pytest.raises(RuntimeUnavailableError, match="contains"):
            resolve_toolchains([path], data_directory=place / "data", dropped=False)
    with pytest.raises(RuntimeUnavailableError, match="contains"):
        resolve_toolchains([place], data_directory=place / "homes", dropped=False)


def test_a_directory_that_is_not_there(place: Path) -> None:
    with pytest.raises(RuntimeUnavailableError, match="no-such"):
        resolve_toolchains([place / "no-such"], data_directory=place, dropped=False)
    (place / "file").touch()
    with pytest.raises(RuntimeUnavailableError, match="not a directory"):
        resolve_toolchains([place / "file"], data_directory=place / "data", dropped=False)
