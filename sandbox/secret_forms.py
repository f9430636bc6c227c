"""The forms in which programs show a secret without meaning to: in JSON, and in a URL.

Not every form: a program that wants to show what it was given can encode it as it likes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, quote_plus

_SHORT: Final = frozenset("\b\f\n\r\t")
_ESCAPED_BY_DOTNET: Final = frozenset("\"&'+<>`")
_ESCAPED_BY_GSON: Final = re.compile("[<>&='\u2028\u2029]")


def forms(secret: str) -> frozenset[str]:
    """Returns a secret as it is, and as JSON writers and encoders of URLs spell it."""
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    return frozenset((secret, plain, *(form(secret) for form in _FORMS)))


def _ascii(secret: str) -> str:
    return json.dumps(secret)[1:-1]


def _dotnet(secret: str) -> str:
    """As System.Text.Json does with the encoder it has by default (JavaScriptEncoder.Default)."""
    units = secret.encode("utf-16-le", "surrogatepass")
    return "".join(_dotnet_unit(units[at] | units[at + 1] << 8) for at in range(0, len(units), 2))


def _dotnet_unit(unit: int) -> str:
    character = chr(unit)
    if character == "\\" or character in _SHORT:
        return json.dumps(character)[1:-1]
    return f"\\u{unit:04X}" if not 32 <= unit < 127 or character in _ESCAPED_BY_DOTNET else character


def _gson(secret: str) -> str:
    """As Gson does unless told not to mind HTML."""
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    return _ESCAPED_BY_GSON.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)


def _percent(secret: str) -> str:
    return quote(secret, safe="", errors="surrogatepass")


def _form_field(secret: str) -> str:
    return quote_plus(secret, errors="surrogatepass")


_FORMS: Final[tuple[Callable[[str], str], ...]] = (_ascii, _dotnet, _gson, _percent, _form_field)
