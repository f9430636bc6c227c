"""The log of a build: written while the build runs, kept, and replayed from its start to any number of readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

MAX_LOG_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 16 * 1024
CHUNK_BYTES = 64 * 1024


class BuildLog:
    """One log file. The writer is the build; readers follow until ``finish``.

    Args:
        path: The file; its directory must exist.
        finished: True for the log of a build that has ended before.
    """

    def __init__(self, path: Path, *, finished: bool = False) -> None:
        self._path = path
        self._finished = finished
        self._written = 0
        self._full = False
        self._partial = b""
        self._changed = asyncio.Condition()

    async def open(self) -> None:
        """Makes the file, empty."""
        await asyncio.to_thread(self._path.write_bytes, b"")

    async def line(self, text: str) -> None:
        """Writes a line of the platform's own."""
        await self._flush_partial()
        await self._append(text.encode("utf-8", "replace") + b"\n")

    async def output(self, data: bytes) -> None:
        """Writes what a step printed; readers get whole lines only.

        A line longer than 16 KiB is cut into several, since a log reader waits for its end.
        """
        data = self._partial + data
        end = data.rfind(b"\n") + 1
        complete, self._partial = data[:end], data[end:]
        while len(self._partial) > MAX_LINE_BYTES:
            complete += self._partial[:MAX_LINE_BYTES] + b"\n"
            self._partial = self._partial[MAX_LINE_BYTES:]
        if complete:
            await self._append(complete)

    async def finish(self) -> None:
        """Ends the log and with it every reader. May be called twice."""
        await self._flush_partial()
        async with self._changed:
            self._finished = True
            self._changed.notify_all()

    async def read(self, *, follow: bool) -> AsyncIterator[bytes]:
        """Yields the log from its start in chunks of whole lines.

        Args:
            follow: True continues until the build has ended; False ends with what is there.
        """
        offset = 0
        while True:
            data = await asyncio.to_thread(self._read_from, offset)
            if data:
                offset += len(data)
                yield data
                continue
            if self._finished or not follow:
                if not await asyncio.to_thread(self._read_from, offset):
                    return
                continue
            async with self._changed:
                while not self._finished and self._written <= offset:
                    await self._changed.wait()

    async def tail(self, *, lines: int, limit: int) -> str:
        """Returns the last lines, at most ``limit`` characters of them."""
        data = await asyncio.to_thread(self._read_end, limit * 4)
        return "\n".join(data.decode("utf-8", "replace").splitlines()[-lines:])[-limit:]

    async def remove(self) -> None:
        """Deletes the file; one that is not there is fine."""
        await self.finish()
        await asyncio.to_thread(self._path.unlink, missing_ok=True)

    async def _flush_partial(self) -> None:
        if self._partial:
            rest, self._partial = self._partial, b""
            await self._append(rest + b"\n")

    async def _append(self, data: bytes) -> None:
        if self._full:
            return
        if self._written + len(data) > MAX_LOG_BYTES:
            self._full = True
            data = f"[the log has reached {MAX_LOG_BYTES // 1024**2} MiB; the rest is not kept]\n".encode()
        await asyncio.to_thread(self._write, data)
        async with self._changed:
            self._written += len(data)
            self._changed.notify_all()

    def _write(self, data: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(data)

    def _read_from(self, offset: int) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(offset)
                data = file.read(CHUNK_BYTES)
        except FileNotFoundError:
            return b""
        return data[: data.rfind(b"\n") + 1]

    def _read_end(self, size: int) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(0, 2)
                file.seek(max(0, file.tell() - size))
                return file.read(size)
        except FileNotFoundError:
            return b""
