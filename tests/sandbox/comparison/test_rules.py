"""Each rule accepts what it says and nothing beside it, and is named when it did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.comparison import ComparisonRules, checked_rules, load_rules_file
from sandbox.errors import ConfigurationError
from tests.sandbox.comparison.judge import accepts, judge, query


@pytest.mark.parametrize(
    ("source", "target", "accepted"),
    [
        ("49.90", 49.9, True),
        ("49.90", "49.9", True),
        ("-0", 0, True),
        ("1E+3", 1000, True),
        ("12345678901234567890.10", "12345678901234567890.1", True),
        ("12345678901234567890.11", "12345678901234567890.1", False),
        ("007", 7, False),
        ("+7", 7, False),
        (" 7", 7, False),
        ("7.", 7, False),
        ("1_000", 1000, False),
        ("٣", 3, False),
        ("true", True, False),
        ("", 0, False),
        ("NaN", "nan", False),
    ],
)
def test_numeric_text(source: Any, target: Any, accepted: bool) -> None:
    assert accepts(source, target, numeric_text=True) is accepted


@pytest.mark.parametrize(
    ("source", "target", "rules", "accepted"),
    [
        (0.1, 0.3, {"absolute_tolerance": "0.2"}, True),  # as binary fractions, 0.3 - 0.1 is less than 0.2
        (0.3, 0.1, {"absolute_tolerance": "0.19999999999999998"}, False),
        (1.15, 1.16, {"absolute_tolerance": 0.01}, True),
        (1.15, 1.161, {"absolute_tolerance": 0.01}, False),
        (1000, 1001, {"relative_tolerance": "0.001"}, True),
        (1000, 1002, {"relative_tolerance": "0.001"}, False),
        (-5, 5, {"relative_tolerance": "0.9"}, False),
        ("1.000", "1.001", {"absolute_tolerance": "1"}, False),
        ("1.000", "1.001", {"absolute_tolerance": "1", "numeric_text": True}, True),
        ("1." + "0" * 40 + "2", "1." + "0" * 40 + "3", {"absolute_tolerance": "1e-42", "numeric_text": True}, False),
        ("1." + "0" * 40 + "2", "1." + "0" * 40 + "3", {"absolute_tolerance": "1e-41", "numeric_text": True}, True),
        (0, False, {"absolute_tolerance": "1"}, False),
        (None, 0, {"absolute_tolerance": "1"}, False),
    ],
)
def test_tolerance(source: Any, target: Any, rules: dict[str, Any], accepted: bool) -> None:
    assert accepts(source, target, **rules) is accepted


@pytest.mark.parametrize(
    ("source", "target", "dates", "accepted"),
    [
        ("2024-01-10T12:00:00", "2024-01-10 12:00", {}, True),
        ("2024-01-10T12:00:00.1230000", "2024-01-10T12:00:00.123", {}, True),
        ("2024-01-10T12:00:00.123456789", "2024-01-10T12:00:00.123456", {}, False),
        ("2024-01-10T12:00:00.123456789", "2024-01-10T12:00:00.123456", {"precision": "microsecond"}, True),
        ("2024-01-10T12:00:00.999", "2024-01-10T12:00:01", {"precision": "second"}, False),
        ("2024-01-10T12:00:00Z", "2024-01-10T14:00:00+02:00[Europe/Prague]", {}, True),
        ("2024-01-01T00:30:00+01:00", "2023-12-31T23:30:00Z", {}, True),
        ("2024-01-10T12:00:00Z", "2024-01-10T12:00:00", {}, False),
        ("2024-01-10T12:00:00Z", "2024-01-10T12:00:00", {"naive": "utc"}, True),
        ("2024-01-10", "2024-01-10T00:00:00", {}, False),
        ("2024-01-10", "2024-01-10T00:00:00", {"midnight": True}, True),
        ("2024-01-10", "2024-01-10T00:00:00Z", {"midnight": True}, False),
        ("2024-01-10", "2024-01-10T00:00:00Z", {"midnight": True, "naive": "utc"}, True),
        ("2024-01-10", "2024-01-10T00:00:01", {"midnight": True}, False),
        ("2024-01-10T23:59", "2024-01-10", {"midnight": True, "precision": "day"}, True),
        ("2024-02-30", "2024-02-30T00:00:00", {"midnight": True}, False),
        ("2024-01-10T24:00", "2024-01-11T00:00", {}, False),
        ("20240110", "2024-01-10", {}, False),
        ("order 2024-01-10", "order 2024-01-10T00:00", {"midnight": True}, False),
    ],
)
def test_dates(source: str, target: str, dates: dict[str, Any], accepted: bool) -> None:
    assert accepts(source, target, dates=dates) is accepted


def test_null_is_absent() -> None:
    assert accepts({"a": 1, "b": None}, {"a": 1}, null_is_absent=True)
    assert accepts([{"b": None}], [{}], null_is_absent=True, rows="unordered")
    assert not accepts({"a": 1, "b": 0}, {"a": 1}, null_is_absent=True)
    assert not accepts([1, None], [1], null_is_absent=True)


def test_key_naming() -> None:
    source = {"OrderId": 1, "unit_price": 2, "_id": 3}
    target = {"orderId": 1, "UNIT-PRICE": 2, "id": 3}
    assert accepts(source, target, names="words")
    assert not accepts({"orderId": 1}, {"orderIds": 1}, names="words")
    assert accepts({"_id": 7}, {"OrderId": 7}, names="words", aliases={"id": "orderId"})
    assert not accepts({"_id": 7}, {"OrderId": 7}, names="words")
    assert accepts({"kundeNr": 7}, {"customerNo": 7}, aliases={"kundeNr": "customerNo"})
    comparison = judge({"OpenOrders": [1]}, {"open_orders": [1]}, names="words")
    assert comparison.equivalent
    assert [(one.rule, one.path, one.target_path) for one in comparison.accepted] == [
        ("names", "$.OpenOrders", "$.open_orders")
    ]


def test_names_that_would_become_one_keep_their_spelling() -> None:
    both = {"orderId": 1, "order_id": 2}
    assert judge({"q": both}, {"q": dict(reversed(both.items()))}, names="words").equivalent
    assert not judge({"q": both}, {"q": {"orderId": 1}}, names="words").equivalent
    assert not judge({"q": [both]}, {"q": [{"orderId": 2, "order_id": 1}]}, names="words", rows="unordered").equivalent


def test_row_order() -> None:
    rows = [{"id": 1}, {"id": 2}, {"id": 2}]
    assert accepts(rows, rows[::-1], rows="unordered")
    assert accepts({"count": 3, "rows": rows}, {"count": 3, "rows": rows[::-1]}, rows="unordered")
    assert not accepts(rows, [rows[0], rows[0], rows[1]], rows="unordered")
    assert not accepts([{"tags": [1, 2]}], [{"tags": [2, 1]}], rows="unordered")
    assert accepts([{"tags": [1, 2]}], [{"tags": [2, 1]}], unordered=["$..tags"])
    assert accepts([{"tags": [1, 2]}, 0], [0, {"tags": [2, 1]}], rows="unordered", unordered=["$..tags"])
    assert not accepts([1, 2], [2, 1], unordered=["$.other"])


def test_ids_that_are_mapped() -> None:
    source = {"orders": [{"id": 1, "by": 7}, {"id": 2, "by": 8}, {"id": 3, "by": 7}]}
    target = {"orders": [{"id": "a", "by": "x"}, {"id": "b", "by": "y"}, {"id": "c", "by": "x"}]}
    ids = [{"paths": ["$..id"]}, {"paths": ["$..by"]}]
    comparison = judge(source, target, ids=ids)
    assert comparison.equivalent
    assert [(one.rule, one.count) for one in comparison.accepted] == [("ids", 6)]
    target["orders"][2]["by"] = "y"
    verdict = judge(source, target, ids=ids).queries[0]
    assert [(one.path, one.kind, one.source, one.target) for one in verdict.differences] == [
        ("$.orders[2].by", "id", 7, "y")
    ]
    # Two of one side must not become one of the other.
    assert not accepts([{"id": 1}, {"id": 2}], [{"id": "a"}, {"id": "a"}], ids=ids)
    assert not accepts([{"id": 1}], [{"id": None}], ids=ids)
    assert not accepts([{"id": 1}], [{}], ids=ids)


def test_ids_are_mapped_across_queries() -> None:
    ids = [{"paths": ["$..orderId", "$.orders[*].id"]}]
    source = {"orders": [{"id": 1, "n": 10}, {"id": 2, "n": 20}], "open": [{"orderId": 2}]}
    right = {"orders": [{"id": "a", "n": 10}, {"id": "b", "n": 20}], "open": [{"orderId": "b"}]}
    wrong = {**right, "open": [{"orderId": "a"}]}
    assert judge(source, right, ids=ids).equivalent
    assert not judge(source, wrong, ids=ids).equivalent
    assert judge(source, right, ids=ids, rows="unordered").equivalent
    assert not judge(source, wrong, ids=ids, rows="unordered").equivalent


def test_ids_tell_unordered_rows_apart_wherever_they_are_explained() -> None:
    ids = [{"paths": ["$..a"]}, {"paths": ["$..b"]}]
    # A relation of nothing but identifiers stands first; the names that tell them apart come later.
    source: dict[str, Any] = {
        "pairs": [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 2}, {"a": 3, "b": 1}],
        "as": [{"a": 1, "name": "one"}, {"a": 2, "name": "two"}, {"a": 3, "name": "two"}],
    }
    renamed_a, renamed_b = {1: "x", 2: "y", 3: "z"}, {1: "q", 2: "p"}
    target: dict[str, Any] = {
        "pairs": [{"a": renamed_a[row["a"]], "b": renamed_b[row["b"]]} for row in source["pairs"][::-1]],
        "as": [{**row, "a": renamed_a[row["a"]]} for row in source["as"][::-1]],
    }
    assert judge(source, target, ids=ids, rows="unordered").equivalent
    target["pairs"][0]["b"] = "p"
    assert not judge(source, target, ids=ids, rows="unordered").equivalent


def test_a_chain_of_nothing_but_ids() -> None:
    ids = [{"paths": ["$..id", "$..next"]}]
    order = [(number * 37) % 101 for number in range(101)]
    source: Any = [{"id": number, "next": number + 1} for number in range(100)]
    target: Any = [{"id": f"n{order[row['id']]}", "next": f"n{order[row['next']]}"} for row in source]
    assert accepts(source, target[::-1], ids=ids, rows="unordered")
    ring = [*target[1:], {"id": target[0]["id"], "next": target[0]["id"]}]
    assert not accepts(source, ring, ids=ids, rows="unordered")


def test_one_id_twice_in_a_row_answers_no_two_ids() -> None:
    ids = [{"paths": ["$..a", "$..b"]}]
    assert accepts(
        [{"a": 1, "b": 1}, {"a": 2, "b": 3}], [{"a": "z", "b": "y"}, {"a": "x", "b": "x"}], ids=ids, rows="unordered"
    )
    assert not accepts([{"a": 1, "b": 1}] * 2, [{"a": "x", "b": "y"}] * 2, ids=ids, rows="unordered")


def test_rows_that_wait_inside_rows_that_wait() -> None:
    ids = [{"paths": ["$..id"]}]
    rules: dict[str, Any] = {"ids": ids, "rows": "unordered", "unordered": ["$..lines"]}
    source: Any = [{"id": n, "lines": [{"id": 10 * n + m} for m in (1, 2)]} for n in (1, 2)]
    target: Any = [{"id": f"o{n}", "lines": [{"id": f"l{n}{m}"} for m in (2, 1)]} for n in (2, 1)]
    assert accepts(source, target, **rules)
    target[0]["lines"][0]["id"] = target[0]["lines"][1]["id"]
    assert not accepts(source, target, **rules)


def test_ids_that_are_ignored() -> None:
    ids = [{"paths": ["$..id"], "treat": "ignore"}]
    assert accepts([{"id": 1}, {"id": 2}], [{"id": "a"}, {"id": "a"}], ids=ids)
    assert accepts(
        [{"id": 1, "n": 1}, {"id": 2, "n": 2}], [{"id": 5, "n": 2}, {"id": 5, "n": 1}], ids=ids, rows="unordered"
    )
    assert not accepts([{"id": 1}], [{"id": None}], ids=ids)
    assert not accepts([{"id": 1}], [{}], ids=ids)


def test_ignored_paths() -> None:
    assert accepts([{"n": 1, "at": "now"}], [{"n": 1}], ignored=["$..at"])
    assert accepts({"rows": [1], "ms": 5}, {"rows": [1], "ms": 7}, ignored=["$.*.ms"])
    assert accepts(
        [{"n": 1, "at": 1}, {"n": 2, "at": 2}], [{"n": 2}, {"n": 1}], ignored=["$.q[*].at"], rows="unordered"
    )
    assert accepts([1, 2], [1, 3], ignored=["$.q[1]"])
    assert not accepts([1, 2], [3, 2], ignored=["$.q[1]"])
    assert not accepts({"atx": 1}, {"atx": 2}, ignored=["$..at"])
    comparison = judge({"a": 1, "b": 1}, {"a": 1, "b": 2}, ignored=["$.b"])
    assert comparison.equivalent
    assert {query.name: query.status.value for query in comparison.queries} == {"a": "equivalent", "b": "ignored"}
    assert "1 ignored" in comparison.message


def test_paths_take_the_spelling_of_names_from_the_rule() -> None:
    assert accepts([{"CreatedAt": 1}], [{"created_at": 2}], ignored=["$..createdAt"], names="words")


def test_what_is_accepted_is_counted_with_an_example() -> None:
    source = {"q": [{"Total": "1.50"}, {"Total": "2.50"}, {"Total": "3"}]}
    target = {"q": [{"total": 1.5}, {"total": 2.5}, {"total": "3"}]}
    accepted = {one.rule: one for one in judge(source, target, names="words", numeric_text=True).accepted}
    assert {rule: one.count for rule, one in accepted.items()} == {"names": 3, "numeric_text": 2}
    example = accepted["numeric_text"]
    assert (example.path, example.target_path) == ("$.q[0].Total", "$.q[0].total")
    assert (example.source, example.target) == ("1.50", 1.5)


@pytest.mark.parametrize(
    ("source", "target", "hint"),
    [
        ("49.90", 49.9, "numeric_text"),
        (0.1, 0.10000000001, "relative_tolerance"),
        ("2024-01-10", "2024-01-10T00:00:00Z", "dates.midnight"),
        ("Anna ", "Anna", "white space"),
        ("ANNA", "Anna", "case"),
        ("\u00e9", "e\u0301", "Unicode"),
        ({"a": None}, {}, "null_is_absent"),
    ],
)
def test_hints_name_what_would_explain_a_difference(source: Any, target: Any, hint: str) -> None:
    (difference,) = query(source, target).differences
    assert difference.hint is not None
    assert hint in difference.hint


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"row": "unordered"}, "rules.row"),
        ({"rows": "any"}, "rules.rows"),
        ({"absolute_tolerance": -1}, "rules.absolute_tolerance"),
        ({"ignored": ["orders"]}, "must begin with `$`"),
        ({"ignored": ["$.a b"]}, "goes wrong at ' b'"),
        ({"ignored": ["$.."]}, "goes wrong at '..'"),
        ({"ids": [{"paths": []}]}, "rules.ids.0.paths"),
        ({"aliases": {"a": "b", "b": "c"}}, "stands for a name"),
    ],
)
def test_wrong_rules_are_named(document: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        checked_rules(document)
    assert named in str(raised.value)


def test_rules_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('names = "words"\nignored = ["$..at"]\n[dates]\nnaive = "utc"\n')
    expected = ComparisonRules.model_validate({"names": "words", "ignored": ["$..at"], "dates": {"naive": "utc"}})
    assert load_rules_file(path) == expected
    (tmp_path / "rules.json").write_text(expected.model_dump_json())
    assert load_rules_file(tmp_path / "rules.json") == expected
    path.write_text("names = ")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        load_rules_file(path)
    with pytest.raises(ConfigurationError, match="cannot read"):
        load_rules_file(tmp_path / "none.toml")


def test_the_rules_in_words() -> None:
    assert ComparisonRules().in_words() == []
    assert checked_rules({"rows": "unordered", "absolute_tolerance": "0.01"}).in_words() == [
        "rows=unordered",
        "absolute_tolerance=0.01",
    ]
