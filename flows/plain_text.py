"""Untrusted text made fit for Prefect's logs and markdown artifacts.

Programs print escape sequences, carriage returns, NUL bytes, HTML and fences. Logs are stored in databases that refuse
NUL (PostgreSQL) and shown in browsers; artifacts are rendered as markdown.
"""

from __future__ import annotations

import re
from typing import Final

# CSI; strings such as titles and links, ended by BEL or ST, within one line; other escapes.
_ANSI: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]{0,2048}(?:\x07|\x1b\\)?|[ -/]{1,8}[0-~]|[0-OQ-WYZ\\`-~])"
)
# Controls, halves of characters that no encoder takes, and marks that turn the direction of writing.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_BACKTICKS: Final = re.compile(r"`+")
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]()#+!|~$:@-])")
_ADDRESS: Final = re.compile(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)", re.IGNORECASE)
_TAG_OR_LINK: Final = re.compile(r"(?<=<)(?=[A-Za-z/!?])|(?<=\])(?=[(\[:])|(?<=!)(?=\[)")
_WORD_JOINER: Final = "\u2060"
"""Takes no room and shows nothing."""

_CUT: Final = "…"


def printable(text: str) -> str:
    """Returns the text without terminal codes: what a terminal would show in the end.

    A line that was printed over after a carriage return keeps its last version; other control characters become U+FFFD.
    """
    text = _ANSI.sub("", text).replace("\r\n", "\n")
    if "\r" in text:
        # By hand: an expression for it takes a time that grows with the square of a line's length.
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _CONTROL.sub("\ufffd", text)


def fenced(text: str, *, language: str = "text") -> str:
    """Returns a markdown code block that the text cannot end."""
    longest = max((len(found) for found in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def escaped(text: str) -> str:
    """Returns one line of text in which markdown and HTML find nothing to interpret.

    An invisible character keeps addresses from becoming links that a reader would take for ours.
    """
    line = _ADDRESS.sub(_WORD_JOINER, " ".join(printable(text).split()))
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(r"\\\1", line)


def shortened(text: str, *, characters: int) -> str:
    """Returns at most so many characters, with an ellipsis where something was cut."""
    return text if len(text) <= characters else text[: characters - 1] + _CUT


def cell(text: str, *, characters: int) -> str:
    """Returns text for a table artifact, at most so long, a little more where it had to be made harmless.

    One of Prefect's UIs shows a cell as it is, the other one as markdown with HTML: there, an image would be fetched
    from wherever the text says. An invisible character keeps tags, links, addresses and images from being any.
    """
    shown = shortened(printable(text[: 4 * characters]), characters=characters)
    if len(text) > 4 * characters and not shown.endswith(_CUT):
        shown += _CUT
    return _TAG_OR_LINK.sub(_WORD_JOINER, _ADDRESS.sub(_WORD_JOINER, shown))


def marked(one: str, other: str) -> tuple[str, str]:
    """Returns two texts with brackets around the words in which they differ, where they have others in common."""
    shorter = min(len(one), len(other))
    start = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    end = next((at for at in range(shorter - start) if one[-1 - at] != other[-1 - at]), shorter - start)
    while start and _in_word(one[start - 1]):
        start -= 1
    while end and _in_word(one[-end]):
        end -= 1
    if start + end == 0 or one == other:
        return one, other

    def with_brackets(text: str) -> str:
        return f"{text[:start]}⟦{text[start : len(text) - end]}⟧{text[len(text) - end :]}"

    return with_brackets(one), with_brackets(other)


def _in_word(character: str) -> bool:
    return character.isalnum() or character in "._"


class HeadAndTail:
    """Keeps the beginning and the end of a long text within a fixed amount of memory.

    Args:
        head: Characters kept of the beginning.
        tail: Characters kept of the end.
    """

    def __init__(self, *, head: int, tail: int) -> None:
        self._head_limit = head
        self._tail_limit = tail
        self._head: list[str] = []
        self._head_size = 0
        self._tail: list[str] = []
        self._tail_size = 0
        self.total = 0

    def add(self, text: str) -> None:
        """Appends text."""
        self.total += len(text)
        if room := self._head_limit - self._head_size:
            self._head.append(text[:room])
            self._head_size += len(self._head[-1])
            text = text[room:]
        if text:
            self._tail.append(text)
            self._tail_size += len(text)
            if self._tail_size > 2 * self._tail_limit:
                self._join_tail()

    def _join_tail(self) -> None:
        joined = "".join(self._tail)[-self._tail_limit :]
        self._tail, self._tail_size = [joined], len(joined)

    @property
    def left_out(self) -> int:
        """Characters between head and tail that are gone."""
        return max(0, self.total - self._head_size - self._tail_limit)

    def text(self) -> str:
        """Returns what is kept; a line between head and tail says how much is not."""
        self._join_tail()
        left_out = self.left_out
        middle = f"\n[… {left_out} characters left out …]\n" if left_out else ""
        return "".join((*self._head, middle, *self._tail))
