"""Connection strings of ADO.NET: ``Key=value;Key="a; value"``.

The grammar is that of .NET's ``DbConnectionStringBuilder``: keys without regard to case, values bare or in single or
double quotes, a quote inside doubled, ``==`` for an equals sign in a key. Errors name positions, never contents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

_BARE: Final = re.compile(r"[^\"'=;\s\x00-\x1f\x7f]+")


def parse_connection_string(text: str) -> dict[str, str]:
    """Returns the values by key, keys in lower case without spaces; of two values of a key the last one.

    Raises:
        ValueError: A part has no ``=``, or a quote is not closed.
    """
    values: dict[str, str] = {}
    position, part = 0, 0
    while position < len(text):
        if text[position] in "; \t":
            position += 1
            continue
        part += 1
        key, position = _key(text, position, part)
        value, position = _value(text, position, part)
        values[folded(key)] = value
    return values


def connection_string(pairs: Iterable[tuple[str, str]]) -> str:
    """Returns the connection string of keys and values; those without a value are left out."""
    return ";".join(f"{key.replace('=', '==')}={quoted(value)}" for key, value in pairs if value)


def quoted(value: str) -> str:
    """Returns a value as it stands in a connection string."""
    if _BARE.fullmatch(value):
        return value
    if '"' in value and "'" not in value:
        return f"'{value}'"
    return '"' + value.replace('"', '""') + '"'


def folded(key: str) -> str:
    """Returns a key in the form in which keys are compared."""
    return "".join(key.lower().split())


def first_of(values: Mapping[str, str], *keys: str) -> str:
    """Returns the value of the first key that has one, else an empty text."""
    return next((values[key] for key in keys if values.get(key)), "")


def _key(text: str, position: int, part: int) -> tuple[str, int]:
    key = ""
    while position < len(text) and text[position] != ";":
        if text[position] == "=":
            if text[position + 1 : position + 2] != "=":
                if not key.strip():
                    break
                return key.strip(), position + 1
            position += 1
        key += text[position]
        position += 1
    raise ValueError(
        f"is no connection string: part {part} of it is not `key=value` (a value with `;` in it needs quotes)"
    )


def _value(text: str, position: int, part: int) -> tuple[str, int]:
    while text[position : position + 1].isspace():
        position += 1
    quote = text[position : position + 1]
    if quote not in ("'", '"'):
        end = text.find(";", position)
        end = len(text) if end < 0 else end
        return text[position:end].rstrip(), end
    value = ""
    position += 1
    while position < len(text):
        if text[position] == quote:
            if text[position + 1 : position + 2] != quote:
                end = position + 1
                while text[end : end + 1].isspace():
                    end += 1
                if text[end : end + 1] not in ("", ";"):
                    break
                return value, end
            position += 1
        value += text[position]
        position += 1
    raise ValueError(f"is no connection string: the quotes around the value of part {part} do not end where it ends")
