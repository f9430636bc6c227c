"""Rows whose order does not count: which row of one side answers which of the other.

Rows equal under the rules have equal digests, so pairing them is counting. Two rules need more:

- *Tolerance* is no equivalence (a ~ b and b ~ c do not make a ~ c). Rows that are alike apart from their numbers are
  sorted by these and paired along the order, columns that agree as a whole first; where that leaves some over, and the
  group has at most ``AUGMENTED_ROWS`` on each side, a maximum matching decides. In larger groups with several noisy
  columns a possible pairing may be missed, never a wrong one made.
- *Mapped identifiers* decide about rows that are otherwise alike; these groups are handed back, see ``identifiers``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final

import orjson

from sandbox.comparison.canonical import Canonical, Ids

AUGMENTED_ROWS: Final = 200
AUGMENTED_PAIRS: Final = 100_000
"""Pairs of rows that are tried for maximum matchings in one comparison of results, so that no data makes it endless."""

Compatible = Callable[[int, int], bool]
"""Whether the left row of an index equals the right row of one under the rules."""


@dataclass(slots=True)
class Effort:
    """What may still be spent on maximum matchings, in pairs of rows."""

    pairs: int = AUGMENTED_PAIRS

    def spend(self, pairs: int) -> bool:
        """Returns whether so many pairs may be tried, and takes them off."""
        allowed = pairs <= self.pairs
        if allowed:
            self.pairs -= pairs
        return allowed


@dataclass(slots=True)
class Group:
    """Rows that are alike but for their identifiers: index and identifiers of each, by side."""

    digest: bytes
    left: list[tuple[int, Ids]] = field(default_factory=list)
    right: list[tuple[int, Ids]] = field(default_factory=list)


@dataclass(slots=True)
class Matching:
    """Which rows answer each other.

    Attributes:
        same: Index pairs of rows that are equal byte by byte.
        pairs: Index pairs of rows that are equal under the rules.
        left: Indexes of rows that only the left side has.
        right: Of those that only the right side has.
        groups: Rows whose pairing depends on identifiers.
    """

    same: list[tuple[int, int]] = field(default_factory=list)
    pairs: list[tuple[int, int]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)

    @property
    def moved(self) -> int:
        """Pairs whose rows are not at the same place."""
        return sum(left != right for left, right in (*self.same, *self.pairs))


def match(
    left: Sequence[Any],
    right: Sequence[Any],
    *,
    state: int,
    canonical: Canonical,
    maps_ids: bool,
    compatible: Compatible | None,
    effort: Effort,
) -> Matching:
    """Pairs the rows of two sides.

    Args:
        left: Rows of the source.
        right: Rows of the target.
        state: Of an element's place.
        canonical: Makes digests.
        maps_ids: Whether there are identifiers to be mapped.
        compatible: Present when numbers may differ.
        effort: What may be spent.

    Raises:
        TooDeepError: A row is nested too deeply for a digest.
    """
    matching = Matching()
    rest_left, rest_right = list(range(len(left))), list(range(len(right)))
    if maps_ids and compatible is None:
        _by_identifiers(matching, left, right, state=state, canonical=canonical)
    else:
        # Most translations that are right give equal rows; these need no canonical form.
        matching.same, rest_left, rest_right = _paired(_texts(left, rest_left), _texts(right, rest_right))
        if compatible is None:
            forms = (
                [(i, canonical.digest(rows[i], state)) for i in rest]
                for rows, rest in ((left, rest_left), (right, rest_right))
            )
            matching.pairs, rest_left, rest_right = _paired(*forms)
        elif rest_left or rest_right:
            # An equal pair may stand in the way of a complete pairing within the tolerance, so all begin anew.
            matching = Matching()
            rest_left, rest_right = _close(
                matching, left, right, state=state, canonical=canonical, close=compatible, effort=effort
            )
        matching.left, matching.right = sorted(rest_left), sorted(rest_right)
    return matching


def _by_identifiers(
    matching: Matching, left: Sequence[Any], right: Sequence[Any], *, state: int, canonical: Canonical
) -> None:
    groups: dict[bytes, Group] = {}
    for side, rows in (("left", left), ("right", right)):
        for index, row in enumerate(rows):
            ids: Ids = []
            digest = canonical.digest(row, state, ids=ids)
            group = groups.get(digest)
            if group is None:
                group = groups[digest] = Group(digest)
            getattr(group, side).append((index, ids))
    for group in groups.values():
        count = min(len(group.left), len(group.right))
        ambiguous = count > 1 or (count and len(group.left) != len(group.right))
        if ambiguous and any(ids for _, ids in group.left):
            matching.groups.append(group)
            continue
        matching.pairs += [(group.left[n][0], group.right[n][0]) for n in range(count)]
        matching.left += [index for index, _ in group.left[count:]]
        matching.right += [index for index, _ in group.right[count:]]
    matching.left.sort()
    matching.right.sort()


Keyed = Iterable[tuple[int, bytes | None]]


def _paired(left: Keyed, right: Keyed) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Pairs indexes of equal keys; returns the pairs and what is left on each side. No key, no partner."""
    waiting: dict[bytes, list[int]] = {}
    alone_left: list[int] = []
    for index, key in left:
        if key is None:
            alone_left.append(index)
        elif key in waiting:
            waiting[key].append(index)
        else:
            waiting[key] = [index]
    for indexes in waiting.values():
        indexes.reverse()
    pairs: list[tuple[int, int]] = []
    alone_right: list[int] = []
    for index, key in right:
        partners = waiting.get(key) if key is not None else None
        if partners:
            pairs.append((partners.pop(), index))
        else:
            alone_right.append(index)
    alone_left += [index for indexes in waiting.values() for index in indexes]
    alone_left.sort()
    return pairs, alone_left, alone_right


def _texts(rows: Sequence[Any], indexes: Iterable[int]) -> Iterator[tuple[int, bytes | None]]:
    """Each row as JSON with sorted keys, or a digest of that where it is shorter; the two differ in length."""
    for index in indexes:
        try:
            text = orjson.dumps(rows[index], option=orjson.OPT_SORT_KEYS)
        except TypeError:  # nested too deeply for the writer
            yield index, None
        else:
            yield index, text if len(text) <= 32 else blake2b(text, digest_size=33).digest()


@dataclass(slots=True)
class _Alike:
    """Rows alike apart from their numbers: index and numbers of each, by side."""

    left: list[tuple[int, list[str]]] = field(default_factory=list)
    right: list[tuple[int, list[str]]] = field(default_factory=list)


def _close(
    matching: Matching,
    left: Sequence[Any],
    right: Sequence[Any],
    *,
    state: int,
    canonical: Canonical,
    close: Compatible,
    effort: Effort,
) -> tuple[list[int], list[int]]:
    """Adds the pairs to the matching; returns the indexes without a partner."""
    groups: dict[bytes, _Alike] = {}
    for side, rows in (("left", left), ("right", right)):
        for index, row in enumerate(rows):
            numbers: list[str] = []
            digest = canonical.digest(row, state, numbers=numbers)
            group = groups.get(digest)
            if group is None:
                group = groups[digest] = _Alike()
            getattr(group, side).append((index, numbers))
    alone_left: list[int] = []
    alone_right: list[int] = []
    for group in groups.values():
        lefts, rights = [index for index, _ in group.left], [index for index, _ in group.right]
        if len(lefts) == len(rights) == 1:
            # Nothing else can be meant; whether the numbers are close is seen when the two are compared.
            matching.pairs.append((lefts[0], rights[0]))
            continue
        pairs = _along_the_order(*_sorted(group), close)
        some_alone = len(pairs) < min(len(lefts), len(rights))
        if some_alone and max(len(lefts), len(rights)) <= AUGMENTED_ROWS and effort.spend(len(lefts) * len(rights)):
            pairs = _maximum(lefts, rights, close)
        matching.pairs += pairs
        paired_left, paired_right = {one for one, _ in pairs}, {other for _, other in pairs}
        alone_left += [index for index in lefts if index not in paired_left]
        alone_right += [index for index in rights if index not in paired_right]
    return alone_left, alone_right


Numbered = list[tuple[int, list[Decimal]]]
"""Index of a row, and its numbers."""


def _sorted(group: _Alike) -> tuple[Numbered, Numbered]:
    """Both sides sorted by their numbers, by columns that agree as a whole first: these tell rows apart for certain."""
    width = len((group.left or group.right)[0][1])
    agreeing = [
        Counter(numbers[column] for _, numbers in group.left) == Counter(numbers[column] for _, numbers in group.right)
        for column in range(width)
    ]
    order = sorted(range(width), key=lambda column: not agreeing[column])

    def arranged(side: list[tuple[int, list[str]]]) -> Numbered:
        rows = [(index, [Decimal(numbers[column][1:]) for column in order]) for index, numbers in side]
        rows.sort(key=itemgetter(1))
        return rows

    return arranged(group.left), arranged(group.right)


def _along_the_order(lefts: Numbered, rights: Numbered, close: Compatible) -> list[tuple[int, int]]:
    """Pairs two sorted sides; for one number in each row this finds a largest pairing."""
    pairs: list[tuple[int, int]] = []
    one = other = 0
    while one < len(lefts) and other < len(rights):
        (left, left_numbers), (right, right_numbers) = lefts[one], rights[other]
        if close(left, right):
            pairs.append((left, right))
            one, other = one + 1, other + 1
        elif left_numbers < right_numbers:
            one += 1
        elif left_numbers > right_numbers:
            other += 1
        else:
            one, other = one + 1, other + 1
    return pairs


def _maximum(lefts: list[int], rights: list[int], close: Compatible) -> list[tuple[int, int]]:
    """Returns a largest pairing of compatible rows, by augmenting paths, breadth first."""
    fits = {left: [right for right in rights if close(left, right)] for left in lefts}
    partner: dict[int, int] = {}  # right -> left
    for start in lefts:
        came_from: dict[int, int] = {}
        queue, free = [start], None
        for left in queue:
            for right in fits[left]:
                if right in came_from:
                    continue
                came_from[right] = left
                if right not in partner:
                    free = right
                    break
                queue.append(partner[right])
            if free is not None:
                break
        pairs_back = {left: right for right, left in partner.items()}
        while free is not None:
            left = came_from[free]
            previous = pairs_back.get(left)
            partner[free] = left
            free = previous if left != start else None
    return [(left, right) for right, left in partner.items()]
