"""Which leftover row of one side was probably meant to be which of the other, so that a report shows the field."""

from __future__ import annotations

from typing import Any, Final

from sandbox.comparison.canonical import Canonical, TooDeepError

MAX_ROWS: Final = 100
"""Leftover rows on each side that are looked at."""

MAX_MEMBERS: Final = 500
"""Members a row may have to be looked at."""


def nearest_pairs(
    left: list[Any],
    right: list[Any],
    alone_left: list[int],
    alone_right: list[int],
    *,
    state: int,
    canonical: Canonical,
) -> list[tuple[int, int]]:
    """Pairs objects that share at least half of their members, the most alike first.

    Args:
        left: All rows of the source.
        right: All rows of the target.
        alone_left: Indexes of those without a partner.
        alone_right: The same for the target.
        state: Of a row's place.
        canonical: Tells which members are equal.
    """
    try:
        ones = [(index, _members(left[index], state, canonical)) for index in alone_left[:MAX_ROWS]]
        others = [(index, _members(right[index], state, canonical)) for index in alone_right[:MAX_ROWS]]
    except TooDeepError:
        return []
    alike = [
        (len(one_members & other_members) / max(len(one_members), len(other_members)), one, other)
        for one, one_members in ones
        for other, other_members in others
        if one_members and other_members
    ]
    alike = [item for item in alike if item[0] >= 0.5]
    alike.sort(key=lambda item: (-item[0], item[1], item[2]))
    pairs: list[tuple[int, int]] = []
    taken_left: set[int] = set()
    taken_right: set[int] = set()
    for _, one, other in alike:
        if one not in taken_left and other not in taken_right:
            pairs.append((one, other))
            taken_left.add(one)
            taken_right.add(other)
    return pairs


def _members(row: Any, state: int, canonical: Canonical) -> frozenset[bytes]:
    if not isinstance(row, dict) or len(row) > MAX_MEMBERS:
        return frozenset()
    return frozenset(canonical.digest({key: value}, state) for key, value in row.items())
