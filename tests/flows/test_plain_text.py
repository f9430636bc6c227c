"""Untrusted text in logs and artifacts."""

from __future__ import annotations

import pytest

from flows.plain_text import HeadAndTail, cell, escaped, fenced, marked, printable, shortened


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m text", "red text"),
        ("\x1b]0;a title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("line\r\nnext\r\n", "line\nnext\n"),
        ("10%\r50%\r100%\ndone", "100%\ndone"),
        ("a\x00b\x07c", "a\ufffdb\ufffdc"),
        ("50%\r", "50%"),
        ("two\r\r\nlines", "two\nlines"),
        ("\x1b(B\x1b7reset\x1bc\x1b=", "reset"),
        ("\x1bPdevice\x1b\\after", "after"),
        ("\x1b]0;no end\nnext", "\nnext"),
        ("\u202egnp.exe", "\ufffdgnp.exe"),
        ("half \ud800 character", "half \ufffd character"),
        ("tab\tstays", "tab\tstays"),
        ("žluťoučký 日本語 😀", "žluťoučký 日本語 😀"),
    ],
)
def test_printable_is_what_a_terminal_shows_in_the_end(raw: str, shown: str) -> None:
    assert printable(raw) == shown


@pytest.mark.parametrize("text", ["plain", "```\nfake end\n```", "a ````` b", ""])
def test_a_fence_cannot_be_ended_by_the_text(text: str) -> None:
    block = fenced(text)
    fence = block.split("text\n")[0]
    assert set(fence) == {"`"}
    assert block.endswith(f"\n{fence}")
    assert fence not in text


def test_escaped_text_is_one_line_of_plain_words() -> None:
    assert escaped("<script>alert(1)</script>\n# title") == "&lt;script&gt;alert\\(1\\)&lt;/script&gt; \\# title"
    assert escaped("see https://x.org and www.x.org") == "see https\\:\u2060//x.org and www\u2060.x.org"
    assert escaped("a | b") == "a \\| b"
    assert escaped("[x](javascript:y)") == "\\[x\\]\\(javascript\\:y\\)"


def test_shortened_text_says_that_it_is() -> None:
    assert shortened("abcdef", characters=6) == "abcdef"
    assert shortened("abcdefg", characters=6) == "abcde…"


def test_head_and_tail_stay_within_their_size_and_count_what_is_gone() -> None:
    kept = HeadAndTail(head=10, tail=10)
    for number in range(1000):
        kept.add(f"{number:04}")
    assert kept.total == 4000
    assert kept.text() == "0000000100\n[… 3980 characters left out …]\n9709980999"


def test_a_short_text_is_kept_whole() -> None:
    kept = HeadAndTail(head=10, tail=10)
    for piece in ("hello ", "wide ", "world"):
        kept.add(piece)
    assert kept.text() == "hello wide world"


def test_a_long_line_that_was_printed_over_takes_no_time() -> None:
    # An expression that tried each place of the line anew would take minutes.
    assert printable("50%\r" + "x" * 1_000_000 + "\n" + "\x1b[" * 100_000 + "\r" * 100_000) != ""


def test_a_cell_is_read_as_it_is_and_interpreted_nowhere() -> None:
    assert cell("a < b && c > d", characters=50) == "a < b && c > d"
    assert cell("List<String> x[0](y)", characters=50) == "List<\u2060String> x[0]\u2060(y)"
    assert cell("![i](u) [a][b] [r]: u", characters=50) == "!\u2060[i]\u2060(u) [a]\u2060[b] [r]\u2060: u"
    assert cell("http://x WWW.x", characters=50) == "http:\u2060//x WWW\u2060.x"
    assert cell("y" * 1000, characters=10) == "y" * 9 + "…"
    assert cell("\x1b[31m" * 1000 + "end", characters=10).endswith("…")


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("2026-01-05", "2026-01-06", ("2026-01-⟦05⟧", "2026-01-⟦06⟧")),
        ('"a b c"', '"a x y c"', ('"a ⟦b⟧ c"', '"a ⟦x y⟧ c"')),
        ("a b", "a b b", ("a ⟦b⟧", "a ⟦b b⟧")),
        ('{"total": 1.5}', '{"total": 1.85}', ('{"total": ⟦1.5⟧}', '{"total": ⟦1.85⟧}')),
        ("1.5", "1.85", ("1.5", "1.85")),
        ("aa", "aaa", ("aa", "aaa")),
        ("1", "2", ("1", "2")),
        ("same", "same", ("same", "same")),
    ],
)
def test_the_part_that_differs_is_marked(one: str, other: str, both: tuple[str, str]) -> None:
    assert marked(one, other) == both
