"""Identifiers that may differ between the sides, one to one and everywhere the same way.

The mapping is learnt while rows are compared: two identifiers that meet for the first time belong together from then
on, and a later contradiction is a difference. Rows of a multiset that only their identifiers tell apart wait until
everything else is compared. They are then paired by what is known of their identifiers: partners already mapped, and
otherwise the company an identifier keeps (its colour, refined as in graph isomorphism). Where several pairings remain
possible, one is taken. A mapping that is accepted is always consistent; in contrived data one that exists may be
missed and reported as a difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

from sandbox.comparison.canonical import Ids
from sandbox.comparison.multiset import Group

REFINEMENTS: Final = 3
ROUNDS: Final = 30

Colours = dict[tuple[int, str], bytes]
Row = tuple[int, Ids]


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
    left_colours, right_colours = _refined(groups, ids)

    def left_key(identifiers: Ids, *, coloured: bool) -> tuple[object, ...]:
        return tuple(
            ids.partner(kind, text) or (None, left_colours[kind, text] if coloured else b"")
            for kind, text in identifiers
        )

    def right_key(identifiers: Ids, *, coloured: bool) -> tuple[object, ...]:
        return tuple(
            text if ids.is_taken(kind, text) else (None, right_colours[kind, text] if coloured else b"")
            for kind, text in identifiers
        )

    def one_round(*, coloured: bool, guess: bool) -> bool:
        """Pairs what is certain, or one of several possible pairings; returns whether anything was."""
        progress = False
        for group in groups:
            waiting: dict[tuple[object, ...], list[Row]] = defaultdict(list)
            for row in group.right:
                waiting[right_key(row[1], coloured=coloured)].append(row)
            arriving: dict[tuple[object, ...], list[Row]] = defaultdict(list)
            for row in group.left:
                arriving[left_key(row[1], coloured=coloured)].append(row)
            paired_left: set[int] = set()
            paired_right: set[int] = set()
            for key, lefts in arriving.items():
                rights = waiting.get(key, [])
                certain = not any(isinstance(part, tuple) for part in key) or (len(lefts) == len(rights) == 1)
                if not rights or not (certain or guess):
                    continue
                for left, right in zip(lefts, rights, strict=False):
                    # An earlier pair may have decided about these.
                    if left_key(left[1], coloured=coloured) != right_key(right[1], coloured=coloured):
                        continue
                    if not all(ids.meet(kind, a, b) for (kind, a), (_, b) in zip(left[1], right[1], strict=True)):
                        continue
                    pair(group, left[0], right[0])
                    paired_left.add(left[0])
                    paired_right.add(right[0])
                    progress = True
            group.left = [row for row in group.left if row[0] not in paired_left]
            group.right = [row for row in group.right if row[0] not in paired_right]
        return progress

    for coloured in (True, False):
        for _ in range(ROUNDS):
            if not one_round(coloured=coloured, guess=False) and not one_round(coloured=coloured, guess=True):
                break


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
    for _ in range(REFINEMENTS):
        left = _refine(left, [(group.digest, group.left) for group in groups])
        right = _refine(right, [(group.digest, group.right) for group in groups])
    return left, right


def _refine(colours: Colours, groups: Sequence[tuple[bytes, list[Row]]]) -> Colours:
    company: dict[tuple[int, str], list[bytes]] = defaultdict(list)
    for digest, rows in groups:
        for _, identifiers in rows:
            row = blake2b(digest, digest_size=16)
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
