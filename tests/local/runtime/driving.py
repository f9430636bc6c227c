"""Short ways to run something in a box and to look at the machine around it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox.local.runtime.interface import Box, ExitStatus, OutputPipe, Process, ShellCommand, ShellSession

PATIENCE = 20.0


@dataclass(frozen=True)
class Outcome:
    """What a program did."""

    status: ExitStatus
    stdout: str
    stderr: str

    @property
    def exit_code(self) -> int | None:
        return self.status.exit_code


async def drain(pipe: OutputPipe) -> bytes:
    chunks = []
    while chunk := await pipe.read():
        chunks.append(chunk)
    return b"".join(chunks)


async def finish(running: Process | ShellCommand) -> Outcome:
    """Reads both streams to their ends while waiting."""
    status, stdout, stderr = await asyncio.gather(running.wait(), drain(running.stdout), drain(running.stderr))
    return Outcome(status, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))


async def run(box: Box, *argv: str, env: dict[str, str] | None = None, cwd: str | None = None) -> Outcome:
    return await finish(await box.run(argv, env=env, cwd=cwd))


async def shell(box: Box, text: str) -> Outcome:
    return await run(box, "/bin/sh", "-c", text)


async def command(session: ShellSession, text: str) -> Outcome:
    return await finish(await session.start(text, stdin=False))


async def until(condition: Callable[[], bool]) -> None:
    """Waits for something outside that no event tells of."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - the kernel's tables have no event
            await asyncio.sleep(0.01)


async def chunks_of(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def host_processes(mark: str) -> list[int]:
    """Pids on the host of living processes with ``mark`` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    found.append(int(entry.name))
        except OSError:
            continue
    return found


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def uids_of(pid: int) -> set[int]:
    """The four uids of a process of the host."""
    line = Path(f"/proc/{pid}/status").read_text().partition("Uid:")[2].splitlines()[0]
    return {int(uid) for uid in line.split()}


def mounts() -> str:
    return Path("/proc/self/mounts").read_text()


def descriptors() -> list[str]:
    return names_in(Path("/proc/self/fd"))


def exists(path: str) -> bool:
    return Path(path).exists()


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()
