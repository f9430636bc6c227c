"""What would explain a difference: the rule that would accept it. Hints never change a verdict."""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from typing import Any, Final

from sandbox.comparison.names import Names
from sandbox.comparison.rules import ComparisonRules, DateRules, NameRule, Precision
from sandbox.comparison.scalars import Scalars

_NUMERIC: Final = Scalars(ComparisonRules(numeric_text=True))
_DATES: Final = (
    (Scalars(ComparisonRules(dates=DateRules())), "the same date, written differently (rule dates)"),
    (Scalars(ComparisonRules(dates=DateRules(naive="utc"))), "the same time in UTC (rule dates.naive)"),
    (Scalars(ComparisonRules(dates=DateRules(naive="utc", midnight=True))), "the same day (rule dates.midnight)"),
    (
        Scalars(ComparisonRules(dates=DateRules(naive="utc", midnight=True, precision=Precision.SECOND))),
        "the same second (rule dates.precision)",
    ),
)
_WORDS: Final = Names(ComparisonRules(names=NameRule.WORDS))
_CLOSE: Final = Decimal("1e-6")


def scalar_hint(left: Any, right: Any) -> str | None:
    """Returns what would explain the difference between two scalars, in a few words."""
    if left is None or right is None or isinstance(left, bool) or isinstance(right, bool):
        return None
    one, other = _NUMERIC.form(left), _NUMERIC.form(right)
    if isinstance(one, str) and isinstance(other, str) and one[0] == other[0] == "n":
        text = isinstance(left, str) or isinstance(right, str)
        if one == other:
            return "equal as numbers (rule numeric_text)"
        if Scalars(ComparisonRules(relative_tolerance=_CLOSE)).close(one, other):
            return "nearly equal numbers (rule relative_tolerance)" + (" and text (rule numeric_text)" if text else "")
        return None
    if not (isinstance(left, str) and isinstance(right, str)) or max(len(left), len(right)) > 10_000:
        return None
    for scalars, words in _DATES:
        moment = scalars.form(left)
        if isinstance(moment, str) and moment[0] == "d" and moment == scalars.form(right):
            return words
    if left.strip() == right.strip():
        return "equal apart from white space at the ends"
    if left.casefold() == right.casefold():
        return "equal apart from upper and lower case"
    if unicodedata.normalize("NFC", left) == unicodedata.normalize("NFC", right):
        return "the same text in another Unicode normalisation"
    return None


def respelt_hint(left: list[str], right: list[str]) -> str:
    """Returns a hint about names that only one side has but that are spellings of one; empty when there are none.

    Args:
        left: Names that only the source has.
        right: Names that only the target has.
    """
    if not left or not right:
        return ""
    others = {_WORDS.of(key): key for key in right}
    pairs = [f"{key} / {others[name]}" for key in left if (name := _WORDS.of(key)) in others]
    more = ", …" if len(pairs) > 3 else ""
    return f"names in another spelling: {', '.join(pairs[:3])}{more} (rule names=words)" if pairs else ""
