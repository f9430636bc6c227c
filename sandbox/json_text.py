"""JSON that programs wrote, read strictly, with faults told by place: line, column and JSON path.

``orjson`` reads; it is silent about some faults, so they are looked for: a key that appears twice (the last one wins),
an integer beyond 64 bits (becomes an inexact float), depth that later readers do not take. When something is wrong, a
slow scan finds out where.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, Final, NoReturn

import orjson
from pydantic import JsonValue

LARGEST: Final = 2**64 - 1
SMALLEST: Final = -(2**63)
"""The integers that ``orjson`` and most other readers keep exactly."""

DEEPEST: Final = 200
"""Levels of nesting; pydantic takes about 250 in the verdict that carries the value."""

_LONG_DIGITS: Final = re.compile(rb"\d{19}")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_WORD: Final = re.compile(r"[+-]?[A-Za-z_]+")
_NOT_FINITE: Final = frozenset({"NaN", "Infinity", "-Infinity", "+Infinity", "-NaN", "nan", "inf", "-inf"})


class JsonTextError(ValueError):
    """Why a text is no JSON we accept.

    Attributes:
        message: What is wrong, and where: path, line, column.
        incomplete: The text ends in the middle, as one does whose writer was stopped.
    """

    def __init__(self, message: str, *, incomplete: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.incomplete = incomplete


def parse_json(data: bytes) -> JsonValue:
    """Reads a JSON text in UTF-8, with or without byte order mark.

    Raises:
        JsonTextError: Another encoding, no JSON, a key twice, a number that is none or is too large to be exact.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.strip():
        raise JsonTextError("the file is empty", incomplete=True)
    _refuse_other_encodings(data)
    try:
        value: JsonValue = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        _locate(data, error.msg)
    if _LONG_DIGITS.search(data) or _is_deep(data, value) or _has_twins(data):
        _Scan(data.decode()).run()
    return value


def json_path(parent: str, key: str | int) -> str:
    """Returns the path of a member or element, such as ``$.orders[3]["unit price"]``."""
    if isinstance(key, int):
        return f"{parent}[{key}]"
    return f"{parent}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{parent}[{json.dumps(key, ensure_ascii=False)}]"


def _refuse_other_encodings(data: bytes) -> None:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:4]:
        width = (
            "UTF-32" if data[:4] in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE) or data[:3] == b"\0\0\0" else "UTF-16"
        )
        raise JsonTextError(f"the file is {width}, expected UTF-8")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line, column = _place(data[: error.start].decode("utf-8", "replace"))
        cut = error.end == len(data) and "unexpected end" in error.reason
        raise JsonTextError(
            f"the file is not UTF-8: byte 0x{data[error.start]:02x} at line {line}, column {column}", incomplete=cut
        ) from None


def _locate(data: bytes, complaint: str) -> NoReturn:
    text = data.decode()
    _Scan(text).run()
    raise JsonTextError(f"not JSON: {complaint}")


def _is_deep(data: bytes, value: Any) -> bool:
    if data.count(b"[") + data.count(b"{") <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST + 1):
        containers = [one for one in level if isinstance(one, (list, dict))]
        if not containers:
            return False
        level = [item for one in containers for item in (one.values() if isinstance(one, dict) else one)]
    return True


def _has_twins(data: bytes) -> bool:
    twins = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal twins
        twins = twins or len(pairs) != len({key for key, _ in pairs})

    try:
        json.loads(data, object_pairs_hook=look, parse_int=_ignore, parse_float=_ignore)
    except RecursionError:
        return True  # deeper than this reader goes: the scan, which does not recurse, decides
    return twins


def _ignore(_: str) -> None:
    return None


def _place(text: str) -> tuple[int, int]:
    return text.count("\n") + 1, len(text) - text.rfind("\n")


class _Scan:
    """Walks over a text without building its value; raises at the first fault."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def run(self) -> None:
        """Raises ``JsonTextError`` at the first fault; returns if there is none."""
        # One entry for each open bracket: its path, its keys so far (None for a list), its number of elements.
        open_: list[tuple[str, set[str] | None, int]] = []
        path = "$"
        while True:
            self._skip()
            bracket = self._text[self._at : self._at + 1]
            if bracket in ("{", "["):
                if len(open_) == DEEPEST:
                    self._fail(f"nested deeper than {DEEPEST} levels", path)
                self._at += 1
                open_.append((path, set() if bracket == "{" else None, 0))
                self._skip()
                if self._text[self._at : self._at + 1] != ("}" if bracket == "{" else "]"):
                    path = self._next_member(open_)
                    continue
            else:
                self._scalar(path)
            while open_:
                path, keys, _ = open_[-1]
                self._skip()
                here = self._text[self._at : self._at + 1]
                closing = "]" if keys is None else "}"
                if here == closing:
                    self._at += 1
                    open_.pop()
                    continue
                if here != ",":
                    self._fail(f"expected `,` or `{closing}`", path)
                self._at += 1
                self._skip()
                path = self._next_member(open_)
                break
            else:
                self._skip()
                if self._at < len(self._text):
                    self._fail("there is more after the end of the value", "$")
                return

    def _next_member(self, open_: list[tuple[str, set[str] | None, int]]) -> str:
        parent, keys, count = open_[-1]
        open_[-1] = (parent, keys, count + 1)
        if keys is None:
            return json_path(parent, count)
        key = self._string(parent)
        if key in keys:
            self._fail(f"the key {json.dumps(key, ensure_ascii=False)} appears twice", parent)
        keys.add(key)
        self._skip()
        if self._text[self._at : self._at + 1] != ":":
            self._fail("expected `:` after the key", json_path(parent, key))
        self._at += 1
        return json_path(parent, key)

    def _scalar(self, path: str) -> None:
        if self._text.startswith('"', self._at):
            self._string(path)
            return
        number = _NUMBER.match(self._text, self._at)
        if number is not None and not _WORD.match(self._text, number.end()):
            whole = not number.group(1) and not number.group(2)
            if whole and not SMALLEST <= int(number.group()[:400]) <= LARGEST:
                self._fail("the integer does not fit into 64 bits; write it as text", path)
            self._at = number.end()
            return
        word = _WORD.match(self._text, self._at)
        if word is not None and word.group() in ("true", "false", "null"):
            self._at = word.end()
            return
        if word is not None and word.group() in _NOT_FINITE:
            self._fail(f"{word.group()} is no JSON number; write null or text instead", path)
        self._fail("expected a value", path)

    def _string(self, path: str) -> str:
        if not self._text.startswith('"', self._at):
            self._fail('expected a key in `"`', path)
        try:
            value: str
            value, self._at = json.decoder.scanstring(self._text, self._at + 1, True)  # type: ignore[attr-defined]
        except json.JSONDecodeError as error:
            cut = error.msg.startswith("Unterminated")
            self._at = len(self._text) if cut else error.pos
            self._fail("the text has no end" if cut else error.msg, path)
        return value

    def _skip(self) -> None:
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()

    def _fail(self, message: str, path: str) -> NoReturn:
        incomplete = self._at >= len(self._text)
        line, column = _place(self._text[: self._at])
        if len(path) > 200:
            path = f"{path[:100]}…{path[-100:]}"
        what = "the file ends too early" if incomplete else message
        raise JsonTextError(f"{what} at {path} (line {line}, column {column})", incomplete=incomplete)
