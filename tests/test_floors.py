"""The floors of the house: an import points down, never up, and the local platform stands alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("flows", "blocks", "sandbox")
GROUND = (
    "errors",
    "frozen_model",
    "models",
    "databases",
    "events",
    "feedback",
    "retry",
    "profiles",
    "profile_steps",
    "secret_forms",
    "streaming",
    "request_checks",
)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


MODULES = {module_name(path): path for path in sources()}


def for_types_only(tree: ast.Module) -> set[ast.AST]:
    """What stands below ``if TYPE_CHECKING``: never run, so it closes no circle."""
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }


def imports_of(path: Path, *, types: bool = True) -> set[str]:
    """Our own modules that a file imports, wherever in the file the import stands."""
    found: set[str] = set()
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out = set() if types else for_types_only(tree)
    for node in ast.walk(tree):
        if node in left_out:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(filter(None, [*package[: len(package) - node.level + 1], base]))
            found.update(f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names)
    return {name for name in found if name.split(".")[0] in PACKAGES}


def floor(module: str) -> int:
    """0 ground, 1 sandbox, 2 blocks, 3 flows; -1 for the local platform, a wing of its own."""
    parts = module.split(".")
    if parts[:2] == ["sandbox", "local"]:
        return -1
    if parts[0] == "sandbox":
        return 0 if len(parts) > 1 and parts[1] in GROUND else 1
    return {"blocks": 2, "flows": 3}[parts[0]]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_down(module: str) -> None:
    own = floor(module)
    for imported in imports_of(MODULES[module]):
        if own == -1:
            assert floor(imported) == -1, f"{module} is part of the local platform and imports {imported}"
        elif floor(imported) == -1:
            launcher = module in ("sandbox.connection", "flows.cli") or module.startswith("flows.cli.")
            assert launcher, f"{module} imports {imported}; only the launcher and the command line know the platform"
        else:
            assert floor(imported) <= own, f"{module} imports {imported}, a floor above"


def test_no_circles() -> None:
    graph = {
        module: {name for name in imports_of(path, types=False) if name in MODULES} for module, path in MODULES.items()
    }
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        if module in trail:
            pytest.fail(" -> ".join((*trail[trail.index(module) :], module)))
        if module not in done:
            for imported in sorted(graph[module] - {module}):
                visit(imported, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import sandbox", ("daytona", "prefect", "aiohttp")),
        ("import sandbox.local.service", ("daytona", "prefect", "aiohttp")),
        ("import flows.cli", ("daytona", "prefect", "aiohttp")),
    ],
)
def test_light_imports_stay_light(statement: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys; {statement}; print(*[name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_files_are_read_in_one_sitting() -> None:
    long = {name: count for name, path in MODULES.items() if (count := len(path.read_text().splitlines())) > 420}
    assert not long
