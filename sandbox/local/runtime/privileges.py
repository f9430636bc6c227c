"""Runs the program that changes a box's network, for boxes of bubblewrap."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from .endpoints import PRIVILEGED_BELOW, RoutePlan
from .errors import RuntimeFault
from .kit import Kit

PROGRAM = "privileged"
_SECONDS = 10.0
_LONGEST_COMPLAINT = 1000


def arguments(plan: RoutePlan, *, pid: int = 0) -> list[str]:
    """Returns what the program is told: whose network, the lowest port, the addresses."""
    lowest = plan.lowest_port if plan.lowest_port < PRIVILEGED_BELOW else 0
    return [str(pid), str(lowest), *plan.literals]


async def prepare_network(kit: Kit, plan: RoutePlan, *, pid: int, prefix: Sequence[str]) -> None:
    """Makes addresses local and ports open in a box's network namespace.

    Args:
        kit: Has the program and an interpreter that the box's user can reach.
        plan: Says what is needed.
        pid: A process of the box, on the host.
        prefix: Words before the command that make it run as the box's user.

    Raises:
        RuntimeFault: It failed; the text says what could not be done.
    """
    root = str(kit.root)
    process = await asyncio.create_subprocess_exec(
        *prefix,
        *kit.program(PROGRAM, root=root),
        *arguments(plan, pid=pid),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "PYTHONHOME": root},
        cwd="/",
    )
    try:
        async with asyncio.timeout(_SECONDS):
            _, written = await process.communicate()
    except TimeoutError as error:
        raise cannot_prepare(plan, f"it took longer than {_SECONDS:g} s") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.wait())
    if process.returncode != 0:
        raise cannot_prepare(plan, written.decode("utf-8", "replace")[-_LONGEST_COMPLAINT:].strip())


def cannot_prepare(plan: RoutePlan, reason: str) -> RuntimeFault:
    """Returns the error that names what of the plan this machine cannot offer."""
    needs = [f"the address {address}" for address in plan.literals]
    if plan.lowest_port < PRIVILEGED_BELOW:
        needs.append(f"port {plan.lowest_port}")
    return RuntimeFault(
        f"this machine cannot give a sandbox {' and '.join(needs)} for its connections: {reason}; "
        f"name the host instead of its address, and use a port from {PRIVILEGED_BELOW} on"
    )
