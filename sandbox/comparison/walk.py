"""Walks over two values at once and finds where they differ under the rules.

Depth is the program's to choose, so there is no recursion: a stack of iterators, in document order. Pairs that are
equal as they stand, nearly all in the usual case, are passed over inside the iterators; paths are built only where
something is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from sandbox.comparison.canonical import Canonical, TooDeepError
from sandbox.comparison.findings import ABSENT, Absent, Findings, Place, Rule
from sandbox.comparison.hints import respelt_hint, scalar_hint
from sandbox.comparison.identifiers import IdMap, settle
from sandbox.comparison.json_paths import DEAD, ELEMENT, Marks, PathStates
from sandbox.comparison.multiset import Effort, Group, match
from sandbox.comparison.names import REMEMBERED, Names
from sandbox.comparison.nearest import nearest_pairs
from sandbox.comparison.rules import STRICT, ComparisonRules
from sandbox.comparison.scalars import Scalars

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})

Pair = tuple[Any, Any, Any, Any, int]
"""A pair that may differ: key in the source, key in the target, both values, state of the place."""


@dataclass(slots=True)
class Plan:
    """How the members of two objects answer each other; the same for all objects with these keys.

    Attributes:
        members: Key in the source, key in the target (``None`` where there is none), state of the place, and whether a
            path says something about it.
        renamed: The first pair of keys that differ, by the rule that makes them one.
        counts: How many such pairs there are.
        respelt: Keys without a partner that are spellings of one name, in words; empty when there are none.
    """

    members: list[tuple[str | None, str | None, int, bool]]
    renamed: dict[str, tuple[str, str]]
    counts: dict[str, int]
    respelt: str = ""


@dataclass(slots=True, kw_only=True)
class Waiting:
    """Rows of a multiset that wait until all other rows have been compared."""

    left: list[Any]
    right: list[Any]
    places: tuple[Place, Place]
    state: int
    rule: str
    findings: Findings


class Walker:
    """Compares values under the rules; one for both results, since identifiers are mapped across queries.

    Args:
        rules: The rules.
        unordered: Paths of arrays whose order does not count, besides those of the rules.
    """

    def __init__(self, rules: ComparisonRules, *, unordered: tuple[str, ...] = ()) -> None:
        self.names = Names(rules)
        self.scalars = Scalars(rules)
        self.states = PathStates(
            [
                *((path, _ignored) for path in rules.ignored),
                *((path, _unordered(Rule.ROWS)) for path in unordered),
                *((path, _unordered(Rule.UNORDERED)) for path in rules.unordered),
                *((path, _id(index)) for index, rule in enumerate(rules.ids) for path in rule.paths),
            ],
            self.names.of,
        )
        self.canonical = Canonical(rules, names=self.names, states=self.states, scalars=self.scalars)
        self._rules = rules
        self._forms = self.scalars.by_class
        self._tolerant = rules.has_tolerance
        self._ids = IdMap(len(rules.ids))
        self._mapped = [rule.treat == "map" for rule in rules.ids]
        self._plans: dict[tuple[int, tuple[str, ...], tuple[str, ...]], Plan] = {}
        self._groups: list[tuple[Group, Waiting]] = []
        self._trial = False
        self._effort = Effort()

    def walk(self, left: Any, right: Any, *, places: tuple[Place, Place], state: int, findings: Findings) -> None:
        """Compares two values and records what is found.

        Args:
            left: The source's value, or ``ABSENT``.
            right: The target's.
            places: Where they are.
            state: Of the place.
            findings: Takes differences and accepted ones.
        """
        inside = self._visit(left, right, places, state, findings)
        stack = [] if inside is None else [(inside, places)]
        while stack:
            pairs, (source, target) = stack[-1]
            for left_key, right_key, one, other, step in pairs:
                here = (
                    (source, right_key if left_key is None else left_key),
                    (target, left_key if right_key is None else right_key),
                )
                inside = self._visit(one, other, here, step, findings)
                if inside is not None:
                    stack.append((inside, here))
                    break
                if self._trial and findings.total:
                    return
            else:
                stack.pop()

    def equal(self, left: Any, right: Any, *, state: int) -> bool:
        """Returns whether two values are equal under the rules, identifiers apart; nothing is recorded."""
        trial, self._trial = self._trial, True
        try:
            findings = Findings(limit=0)
            self.walk(left, right, places=((), ()), state=state, findings=findings)
            return not findings.total
        finally:
            self._trial = trial

    def settle(self) -> None:
        """Compares what has waited for identifiers; call when everything else is compared."""
        while self._groups:  # rows may hold arrays whose rows wait in turn
            groups, self._groups = self._groups, []
            self._settle(groups)

    def _settle(self, waiting: Sequence[tuple[Group, Waiting]]) -> None:
        owners = {id(group): owner for group, owner in waiting}

        def pair(group: Group, left: int, right: int) -> None:
            owner = owners[id(group)]
            if left != right:
                owner.findings.accept(owner.rule, owner.places, (ABSENT, ABSENT))
            places = ((owner.places[0], left), (owner.places[1], right))
            self.walk(owner.left[left], owner.right[right], places=places, state=owner.state, findings=owner.findings)

        settle([group for group, _ in waiting], self._ids, pair=pair)
        hint = "rows that differ in identifiers alone have no partner that fits the others"
        for group, owner in waiting:
            for index, _ in group.left:
                places = ((owner.places[0], index), owner.places[1])
                owner.findings.differ(places, (owner.left[index], ABSENT), "missing", hint)
            for index, _ in group.right:
                places = (owner.places[0], (owner.places[1], index))
                owner.findings.differ(places, (ABSENT, owner.right[index]), "unexpected", hint)

    def _visit(
        self, left: Any, right: Any, places: tuple[Place, Place], state: int, findings: Findings
    ) -> Iterator[Pair] | None:
        """Compares one pair; returns an iterator over the pairs inside it, if there are any to be compared."""
        marks = self.states.marks(state)
        if marks.ignored:
            if not _identical(left, right):
                findings.accept(Rule.IGNORED, places, (left, right))
            return None
        if isinstance(left, Absent) or isinstance(right, Absent):
            if self._rules.null_is_absent and (left is None or right is None):
                findings.accept(Rule.NULL_IS_ABSENT, places, (left, right))
            else:
                null = left is None or right is None
                hint = "null on one side, absent on the other (rule null_is_absent)" if null else None
                findings.differ(places, (left, right), "missing" if isinstance(right, Absent) else "unexpected", hint)
            return None
        if marks.id_rule is not None and _is_id(left) and _is_id(right):
            self._identifier(left, right, places, marks.id_rule, findings)
            return None
        if left.__class__ is dict and right.__class__ is dict:
            return self._object(left, right, places, state, findings)
        if left.__class__ is list and right.__class__ is list:
            return self._array(left, right, places, state, marks, findings)
        self._scalar(left, right, places, findings)
        return None

    def _scalar(self, left: Any, right: Any, places: tuple[Place, Place], findings: Findings) -> None:
        kinds = _KINDS[left.__class__], _KINDS[right.__class__]
        if kinds[0] == kinds[1] and left == right:
            return
        make_one, make_other = self._forms.get(left.__class__), self._forms.get(right.__class__)
        if make_one is None or make_other is None:
            findings.differ(places, (left, right), "type")
            return
        one, other = make_one(left), make_other(right)
        if one.__class__ is str and other.__class__ is str:
            if one == other:
                findings.accept(Rule.DATES if one[0] == "d" else Rule.NUMERIC_TEXT, places, (left, right))
                return
            if self._tolerant and one[0] == "n" and other[0] == "n" and (rule := self.scalars.close(one, other)):
                findings.accept(rule, places, (left, right))
                if "string" in kinds:
                    findings.accept(Rule.NUMERIC_TEXT, places, (left, right))
                return
        hint = None if findings.full else scalar_hint(left, right)
        findings.differ(places, (left, right), "value" if kinds[0] == kinds[1] else "type", hint)

    def _identifier(self, left: Any, right: Any, places: tuple[Place, Place], kind: int, findings: Findings) -> None:
        one, other = str(self.scalars.form(left)), str(self.scalars.form(right))
        if self._mapped[kind] and not self._trial and not self._ids.meet(kind, one, other):
            partner = self._ids.partner(kind, one)
            hint = (
                f"it stands for {partner[1:]} elsewhere" if partner else "the target's stands for another one elsewhere"
            )
            findings.differ(places, (left, right), "id", hint)
        elif one != other:
            findings.accept(Rule.IDS, places, (left, right))

    def _object(
        self, left: dict[str, Any], right: dict[str, Any], places: tuple[Place, Place], state: int, findings: Findings
    ) -> Iterator[Pair]:
        plan = self._plan(tuple(left), tuple(right), state)
        for rule, keys in plan.renamed.items():
            findings.accept(rule, ((places[0], keys[0]), (places[1], keys[1])), keys, count=plan.counts[rule])
        if plan.respelt:
            findings.hint(plan.respelt)
        return _members(plan.members, left, right)

    def _plan(self, left: tuple[str, ...], right: tuple[str, ...], state: int) -> Plan:
        plan = self._plans.get((state, left, right))
        if plan is not None:
            return plan
        keys_right = dict(zip(self.names.of_all(right), right, strict=True))
        plan = Plan([], {}, {})
        for name, key in zip(self.names.of_all(left), left, strict=True):
            other = keys_right.pop(name, None)
            self._plan_member(plan, name, key, other, state)
        for name, other in keys_right.items():
            self._plan_member(plan, name, None, other, state)
        plan.respelt = respelt_hint(
            [one for one, other, _, _ in plan.members if one is not None and other is None],
            [other for one, other, _, _ in plan.members if one is None and other is not None],
        )
        if len(self._plans) < REMEMBERED:
            self._plans[state, left, right] = plan
        return plan

    def _plan_member(self, plan: Plan, name: str, left: str | None, right: str | None, state: int) -> None:
        step = self.states.step(state, name)
        marks = self.states.marks(step)
        plan.members.append((left, right, step, marks.ignored or marks.id_rule is not None))
        if left is not None and right is not None and left != right and not marks.ignored:
            rule = Rule.NAMES if self.names.spelling(left) == self.names.spelling(right) else Rule.ALIASES
            plan.renamed.setdefault(rule, (left, right))
            plan.counts[rule] = plan.counts.get(rule, 0) + 1

    def _array(
        self,
        left: list[Any],
        right: list[Any],
        places: tuple[Place, Place],
        state: int,
        marks: Marks,
        findings: Findings,
    ) -> Iterator[Pair]:
        if len(left) != len(right):
            findings.differ(places, (len(left), len(right)), "length")
        if marks.unordered:
            try:
                return self._multiset(left, right, places, state, marks.unordered, findings)
            except TooDeepError:
                findings.leave_out("rows nested deeper than 100 levels were compared in order")
        return self._elements(left, right, state)

    def _elements(self, left: list[Any], right: list[Any], state: int) -> Iterator[Pair]:
        states = self.states
        mapping = bool(self._rules.ids)
        step = states.step(state, ELEMENT)
        marked = states.marks(step)
        special = marked.ignored or marked.id_rule is not None
        for index, (one, other) in enumerate(zip(left, right, strict=False)):
            if states.uses_indexes and state != DEAD:
                step = states.step(state, index)
                marked = states.marks(step)
                special = marked.ignored or marked.id_rule is not None
            kind = one.__class__
            if kind is other.__class__ and not special:
                if kind in _SCALARS:
                    if one == other:
                        continue
                elif not mapping and _identical(one, other):
                    continue
            yield index, index, one, other, step

    def _multiset(
        self, left: list[Any], right: list[Any], places: tuple[Place, Place], state: int, rule: str, findings: Findings
    ) -> Iterator[Pair]:
        step = self.states.step(state, ELEMENT)
        close = None
        if self._rules.has_tolerance:

            def close(one: int, other: int) -> bool:
                return self.equal(left[one], right[other], state=step)

        matching = match(
            left,
            right,
            state=step,
            canonical=self.canonical,
            maps_ids=any(self._mapped) and not self._trial,
            compatible=close,
            effort=self._effort,
        )
        if moved := matching.moved:
            findings.accept(rule, places, (ABSENT, ABSENT), count=moved)
        if matching.groups:
            owner = Waiting(left=left, right=right, places=places, state=step, rule=rule, findings=findings)
            self._groups += [(group, owner) for group in matching.groups]
        pairs, alone_left, alone_right = matching.pairs, matching.left, matching.right
        if alone_left and alone_right and not self._trial:
            near = nearest_pairs(left, right, alone_left, alone_right, state=step, canonical=self.canonical)
            pairs = sorted([*pairs, *near])
            alone_left = sorted(set(alone_left) - {one for one, _ in near})
            alone_right = sorted(set(alone_right) - {other for _, other in near})
        for index in alone_left:
            findings.differ(((places[0], index), places[1]), (left[index], ABSENT), "missing")
        for index in alone_right:
            findings.differ((places[0], (places[1], index)), (ABSENT, right[index]), "unexpected")
        return iter([(one, other, left[one], right[other], step) for one, other in pairs])


def strict_walker() -> Walker:
    """Returns a walker that accepts nothing."""
    return Walker(STRICT)


_KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def _members(
    members: list[tuple[str | None, str | None, int, bool]], left: dict[str, Any], right: dict[str, Any]
) -> Iterator[Pair]:
    for left_key, right_key, step, special in members:
        one = ABSENT if left_key is None else left[left_key]
        other = ABSENT if right_key is None else right[right_key]
        kind = one.__class__
        if not special and kind is other.__class__ and kind in _SCALARS and one == other:
            continue
        yield left_key, right_key, one, other, step


def _identical(left: Any, right: Any) -> bool:
    """Returns whether two values are equal byte by byte as JSON, whatever the order of their keys."""
    if left.__class__ is not right.__class__ or isinstance(left, Absent):
        return left is right
    try:
        return orjson.dumps(left, option=orjson.OPT_SORT_KEYS) == orjson.dumps(right, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # nested too deeply for the writer
        return False


def _is_id(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _ignored(marks: Marks) -> None:
    marks.ignored = True


def _unordered(rule: str) -> Callable[[Marks], None]:
    def mark(marks: Marks) -> None:
        marks.unordered = marks.unordered or rule

    return mark


def _id(index: int) -> Callable[[Marks], None]:
    def mark(marks: Marks) -> None:
        if marks.id_rule is None:
            marks.id_rule = index

    return mark
