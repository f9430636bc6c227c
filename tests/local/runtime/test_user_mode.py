"""The same runtime under an ordinary user: a selection of this folder's tests, run again as one."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.scratch import scratch_directory

ORDINARY_UID = 65123
SELECTION = (
    "test_processes.py",
    "test_sessions.py",
    "test_trees.py",
    "test_escapes.py",
    "test_limits.py",
    "test_layers.py",
    "test_lifecycle.py::test_a_killed_server_leaves_nothing_and_the_next_one_finds_the_files",
    "test_lifecycle.py::test_closing_leaves_nothing",
    "test_network.py::test_an_allowed_address_answers",
    "test_connections.py",
)


def reachable(path: Path) -> bool:
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in (path, *path.parents))


def ordinary_python() -> str | None:
    """An interpreter of this version that any user can start."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (os.path.realpath(sys.executable), f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        if Path(candidate).exists() and reachable(Path(candidate).resolve()):
            return candidate
    return None


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(os.geteuid() != 0, reason="this whole run is one by an ordinary user")
def test_everything_works_for_an_ordinary_user() -> None:
    python = ordinary_python()
    here = Path(__file__).parent
    if python is None or not reachable(here):
        pytest.skip("an ordinary user can reach neither this directory nor a Python of this version")
    home = scratch_directory()
    os.chown(home, ORDINARY_UID, ORDINARY_UID)
    try:
        done = subprocess.run(
            [
                *("setpriv", "--reuid", str(ORDINARY_UID), "--regid", str(ORDINARY_UID), "--clear-groups", "--"),
                *(python, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--confcutdir", str(here)),
                *(f"--rootdir={here.parents[2]}", f"--basetemp={home}/pytest"),
                *(str(here / name) for name in SELECTION),
            ],
            cwd=here.parents[2],
            env={
                "HOME": str(home),
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "LANG": "C.UTF-8",
                "PYTHONPATH": f"{here.parents[2]}:{sysconfig.get_path('purelib')}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "UOM_TEST_SESSION": "ordinary-user",
            },
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
    finally:
        shutil.rmtree(home)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
