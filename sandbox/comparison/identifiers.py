"""Identifiers that may differ between the sides, one to one and everywhere the same way.

The mapping is learnt while rows are compared: two identifiers that meet for the first time belong together from then
on, and a later contradiction is a difference. Rows of a multiset that only their identifiers tell apart wait until
everything else is compared. They are then paired by what is known of their identifiers: partners already mapped, and
otherwise the company an identifier keeps (its colour, refined as in graph isomorphism). Where several pairings remain
possible, one is taken. A mapping that is accepted is always consistent; in contrived data (such as rings of different
length, of nothing but identifiers) one that exists may be missed and reported as a difference.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from sandbox.comparison.canonical import Ids
from sandbox.comparison.multiset import Group

REFINEMENTS: Final = 8

Identifier = tuple[int, str]
Colours = dict[Identifier, bytes]
Row = tuple[int, Ids]
Key = tuple[int, tuple[str | bytes, ...]]
"""Group of a row, and what is known of its identifiers: the partner of one that is mapped, the colour of others."""


@dataclass(slots=True)
class _Waiting:
    """A row that waits for its partner."""

    number: int
    group: int
    index: int
    ids: Ids
    key: Key = (0, ())
    done: bool = False


class IdMap:
    """The mapping of identifiers, by rule.

    Args:
        kinds: How many rules there are.
    """

    def __init__(self, kinds: int) -> None:
        self._forward: list[dict[str, str]] = [{} for _ in range(kinds)]
        self._backward: list[dict[str, str]] = [{} for _ in range(kinds)]

    def meet(self, kind: int, left: str, right: str) -> bool:
        """Returns whether two identifiers belong together; those that nothing is known of do from now on."""
        forward, backward = self._forward[kind], self._backward[kind]
        known = forward.get(left)
        if known is not None or right in backward:
            return known == right
        forward[left], backward[right] = right, left
        return True

    def partner(self, kind: int, left: str) -> str | None:
        """Returns what a left identifier is mapped to."""
        return self._forward[kind].get(left)

    def is_taken(self, kind: int, right: str) -> bool:
        """Returns whether a right identifier has a partner."""
        return right in self._backward[kind]


def settle(groups: Sequence[Group], ids: IdMap, *, pair: Callable[[Group, int, int], None]) -> None:
    """Pairs the rows of all groups as far as identifiers allow.

    Args:
        groups: Paired rows are taken out of them; what stays has no partner.
        ids: What is known; grows.
        pair: Told every pair: group, index of the left row, of the right one.
    """
    colours = _refined(groups, ids)
    for known in (colours, ({}, {})):
        # Where the sides do differ, colours do too and keep apart what else fits; then they are left out of account.
        _Settling(groups, ids, colours=known, pair=pair).run()


class _Settling:
    """One pass: rows whose keys are equal may belong together; a key changes when one of its identifiers is mapped."""

    def __init__(
        self,
        groups: Sequence[Group],
        ids: IdMap,
        *,
        colours: tuple[Colours, Colours],
        pair: Callable[[Group, int, int], None],
    ) -> None:
        self._groups = groups
        self._ids = ids
        self._pair = pair
        self._colours = colours
        self._rows: tuple[list[_Waiting], list[_Waiting]] = ([], [])
        self._rows_of: tuple[dict[Identifier, list[_Waiting]], dict[Identifier, list[_Waiting]]] = ({}, {})
        self._classes: dict[Key, tuple[dict[int, _Waiting], dict[int, _Waiting]]] = {}
        self._changed: deque[Key] = deque()
        for number, group in enumerate(groups):
            for side, rows in enumerate((group.left, group.right)):
                for index, identifiers in rows:
                    row = _Waiting(len(self._rows[side]), number, index, identifiers)
                    self._rows[side].append(row)
                    for identifier in identifiers:
                        self._rows_of[side].setdefault(identifier, []).append(row)
                    self._place(row, side)

    def run(self) -> None:
        """Pairs what is certain; when nothing is, one of several possible pairs, and goes on."""
        possible = deque(self._classes)
        while True:
            while self._changed:
                key = self._changed.popleft()
                if self._is_certain(key):
                    self._pair_first(key)
                else:
                    possible.append(key)
            while possible and not all(self._classes[possible[0]]):
                possible.popleft()
            if not possible:
                break
            self._pair_first(possible[0])
        for group in self._groups:
            group.left.clear()
            group.right.clear()
        for row in self._rows[0]:
            if not row.done:
                self._groups[row.group].left.append((row.index, row.ids))
        for row in self._rows[1]:
            if not row.done:
                self._groups[row.group].right.append((row.index, row.ids))

    def _place(self, row: _Waiting, side: int) -> None:
        row.key = self._key(row, side)
        classes = self._classes.get(row.key)
        if classes is None:
            classes = self._classes[row.key] = ({}, {})
        classes[side][row.number] = row
        self._changed.append(row.key)

    def _key(self, row: _Waiting, side: int) -> Key:
        parts: list[str | bytes] = []
        for kind, text in row.ids:
            partner = self._ids.partner(kind, text) if side == 0 else text if self._ids.is_taken(kind, text) else None
            if partner is None:
                # Where it stands first in the row, so that one identifier twice never answers two.
                first = row.ids.index((kind, text))
                parts.append(self._colours[side].get((kind, text), b"") + first.to_bytes(4))
            else:
                parts.append(partner)
        return row.group, tuple(parts)

    def _is_certain(self, key: Key) -> bool:
        lefts, rights = self._classes[key]
        if not lefts or not rights:
            return False
        return len(lefts) == len(rights) == 1 or all(part.__class__ is str for part in key[1])

    def _pair_first(self, key: Key) -> None:
        """Pairs the first rows of a class and maps their identifiers, which gives other rows new keys."""
        lefts, rights = self._classes[key]
        left, right = lefts.pop(next(iter(lefts))), rights.pop(next(iter(rights)))
        left.done = right.done = True
        self._changed.append(key)
        new = [
            (one, other)
            for one, other in dict.fromkeys(zip(left.ids, right.ids, strict=True))
            if self._ids.partner(*one) is None
        ]
        for one, other in new:
            self._ids.meet(*one, other[1])
        self._pair(self._groups[left.group], left.index, right.index)
        for one, other in new:
            for side, identifier in ((0, one), (1, other)):
                for row in self._rows_of[side][identifier]:
                    if not row.done:
                        self._classes[row.key][side].pop(row.number)
                        self._place(row, side)


def _refined(groups: Sequence[Group], ids: IdMap) -> tuple[Colours, Colours]:
    """Colours identifiers by the rows they are in, both sides alike, so that only those of one colour can be mapped."""
    left: Colours = {}
    right: Colours = {}
    for group in groups:
        for _, identifiers in group.left:
            for kind, text in identifiers:
                partner = ids.partner(kind, text)
                left[kind, text] = b"" if partner is None else b"=" + partner.encode()
        for _, identifiers in group.right:
            for kind, text in identifiers:
                right[kind, text] = b"=" + text.encode() if ids.is_taken(kind, text) else b""
    known = 0
    for _ in range(REFINEMENTS):
        left = _refine(left, [(group.digest, group.left) for group in groups])
        right = _refine(right, [(group.digest, group.right) for group in groups])
        if (now := len(set(left.values()))) == known:
            break
        known = now
    return left, right


def _refine(colours: Colours, groups: Sequence[tuple[bytes, list[Row]]]) -> Colours:
    company: dict[Identifier, list[bytes]] = defaultdict(list)
    for digest, rows in groups:
        for identifiers, times in Counter(tuple(identifiers) for _, identifiers in rows).items():
            row = blake2b(digest + times.to_bytes(4), digest_size=16)
            for identifier in identifiers:
                row.update(len(colours[identifier]).to_bytes(4))
                row.update(colours[identifier])
            seen = row.digest()
            for position, identifier in enumerate(identifiers):
                company[identifier].append(position.to_bytes(4) + seen)
    refined: Colours = {}
    for identifier, places in company.items():
        mixed = blake2b(colours[identifier], digest_size=16)
        for place in sorted(places):
            mixed.update(place)
        refined[identifier] = mixed.digest()
    return refined
