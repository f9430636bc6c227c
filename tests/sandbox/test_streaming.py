from __future__ import annotations

import random

import pytest

from sandbox.secret_forms import forms
from sandbox.streaming import MASK, OutputCollector, ReplayFilter, SecretMask


def pieces(text: str, seed: int, longest: int = 40) -> list[str]:
    chance = random.Random(seed)
    cut = []
    while text:
        size = chance.randint(1, longest)
        cut.append(text[:size])
        text = text[size:]
    return cut


@pytest.mark.parametrize("seed", range(5))
def test_short_output_is_kept_whole(seed: int) -> None:
    text = "žluťoučký 日本語 😀\n" * 20
    collector = OutputCollector(head=100, tail=10_000)
    for piece in pieces(text, seed):
        collector.add(piece)
    output = collector.output
    assert output.text == text
    assert output.total_bytes == len(text.encode())
    assert not output.truncated


@pytest.mark.parametrize("seed", range(20))
def test_long_output_keeps_head_and_tail_cut_between_characters(seed: int) -> None:
    text = "".join(f"{number} é日😀\n" for number in range(500))
    collector = OutputCollector(head=64, tail=200)
    for piece in pieces(text, seed):
        collector.add(piece)
    output = collector.output
    assert output.truncated
    assert output.total_bytes == len(text.encode())
    assert text.startswith(output.head)
    assert text.endswith(output.tail)
    assert 60 < len(output.head.encode()) <= 64
    assert 196 < len(output.tail.encode()) <= 200
    left_out = output.total_bytes - len(output.head.encode()) - len(output.tail.encode())
    assert f"{left_out} bytes left out" in output.text


def test_a_gigabyte_stays_within_bounds() -> None:
    collector = OutputCollector()
    piece = "x" * (4 * 1024 * 1024)
    for _ in range(256):
        collector.add(piece)
    kept = sum(map(len, collector._head)) + sum(map(len, collector._tail))
    assert collector.total_bytes == 2**30
    assert kept < 5 * 1024 * 1024
    assert len(collector.output.tail) == 192 * 1024


def test_many_small_pieces_stay_within_bounds() -> None:
    collector = OutputCollector()
    for number in range(200_000):
        collector.add(f"{number}\n")
    assert len(collector._tail) <= 257
    assert collector.output.tail.endswith("199998\n199999\n")


@pytest.mark.parametrize("seed", range(30))
def test_replays_are_skipped_and_broken_characters_wait_for_their_rest(seed: int) -> None:
    text = "aé日😀\ufffdz\n" * 50
    data = text.encode()
    chance = random.Random(seed)
    filter_ = ReplayFilter()
    got = ""
    for _ in range(6):
        filter_.begin()
        end = chance.randint(0, len(data))
        # What the SDK delivers over a stream that breaks after `end` bytes: the unfinished character becomes U+FFFD.
        for piece in pieces(data[:end].decode("utf-8", "replace"), seed, longest=15):
            got += filter_.take(piece)
        assert text.startswith(got)
    filter_.begin()
    for piece in pieces(text, seed):
        got += filter_.take(piece)
    got += filter_.finish()
    assert got == text
    assert filter_.delivered == len(text)


def test_a_replacement_character_at_the_proper_end_is_delivered() -> None:
    filter_ = ReplayFilter()
    filter_.begin()
    assert filter_.take("x\ufffd") == "x"
    assert filter_.finish() == "\ufffd"


@pytest.mark.parametrize("seed", range(20))
def test_secrets_are_masked_wherever_the_stream_is_cut(seed: int) -> None:
    secrets = ["hunter22", "hunter2200-long", "pass\nword"]
    text = "a hunter22 b hunter2200-long c pass\nword d hunter2x hunter"
    mask = SecretMask(secrets)
    shown = "".join(mask.take(piece) for piece in pieces(text, seed, longest=4)) + mask.finish()
    assert not any(secret in shown for secret in secrets)
    assert shown.endswith("d hunter2x hunter")
    assert shown.startswith(f"a {MASK}")


def test_short_values_are_not_masked_and_json_is() -> None:
    mask = SecretMask(["abc", "longsecret"])
    assert mask.take("abc") == "abc"
    assert mask.value({"k longsecret": ["x longsecret", 1, None]}) == {f"k {MASK}": [f"x {MASK}", 1, None]}


@pytest.mark.parametrize(
    "shown",
    [
        'p"w&ä+🎉\\n',
        r"p\"w&ä+🎉\\n",
        r"p\"w&\u00e4+\ud83c\udf89\\n",
        r"p\u0022w\u0026\u00E4\u002B\uD83C\uDF89\\n",
        r"p\"w\u0026ä+🎉\\n",
        "p%22w%26%C3%A4%2B%F0%9F%8E%89%5Cn",
    ],
    ids=["plain", "jackson", "python", "dotnet", "gson", "url"],
)
def test_secrets_are_masked_as_json_and_urls_spell_them(shown: str) -> None:
    mask = SecretMask(['p"w&ä+🎉\\n'])
    assert mask.whole(f"<{shown}>") == f"<{MASK}>"
    assert mask.take(f"<{shown[:3]}") + mask.take(f"{shown[3:]}>") + mask.finish() == f"<{MASK}>"


def test_any_secret_has_forms() -> None:
    assert SecretMask(["\udcff\0\n x"]).whole("a \udcff\0\n x b") == f"a {MASK} b"
    assert {"p%20w%2B", "p+w%2B"} <= forms("p w+")


def test_long_lines_of_a_secret_are_masked_alone() -> None:
    mask = SecretMask(["-- BEGIN --\n  0123456789abcdef\nend\n"])
    assert mask.whole("key: 0123456789abcdef end") == f"key: {MASK} end"


def test_secrets_that_overlap_are_masked_as_one() -> None:
    mask = SecretMask(["user:pass", "pass@host"])
    assert mask.whole("user:pass@host/") == f"{MASK}/"
    assert mask.take("user:pa") + mask.take("ss@ho") + mask.take("st/") + mask.finish() == f"{MASK}/"
