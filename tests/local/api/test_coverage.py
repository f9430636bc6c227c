"""What of Daytona's published specifications the platform answers, as a table in the documentation.

``UOM_UPDATE_COVERAGE=1`` writes the table anew.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from sandbox.local.api.application import API_PREFIX, TOOLBOX_PREFIX, build_application
from sandbox.local.api.platform_routes import NOT_OFFERED
from sandbox.local.server import LocalPlatform

ROOT = Path(__file__).parents[3]
SPECIFICATIONS = ROOT.parent / "shared" / "openapi"
TABLE = ROOT / "docs" / "daytona-coverage.md"
METHODS = ("get", "post", "put", "patch", "delete")

HEAD = """# Coverage of Daytona's API

What the local platform answers of Daytona's published specifications. *Served*: works as on the hosted platform, within
the limits of one machine. *Refused*: answers 501 and says what to use instead. Everything not listed answers 404: it
belongs to running the hosted service (organizations, users, runners, billing, administration).

This file is written by `tests/local/api/test_coverage.py`.
"""

SERVICE_GROUPS = frozenset(
    {
        "admin", "api-keys", "audit", "docker-registry", "jobs", "organizations", "preview", "regions", "runners",
        "shared-regions", "users", "webhooks",
    }
)  # fmt: skip
"""First path segments that belong to running the hosted service."""


def shape(path: str) -> str:
    """A path without the names of its parameters, which differ between specification and code."""
    return re.sub(r"\{[^}]*\}", "{}", path)


def operations(name: str) -> list[tuple[str, str]]:
    file = SPECIFICATIONS / name
    if not file.exists():
        pytest.skip("the published specifications are not here")
    document: dict[str, Any] = json.loads(file.read_text())
    return [
        (method.upper(), path) for path, methods in document["paths"].items() for method in METHODS if method in methods
    ]


def routes(app: web.Application, prefix: str) -> list[tuple[str, re.Pattern[str], str]]:
    found = []
    for route in app.router.routes():
        info = route.resource.get_info() if route.resource is not None else {}
        path = str(info.get("path") or info.get("formatter"))
        if path.startswith(prefix):
            relative = path.removeprefix(prefix)
            pattern = re.compile(
                str(info["pattern"].pattern).removeprefix(re.escape(prefix))
                if "pattern" in info
                else re.escape(relative)
            )
            found.append((route.method, pattern, relative))
    return found


def state_of(
    method: str, path: str, known: list[tuple[str, re.Pattern[str], str]], refused: set[tuple[str, str]]
) -> str:
    """A route that is written like the path serves it; a wider one may only refuse it."""
    sample = re.sub(r"\{[^}]*\}", "x", path)
    for route_method, pattern, relative in known:
        if route_method in (method, "*") and pattern.fullmatch(sample):
            if (route_method, relative) in refused:
                return "refused"
            if relative == shape(path):
                return "served"
    return "-"


def application(platform: LocalPlatform) -> web.Application:
    return build_application(platform.plane, key="k", base_url="http://127.0.0.1:1", version="0", faults=None)


def test_the_table_is_what_the_routes_are(platform: LocalPlatform) -> None:
    app = application(platform)
    control = routes(app, API_PREFIX)
    refused = {(method, shape_of_route(path)) for method, path, _ in NOT_OFFERED}
    rows: list[tuple[str, str, str]] = []
    for method, path in operations("api.json"):
        state = state_of(method, path, [(m, p, shape_of_route(r)) for m, p, r in control], refused)
        if path.split("/")[1] in SERVICE_GROUPS:
            assert state == "-", f"{method} {path} is served, take it off the list"
            continue
        rows.append((method, path, state))
    toolbox = routes(app, TOOLBOX_PREFIX)
    absent = {(m, shape_of_route(r)) for m, p, r in toolbox if m == "*"}
    toolbox_rows = []
    for method, path in operations("toolbox.json"):
        known = [(m, p, shape_of_route(r)) for m, p, r in toolbox]
        toolbox_rows.append((method, path, state_of(method, "/{sandboxId}" + path, known, absent)))
    text = "\n".join([HEAD, section("Control plane", rows), section("Toolbox", toolbox_rows)])
    if os.environ.get("UOM_UPDATE_COVERAGE"):
        TABLE.parent.mkdir(exist_ok=True)
        TABLE.write_text(text)
    assert TABLE.read_text() == text, "run the test with UOM_UPDATE_COVERAGE=1 and look at the difference"


def shape_of_route(path: str) -> str:
    return shape(re.sub(r"\{(\w+):[^}]*\}", r"{\1}", path))


def section(title: str, rows: list[tuple[str, str, str]]) -> str:
    counts = Counter(state for _, _, state in rows)
    words = {"served": "served", "refused": "refused", "-": "not there"}
    summary = ", ".join(f"{counts[state]} {word}" for state, word in words.items() if counts[state])
    lines = [f"## {title}", "", f"{summary}.", "", "| method | path | |", "|---|---|---|"]
    lines += [f"| {method} | `{path}` | {words[state]} |" for method, path, state in sorted(rows, key=lambda r: r[1])]
    return "\n".join(lines) + "\n"
