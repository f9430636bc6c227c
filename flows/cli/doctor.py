"""``uom-sandbox doctor``: what works on this machine, and what to do about the rest."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version

from flows.outcomes import EXIT_DIFFERS, EXIT_PASSED
from flows.prefect_choice import configured_api_url
from flows.prefect_server import PrefectServer
from sandbox.connection import resolve_credentials
from sandbox.errors import ConfigurationError
from sandbox.local.diagnosis import Check, diagnose


def run(options: argparse.Namespace) -> int:
    """Prints every finding; fails when something is missing without which nothing can be validated here."""
    sections = {"this program": [_packages(), _platform(), _prefect()], "local platform": diagnose()}
    cloud = sections["this program"][1].ok and "Daytona API" in sections["this program"][1].detail
    failed = [
        check
        for section, checks in sections.items()
        for check in checks
        if not check.ok and check.required and not (cloud and section == "local platform")
    ]
    if options.json:
        document = {section: [asdict(check) for check in checks] for section, checks in sections.items()}
        print(json.dumps(document, indent=2))
    else:
        for section, checks in sections.items():
            print(section)
            for check in checks:
                _print(check)
        print("everything needed is here" if not failed else f"{len(failed)} needed thing(s) missing")
    return EXIT_DIFFERS if failed else EXIT_PASSED


def _print(check: Check) -> None:
    symbol, colour = ("✔", "32") if check.ok else ("✘", "31") if check.required else ("·", "33")
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        symbol = f"\x1b[{colour}m{symbol}\x1b[0m"
    print(f"  {symbol} {check.name}: {check.detail}")
    if not check.ok and check.remedy:
        print(f"      {check.remedy}")


def _packages() -> Check:
    python = ".".join(map(str, sys.version_info[:3]))
    found = [f"Python {python}"]
    for name in ("prefect", "daytona"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            return Check(name="packages", ok=False, detail=f"{name} is not installed", remedy=f"pip install {name}")
    return Check(name="packages", ok=True, detail=", ".join(found))


def _platform() -> Check:
    """Where validations run, as ``auto`` decides."""
    try:
        credentials = resolve_credentials()
    except ConfigurationError as error:
        return Check(name="platform", ok=False, detail=str(error), remedy="correct or unset the variable")
    if credentials is None:
        return Check(name="platform", ok=True, detail="the local one, since DAYTONA_API_KEY is not set")
    return Check(name="platform", ok=True, detail=f"the Daytona API at {credentials.api_url}, since its key is set")


def _prefect() -> Check:
    if url := configured_api_url():
        return Check(name="Prefect API", ok=True, detail=f"{url} (configured)")
    try:
        status = asyncio.run(PrefectServer().status())
    except ConfigurationError as error:
        return Check(name="Prefect API", ok=False, detail=str(error), remedy="correct or unset the variable")
    if status.process is None:
        return Check(name="Prefect API", ok=True, detail="a background server, started when it is first needed")
    if not status.healthy:
        return Check(
            name="Prefect API",
            ok=False,
            detail=f"the background server (process {status.process.pid}) does not answer",
            remedy=f"uom-sandbox down, then up; its log is {status.log}",
        )
    return Check(name="Prefect API", ok=True, detail=f"{status.process.api_url} (background server, UI at its root)")
