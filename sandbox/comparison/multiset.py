"""Rows whose order does not count: which row of one side answers which of the other.

Rows equal under the rules have equal digests, so pairing them is counting. Two rules need more:

- *Tolerance* is no equivalence (a ~ b and b ~ c do not make a ~ c). Rows that are alike apart from their numbers are
  sorted by these and paired along the order, columns that agree as a whole first; where that leaves some over, and the
  group has at most ``AUGMENTED_ROWS`` on each side, a maximum matching decides. In larger groups with several noisy
  columns a possible pairing may be missed, never a wrong one made.
- *Mapped identifiers* decide about rows that are otherwise alike; these groups are handed back, see ``identifiers``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import orjson

from sandbox.comparison.canonical import Canonical, Ids

AUGMENTED_ROWS: Final = 200

Compatible = Callable[[int, int], bool]
"""Whether the left row of an index equals the right row of one under the rules."""


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
) -> Matching:
    """Pairs the rows of two sides.

    Args:
        left: Rows of the source.
        right: Rows of the target.
        state: Of an element's place.
        canonical: Makes digests.
        maps_ids: Whether there are identifiers to be mapped.
        compatible: Present when numbers may differ.

    Raises:
        TooDeepError: A row is nested too deeply for a digest.
    """
    matching = Matching()
    rest_left, rest_right = list(range(len(left))), list(range(len(right)))
    if not maps_ids:
        matching.same, rest_left, rest_right = _equal(rest_left, rest_right, left=left, right=right)
    if compatible is not None:
        _match_close(matching, rest_left, rest_right, left, right, state=state, canonical=canonical, close=compatible)
        if (matching.left or matching.right) and matching.same:
            # An equal pair may stand in the way of a complete pairing within the tolerance.
            whole = Matching()
            _match_close(
                whole,
                list(range(len(left))),
                list(range(len(right))),
                left,
                right,
                state=state,
                canonical=canonical,
                close=compatible,
            )
            if len(whole.left) < len(matching.left):
                return whole
        return matching
    groups: dict[bytes, Group] = {}
    for side, rest, rows in (("left", rest_left, left), ("right", rest_right, right)):
        for index in rest:
            ids: Ids | None = [] if maps_ids else None
            digest = canonical.digest(rows[index], state, ids=ids)
            group = groups.get(digest)
            if group is None:
                group = groups[digest] = Group(digest)
            getattr(group, side).append((index, ids or []))
    for group in groups.values():
        count = min(len(group.left), len(group.right))
        if maps_ids and count and (count > 1 or len(group.left) != len(group.right)) and any(i for _, i in group.left):
            matching.groups.append(group)
            continue
        matching.pairs += [(group.left[n][0], group.right[n][0]) for n in range(count)]
        matching.left += [index for index, _ in group.left[count:]]
        matching.right += [index for index, _ in group.right[count:]]
    matching.left.sort()
    matching.right.sort()
    return matching


def _equal(
    rest_left: list[int], rest_right: list[int], *, left: Sequence[Any], right: Sequence[Any]
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Pairs rows that are equal byte by byte, whatever the order of their keys; these need no canonical form."""
    by_text: dict[bytes, list[int]] = defaultdict(list)
    unpaired_left: list[int] = []
    for index in rest_left:
        text = _text(left[index])
        if text is None:
            unpaired_left.append(index)
        else:
            by_text[text].append(index)
    for indexes in by_text.values():
        indexes.reverse()
    pairs: list[tuple[int, int]] = []
    unpaired_right: list[int] = []
    for index in rest_right:
        text = _text(right[index])
        waiting = by_text.get(text) if text is not None else None
        if waiting:
            pairs.append((waiting.pop(), index))
        else:
            unpaired_right.append(index)
    unpaired_left += [index for indexes in by_text.values() for index in indexes]
    unpaired_left.sort()
    return pairs, unpaired_left, unpaired_right


def _text(row: Any) -> bytes | None:
    try:
        return orjson.dumps(row, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # nested too deeply for the writer
        return None


@dataclass(slots=True)
class _Alike:
    """Rows alike apart from their numbers: index and numbers of each, by side."""

    left: list[tuple[int, list[Decimal]]] = field(default_factory=list)
    right: list[tuple[int, list[Decimal]]] = field(default_factory=list)


def _match_close(
    matching: Matching,
    rest_left: list[int],
    rest_right: list[int],
    left: Sequence[Any],
    right: Sequence[Any],
    *,
    state: int,
    canonical: Canonical,
    close: Compatible,
) -> None:
    groups: dict[bytes, _Alike] = {}
    for side, rest, rows in (("left", rest_left, left), ("right", rest_right, right)):
        for index in rest:
            numbers: list[str] = []
            digest = canonical.digest(rows[index], state, numbers=numbers)
            group = groups.get(digest)
            if group is None:
                group = groups[digest] = _Alike()
            getattr(group, side).append((index, [Decimal(text[1:]) for text in numbers]))
    for group in groups.values():
        _sort(group)
        lefts, rights = [index for index, _ in group.left], [index for index, _ in group.right]
        pairs = _along_the_order(group, close)
        if len(pairs) < min(len(lefts), len(rights)) and max(len(lefts), len(rights)) <= AUGMENTED_ROWS:
            pairs = _maximum(lefts, rights, close)
        matching.pairs += pairs
        paired_left, paired_right = {one for one, _ in pairs}, {other for _, other in pairs}
        matching.left += [index for index in lefts if index not in paired_left]
        matching.right += [index for index in rights if index not in paired_right]
    matching.left.sort()
    matching.right.sort()


def _sort(group: _Alike) -> None:
    """Sorts both sides by their numbers, by columns that agree as a whole first: these tell rows apart for certain."""
    if len(group.left) < 2 and len(group.right) < 2:
        return
    width = len((group.left or group.right)[0][1])
    agreeing = [
        Counter(numbers[column] for _, numbers in group.left) == Counter(numbers[column] for _, numbers in group.right)
        for column in range(width)
    ]
    order = sorted(range(width), key=lambda column: not agreeing[column])
    for side in (group.left, group.right):
        side.sort(key=lambda row: [row[1][column] for column in order])
    # Comparing along the order needs the numbers in this order too.
    group.left = [(index, [numbers[column] for column in order]) for index, numbers in group.left]
    group.right = [(index, [numbers[column] for column in order]) for index, numbers in group.right]


def _along_the_order(group: _Alike, close: Compatible) -> list[tuple[int, int]]:
    """Pairs two sorted sides; for one number in each row this finds a largest pairing."""
    pairs: list[tuple[int, int]] = []
    one = other = 0
    while one < len(group.left) and other < len(group.right):
        (left, left_numbers), (right, right_numbers) = group.left[one], group.right[other]
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
