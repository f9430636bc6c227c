"""What holds for any two results and any rules."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.comparison import ComparisonRules, RowOrder, checked_rules, compare, compare_results

settings.register_profile("comparison", deadline=None, max_examples=60)
settings.load_profile("comparison")

NAMES = st.sampled_from(["id", "_id", "Id", "orderId", "order_id", "OrderId", "name", "total", "at", "x"])
TEXTS = st.one_of(
    st.text(max_size=4),
    st.sampled_from(["1", "1.0", "1.00", "-0", "007", "2024-01-10", "2024-01-10T00:00", "2024-01-10 00:00:00Z"]),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([0.1, 0.3, 1.0, -0.0, 1e22, 1e-7]),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
ROWS = st.lists(st.dictionaries(NAMES, SCALARS, max_size=4) | SCALARS, max_size=6)
ANSWERS = st.one_of(
    ROWS,
    st.fixed_dictionaries({"count": st.integers(0, 4), "rows": ROWS}),
    st.fixed_dictionaries({"count": st.integers(0, 4), "firstSample": VALUES, "lastSample": VALUES}),
    VALUES,
)
RESULTS = st.dictionaries(st.sampled_from(["q", "Q", "open_orders", "OpenOrders"]), ANSWERS, max_size=3) | VALUES
TOLERANCES = st.sampled_from(["0", "0.1", "1"])
RULES = st.builds(
    lambda **fields: checked_rules(fields),
    rows=st.sampled_from(["ordered", "unordered"]),
    unordered=st.sampled_from([[], ["$..x"], ["$..*"]]),
    absolute_tolerance=TOLERANCES,
    relative_tolerance=st.sampled_from(["0", "0.1"]),
    numeric_text=st.booleans(),
    dates=st.sampled_from([None, {}, {"naive": "utc", "midnight": True}, {"precision": "day"}]),
    null_is_absent=st.booleans(),
    names=st.sampled_from(["exact", "words"]),
    aliases=st.sampled_from([{}, {"id": "orderId"}]),
    ids=st.sampled_from([[], [{"paths": ["$..id"]}], [{"paths": ["$..id", "$..orderId"]}, {"paths": ["$..x"]}]]),
    ignored=st.sampled_from([[], ["$..at"], ["$.q[*].name"], ["$..*[1]"]]),
    samples=st.sampled_from(["strict", "comparable"]),
    failure_keys=st.just([]),
)


def varied(value: Any, random: Any) -> Any:
    """The value written a little differently here and there."""
    if isinstance(value, dict):
        members = [(key, varied(member, random)) for key, member in value.items()]
        if random.random() < 0.3:
            members = [(key, member) for key, member in members if member is not None]
        if random.random() < 0.2:
            random.shuffle(members)
        return dict(members)
    if isinstance(value, list):
        elements = [varied(element, random) for element in value]
        if random.random() < 0.3:
            random.shuffle(elements)
        return elements
    change = random.random()
    if isinstance(value, (int, float)) and not isinstance(value, bool) and change < 0.3:
        return str(value) if change < 0.15 else value + 0.05
    if isinstance(value, str) and change < 0.2:
        return f"{value}.0" if value.isdecimal() else f"{value}T00:00:00"
    return value


PAIRS = st.builds(lambda result, random: (result, varied(result, random)), RESULTS, st.randoms(use_true_random=False))


@given(RESULTS, RULES)
def test_a_result_is_equivalent_to_itself(result: Any, rules: ComparisonRules) -> None:
    comparison = compare_results(result, copy.deepcopy(result), rules=rules)
    assert all(query.status.value in ("equivalent", "ignored") for query in comparison.queries), comparison


@given(PAIRS, RULES)
def test_the_verdict_is_the_same_both_ways(pair: tuple[Any, Any], rules: ComparisonRules) -> None:
    one, other = pair
    assert compare_results(one, other, rules=rules).outcome == compare_results(other, one, rules=rules).outcome


@given(ROWS, RULES, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing_when_it_does_not_count(
    one: list[Any], rules: ComparisonRules, random: Any
) -> None:
    other = varied(one, random)
    rules = rules.model_copy(update={"rows": RowOrder.UNORDERED, "ids": (), "ignored": ()})
    before = compare_results({"q": one}, {"q": other}, rules=rules)
    shuffled = random.sample(other, len(other))
    assert compare_results({"q": one}, {"q": shuffled}, rules=rules).outcome == before.outcome
    assert compare_results({"q": other}, {"q": shuffled}, rules=rules).equivalent


@given(st.lists(st.dictionaries(NAMES, SCALARS, max_size=3), max_size=6), st.randoms(use_true_random=False))
def test_identifiers_can_be_renamed_and_rows_shuffled(rows: list[dict[str, Any]], random: Any) -> None:
    rules = checked_rules({"rows": "unordered", "ids": [{"paths": ["$..id"]}, {"paths": ["$..x"]}]})
    source: Any = {"q": rows, "r": [{"x": row.get("x")} for row in rows]}

    def renamed(row: dict[str, Any]) -> dict[str, Any]:
        changed = dict(row)
        for key in ("id", "x"):
            value = row.get(key)
            if isinstance(value, (int, float, str)) and not isinstance(value, bool):
                changed[key] = f"{key}-{value + 0 if isinstance(value, (int, float)) else value!r}"
                if isinstance(value, float) and value.is_integer():
                    changed[key] = f"{key}-{int(value)}"
        return changed

    shuffled = {name: random.sample(list(part), len(part)) for name, part in source.items()}
    target: Any = {name: [renamed(row) for row in part] for name, part in shuffled.items()}
    comparison = compare_results(source, target, rules=rules)
    assert comparison.equivalent, comparison


@given(st.lists(st.dictionaries(st.sampled_from(["orderId", "unitPrice", "name"]), SCALARS), max_size=5))
def test_keys_can_be_renamed_by_words(rows: list[dict[str, Any]]) -> None:
    spelt = {"orderId": "ORDER_ID", "unitPrice": "unit-price", "name": "Name"}
    source: Any = rows
    target: Any = [{spelt[key]: value for key, value in row.items()} for row in rows]
    for order in ("ordered", "unordered"):
        rules = checked_rules({"names": "words", "rows": order})
        assert compare_results({"topTen": source}, {"TopTen": target}, rules=rules).equivalent


@given(VALUES, VALUES)
def test_strict_rules_are_the_strict_comparison(one: Any, other: Any) -> None:
    rules = checked_rules({"failure_keys": []})
    assert compare_results({"q": one}, {"q": other}, rules=rules).equivalent == compare(one, other).equal


@given(PAIRS, RULES)
def test_looser_rules_never_find_more(pair: tuple[Any, Any], rules: ComparisonRules) -> None:
    one, other = pair
    if compare_results(one, other, rules=checked_rules({"failure_keys": []})).equivalent:
        comparison = compare_results(one, other, rules=rules)
        assert all(query.status.value in ("equivalent", "ignored") for query in comparison.queries)
