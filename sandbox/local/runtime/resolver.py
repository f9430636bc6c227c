"""Names to addresses, for the proxies of all boxes, with threads of its own.

A box decides which names are looked up and so how long it takes; it must not be able to use up the threads that the
server needs for other work.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor

from .policy import IPAddress

_THREADS = 8
_SECONDS = 15.0


class Resolver:
    """Looks names up by the host's own means."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="resolver")

    async def addresses(self, host: str, port: int) -> list[IPAddress]:
        """Returns the addresses of ``host``, in the host's order of preference.

        Raises:
            OSError: There are none.
            TimeoutError: It took too long.
        """
        async with asyncio.timeout(_SECONDS):
            found = await asyncio.get_running_loop().run_in_executor(self._threads, _look_up, host, port)
        return [ipaddress.ip_address(text.partition("%")[0]) for text in found]

    def close(self) -> None:
        """Gives the threads back; one that still waits for an answer ends when it has it."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> list[str]:
    try:
        return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except UnicodeError as error:
        raise OSError(f"{host!r} is no host name") from error
