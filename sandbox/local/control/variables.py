"""Words and variables of a Dockerfile: quotes, escapes, ``$NAME``, ``${NAME}``, ``${NAME:-default}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Word:
    """Text whose quotes, escapes and variables are still to be resolved."""

    text: str
    escape: str = "\\"


def words(text: str, *, escape: str = "\\") -> list[Word]:
    """Splits at white space outside quotes; the parts keep their quotes."""
    found: list[Word] = []
    current: list[str] = []
    quote = ""
    index = 0
    while index < len(text):
        char = text[index]
        if char == escape and quote != "'" and index + 1 < len(text):
            current.append(text[index : index + 2])
            index += 2
            continue
        if char in "'\"":
            quote = "" if quote == char else quote or char
        if char.isspace() and not quote:
            if current:
                found.append(Word("".join(current), escape))
                current = []
        else:
            current.append(char)
        index += 1
    if current:
        found.append(Word("".join(current), escape))
    return found


def expand(word: Word, values: Mapping[str, str]) -> str:
    """Resolves a word; a variable that is not set is empty.

    Args:
        word: The text.
        values: The variables.
    """
    return _Expansion(word.text, values=values, escape=word.escape).result()


class _Expansion:
    def __init__(self, text: str, *, values: Mapping[str, str], escape: str) -> None:
        self._text = text
        self._values = values
        self._escape = escape
        self._at = 0

    def result(self) -> str:
        text, out, quote = self._text, [], ""
        while self._at < len(text):
            char = text[self._at]
            if char == "'" and quote != '"':
                quote = "" if quote else char
                self._at += 1
            elif quote == "'":
                out.append(char)
                self._at += 1
            elif char == '"':
                quote = "" if quote else char
                self._at += 1
            elif char == self._escape and self._at + 1 < len(text):
                out.append(self._escaped(text[self._at + 1], quoted=bool(quote)))
                self._at += 2
            elif char == "$":
                self._at += 1
                out.append(self._variable())
            else:
                out.append(char)
                self._at += 1
        return "".join(out)

    def _escaped(self, following: str, *, quoted: bool) -> str:
        # Inside double quotes only the characters that are special there can be escaped.
        return following if not quoted or following in f'"${self._escape}' else self._escape + following

    def _variable(self) -> str:
        text = self._text
        if self._at < len(text) and text[self._at] == "{":
            end = _closing(text, self._at)
            if end is not None:
                inside = text[self._at + 1 : end]
                self._at = end + 1
                return self._braced(inside)
        match = _NAME.match(text, self._at)
        if match is None:
            return "$"
        self._at = match.end()
        return self._values.get(match.group(), "")

    def _braced(self, inside: str) -> str:
        match = _NAME.match(inside)
        if match is None:
            return "${" + inside + "}"
        value = self._values.get(match.group())
        rest = inside[match.end() :]
        if not rest:
            return value or ""
        operator = rest[:2] if rest.startswith(":") else rest[:1]
        other = rest[len(operator) :]
        present = value is not None and (value != "" or not operator.startswith(":"))
        if operator in ("-", ":-"):
            return value if present and value is not None else expand(Word(other, self._escape), self._values)
        if operator in ("+", ":+"):
            return expand(Word(other, self._escape), self._values) if present else ""
        return "${" + inside + "}"


def _closing(text: str, opening: int) -> int | None:
    depth = 0
    for index in range(opening, len(text)):
        if text[index] == "{":
            depth += 1
        elif text[index] == "}":
            depth -= 1
            if depth == 0:
                return index
    return None
