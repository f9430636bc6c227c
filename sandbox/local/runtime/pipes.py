"""The server's ends of the pipes of a process: output flows from program to server through the kernel alone."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os

# The kernel lends an unprivileged user 64 MB for all pipes together (pipe(7), pipe-user-pages-soft); with a quarter of
# a megabyte each, a hundred commands can run before it falls back to small pipes. Larger ones are not faster.
PIPE_BYTES = 256 * 1024


def make_pipe() -> tuple[int, int]:
    """Returns (read end, write end), which a shell in the box may open again by ``/proc/<pid>/fd``."""
    read, write = os.pipe2(os.O_CLOEXEC)
    # Over the user's share the pipe keeps its small size and works.
    with contextlib.suppress(OSError):
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    # The box's uid may differ from the server's; opening a pipe by /proc asks for its mode.
    os.fchmod(read, 0o666)
    return read, write


class PipeEnd:
    """One end of a pipe that belongs to the server.

    Args:
        descriptor: Owned by this object from now on.
        register: Holds every open end, so that the runtime can close what its callers have forgotten.
    """

    def __init__(self, descriptor: int, *, register: set[PipeEnd]) -> None:
        os.set_blocking(descriptor, False)
        register.add(self)
        self._register = register
        self._descriptor = descriptor
        self._waiter: asyncio.Future[None] | None = None

    @property
    def closed(self) -> bool:
        """True once this end has been closed."""
        return self._descriptor < 0

    def close(self) -> None:
        """Closes this end; whoever waits for it is woken. May be called twice."""
        if self._descriptor < 0:
            return
        if self._waiter is not None:
            self._stop_waiting()
            if not self._waiter.done():
                self._waiter.set_result(None)
        self._register.discard(self)
        os.close(self._descriptor)
        self._descriptor = -1

    async def _ready(self, *, writing: bool) -> None:
        if self._waiter is not None:
            raise RuntimeError("two tasks use one end of a pipe at once")
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()

        def tell() -> None:
            if not waiter.done():
                waiter.set_result(None)

        (loop.add_writer if writing else loop.add_reader)(self._descriptor, tell)
        try:
            await waiter
        finally:
            if self._descriptor >= 0:
                self._stop_waiting()
            self._waiter = None

    def _stop_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._descriptor)
        loop.remove_writer(self._descriptor)


class PipeReader(PipeEnd):
    """The read end of a process's stdout or stderr; see ``OutputPipe``."""

    async def read(self, limit: int = 65536) -> bytes:
        """Returns 1 to ``limit`` bytes as soon as there are any, ``b""`` at the end or once closed."""
        while self._descriptor >= 0:
            try:
                data = os.read(self._descriptor, limit)
            except BlockingIOError:
                await self._ready(writing=False)
                continue
            if not data:
                self.close()
            return data
        return b""


class PipeWriter(PipeEnd):
    """The write end of a process's stdin; see ``InputPipe``."""

    async def write(self, data: bytes) -> None:
        """Writes everything.

        Raises:
            BrokenPipeError: Nobody reads any more, or this end has been closed.
        """
        rest = memoryview(data)
        while rest:
            if self._descriptor < 0:
                raise BrokenPipeError("the input has been closed")
            try:
                written = os.write(self._descriptor, rest)
            except BlockingIOError:
                await self._ready(writing=True)
                continue
            rest = rest[written:]
