"""Scalars in canonical form: equal under the rules means equal as text.

Each form begins with a letter that says what it is: ``s`` text, ``n`` number, ``d`` date. Being one form per value is
what lets rows be hashed; tolerance is not of this kind and is looked at apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, Final

from sandbox.comparison.rules import ComparisonRules, DateRules, Precision

_NUMERAL: Final = re.compile(r"-?(?:0|[1-9]\d{0,999})(?:\.\d{1,999})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_DATE: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:(Z|z)|([+-])(\d\d):?(\d\d))?(?:\[[\w/+-]{1,64}\])?)?",
    re.ASCII,
)
_NANOSECONDS: Final = 1_000_000_000
_UNITS: Final = {
    Precision.NANOSECOND: 1,
    Precision.MICROSECOND: 1_000,
    Precision.MILLISECOND: 1_000_000,
    Precision.SECOND: _NANOSECONDS,
    Precision.MINUTE: 60 * _NANOSECONDS,
    Precision.DAY: 86_400 * _NANOSECONDS,
}
LONGEST: Final = 2_100
"""Characters a text may have to be looked at as a number or date."""

Form = str | bool | None

# Exact for all numerals we accept: no digit is rounded away before the tolerance is looked at.
_EXACT: Final = Context(prec=6_000, Emax=999_999, Emin=-999_999)


def number(value: int | float) -> str:
    """Returns the canonical form of a JSON number."""
    if value.__class__ is int:
        return f"n{value}"
    text = repr(value)
    if text.endswith(".0"):
        return "n" + (text[:-2] if text != "-0.0" else "0")
    return "n" + (text if "e" not in text else _plain(Decimal(text)))


def _itself(value: bool | None) -> bool | None:
    return value


def _plain(value: Decimal) -> str:
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _numeral(text: str) -> str | None:
    if not _NUMERAL.fullmatch(text):
        return None
    if "e" in text or "E" in text:
        return "n" + _plain(Decimal(text))
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "n0" if text == "-0" else "n" + text


def _moment(text: str, rules: DateRules) -> str | None:
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zulu, sign, off_hours, off_minutes = found.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return None
    if hour is None and not rules.midnight:
        return f"d{days}"
    if hour is not None and (int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59):
        return None
    seconds = days * 86_400 + int(hour or 0) * 3_600 + int(minute or 0) * 60 + int(second or 0)
    aware = bool(zulu or sign)
    if sign:
        if int(off_hours) > 18 or int(off_minutes) > 59:
            return None
        offset = int(off_hours) * 3_600 + int(off_minutes) * 60
        seconds += -offset if sign == "+" else offset
    unit = _UNITS[rules.precision]
    moment = (seconds * _NANOSECONDS + int((fraction or "0").ljust(9, "0"))) // unit * unit
    return f"d{moment}{'Z' if aware or rules.naive == 'utc' else 'L'}"


class Scalars:
    """Canonical forms and tolerance under the rules.

    Attributes:
        by_class: The function that makes the form of a scalar, by its class; containers have none.
    """

    def __init__(self, rules: ComparisonRules) -> None:
        dates = rules.dates
        self._moment = None if dates is None else lru_cache(maxsize=16_384)(lambda text: _moment(text, dates))
        self._numeric_text = rules.numeric_text
        self._absolute = rules.absolute_tolerance
        self._relative = rules.relative_tolerance
        plain = dates is None and not rules.numeric_text
        self.by_class: dict[type, Callable[[Any], Form]] = {
            str: "s".__add__ if plain else self._text,
            int: number,
            float: number,
            bool: _itself,
            type(None): _itself,
        }

    def form(self, value: str | int | float | bool | None) -> Form:
        """Returns the canonical form of a scalar; null and booleans stand for themselves."""
        return self.by_class[value.__class__](value)

    def _text(self, value: str) -> str:
        """A text that may be a number or a date: both begin with a digit or a minus sign."""
        if value and value[0] in "0123456789-" and len(value) <= LONGEST:
            if self._numeric_text and (form := _numeral(value)) is not None:
                return form
            if self._moment is not None and value[4:5] == "-" and (form := self._moment(value)) is not None:
                return form
        return "s" + value

    def close(self, left: str, right: str) -> str | None:
        """Returns the rule by which two numbers in canonical form are equal within a tolerance, if there is one."""
        one, other = Decimal(left[1:]), Decimal(right[1:])
        difference = _EXACT.abs(_EXACT.subtract(one, other))
        if difference <= self._absolute:
            return "absolute_tolerance"
        larger = max(_EXACT.abs(one), _EXACT.abs(other))
        if self._relative and difference <= _EXACT.multiply(self._relative, larger):
            return "relative_tolerance"
        return None
