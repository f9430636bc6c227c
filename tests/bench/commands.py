"""The command line as a user meets it: a new process for each call."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from tests.bench.figures import Figure

COMMAND = Path(sys.executable).with_name("uom-sandbox")


async def seconds_of(*arguments: str) -> float:
    """Runs the command once; its output must not be empty."""
    start = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        COMMAND, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, error = await process.communicate()
    assert output, error.decode()
    return time.perf_counter() - start


async def command_line(*, rounds: int = 9) -> list[Figure]:
    """Start-up of the light commands, and of a validation with everything running."""
    program = Path(__file__).parent.parent.parent / "examples" / "python-orders" / "main.py"
    figures = []
    for name, arguments, target in (
        ("--help", ("--help",), "<= 0.5"),
        ("profiles", ("profiles",), "<= 0.5"),
        ("doctor", ("doctor",), "<= 0.5"),
        ("validate python-orders", ("validate", str(program), "--profile", "python"), "<= 5 beyond the program"),
    ):
        await seconds_of(*arguments)
        samples = [await seconds_of(*arguments) for _ in range(rounds)]
        figures.append(Figure(name=f"uom-sandbox {name}", samples=samples, unit="s", target=target))
    return figures
