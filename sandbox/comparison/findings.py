"""What a comparison found: differences, bounded, and the rules that accepted one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from pydantic import JsonValue

from sandbox.comparison.verdicts import AcceptedDifference, ResultDifference
from sandbox.json_text import json_path

MAX_DIFFERENCES: Final = 20
"""Differences that are listed; the others are counted."""

MAX_VALUE_BYTES: Final = 2000
"""Values in a difference are shortened to a text beyond this size."""

MAX_HINTS: Final = 5

Place = tuple[Any, ...]
"""Where something is: ``()`` is the document, ``(parent, key)`` a member or element of it."""


class Absent:
    """What stands for the value of a member that is not there."""

    __slots__ = ()


ABSENT: Final = Absent()


class Rule:
    """The rules that accept a difference, by the names they have in ``ComparisonRules``.

    Plain texts: they are dictionary keys in the innermost loop, where members of an enumeration are slow.
    """

    ROWS: Final = "rows"
    UNORDERED: Final = "unordered"
    ABSOLUTE_TOLERANCE: Final = "absolute_tolerance"
    RELATIVE_TOLERANCE: Final = "relative_tolerance"
    NUMERIC_TEXT: Final = "numeric_text"
    DATES: Final = "dates"
    NULL_IS_ABSENT: Final = "null_is_absent"
    NAMES: Final = "names"
    ALIASES: Final = "aliases"
    IDS: Final = "ids"
    IGNORED: Final = "ignored"
    SAMPLES: Final = "samples"


@dataclass(slots=True)
class Findings:
    """Collects what is found in one query.

    Attributes:
        limit: Differences to list; all are counted.
        total: Differences there are.
        differences: The first ones.
        not_compared: What could not be compared, in words.
        hints: What would explain several differences at once.
    """

    limit: int = MAX_DIFFERENCES
    total: int = 0
    differences: list[ResultDifference] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    _accepted: dict[str, AcceptedDifference] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """True when further differences are only counted."""
        return self.total >= self.limit

    def differ(self, places: tuple[Place, Place], values: tuple[Any, Any], kind: str, hint: str | None = None) -> None:
        """Records a difference.

        Args:
            places: In the source and in the target.
            values: There; ``ABSENT`` where there is none.
            kind: See ``ResultDifference``.
            hint: What would explain it.
        """
        self.total += 1
        if self.total <= self.limit:
            source, target = shown(values[0]), shown(values[1])
            paths = _paths(places)
            self.differences.append(
                ResultDifference(
                    path=paths[0], target_path=paths[1], source=source, target=target, kind=kind, hint=hint
                )
            )

    def accept(self, rule: str, places: tuple[Place, Place], values: tuple[Any, Any], *, count: int = 1) -> None:
        """Records that a rule accepted a difference."""
        if rule in self._counts:
            self._counts[rule] += count
            return
        self._counts[rule] = count
        paths = _paths(places)
        self._accepted[rule] = AcceptedDifference(
            rule=rule, count=1, path=paths[0], target_path=paths[1], source=shown(values[0]), target=shown(values[1])
        )

    def leave_out(self, text: str) -> None:
        """Records what could not be compared; once, and at most ``MAX_DIFFERENCES`` of them."""
        if text not in self.not_compared and len(self.not_compared) < MAX_DIFFERENCES:
            self.not_compared.append(text)

    def hint(self, text: str) -> None:
        """Records what would explain differences; once, and at most ``MAX_HINTS`` of them."""
        if text not in self.hints and len(self.hints) < MAX_HINTS:
            self.hints.append(text)

    @property
    def accepted(self) -> tuple[AcceptedDifference, ...]:
        """The rules that accepted something, each with its count and first example."""
        return tuple(
            example.model_copy(update={"count": self._counts[rule]}) for rule, example in sorted(self._accepted.items())
        )


def path_of(place: Place) -> str:
    """Returns a place as a JSON path, such as ``$.orders[3].total``."""
    keys: list[str | int] = []
    while place:
        place, key = place
        keys.append(key)
    path = "$"
    for key in reversed(keys):
        path = json_path(path, key)
    return path


def _paths(places: tuple[Place, Place]) -> tuple[str, str | None]:
    source, target = path_of(places[0]), path_of(places[1])
    return source, None if source == target else target


def shown(value: Any) -> JsonValue:
    """Returns a value as it stands in a report: itself, or the beginning of its text where that is long."""
    if isinstance(value, Absent):
        return None
    if isinstance(value, str):
        text = value.encode("utf-8", "replace")
    elif isinstance(value, (list, dict)):
        try:
            text = orjson.dumps(value)
        except TypeError:
            return "… (nested too deeply to be shown)"
    else:
        result: JsonValue = value
        return result
    if len(text) > MAX_VALUE_BYTES:
        return f"{text[:MAX_VALUE_BYTES].decode('utf-8', 'replace')}… ({len(text)} bytes)"
    short: JsonValue = value
    return short
