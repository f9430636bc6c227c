"""Rows in canonical form, so that equal ones have equal digests and a multiset is compared by counting."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import orjson

from sandbox.comparison.json_paths import ELEMENT, PathStates
from sandbox.comparison.names import REMEMBERED, Names
from sandbox.comparison.rules import ComparisonRules
from sandbox.comparison.scalars import Scalars

DEEPEST: Final = 100
"""Levels of nesting that a canonical form may have; deeper rows are compared in order only."""

Ids = list[tuple[int, str]]
"""The identifiers of a row in a fixed order: index of the rule, canonical form."""


class TooDeepError(ValueError):
    """A row is nested deeper than ``DEEPEST``."""


class Canonical:
    """Makes canonical forms under the rules; places that are ignored and identifiers leave no trace in them."""

    def __init__(self, rules: ComparisonRules, *, names: Names, states: PathStates, scalars: Scalars) -> None:
        self._null_is_absent = rules.null_is_absent
        self._names = names
        self._states = states
        self._by_class = scalars.by_class
        self._plans: dict[tuple[int, tuple[str, ...]], list[tuple[str, str, int, bool]]] = {}

    def digest(self, value: Any, state: int, *, numbers: list[str] | None = None, ids: Ids | None = None) -> bytes:
        """Returns 16 bytes that are equal for values that are equal under the rules.

        Args:
            value: A row or anything else.
            state: Of its place.
            numbers: When given, numbers leave no trace in the digest and are appended here.
            ids: When given, identifiers that are mapped are appended here.

        Raises:
            TooDeepError: It is nested too deeply.
        """
        # Members are in the order of their names already.
        form = self._form(value, state, numbers, ids, 0)
        return blake2b(orjson.dumps(form), digest_size=16).digest()

    def _form(self, value: Any, state: int, numbers: list[str] | None, ids: Ids | None, depth: int) -> Any:
        kind = value.__class__
        if kind is dict:
            return self._object(value, state, numbers, ids, depth)
        if kind is list:
            return self._array(value, state, numbers, ids, depth)
        form = self._by_class[kind](value)
        if state and form.__class__ is str:
            rule = self._states.marks(state).id_rule
            if rule is not None:
                if ids is not None:
                    ids.append((rule, form))
                return "i"
        if numbers is not None and form.__class__ is str and form[0] == "n":
            numbers.append(form)
            return "n"
        return form

    def _object(
        self, value: dict[str, Any], state: int, numbers: list[str] | None, ids: Ids | None, depth: int
    ) -> dict[str, Any]:
        if depth >= DEEPEST:
            raise TooDeepError
        made: dict[str, Any] = {}
        by_class = self._by_class
        plain_numbers = numbers is None
        for key, name, step, special in self._plan(value, state):
            member = value[key]
            if member is None and self._null_is_absent:
                continue
            make = by_class.get(member.__class__)
            if make is None or special:
                made[name] = self._form(member, step, numbers, ids, depth + 1)
                continue
            form = make(member)
            if not plain_numbers and form.__class__ is str and form[0] == "n":
                numbers.append(form)  # type: ignore[union-attr]
                form = "n"
            made[name] = form
        return made

    def _plan(self, value: dict[str, Any], state: int) -> list[tuple[str, str, int, bool]]:
        """The members that count, by canonical name: key, name, state, and whether it is an identifier."""
        keys = tuple(value)
        plan = self._plans.get((state, keys))
        if plan is None:
            plan = []
            for name, key in sorted(zip(self._names.of_all(keys), keys, strict=True)):
                step = self._states.step(state, name)
                marks = self._states.marks(step)
                if not marks.ignored:
                    plan.append((key, name, step, marks.id_rule is not None))
            if len(self._plans) < REMEMBERED:
                self._plans[state, keys] = plan
        return plan

    def _array(self, value: list[Any], state: int, numbers: list[str] | None, ids: Ids | None, depth: int) -> list[Any]:
        if depth >= DEEPEST:
            raise TooDeepError
        states = self._states
        if states.marks(state).unordered:
            step = states.step(state, ELEMENT)
            return self._sorted(value, step, numbers, ids, depth)
        made = []
        for index, element in enumerate(value):
            step = states.step(state, index)
            ignored = step and states.marks(step).ignored
            made.append(None if ignored else self._form(element, step, numbers, ids, depth + 1))
        return made

    def _sorted(
        self, value: list[Any], state: int, numbers: list[str] | None, ids: Ids | None, depth: int
    ) -> list[Any]:
        if state and self._states.marks(state).ignored:
            return [None] * len(value)
        forms = []
        for element in value:
            own_numbers: list[str] | None = None if numbers is None else []
            own_ids: Ids | None = None if ids is None else []
            form = self._form(element, state, own_numbers, own_ids, depth + 1)
            text = orjson.dumps(form)
            forms.append((text, own_numbers or [], own_ids or [], form))
        forms.sort(key=lambda item: item[:3])
        for _, own_numbers, own_ids, _ in forms:
            if numbers is not None:
                numbers += own_numbers
            if ids is not None:
                ids += own_ids
        return [form for *_, form in forms]
