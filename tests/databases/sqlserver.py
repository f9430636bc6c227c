"""The first words of SQL Server's protocol: enough for its client to connect, and to be turned away."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.databases.server import Server

_PRELOGIN = 0x12
_REPLY = 0x04
_END_OF_MESSAGE = 1
_HEADER = struct.Struct(">BBHHBB")
"""Type, status, length, process id, number of the packet, window."""
_NO_ENCRYPTION = 2


def _prelogin_reply() -> bytes:
    """Version 16, and that this server cannot encrypt. Each option has its number, its offset and its length."""
    version, encryption = b"\x10\x00\x00\x00\x00\x00", bytes([_NO_ENCRYPTION])
    offset = 2 * 5 + 1
    options = struct.pack(">BHHBHHB", 0, offset, len(version), 1, offset + len(version), len(encryption), 0xFF)
    body = options + version + encryption
    return _HEADER.pack(_REPLY, _END_OF_MESSAGE, _HEADER.size + len(body), 0, 1, 0) + body


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        kind, _, length, *_ = _HEADER.unpack(await reader.readexactly(_HEADER.size))
        await reader.readexactly(length - _HEADER.size)
        if kind == _PRELOGIN:
            writer.write(_prelogin_reply())
            await writer.drain()
        # The client hangs up: it insists on encryption.
        await reader.read()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


@asynccontextmanager
async def unencrypted_sqlserver() -> AsyncIterator[Server]:
    """A server that answers as SQL Server does until it should encrypt."""
    listener = await asyncio.start_server(_serve, "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        yield Server(kind="sqlserver", host="localhost", port=port, user="sa", password="open-sesame")
