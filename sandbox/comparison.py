"""Strict comparison of a result with what was expected.

Equal means: the same kind of value in the same place. Numbers are equal by value, so ``1`` equals ``1.0``; ``true``
never equals ``1``. The order of list elements counts, the order of keys does not. Nothing is rounded.
"""

from __future__ import annotations

from typing import Any, Final

import orjson
from pydantic import JsonValue

from sandbox.json_text import json_path
from sandbox.models import Comparison, Difference

MAX_DIFFERENCES: Final = 20
"""Differences that are listed; the others are counted."""

MAX_VALUE_BYTES: Final = 2000
"""Values in a difference are shortened to a text beyond this size."""


def compare(expected: JsonValue, actual: JsonValue) -> Comparison:
    """Compares a result with its expectation.

    Args:
        expected: What it must be.
        actual: What it is.

    Returns:
        The first 20 differences in document order and the number of all.
    """
    found: list[Difference] = []
    total = 0

    def differ(path: str, left: Any, right: Any, kind: str) -> None:
        nonlocal total
        total += 1
        if total <= MAX_DIFFERENCES:
            found.append(Difference(path=path, expected=_short(left), actual=_short(right), kind=kind))

    # A stack instead of recursion: depth is the program's to choose. Paths are built only where they are needed.
    stack: list[tuple[tuple[Any, ...], Any, Any]] = [((), expected, actual)]
    while stack:
        place, left, right = stack.pop()
        kind = _kind(left)
        if kind != _kind(right):
            differ(_path(place), left, right, _ABSENCE.get(id(right)) or _ABSENCE.get(id(left)) or "type")
        elif kind == "object":
            keys = [*left, *(key for key in right if key not in left)]
            stack.extend(
                ((place, key), left.get(key, _NOT_EXPECTED), right.get(key, _NOT_FOUND)) for key in reversed(keys)
            )
        elif kind == "array":
            if len(left) != len(right):
                differ(_path(place), len(left), len(right), "length")
            stack.extend(
                ((place, index), left[index], right[index]) for index in range(min(len(left), len(right)) - 1, -1, -1)
            )
        elif left != right:
            differ(_path(place), left, right, "value")
    return Comparison(equal=not total, total_differences=total, differences=tuple(found))


_NOT_FOUND: Final = object()
_NOT_EXPECTED: Final = object()
_ABSENCE: Final = {id(_NOT_FOUND): "missing", id(_NOT_EXPECTED): "unexpected"}


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else _ABSENCE[id(value)]


def _path(place: tuple[Any, ...]) -> str:
    keys: list[str | int] = []
    while place:
        place, key = place
        keys.append(key)
    path = "$"
    for key in reversed(keys):
        path = json_path(path, key)
    return path


def _short(value: Any) -> JsonValue:
    if id(value) in _ABSENCE:
        return None
    if isinstance(value, (str, list, dict)):
        text = value.encode("utf-8", "replace") if isinstance(value, str) else orjson.dumps(value)
        if len(text) > MAX_VALUE_BYTES:
            return f"{text[:MAX_VALUE_BYTES].decode('utf-8', 'replace')}… ({len(text)} bytes)"
    result: JsonValue = value
    return result
