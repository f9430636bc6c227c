"""How the agent of a container reaches the server: a socket in a directory that only this container is shown."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path

INSIDE = "/run/.control"
_NAME = "agent"
PATH_INSIDE = f"{INSIDE}/{_NAME}"


class AgentSocket:
    """Listens for one agent.

    The socket lets everybody connect, but on the host nobody passes through the directory above, and in the container
    nothing runs before the agent has connected; then it is gone.

    Args:
        directory: Of the box; mounted in its container each time that it starts, so it stays.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        directory.chmod(0o755)
        self._directory = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._unlink()
            # A socket's path may have 107 bytes; this one is short however long the directory's is.
            self._listener.bind(f"/proc/self/fd/{self._directory}/{_NAME}")
            os.chmod(_NAME, 0o666, dir_fd=self._directory)  # noqa: S103 - see above
            self._listener.listen(1)
            self._listener.setblocking(False)
        except BaseException:
            self.close()
            raise

    async def accept(self) -> socket.socket:
        """Waits for the agent."""
        connection, _ = await asyncio.get_running_loop().sock_accept(self._listener)
        return connection

    def close(self) -> None:
        """Listens no more and takes the socket away. May be called twice."""
        self._listener.close()
        if self._directory >= 0:
            self._unlink()
            os.close(self._directory)
            self._directory = -1

    def _unlink(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_NAME, dir_fd=self._directory)
