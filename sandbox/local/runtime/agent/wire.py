"""Frames on the sockets between server and box: four bytes of length, then JSON; descriptors beside the first byte."""

from __future__ import annotations

import sys
from _json import encode_basestring_ascii, make_scanner
from _socket import MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOL_SOCKET, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_FRAME = 64 * 1024 * 1024
MOST_DESCRIPTORS = 16


class _Context:
    """What the C scanner of ``json`` asks for; the defaults of ``json.JSONDecoder``."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


_scan = make_scanner(_Context())  # type: ignore[arg-type]


def encode(value: Any) -> str:
    """Returns ``value`` as JSON; lone surrogates (names that are not UTF-8) are escaped, not refused."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ",".join([encode_basestring_ascii(key) + ":" + encode(item) for key, item in value.items()]) + "}"
    return "[" + ",".join([encode(item) for item in value]) + "]"


def decode(data: bytes) -> Any:
    """Returns the value of a JSON text that the server wrote (no white space before it)."""
    return _scan(data.decode("utf-8", "surrogatepass"), 0)[0]


class Wire:
    """One end of a stream socket; sends block, ``receive`` takes what is there."""

    def __init__(self, descriptor: int) -> None:
        self.socket = socket(fileno=descriptor)
        self._buffer = bytearray()
        self._descriptors: list[int] = []

    def fileno(self) -> int:
        """Returns the descriptor, for poll."""
        return self.socket.fileno()

    def close(self) -> None:
        """Hangs up."""
        self.socket.close()

    def send(self, message: dict[str, Any], *, descriptors: tuple[int, ...] = ()) -> None:
        """Sends one frame whole."""
        payload = encode(message).encode("ascii")
        frame = len(payload).to_bytes(4, "big") + payload
        if descriptors:
            rights = b"".join([descriptor.to_bytes(4, sys.byteorder) for descriptor in descriptors])
            frame = frame[self.socket.sendmsg([frame], [(SOL_SOCKET, SCM_RIGHTS, rights)]) :]
        if frame:
            self.socket.sendall(frame)

    def receive(self) -> list[tuple[dict[str, Any], list[int]]] | None:
        """Reads once; returns the complete frames with their descriptors, ``None`` at the end of the stream."""
        data, ancillary, _, _ = self.socket.recvmsg(65536, 4 * MOST_DESCRIPTORS + 16, MSG_CMSG_CLOEXEC)
        for level, kind, rights in ancillary:
            if level == SOL_SOCKET and kind == SCM_RIGHTS:
                for at in range(0, len(rights) - 3, 4):
                    self._descriptors.append(int.from_bytes(rights[at : at + 4], sys.byteorder))
        if not data:
            return None
        self._buffer += data
        frames = []
        while len(self._buffer) >= 4:
            length = int.from_bytes(self._buffer[:4], "big")
            if len(self._buffer) < 4 + length:
                break
            message = decode(bytes(self._buffer[4 : 4 + length]))
            del self._buffer[: 4 + length]
            count = message.get("descriptors", 0)
            frames.append((message, self._descriptors[:count]))
            del self._descriptors[:count]
        return frames
