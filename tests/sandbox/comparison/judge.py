"""Short words for the tests of this folder."""

from __future__ import annotations

from typing import Any

from sandbox.comparison import QueryVerdict, ResultsComparison, checked_rules, compare_results


def judge(source: Any, target: Any, **rules: Any) -> ResultsComparison:
    return compare_results(source, target, rules=checked_rules(rules))


def query(source: Any, target: Any, **rules: Any) -> QueryVerdict:
    """The verdict on one query with these answers."""
    return judge({"q": source}, {"q": target}, **rules).queries[0]


def accepts(source: Any, target: Any, **rules: Any) -> bool:
    """True if the rules accept the difference, and the strict comparison does not."""
    assert not judge({"q": source}, {"q": target}).equivalent
    one = judge({"q": source}, {"q": target}, **rules)
    other = judge({"q": target}, {"q": source}, **rules)
    assert one.equivalent == other.equivalent
    if one.equivalent:
        assert one.accepted, "a rule that accepted a difference must be named"
    return one.equivalent
