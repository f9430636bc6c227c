"""File operations of a box: the server asks, a worker inside the box does, data goes through pipes."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, get_args

from .channel import Channel, socket_pair, whole_number
from .control import AgentControl
from .errors import BoxFileError, BoxLostError, FileErrorKind
from .interface import BoxFiles, FileStat
from .pipes import PipeEnd, PipeReader, PipeWriter, make_pipe

_CHUNK = 64 * 1024
# Each is a small process in the box; a slow download must not keep others from working.
_AT_ONCE = 32
# As many frames of at most a megabyte each; the worker stops itself far below.
_MOST_FRAMES = 256
_BY_NAME: dict[str, FileErrorKind] = {kind: kind for kind in get_args(FileErrorKind)}
_BY_NUMBER: dict[int, FileErrorKind] = {
    1: "access_denied",  # EPERM
    2: "not_found",  # ENOENT
    13: "access_denied",  # EACCES
    17: "exists",  # EEXIST
    20: "not_a_directory",  # ENOTDIR
    21: "is_directory",  # EISDIR
    22: "invalid_path",  # EINVAL
    27: "no_space",  # EFBIG
    28: "no_space",  # ENOSPC
    30: "access_denied",  # EROFS
    36: "invalid_path",  # ENAMETOOLONG
    39: "not_empty",  # ENOTEMPTY
    40: "invalid_path",  # ELOOP
    122: "no_space",  # EDQUOT
}


class SandboxFiles(BoxFiles):
    """The file operations of one box; see ``BoxFiles``.

    Args:
        control: The way to the box's agent.
        pipes: Where open pipe ends are registered.
        workdir: What relative paths resolve against.
        disk: Bytes the box may hold, which one file cannot exceed.
    """

    def __init__(self, control: AgentControl, *, pipes: set[PipeEnd], workdir: str, disk: int) -> None:
        self._control = control
        self._pipes = pipes
        self._workdir = workdir
        self._disk = disk
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def stat(self, path: str) -> FileStat:
        """Describes one file; follows links."""
        return _file_stat(await self._ask("stat", path))

    async def list(self, path: str, *, depth: int = 1) -> Sequence[FileStat]:
        """Describes what is in a directory, ``depth`` levels down, sorted by name in each."""
        entries = await self._entries("list", path, depth=depth)
        return [_file_stat(entry) for entry in entries]

    async def read(self, path: str) -> AsyncIterator[bytes]:
        """Yields the content in chunks of at most 64 KiB."""
        read, write = make_pipe()
        reader = PipeReader(read, register=self._pipes)
        try:
            async with self._operation("read", path, {"path": path}, data=write) as operation:
                await operation.expect("open")
                while chunk := await reader.read(_CHUNK):
                    yield chunk
                await operation.result()
        finally:
            reader.close()

    async def write(self, path: str, chunks: AsyncIterator[bytes]) -> int:
        """Writes a file; returns the number of bytes."""
        read, write = make_pipe()
        writer = PipeWriter(write, register=self._pipes)
        try:
            async with self._operation("write", path, {"path": path}, data=read) as operation:
                await operation.expect("open")
                # The worker hanging up early is no fault of its own: its outcome says why.
                with contextlib.suppress(BrokenPipeError):
                    await self._copy(path, chunks, writer)
                writer.close()
                answer = await operation.result()
                return whole_number(answer.get("size"), low=0, high=1 << 62) or 0
        except BoxFileError:
            # Whoever sends the chunks is to hear of the failure after the last one, not in the middle.
            async for _ in chunks:
                pass
            raise
        finally:
            writer.close()

    async def _copy(self, path: str, chunks: AsyncIterator[bytes], writer: PipeWriter) -> None:
        written = 0
        async for chunk in chunks:
            written += len(chunk)
            if written > self._disk:
                text = f"{path}: more than the sandbox's disk of {self._disk} bytes"
                raise BoxFileError(text, kind="no_space", path=path)
            await writer.write(chunk)

    async def make_directory(self, path: str, *, mode: int = 0o755) -> None:
        """Makes a directory and its parents; one that exists is left as it is."""
        await self._ask("make_directory", path, mode=mode)

    async def delete(self, path: str, *, recursive: bool = False) -> None:
        """Deletes a file or, with ``recursive``, a directory with everything in it."""
        await self._ask("delete", path, recursive=recursive)

    async def move(self, source: str, destination: str) -> None:
        """Renames; copies where a rename is not possible."""
        await self._ask_about(source, "move", source=source, destination=destination)

    async def find(self, path: str, pattern: str) -> Sequence[tuple[str, int, str]]:
        """Searches text below ``path``; binary files are left out."""
        found = []
        for entry in await self._entries("find", path, pattern=pattern):
            if not (isinstance(entry, list) and len(entry) == 3):
                raise BoxLostError("the box sent a match that is none")
            found.append((str(entry[0]), whole_number(entry[1], low=0, high=1 << 62) or 0, str(entry[2])))
        return found

    async def search(self, path: str, pattern: str) -> Sequence[str]:
        """Searches names below ``path``."""
        return [str(entry) for entry in await self._entries("search", path, pattern=pattern)]

    async def replace(self, path: str, pattern: str, replacement: str) -> None:
        """Replaces every occurrence of a literal text in one file."""
        await self._ask("replace", path, pattern=pattern, replacement=replacement)

    async def set_permissions(
        self, path: str, *, mode: int | None = None, owner: str | None = None, group: str | None = None
    ) -> None:
        """Changes the mode; a box has one user, so owner and group can only be what they are."""
        await self._ask("set_permissions", path, mode=mode, owner=owner, group=group)

    async def _ask(self, operation: str, path: str, **arguments: Any) -> dict[str, Any]:
        return await self._ask_about(path, operation, path=path, **arguments)

    async def _ask_about(self, about: str, operation: str, **arguments: Any) -> dict[str, Any]:
        async with self._operation(operation, about, arguments) as running:
            return await running.result()

    async def _entries(self, operation: str, path: str, **arguments: Any) -> Sequence[Any]:
        async with self._operation(operation, path, {"path": path, **arguments}) as running:
            await running.result()
            return running.entries

    @asynccontextmanager
    async def _operation(
        self, operation: str, about: str, arguments: dict[str, Any], *, data: int | None = None
    ) -> AsyncIterator[_Operation]:
        """Starts a worker; hanging up on it (leaving early) ends it."""
        try:
            for value in arguments.values():
                if isinstance(value, str) and "\0" in value:
                    raise BoxFileError(f"{about!r}: contains a NUL character", kind="invalid_path", path=about)
            if not about:
                raise BoxFileError("the path is empty", kind="invalid_path", path=about)
            async with self._slots:
                mine, theirs = socket_pair()
                channel = Channel(mine)
                try:
                    with theirs:
                        message = {
                            "do": "file",
                            "operation": operation,
                            "arguments": arguments,
                            "directory": self._workdir,
                        }
                        passed = [theirs.fileno()] if data is None else [theirs.fileno(), data]
                        await self._control.tell(message, descriptors=passed)
                    if data is not None:
                        os.close(data)
                        data = None
                    yield _Operation(channel, about)
                finally:
                    channel.close()
        finally:
            if data is not None:
                os.close(data)


class _Operation:
    """A worker that is running."""

    def __init__(self, channel: Channel, path: str) -> None:
        self._channel = channel
        self._path = path
        self.entries: list[Any] = []
        self._frames = 0

    async def expect(self, word: str) -> None:
        """Waits for a message with ``word``; raises what the worker reports instead."""
        if word not in await self._next():
            raise BoxLostError("the box answered out of turn")

    async def result(self) -> dict[str, Any]:
        """Waits for the outcome, collecting entries on the way."""
        while True:
            message = await self._next()
            answer = message.get("ok")
            if isinstance(answer, dict):
                return answer
            entries = message.get("entries")
            self._frames += 1
            if not isinstance(entries, list) or self._frames > _MOST_FRAMES:
                raise BoxLostError("the box sent entries without end")
            self.entries.extend(entries)

    async def _next(self) -> dict[str, Any]:
        message = await self._channel.receive()
        if message is None:
            raise BoxFileError(f"{self._path}: the worker in the sandbox has ended", kind="failed", path=self._path)
        if "kind" in message or "failed" in message:
            number = whole_number(message.get("failed"), low=0, high=4095)
            named = str(message.get("kind"))
            kind = _BY_NAME.get(named, "failed") if number is None else _BY_NUMBER.get(number, "failed")
            raise BoxFileError(f"{self._path}: {str(message.get('text', ''))[:500]}", kind=kind, path=self._path)
        return message


def _file_stat(entry: object) -> FileStat:
    if not isinstance(entry, dict):
        raise BoxLostError("the box described a file by something that is no description")
    numbers = {key: whole_number(entry.get(key), low=0, high=1 << 63) or 0 for key in ("size", "mode", "uid", "gid")}
    mtime = entry.get("mtime")
    return FileStat(
        name=str(entry.get("name", "")),
        path=str(entry.get("path", "")),
        is_dir=entry.get("is_dir") is True,
        mtime=float(mtime) if isinstance(mtime, (int, float)) else 0.0,
        **numbers,
    )
