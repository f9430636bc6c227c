"""Whatever way a log is cut, repeated or broken off: the same text, in order, each character once, and no secret."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from daytona._utils import stream as sdk_stream
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.local.toolbox.framing import Stream, frames
from sandbox.streaming import MASK, OutputCollector, ReplayFilter, SecretMask
from tests.conftest import run_apart

# Marker bytes, characters of several bytes, broken ones and a lonely U+FFFD: every kind of collision is met often.
_payloads = st.lists(
    st.sampled_from(
        [b"\x01", b"\x01\x01\x01", b"\x02", b"\x02\x02\x02", b"a\n", "\u65e5".encode(), b"\xff", b"\xf0\x9f"]
    ),
    min_size=1,
    max_size=12,
).map(b"".join)
_runs = st.lists(st.tuples(st.sampled_from(list(Stream)), _payloads), min_size=1, max_size=12)
_cuts = st.lists(st.integers(min_value=0, max_value=400), max_size=6)


class BrokenError(Exception):
    """The connection is gone."""


async def connection(
    messages: Sequence[bytes], filters: tuple[ReplayFilter, ...], texts: list[str], cut: int | None
) -> None:
    """One connection through the SDK's demultiplexer; it breaks after ``cut`` bytes, be it within a message."""
    queue: Iterator[bytes] = iter(messages)
    left = cut

    async def receive() -> bytes | None:
        nonlocal left
        message = next(queue, None)
        if left is None:
            return message
        if message is None or left == 0:
            raise BrokenError
        message = message[:left]
        left -= len(message)
        return message

    def taker(stream: int) -> Callable[[str], None]:
        def take(text: str) -> None:
            texts[stream] += filters[stream].take(text)

        return take

    for one in filters:
        one.begin()
    await sdk_stream._std_demux_loop(receive, taker(0), taker(1))


@settings(max_examples=400, deadline=None)
@given(runs=_runs, cuts=_cuts)
def test_a_log_cut_anywhere_any_number_of_times_is_assembled_exactly(
    runs: list[tuple[Stream, bytes]], cuts: list[int]
) -> None:
    messages = list(frames(runs))
    wanted = [
        b"".join(payload for stream, payload in runs if stream is one).decode("utf-8", "replace") for one in Stream
    ]
    filters = (ReplayFilter(), ReplayFilter())
    texts = ["", ""]

    async def follow() -> None:
        for cut in cuts:
            with contextlib.suppress(BrokenError):
                await connection(messages, filters, texts, cut)
            assert [text.startswith(got) for text, got in zip(wanted, texts, strict=True)] == [True, True]
        await connection(messages, filters, texts, None)

    run_apart(follow())
    assert [text + one.finish() for text, one in zip(texts, filters, strict=True)] == wanted
    assert [one.delivered for one in filters] == [len(text) for text in wanted]


@given(pieces=st.lists(st.text(max_size=30), max_size=30), head=st.integers(4, 40), tail=st.integers(4, 40))
def test_head_and_tail_are_true_and_the_count_is_exact(pieces: list[str], head: int, tail: int) -> None:
    collector = OutputCollector(head=head, tail=tail)
    for piece in pieces:
        collector.add(piece)
    text = "".join(pieces)
    output = collector.output
    assert output.total_bytes == len(text.encode())
    assert output.truncated == (output.head + output.tail != text)
    assert text.startswith(output.head)
    assert text.endswith(output.tail)
    assert len(output.head.encode()) <= head
    assert len(output.tail.encode()) <= tail


@given(
    secrets=st.lists(st.text("ab", min_size=4, max_size=7), min_size=1, max_size=3),
    pieces=st.lists(st.text("abc", max_size=9), max_size=12),
)
def test_every_character_of_a_secret_is_masked_and_no_other(secrets: list[str], pieces: list[str]) -> None:
    text = "".join(pieces)
    hidden = [False] * len(text)
    for secret in secrets:
        for start in range(len(text)):
            if text.startswith(secret, start):
                hidden[start : start + len(secret)] = [True] * len(secret)
    mask = SecretMask(secrets)
    shown = "".join(map(mask.take, pieces)) + mask.finish()
    assert shown.replace(MASK, "") == "".join(
        character for character, secret in zip(text, hidden, strict=True) if not secret
    )
    assert shown == mask.whole(text)
