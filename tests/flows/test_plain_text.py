"""Untrusted text in logs and artifacts."""

from __future__ import annotations

import pytest

from flows.plain_text import HeadAndTail, escaped, fenced, printable, shortened


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m text", "red text"),
        ("\x1b]0;a title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("line\r\nnext\r\n", "line\nnext\n"),
        ("10%\r50%\r100%\ndone", "100%\ndone"),
        ("a\x00b\x07c", "a\ufffdb\ufffdc"),
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
