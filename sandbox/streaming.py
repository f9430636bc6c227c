"""What a program prints: kept within bounds, taken over from a log stream that may break, with its secrets masked.

All three work on text as the SDK's log stream delivers it: decoded per stream, invalid bytes replaced by U+FFFD.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from pydantic import JsonValue

from sandbox.models import StreamOutput
from sandbox.secret_forms import forms

HEAD_BYTES: Final = 64 * 1024
"""What is kept of the beginning of a stream."""

TAIL_BYTES: Final = 192 * 1024
"""What is kept of the end of a stream."""

UNCERTAIN: Final = 8
"""Most characters that a stream holds back although the log has them; a broken one adds three at most."""

_DOUBTFUL: Final = "\ufffd\x01\x02"
"""A replaced byte, and what the markers between the streams consist of."""


def utf8_size(text: str) -> int:
    """Returns the length of ``text`` in bytes of UTF-8; a replaced byte counts as the three bytes of U+FFFD."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class OutputCollector:
    """Keeps head and tail of one stream and counts all of it; memory stays bounded however much comes.

    Args:
        head: Bytes to keep of the beginning.
        tail: Bytes to keep of the end.
    """

    def __init__(self, *, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self._head_limit = head
        self._tail_limit = tail
        self._head: list[bytes] = []
        self._head_size = 0
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total_bytes = 0
        """Bytes seen so far."""

    def add(self, text: str) -> int:
        """Takes a chunk and returns its size in bytes."""
        data = text.encode("utf-8", "replace")
        self.total_bytes += len(data)
        size = len(data)
        if self._head_size < self._head_limit:
            cut = _boundary(data, self._head_limit - self._head_size)
            if cut < size:
                # The head ends here for good, also when a wide character left a few bytes of it unused.
                self._head_limit = self._head_size + cut
            self._head.append(data[:cut])
            self._head_size += cut
            data = data[cut:]
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
            while self._tail_size - len(self._tail[0]) >= self._tail_limit:
                self._tail_size -= len(self._tail.popleft())
            if len(self._tail) > 256:
                # Many small chunks cost more than their bytes; one string again, now and then.
                joined = b"".join(self._tail)
                self._tail = deque((joined[-2 * self._tail_limit :],))
                self._tail_size = len(self._tail[0])
        return size

    @property
    def output(self) -> StreamOutput:
        """What is kept, decoded; cut only between characters."""
        tail = b"".join(self._tail)
        if len(tail) > self._tail_limit:
            tail = tail[-self._tail_limit :]
        start = 0
        kept_all = self._head_size + len(tail) == self.total_bytes
        if not kept_all:
            while start < len(tail) and start < 4 and tail[start] & 0xC0 == 0x80:
                start += 1
        return StreamOutput(
            head=b"".join(self._head).decode("utf-8", "replace"),
            tail=tail[start:].decode("utf-8", "replace"),
            total_bytes=self.total_bytes,
            truncated=not kept_all,
        )

    @property
    def text(self) -> str:
        """Head and tail as one text, with a line between them that says how much was left out."""
        return self.output.text


def _boundary(data: bytes, limit: int) -> int:
    """Returns the largest cut of ``data`` of at most ``limit`` bytes that splits no character."""
    if len(data) <= limit:
        return len(data)
    while limit > 0 and data[limit] & 0xC0 == 0x80:
        limit -= 1
    return limit


class ReplayFilter:
    """Takes one stream of a log over several connections, each of which replays it from the first character.

    The SDK ends a broken stream by flushing what it has: an unfinished character becomes U+FFFD and a part of a marker
    is handed over as text, although the next connection will deliver what was meant. Such characters at the end of what
    has come are therefore held back until something follows them or the stream has ended properly.
    """

    def __init__(self) -> None:
        self.delivered = 0
        """Characters handed on so far, over all connections."""
        self._skip = 0
        self._held = ""

    def begin(self) -> None:
        """A connection begins: what was handed on before comes again and is skipped."""
        self._skip = self.delivered
        self._held = ""

    def take(self, text: str) -> str:
        """Returns what of a chunk is new and certain."""
        if self._skip:
            skipped = min(self._skip, len(text))
            self._skip -= skipped
            text = text[skipped:]
        if not text:
            return ""
        text = self._held + text
        certain = max(len(text.rstrip(_DOUBTFUL)), len(text) - UNCERTAIN)
        self._held = text[certain:]
        self.delivered += certain
        return text[:certain]

    def finish(self) -> str:
        """The stream has ended properly: returns what was held back."""
        text, self._held = self._held, ""
        self.delivered += len(text)
        return text


MASK: Final = "•••"
"""Stands where a secret stood."""

SHORTEST_SECRET: Final = 4
"""Values shorter than this are not masked: they occur in any text."""


LINE_OF_SECRET: Final = 8
"""Lines of a secret at least this long are masked alone, too: a program may print a key line by line."""


class SecretMask:
    """Masks secrets in one stream, also where a piece of the stream ends in the middle of one, and where two overlap.

    Args:
        secrets: The values, which are masked as JSON and URLs spell them, too, and so are their long lines; those
            shorter than ``SHORTEST_SECRET`` are left alone.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        values = {value for value in secrets if len(value) >= SHORTEST_SECRET}
        lines = {line.strip() for value in values for line in value.splitlines()}
        values |= {line for line in lines if len(line) >= LINE_OF_SECRET}
        spellings = {form for value in values for form in forms(value)}
        self._secrets = sorted(spellings, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._secrets))) if self._secrets else None
        self._held = ""
        self._masked = 0  # characters at the beginning of what is held whose mask has been shown

    def take(self, text: str) -> str:
        """Returns what of a piece can be shown by now."""
        if self._pattern is None:
            return text
        text = self._held + text
        keep = max((_overlap(text, secret) for secret in self._secrets), default=0)
        return self._show(text, len(text) - keep)

    def finish(self) -> str:
        """The stream has ended: returns what was held back."""
        return "" if self._pattern is None else self._show(self._held, len(self._held))

    def _show(self, text: str, end: int) -> str:
        """Returns ``text`` up to ``end`` with its secrets masked, and holds the rest back."""
        shown: list[str] = []
        at = masked = self._masked
        for start, stop in self._found(text, masked):
            if start >= end:
                break
            if start >= at:
                shown += (text[at:start], MASK)
            at = max(at, stop)
        shown.append(text[at:end])
        self._held = text[end:]
        self._masked = max(0, at - end)
        return "".join(shown)

    def _found(self, text: str, masked: int) -> Iterator[tuple[int, int]]:
        """Yields where secrets stand, overlapping ones as one; the first may go on from what is masked already."""
        assert self._pattern is not None
        begin, end = 0, masked
        at = 0
        while found := self._pattern.search(text, at):
            start, stop = found.span()
            at = start + 1
            if start < end:
                end = max(end, stop)
                continue
            if end > 0:
                yield begin, end
            begin, end = start, stop
        if end > 0:
            yield begin, end

    def whole(self, text: str) -> str:
        """Returns a complete text with its secrets masked."""
        if self._pattern is None or self._pattern.search(text) is None:
            return text
        parts: list[str] = []
        at = 0
        for start, stop in self._found(text, 0):
            parts += (text[at:start], MASK)
            at = stop
        return "".join((*parts, text[at:]))

    def value(self, value: JsonValue) -> JsonValue:
        """Returns a JSON value with the secrets in its texts masked."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.whole(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.whole(key): self.value(item) for key, item in value.items()}
        return value


def _overlap(text: str, secret: str) -> int:
    """Returns how many characters at the end of ``text`` begin ``secret`` without finishing it."""
    for size in range(min(len(text), len(secret) - 1), 0, -1):
        if text.endswith(secret[:size]):
            return size
    return 0
