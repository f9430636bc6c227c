"""Sessions whose client was killed: nobody deletes them, so a later run in the same sandbox does.

The program of such a session ends by its limit inside the sandbox; what stays is the session's shell. Each phase's
command carries the time until which its client may still be at work, so a session of ours whose last lease is over
belongs to nobody. A client may be killed before its first command, too. Daytona does not tell since when a session is
open, so whoever finds one of ours without a command leaves a mark in the sandbox, and whoever finds an old mark ends
the session.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from sandbox.faults import fault
from sandbox.platform_api import REQUEST_SECONDS, bounded
from sandbox.retry import Deadline

if TYPE_CHECKING:
    from daytona import AsyncSandbox

logger = logging.getLogger(__name__)

LEASE_WORD: Final = "lease="
LEASE_MARGIN_SECONDS: Final = 300
"""What a client may need beyond its program's limit, and how far the clocks of two clients may differ."""

MARKS: Final = "/tmp/.uom-sessions"  # noqa: S108
"""Directory in the sandbox with an empty file for each session that was found without a command."""

MARK: Final = f"""\
mkdir -p {MARKS} && cd {MARKS} || exit 0
find . -type f -mmin +1440 -delete
for session in SESSIONS; do
    if [ ! -e "$session" ]; then : > "$session"; else find "$session" -mmin +{LEASE_MARGIN_SECONDS // 60}; fi
done
"""
"""Marks sessions and prints those that were marked long ago."""


def lease_word(limit: float) -> str:
    """Returns the last word of a phase's command: until when its session is somebody's.

    Args:
        limit: Seconds the phase may take.
    """
    return f"{LEASE_WORD}{int(time.time() + limit) + LEASE_MARGIN_SECONDS}"


def lease_end(commands: Iterable[str]) -> int | None:
    """Returns the latest end among the leases that commands carry, as seconds since the epoch; ``None`` without one."""
    ends = [
        int(last.removeprefix(LEASE_WORD))
        for last in (command.rpartition(" ")[2] for command in commands)
        if last.startswith(LEASE_WORD) and last.removeprefix(LEASE_WORD).isdigit()
    ]
    return max(ends, default=None)


async def end_abandoned_sessions(sandbox: AsyncSandbox, *, within: Deadline) -> int:
    """Deletes the sessions of killed clients; returns how many. Faults are logged: this is nobody's verdict.

    Args:
        sandbox: A sandbox that runs share.
        within: Until when.
    """
    ours = re.compile(re.escape(sandbox.name) + "-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    try:
        async with asyncio.timeout(within.capped(REQUEST_SECONDS)):
            sessions = await sandbox.process.list_sessions()
            over, empty = [], []
            for session in sessions:
                end = lease_end(command.command for command in session.commands or ())
                if end is not None and end < time.time():
                    over.append(session.session_id)
                elif not session.commands and ours.fullmatch(session.session_id):
                    empty.append(session.session_id)
            if empty:
                over += await _empty_for_long(sandbox, empty)
            await asyncio.gather(*(sandbox.process.delete_session(session_id) for session_id in over))
    except Exception as error:
        if fault(error, step="close", toolbox=True) is None:
            raise
        logger.debug("abandoned sessions of %s could not be looked for: %s", sandbox.name, error)
        return 0
    if over:
        logger.info("ended %d session(s) in %s whose client is gone", len(over), sandbox.name)
    return len(over)


async def is_in_use(sandbox: AsyncSandbox) -> bool:
    """True while a session of ours has a lease that is not over; also when the sandbox does not tell."""
    try:
        sessions = await bounded(sandbox.process.list_sessions())
    except Exception as error:
        if fault(error, step="sweep", toolbox=True) is None:
            raise
        return True
    ends = (lease_end(command.command for command in session.commands or ()) for session in sessions)
    return any(end is not None and end >= time.time() for end in ends)


async def _empty_for_long(sandbox: AsyncSandbox, sessions: Sequence[str]) -> list[str]:
    answer = await sandbox.process.exec(MARK.replace("SESSIONS", " ".join(sessions)), timeout=10)
    # The sandbox's programs could write there too: only what was asked about counts.
    return sorted(set(answer.result.split()) & set(sessions))
