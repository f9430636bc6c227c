from __future__ import annotations

from typing import Any

import pytest

from sandbox.comparison import MAX_DIFFERENCES, compare


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, 1.0),
        (0.1, 0.1),
        ({"a": 1, "b": [None, True]}, {"b": [None, True], "a": 1}),
        ([], []),
        (None, None),
    ],
)
def test_equal(expected: Any, actual: Any) -> None:
    assert compare(expected, actual).equal


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        (1, True, [("$", "type")]),
        (0, False, [("$", "type")]),
        (1, 1.0000000001, [("$", "value")]),
        ("1", 1, [("$", "type")]),
        (None, 0, [("$", "type")]),
        ({"a": 1}, {}, [("$.a", "missing")]),
        ({}, {"a": 1}, [("$.a", "unexpected")]),
        ({"a": None}, {}, [("$.a", "missing")]),
        ([1, 2], [1], [("$", "length")]),
        ([1, 2], [1, 3, 4], [("$", "length"), ("$[1]", "value")]),
        ({"o": [{"unit price": "9.90"}]}, {"o": [{"unit price": "9.9"}]}, [('$.o[0]["unit price"]', "value")]),
        ({"a": {}}, {"a": []}, [("$.a", "type")]),
    ],
)
def test_different(expected: Any, actual: Any, found: list[tuple[str, str]]) -> None:
    comparison = compare(expected, actual)
    assert not comparison.equal
    assert [(one.path, one.kind) for one in comparison.differences] == found
    assert comparison.total_differences == len(found)


def test_the_first_differences_are_listed_and_all_are_counted() -> None:
    rows: list[Any] = [{"id": number, "total": "1.00"} for number in range(100_000)]
    other: list[Any] = [{**row, "total": "1.01"} for row in rows]
    comparison = compare({"rows": rows}, {"rows": other})
    assert comparison.total_differences == 100_000
    assert [one.path for one in comparison.differences] == [f"$.rows[{n}].total" for n in range(MAX_DIFFERENCES)]


def test_large_values_are_shortened() -> None:
    difference = compare({"a": "x" * 10_000}, {}).differences[0]
    assert isinstance(difference.expected, str)
    assert difference.expected.endswith("(10000 bytes)")
    assert len(difference.expected) < 3000


def test_depth_needs_no_recursion() -> None:
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    other: Any = 2
    for _ in range(50_000):
        other = [other]
    try:
        assert compare(deep, other).total_differences == 1
    finally:
        while isinstance(deep, list):
            deep = deep.pop()
        while isinstance(other, list):
            other = other.pop()
