"""The byte-exact log of one command: both streams in the order read, for any number of readers.

The log is a sequence of records (stream, length, bytes). Its end lives in memory, so that a reader who has kept up
costs no file access; what is older is spilled to a file, so that a log of any length needs less than a megabyte. Small
logs of ended commands stay in memory for good and never touch the disk.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from .framing import Run, Stream

_P = ParamSpec("_P")
_T = TypeVar("_T")

_HEADER = struct.Struct("<BI")
_RECORD_LIMIT = 64 * 1024
_SPILL_AT = 256 * 1024
_KEPT = 256 * 1024
_BLOCK = 256 * 1024
_SMALL = 8 * 1024


class CommandLog:
    """What a command has written.

    Attributes:
        size: Length of the log so far, headers included; also the position after its last byte.
        complete: Nothing will be added any more.
        overflowed: The capacity was reached, or the disk failed; later output was refused.
    """

    def __init__(self, path: Path, *, capacity: int) -> None:
        """Makes an empty log; the file appears only when it is needed.

        Args:
            path: File that no other log uses, in an existing directory.
            capacity: Most bytes the log may take.
        """
        self._path = path
        self._capacity = capacity
        self._tail = bytearray()
        self._tail_start = 0
        self._spilled = 0
        self._file: int | None = None
        self._file_made = False
        self._disk_failed = False
        self._spilling = asyncio.Lock()
        self._change = asyncio.Event()
        self._readers = 0
        self._discarded = asyncio.Event()
        self.size = 0
        self.complete = False
        self.overflowed = False

    async def append(self, stream: Stream, data: bytes) -> bool:
        """Adds what was read from a stream; readers see it at once.

        Waits while the disk is behind, so a program cannot fill the memory.

        Returns:
            False if there is no room any more: ``data`` was not kept, and nothing later will be.
        """
        if not self.overflowed and self.size + len(data) + _HEADER.size > self._capacity:
            self.overflowed = True
        if self.overflowed or self.complete:
            return False
        self._add(stream, data)
        if self.size - self._spilled >= _SPILL_AT:
            async with self._spilling:
                if self.size - self._spilled >= _SPILL_AT:
                    await self._spill()
        return not self.overflowed

    def remark(self, text: str) -> None:
        """Adds a line of the platform's own to stderr, past the capacity: what a user must know of how it ended."""
        if not self.complete:
            self._add(Stream.STDERR, text.encode())

    async def finish(self) -> None:
        """Declares the log complete, after which readers reach its end. May be called twice."""
        if self.complete:
            return
        async with self._spilling:
            if self._file_made or self.size > _SMALL:
                await self._spill()
        self._finish_now()

    def abandon(self) -> None:
        """Like ``finish``, without waiting for the disk: for an owner that is being cancelled."""
        if not self.complete:
            self._finish_now()

    async def discard(self) -> None:
        """Removes the log, its file as soon as the last reader has closed. May be called twice."""
        self.abandon()
        self._discarded.set()
        await self._remove_unread()

    async def wait_discarded(self) -> None:
        """Waits until the log has been discarded."""
        await self._discarded.wait()

    def reader(self) -> LogReader:
        """Returns a reader that starts at the first byte; the caller closes it."""
        self._readers += 1
        return LogReader(self)

    async def wait_beyond(self, position: int) -> None:
        """Waits until there is something after ``position`` or the log is complete."""
        while self.size <= position and not self.complete:
            await self._change.wait()

    def _add(self, stream: Stream, data: bytes) -> None:
        for start in range(0, len(data), _RECORD_LIMIT):
            piece = data[start : start + _RECORD_LIMIT] if len(data) > _RECORD_LIMIT else data
            self._tail += _HEADER.pack(stream, len(piece))
            self._tail += piece
            self.size += _HEADER.size + len(piece)
        self._notify()

    def _notify(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    def _finish_now(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._spilled == self.size:
            self._tail = bytearray()
            self._tail_start = self.size
        self.complete = True
        self._change.set()

    async def _spill(self) -> None:
        if self._disk_failed:
            return
        waiting = self._copy(self._spilled, self.size)
        try:
            await _in_thread(self._write, waiting)
        except OSError as error:
            # What is in memory stays readable; the command is stopped by its owner as it is for a full log.
            self._disk_failed = self.overflowed = True
            self.remark(f"\n[the platform could not store more of this output: {error.strerror}]\n")
            return
        self._spilled += len(waiting)
        surplus = self._spilled - self._tail_start - _KEPT
        if surplus > 0:
            del self._tail[:surplus]
            self._tail_start += surplus

    def _write(self, data: bytes) -> None:
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self._file_made = True
        position = self._spilled
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._file, rest, position)
            position += written
            rest = rest[written:]

    def _copy(self, start: int, end: int) -> bytes:
        with memoryview(self._tail) as tail:
            return bytes(tail[start - self._tail_start : end - self._tail_start])

    async def _release(self) -> None:
        self._readers -= 1
        await self._remove_unread()

    async def _remove_unread(self) -> None:
        if self._discarded.is_set() and not self._readers and self._file_made:
            await _in_thread(self._path.unlink, missing_ok=True)


class LogReader:
    """One reader's place in a log.

    Attributes:
        position: Where the next read starts.
    """

    def __init__(self, log: CommandLog) -> None:
        self._log = log
        self._file: int | None = None
        self._open = True
        self.position = 0

    async def read(self, *, end: int | None = None) -> list[Run]:
        """Returns the next runs, neighbours of one stream joined; an empty list where nothing more is there yet.

        Args:
            end: Position at which to stop, an earlier ``size`` of the log.
        """
        end = self._log.size if end is None else end
        if self.position >= end:
            return []
        end = min(end, self.position + _BLOCK)
        if self.position >= self._log._tail_start:
            block = self._log._copy(self.position, end)
        else:
            block = await _in_thread(self._read_file, min(end, self._log._spilled) - self.position)
        runs, used = _parse(memoryview(block))
        self.position += used
        return runs

    def _read_file(self, length: int) -> bytes:
        if self._file is None:
            self._file = os.open(self._log._path, os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._file, length, self.position)

    async def wait(self) -> bool:
        """Waits until there is more to read; returns False at the end of a complete log."""
        await self._log.wait_beyond(self.position)
        return self.position < self._log.size

    async def close(self) -> None:
        """Gives the log free. May be called twice."""
        if not self._open:
            return
        self._open = False
        if self._file is not None:
            os.close(self._file)
            self._file = None
        await self._log._release()


def _parse(block: memoryview) -> tuple[list[Run], int]:
    """Splits a block into runs; returns them and the bytes they took. A record cut by the block's end is left over."""
    pieces: list[tuple[Stream, list[memoryview]]] = []
    position = 0
    last = 0
    while len(block) - position >= _HEADER.size:
        stream, length = _HEADER.unpack_from(block, position)
        if len(block) - position - _HEADER.size < length:
            break
        start = position + _HEADER.size
        position = start + length
        if stream == last:
            pieces[-1][1].append(block[start:position])
        else:
            pieces.append((Stream(stream), [block[start:position]]))
            last = stream
    return [(stream, b"".join(parts)) for stream, parts in pieces], position


async def _in_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Runs a short file operation in a thread; a cancelled caller waits for it, so no descriptor is closed under it."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()
        raise
