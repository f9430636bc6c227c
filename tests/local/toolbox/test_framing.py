"""Frames against the demultiplexer of the unmodified SDK: nothing a program prints is lost, moved or made up."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Iterator, Sequence

import pytest
from daytona._utils import stream as sdk_stream
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.local.toolbox.framing import FRAME_LIMIT, Run, Stream, frames, marked

# Mostly marker bytes, with a few that are not, so that every kind of collision is met often.
_hostile = st.lists(st.sampled_from([1, 1, 2, 2, 0, 10, 97, 255]), min_size=1, max_size=40).map(bytes)
_runs = st.lists(st.tuples(st.sampled_from(list(Stream)), _hostile), max_size=30)


async def demultiplex(chunks: Sequence[bytes], *, end: bool = True) -> tuple[bytes, bytes]:
    """Feeds chunks to the SDK; with ``end=False`` tells what had been handed over before the close."""
    out: list[str] = []
    err: list[str] = []
    seen: list[tuple[bytes, bytes]] = []
    queue: Iterator[bytes] = iter(chunks)

    def joined() -> tuple[bytes, bytes]:
        return "".join(out).encode("latin-1"), "".join(err).encode("latin-1")

    async def receive() -> bytes | None:
        chunk = next(queue, None)
        if chunk is None:
            seen.append(joined())
        return chunk

    await sdk_stream._std_demux_loop(receive, out.append, err.append)
    return joined() if end else seen[0]


@pytest.fixture(autouse=True)
def _bytes_as_latin1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the SDK decode byte for byte, so that a comparison sees bytes rather than replacement characters."""
    real = codecs.getincrementaldecoder

    class Codecs:
        @staticmethod
        def getincrementaldecoder(_name: str) -> object:
            return real("latin-1")

    monkeypatch.setattr(sdk_stream, "codecs", Codecs)


def sent(runs: Sequence[Run]) -> tuple[bytes, bytes]:
    return tuple(b"".join(payload for stream, payload in runs if stream is wanted) for wanted in Stream)  # type: ignore[return-value]


@given(_runs)
@settings(max_examples=600, deadline=None)
def test_every_payload_survives(runs: list[Run]) -> None:
    assert asyncio.run(demultiplex(list(frames(runs)))) == sent(runs)


@given(_runs)
@settings(max_examples=300, deadline=None)
def test_nothing_is_held_back_until_the_close(runs: list[Run]) -> None:
    assert asyncio.run(demultiplex(list(frames(runs)), end=False)) == sent(runs)


@given(_runs, st.lists(st.integers(min_value=1, max_value=7), min_size=1, max_size=20))
@settings(max_examples=300, deadline=None)
def test_payloads_survive_any_cut_on_the_way(runs: list[Run], cuts: list[int]) -> None:
    wire = b"".join(frames(runs))
    pieces = []
    position = turn = 0
    while position < len(wire):
        step = cuts[turn % len(cuts)]
        pieces.append(wire[position : position + step])
        position, turn = position + step, turn + 1
    assert asyncio.run(demultiplex(pieces)) == sent(runs)


@given(_runs)
@settings(max_examples=200, deadline=None)
def test_marked_runs_may_be_joined_without_frames(runs: list[Run]) -> None:
    assert asyncio.run(demultiplex([b"".join(marked(run) for run in runs)])) == sent(runs)


@pytest.mark.parametrize("payload", [b"\x01" * 70_000, b"\x02" * 70_000, b"\x01\x02" * 70_000, b"x" * 200_000])
@pytest.mark.parametrize("stream", list(Stream))
def test_frames_stay_below_their_limit(stream: Stream, payload: bytes) -> None:
    made = list(frames([(stream, payload)]))
    assert max(map(len, made)) <= FRAME_LIMIT
    assert asyncio.run(demultiplex(made)) == sent([(stream, payload)])


def test_one_marker_for_a_long_run_of_one_stream() -> None:
    payload = b"line\n" * 10_000
    made = list(frames([(Stream.STDOUT, payload)]))
    assert len(made) == 1
    assert made[0].count(b"\x01\x01\x01") == 1


def test_short_runs_share_frames_but_not_too_many() -> None:
    runs = [(stream, b"line\n") for _ in range(500) for stream in Stream]
    made = list(frames(runs))
    assert len(made) < len(runs) / 8
    assert max(frame.count(b"\x01\x01\x01") + frame.count(b"\x02\x02\x02") for frame in made) <= 17
