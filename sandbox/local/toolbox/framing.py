"""Wire frames of a command's log: which bytes belong to stdout and which to stderr.

The log socket carries raw bytes with three-byte markers, ``01 01 01`` before stdout and ``02 02 02`` before stderr,
and the protocol has no escape (``daytona.common.process`` and ``daytona._utils.stream``). The client scans left to
right for the first marker, so a program that prints marker bytes could lose them or move its output to the other
stream. Three rules make every payload survive unchanged; they add markers, which is always allowed, and never touch
the payload:

* a triple inside a payload is cut after its second byte by a marker of the *other* byte (and then by the stream's own
  marker, where the other byte is not already that one);
* a payload that ends in ``01`` or ``02`` is closed by a marker of the other byte, so no payload byte ever touches a
  following marker of its own kind;
* the last payload of a frame is closed by a marker if it has fewer than three bytes, because the client holds back two
  bytes until more arrives.

So each frame stands for itself: it starts with a marker and leaves nothing in the client's buffer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import IntEnum

FRAME_LIMIT = 64 * 1024
"""Most bytes in one frame; the client gives up at 4 MiB (aiohttp's default message limit)."""

PAYLOAD_LIMIT = FRAME_LIMIT - 1024
"""Most bytes of one run in one frame; the rest of ``FRAME_LIMIT`` is room for markers."""

_RUNS_PER_FRAME = 16
_CUTS_PER_FRAME = 16
_DENSE_PAYLOAD = 256


class Stream(IntEnum):
    """An output stream; the value is the byte its marker consists of."""

    STDOUT = 1
    STDERR = 2


Run = tuple[Stream, bytes]
"""Consecutive bytes of one stream, never empty."""

_MARKERS = {stream: bytes([stream]) * 3 for stream in Stream}
_OTHER = {Stream.STDOUT: Stream.STDERR, Stream.STDERR: Stream.STDOUT}
_TRIPLE = re.compile(rb"\x01\x01(?=\x01)|\x02\x02(?=\x02)")
_CUTS = {
    Stream.STDOUT: {
        _MARKERS[Stream.STDOUT][:2]: _MARKERS[Stream.STDOUT][:2] + _MARKERS[Stream.STDERR] + _MARKERS[Stream.STDOUT],
        _MARKERS[Stream.STDERR][:2]: _MARKERS[Stream.STDERR][:2] + _MARKERS[Stream.STDOUT],
    },
    Stream.STDERR: {
        _MARKERS[Stream.STDERR][:2]: _MARKERS[Stream.STDERR][:2] + _MARKERS[Stream.STDOUT] + _MARKERS[Stream.STDERR],
        _MARKERS[Stream.STDOUT][:2]: _MARKERS[Stream.STDOUT][:2] + _MARKERS[Stream.STDERR],
    },
}


def marked(run: Run, *, flush: bool = False) -> bytes:
    """Returns a run with its markers.

    Args:
        run: Stream and bytes.
        flush: Close the run so that the client hands over its last bytes without waiting for more.
    """
    stream, payload = run
    body = payload
    if _triples(payload):
        cuts = _CUTS[stream]
        body = _TRIPLE.sub(lambda pair: cuts[pair[0]], payload)
    last = payload[-1]
    if last in (Stream.STDOUT, Stream.STDERR):
        return _MARKERS[stream] + body + _MARKERS[_OTHER[Stream(last)]]
    if flush and (len(payload) < 3 or body is not payload):
        return _MARKERS[stream] + body + _MARKERS[stream]
    return _MARKERS[stream] + body


def frames(runs: Iterable[Run]) -> Iterator[bytes]:
    """Yields the frames that carry ``runs``, each at most ``FRAME_LIMIT`` bytes.

    Short runs share a frame, but only a few of them, and payloads dense with marker bytes get small frames of their
    own: the client's work grows with the square of the markers in a frame (measured: 20,000 marked lines in one frame
    held its event loop for 2 s, in 20,000 frames for 0.2 s).
    """
    waiting: list[Run] = []
    size = 0
    for stream, payload in runs:
        dense = _triples(payload) > _CUTS_PER_FRAME
        step = _DENSE_PAYLOAD if dense else PAYLOAD_LIMIT
        for start in range(0, len(payload), step):
            piece = payload[start : start + step] if len(payload) > step else payload
            if waiting and (dense or size + len(piece) > PAYLOAD_LIMIT or len(waiting) == _RUNS_PER_FRAME):
                yield _frame(waiting)
                waiting, size = [], 0
            waiting.append((stream, piece))
            size += len(piece)
    if waiting:
        yield _frame(waiting)


def _frame(runs: list[Run]) -> bytes:
    if len(runs) == 1:
        return marked(runs[0], flush=True)
    return b"".join(marked(run) for run in runs[:-1]) + marked(runs[-1], flush=True)


def _triples(payload: bytes) -> int:
    count = 0
    for marker in _MARKERS.values():
        # The search for one byte is fifty times faster than that for three, and most output holds neither.
        if marker[:1] in payload:
            count += payload.count(marker)
    return count
