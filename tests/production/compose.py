"""The compose file as data, with its variables filled in, and its services as processes of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "deploy" / "compose.yaml"
VARIABLE = re.compile(r"\$\{(\w+)(?:(:[?-])([^}]*))?\}")


def document() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return loaded


def filled_in(value: Any, variables: Mapping[str, str]) -> Any:
    """Fills variables in as compose does; one that is needed and missing is a KeyError with its remedy."""
    if isinstance(value, dict):
        return {name: filled_in(each, variables) for name, each in value.items()}
    if isinstance(value, list):
        return [filled_in(each, variables) for each in value]
    if not isinstance(value, str):
        return value

    def replace(found: re.Match[str]) -> str:
        name, kind, text = found.groups()
        if given := variables.get(name):
            return given
        if kind == ":-":
            return str(text)
        raise KeyError(f"{name}: {text}")

    return VARIABLE.sub(replace, value)


class Services:
    """Starts services of the compose file with their own commands and environments, without containers.

    Args:
        services: The services, filled in.
        moved: What stands for the network of the containers: texts in values of the environment and their substitutes.
        extra: Variables that win, such as ports of this machine.
        directory: For homes and logs.
    """

    def __init__(
        self, services: Mapping[str, Any], *, moved: Mapping[str, str], extra: Mapping[str, str], directory: Path
    ) -> None:
        self._services = services
        self._moved = moved
        self._extra = extra
        self._directory = directory

    def environment(self, name: str) -> dict[str, str]:
        given = dict(self._services[name].get("environment", {}))
        for old, new in self._moved.items():
            given = {variable: value.replace(old, new) for variable, value in given.items()}
        own = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self._directory),
            "PREFECT_HOME": str(self._directory / "prefect"),
            "UOM_TEST_SESSION": os.environ["UOM_TEST_SESSION"],
        }
        return {**own, **given, **{variable: value for variable, value in self._extra.items() if variable in given}}

    def log(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    @contextlib.asynccontextmanager
    async def running(self, name: str, **more: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """One service; its whole process group is ended at the end of the block."""
        with (self._directory / f"{name}.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *self._services[name]["command"],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**self.environment(name), **more},
                start_new_session=True,
            )
        try:
            yield process
        finally:
            for number, seconds in ((signal.SIGTERM, 30.0), (signal.SIGKILL, 10.0)):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), seconds)

    async def to_the_end(self, name: str) -> None:
        async with self.running(name) as process:
            code = await process.wait()
        assert code == 0, self.log(name)
