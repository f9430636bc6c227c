"""Runs the benchmarks named on the command line, or all of them."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Coroutine

from tests.bench.environment import fresh_home, platform_client
from tests.bench.figures import Figure, print_table


async def _platform() -> list[Figure]:
    from tests.bench import platform_calls

    async with platform_client() as daytona:
        return [
            await platform_calls.creation(daytona),
            await platform_calls.round_trip(daytona),
            await platform_calls.output_latency(daytona),
            *await platform_calls.throughput(daytona),
        ]


async def _validations() -> list[Figure]:
    from tests.bench import validations

    async with platform_client() as daytona:
        return [*await validations.overhead(daytona), *await validations.twenty_at_once(daytona)]


async def _toolchains() -> list[Figure]:
    from tests.bench import toolchains

    toolchains.open_the_way_to_libraries()
    async with platform_client() as daytona:
        return await toolchains.compile_and_run(daytona)


async def _commands() -> list[Figure]:
    from tests.bench import commands

    return await commands.command_line()


async def _sqlite() -> list[Figure]:
    from tests.bench import servers

    async with platform_client() as daytona, servers.sqlite() as url:
        return await servers.overhead(daytona, "SQLite", url)


async def _postgresql() -> list[Figure]:
    from tests.bench import servers

    async with platform_client() as daytona, servers.postgresql() as url:
        return await servers.overhead(daytona, "PostgreSQL", url)


async def _watching() -> list[Figure]:
    from tests.bench import watching

    async with platform_client() as daytona:
        return [*await watching.latency(daytona), *await watching.relay_cost(daytona)]


BENCHMARKS: dict[str, Callable[[], Coroutine[None, None, list[Figure]]]] = {
    "platform": _platform,
    "validations": _validations,
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "watching": _watching,
    "toolchains": _toolchains,
    "commands": _commands,
}


def main() -> int:
    """Runs and prints; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all by default")
    names = parser.parse_args().names or list(BENCHMARKS)
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    # Prefect's log lines would hide the table, and cost what nobody measures here.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    with fresh_home():
        for name in names:
            before = os.getloadavg()[0]
            figures = asyncio.run(BENCHMARKS[name]())
            print(f"\n{name}, load {before:.1f} before and {os.getloadavg()[0]:.1f} after", flush=True)
            print_table(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
