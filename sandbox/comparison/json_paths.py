"""Paths with wildcards, and which of them a place in a document matches.

The language is a part of JSONPath (RFC 9535): ``$`` is the document, ``.name`` or ``["name"]`` a member, ``[3]`` an
element, ``.*`` or ``[*]`` any of either, ``..`` before a name or wildcard any depth. ``$..orderId`` is every member
``orderId``, ``$.orders[*].lines[*].id`` the ids of lines.

All patterns are followed together while a document is walked: a state stands for how far each has come, and the step
from a state by a key is looked up once and remembered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

ANY: Final = None
"""The selector that every key and index matches."""

_STEP: Final = re.compile(
    r"(?P<deep>\.\.)(?:(?P<deep_name>[^\W\d]\w*)|(?P<deep_any>\*)|(?=\[))"
    r"|\.(?:(?P<name>[^\W\d]\w*)|(?P<any>\*))"
    r'|\[(?:(?P<index>0|[1-9]\d*)|(?P<wild>\*)|(?P<quoted>"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'))\]'
)
REMEMBERED_STEPS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path.

    Attributes:
        selector: A name, an index, or ``ANY``.
        deep: Whether any number of steps may lie before it.
    """

    selector: str | int | None
    deep: bool


def parse_path(text: str) -> tuple[Step, ...]:
    """Reads a path.

    Raises:
        ValueError: It is none; the text says where it goes wrong.
    """
    if not text.startswith("$"):
        raise ValueError(f"the path {text!r} must begin with `$`")
    steps: list[Step] = []
    at, deep = 1, False
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise ValueError(
                f"the path {text!r} goes wrong at {text[at : at + 20]!r}; "
                'use .name, ["name"], [3], .*, [*], and `..` for any depth'
            )
        at = found.end()
        name = found["name"] or found["deep_name"]
        if found["deep"] and not name and not found["deep_any"]:
            deep = True
            continue
        selector: str | int | None = name or ANY
        if found["index"]:
            selector = int(found["index"])
        elif found["quoted"]:
            selector = _unquoted(found["quoted"], text)
        steps.append(Step(selector, deep or bool(found["deep"])))
        deep = False
    return tuple(steps)


def _unquoted(quoted: str, path: str) -> str:
    if quoted[0] == "'":
        quoted = '"' + quoted[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'
    try:
        name: str = json.loads(quoted)
    except ValueError:
        raise ValueError(f"the path {path!r} has a name that is no JSON text: {quoted}") from None
    return name


@dataclass(slots=True, kw_only=True)
class Marks:
    """What the patterns say about a place.

    Attributes:
        ignored: It is not compared.
        unordered: It is an array whose order does not count, by the rule of this name.
        id_rule: Index of the rule whose identifier it is.
    """

    ignored: bool = False
    unordered: str | None = None
    id_rule: int | None = None


NO_MARKS: Final = Marks()
DEAD: Final = 0
"""The state of a place that no pattern can match any more, nor anything below it."""

ELEMENT: Final = -1
"""The key of an element whose index does not matter; only wildcards match it."""


@dataclass(slots=True)
class PathStates:
    """All patterns of a comparison, followed together.

    Args:
        patterns: Each with what it says of a place it matches.
        name_of: The canonical form of names; those in the patterns take it too.
    """

    patterns: Sequence[tuple[str, Callable[[Marks], None]]]
    name_of: Callable[[str], str]
    root: int = field(init=False, default=DEAD)
    uses_indexes: bool = field(init=False, default=False)
    _steps: list[tuple[Step, ...]] = field(init=False)
    _numbers: dict[frozenset[tuple[int, int]], int] = field(init=False)
    _positions: list[frozenset[tuple[int, int]]] = field(init=False)
    _marks: list[Marks] = field(init=False)
    _known: dict[tuple[int, str | int], int] = field(init=False)

    def __post_init__(self) -> None:
        self._steps = [
            tuple(
                Step(self.name_of(step.selector), step.deep) if isinstance(step.selector, str) else step
                for step in parse_path(pattern)
            )
            for pattern, _ in self.patterns
        ]
        self.uses_indexes = any(isinstance(step.selector, int) for steps in self._steps for step in steps)
        self._numbers = {frozenset(): DEAD}
        self._positions = [frozenset()]
        self._marks = [NO_MARKS]
        self._known = {}
        self.root = self._number(frozenset((pattern, 0) for pattern in range(len(self._steps))))

    def step(self, state: int, key: str | int) -> int:
        """Returns the state of a member (by its canonical name) or element of the place that has ``state``."""
        if state == DEAD:
            return DEAD
        if key.__class__ is int and not self.uses_indexes:
            key = ELEMENT
        known = self._known.get((state, key))
        if known is None:
            known = self._number(frozenset(self._next(state, key)))
            if len(self._known) < REMEMBERED_STEPS:
                self._known[state, key] = known
        return known

    def both(self, one: int, other: int) -> int:
        """Returns the state of a place that has two paths."""
        return one if one == other else self._number(self._positions[one] | self._positions[other])

    def marks(self, state: int) -> Marks:
        """Returns what the patterns say about a place that has ``state``."""
        return self._marks[state]

    def _next(self, state: int, key: str | int) -> list[tuple[int, int]]:
        reached: list[tuple[int, int]] = []
        for pattern, position in self._positions[state]:
            steps = self._steps[pattern]
            if position == len(steps):
                continue
            step = steps[position]
            if step.deep:
                reached.append((pattern, position))
            if step.selector is ANY or step.selector == key:
                reached.append((pattern, position + 1))
        return reached

    def _number(self, positions: frozenset[tuple[int, int]]) -> int:
        number = self._numbers.get(positions)
        if number is None:
            number = self._numbers[positions] = len(self._positions)
            self._positions.append(positions)
            marks = Marks()
            for pattern, position in sorted(positions):
                if position == len(self._steps[pattern]):
                    self.patterns[pattern][1](marks)
            self._marks.append(marks)
        return number
