"""Results compared query by query."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue

from sandbox.comparison.answers import Answer, answer_of, failure_of
from sandbox.comparison.canonical import TooDeepError
from sandbox.comparison.findings import ABSENT, MAX_DIFFERENCES, Absent, Findings, Place, Rule
from sandbox.comparison.multiset import Effort, match
from sandbox.comparison.rules import STRICT, ComparisonRules, RowOrder, SampleRule
from sandbox.comparison.verdicts import QueryStatus, QueryVerdict, ResultsComparison, TranslationOutcome
from sandbox.comparison.walk import Walker

MAX_QUERIES: Final = 500
"""Queries that are listed; all are compared and counted."""

MAX_LISTED: Final = 400
"""Differences that are listed for all queries together."""

REORDERED_ROWS: Final = 20_000
"""Up to so many rows it is found out whether different rows are the same ones in another order."""

WHOLE: Final = "$"
"""The name of the query when a result is no object of queries."""


@dataclass(slots=True, kw_only=True)
class _Query:
    """One query while it is compared."""

    name: str
    left: Any
    right: Any
    places: tuple[Place, Place]
    state: int
    findings: Findings
    status: QueryStatus = QueryStatus.EQUIVALENT
    said: str = ""
    rows: tuple[int | None, int | None] = (None, None)


def compare_results(source: JsonValue, target: JsonValue, *, rules: ComparisonRules = STRICT) -> ResultsComparison:
    """Compares two results query by query.

    A result that is an object holds one query per member; any other result is one query named ``$``.

    Args:
        source: The result of the program that was translated.
        target: The result of its translation.
        rules: Which differences are accepted.
    """
    started = time.monotonic()
    objects = isinstance(source, dict) and isinstance(target, dict)
    unordered: tuple[str, ...] = ()
    if rules.rows is RowOrder.UNORDERED:
        rows = tuple(f"[{_quoted(key)}]" for key in rules.row_keys)
        unordered = ("$.*", *(f"$.*{key}" for key in rows)) if objects else ("$", *(f"${key}" for key in rows))
    walker = Walker(rules, unordered=unordered)
    queries = list(_queries(source, target, walker))
    left_to_list = MAX_LISTED
    for query in queries:
        query.findings.limit = min(MAX_DIFFERENCES, left_to_list)
        _compare(query, walker=walker, rules=rules)
        left_to_list -= len(query.findings.differences)
    walker.settle()
    for query in queries:
        if query.status is QueryStatus.EQUIVALENT and query.findings.total:
            query.status = QueryStatus.DIFFERENT
    counts = Counter(query.status for query in queries)
    outcome, message = _outcome(counts)
    return ResultsComparison(
        outcome=outcome,
        message=message,
        queries=tuple(_verdict(query) for query in _listed(queries)),
        counts=dict(counts),
        rules=rules,
        seconds=time.monotonic() - started,
    )


def _queries(source: JsonValue, target: JsonValue, walker: Walker) -> Iterator[_Query]:
    root = walker.states.root
    if not (isinstance(source, dict) and isinstance(target, dict)):
        yield _Query(name=WHOLE, left=source, right=target, places=((), ()), state=root, findings=Findings())
        return
    names = walker.names
    others = dict(zip(names.of_all(tuple(target)), target, strict=True))
    for name, key in zip(names.of_all(tuple(source)), source, strict=True):
        state = walker.states.step(root, name)
        other = others.pop(name, None)
        findings = Findings()
        places: tuple[Place, Place] = (((), key), ((), key if other is None else other))
        right = ABSENT if other is None else target[other]
        if other is not None and other != key:
            rule = Rule.NAMES if names.spelling(key) == names.spelling(other) else Rule.ALIASES
            findings.accept(rule, places, (key, other))
        yield _Query(name=key, left=source[key], right=right, places=places, state=state, findings=findings)
    for name, key in others.items():
        state = walker.states.step(root, name)
        yield _Query(
            name=key,
            left=ABSENT,
            right=target[key],
            places=(((), key), ((), key)),
            state=state,
            findings=Findings(),
        )


def _compare(query: _Query, *, walker: Walker, rules: ComparisonRules) -> None:
    if walker.states.marks(query.state).ignored:
        query.status = QueryStatus.IGNORED
        return
    if isinstance(query.right, Absent):
        query.status = QueryStatus.MISSING_IN_TARGET
        return
    if isinstance(query.left, Absent):
        query.status = QueryStatus.MISSING_IN_SOURCE
        return
    left = answer_of(query.left, rules=rules, names=walker.names)
    right = answer_of(query.right, rules=rules, names=walker.names)
    query.rows = (left.number, right.number)
    failures = [
        f"{side}: {text}"
        for side, answer in (("source", left), ("target", right))
        if (text := failure_of(answer, rules=rules, names=walker.names)) is not None
    ]
    if failures:
        query.status = QueryStatus.FAILED
        query.said = "; ".join(failures)
        return
    if rules.samples is SampleRule.COMPARABLE and _shapes_differ(left, right):
        _compare_shapes(query, left, right, walker=walker, rules=rules)
    else:
        if rules.rows is RowOrder.UNORDERED and left.is_sampled and right.is_sampled:
            _swap_samples(query, left, right, walker=walker)
        walker.walk(query.left, query.right, places=query.places, state=query.state, findings=query.findings)
        if query.findings.total:
            for hint in _hints(query, left, right, walker=walker, rules=rules):
                query.findings.hint(hint)


def _shapes_differ(left: Answer, right: Answer) -> bool:
    return left.shape != right.shape and "other" not in (left.shape, right.shape)


def _compare_shapes(query: _Query, left: Answer, right: Answer, *, walker: Walker, rules: ComparisonRules) -> None:
    """Compares what answers of two shapes both have, and says what only one has."""
    findings = query.findings
    findings.accept(Rule.SAMPLES, query.places, (left.shape, right.shape))
    if left.number is None or right.number is None:
        side = "source" if left.number is None else "target"
        findings.leave_out(f"the number of rows: the {side} does not tell it")
    elif left.number != right.number:
        findings.differ(query.places, (left.number, right.number), "length")
    if left.rows is not None and right.rows is not None:
        places = (_at(query.places[0], left.keys.get("rows")), _at(query.places[1], right.keys.get("rows")))
        state = walker.states.both(_state(query, left, "rows", walker), _state(query, right, "rows", walker))
        walker.walk(left.rows, right.rows, places=places, state=state, findings=findings)
    else:
        _samples_in_rows(query, left, right, walker=walker, rules=rules)
    _compare_the_rest(query, left, right, walker=walker)


def _samples_in_rows(query: _Query, left: Answer, right: Answer, *, walker: Walker, rules: ComparisonRules) -> None:
    """Compares the samples of one side with the rows of the other."""
    whole, sampled = (left, right) if left.rows is not None else (right, left)
    rows = whole.rows or []
    rows_are_left = whole is left
    findings = query.findings
    rows_state = _state(query, whole, "rows", walker)
    samples = [(part, getattr(sampled, part)) for part in ("first", "last")]
    unordered = walker.states.marks(rows_state).unordered
    taken: set[int] = set()
    for part, sample in samples:
        if isinstance(sample, Absent):
            findings.leave_out(f"the {part} row: there is no sample of it")
            continue
        if not rows:
            if sample is not None:
                key = sampled.keys[part]
                side = 1 if rows_are_left else 0
                places = (_at(query.places[0], key if side == 0 else None), _at(query.places[1], key if side else None))
                values = (ABSENT, sample) if side else (sample, ABSENT)
                findings.differ(places, values, "unexpected" if side else "missing", "a sample of a query without rows")
            continue
        index = 0 if part == "first" else len(rows) - 1
        state = walker.states.both(walker.states.step(rows_state, index), _state(query, sampled, part, walker))
        if unordered:
            index = _find(sample, rows, taken if len(rows) > 1 else set(), index, state=state, walker=walker)
            taken.add(index)
        row_place = (_at(query.places[0 if rows_are_left else 1], whole.keys.get("rows")), index)
        sample_place = _at(query.places[1 if rows_are_left else 0], sampled.keys[part])
        if rows_are_left:
            walker.walk(rows[index], sample, places=(row_place, sample_place), state=state, findings=findings)
        else:
            walker.walk(sample, rows[index], places=(sample_place, row_place), state=state, findings=findings)
    compared = min(len(rows), 2)
    if len(rows) > compared:
        findings.leave_out(f"{len(rows) - compared} of {len(rows)} rows: the other side has samples only")


def _find(sample: Any, rows: list[Any], taken: set[int], otherwise: int, *, state: int, walker: Walker) -> int:
    """Returns the index of a row that equals the sample; ``otherwise`` when there is none."""
    if otherwise not in taken and walker.equal(rows[otherwise], sample, state=state):
        return otherwise
    for index, row in enumerate(rows):
        if index not in taken and walker.equal(row, sample, state=state):
            return index
    return otherwise


def _compare_the_rest(query: _Query, left: Answer, right: Answer, *, walker: Walker) -> None:
    """Compares members that are neither count, rows nor samples."""
    one = _rest(left)
    other = _rest(right)
    if one or other:
        walker.walk(one, other, places=query.places, state=query.state, findings=query.findings)


def _rest(answer: Answer) -> dict[str, Any]:
    if not isinstance(answer.value, dict):
        return {}
    known = set(answer.keys.values())
    return {key: value for key, value in answer.value.items() if key not in known}


def _swap_samples(query: _Query, left: Answer, right: Answer, *, walker: Walker) -> None:
    """Puts the samples of two unordered rows into the source's order; of more rows nobody knows which two they are."""
    if left.number != 2 or right.number != 2 or any(isinstance(s, Absent) for s in (right.first, right.last)):
        return
    first, last = right.keys["first"], right.keys["last"]
    state = walker.states.both(_state(query, right, "first", walker), _state(query, right, "last", walker))
    swapped = walker.equal(left.first, right.last, state=state) and walker.equal(left.last, right.first, state=state)
    if swapped and not walker.equal(left.first, right.first, state=state):
        query.findings.accept(Rule.ROWS, query.places, (left.first, right.first), count=2)
        query.right = {**query.right, first: right.last, last: right.first}


def _hints(query: _Query, left: Answer, right: Answer, *, walker: Walker, rules: ComparisonRules) -> list[str]:
    """Says what would explain the whole."""
    if _shapes_differ(left, right) and rules.samples is SampleRule.STRICT:
        return [f"{left.shape} against {right.shape}: the rule samples=comparable compares what both sides have"]
    if left.is_sampled and right.is_sampled and rules.rows is RowOrder.UNORDERED and (left.number or 0) > 2:
        return ["samples of unordered rows can be any of them: let both sides write whole rows or fix their order"]
    rows_state = _state(query, left, "rows", walker)
    if left.rows is None or right.rows is None or walker.states.marks(rows_state).unordered:
        return []
    if len(left.rows) != len(right.rows) or len(left.rows) > REORDERED_ROWS:
        return []
    try:
        matching = match(
            left.rows,
            right.rows,
            state=walker.states.step(rows_state, 0),
            canonical=walker.canonical,
            maps_ids=False,
            compatible=None,
            effort=Effort(),
        )
    except TooDeepError:
        return []
    return [] if matching.left else ["the same rows in another order (rule rows=unordered)"]


def _state(query: _Query, answer: Answer, part: str, walker: Walker) -> int:
    key = answer.keys.get(part)
    return query.state if key is None else walker.states.step(query.state, walker.names.of(key))


def _at(place: Place, key: str | None) -> Place:
    return place if key is None else (place, key)


def _verdict(query: _Query) -> QueryVerdict:
    findings = query.findings
    match query.status:
        case QueryStatus.EQUIVALENT:
            message = "The answers are equivalent."
        case QueryStatus.DIFFERENT:
            count = findings.total
            first = findings.differences[0].path if findings.differences else ""
            message = f"The answers differ in {count} place{'' if count == 1 else 's'}"
            message += f", first at {first}." if first else "."
        case QueryStatus.MISSING_IN_SOURCE:
            message = "Only the target has this query."
        case QueryStatus.MISSING_IN_TARGET:
            message = "The target does not have this query."
        case QueryStatus.FAILED:
            message = f"The query failed: {query.said}"
        case QueryStatus.IGNORED:
            message = "The rules ignore this query."
    return QueryVerdict(
        name=query.name,
        status=query.status,
        message=message,
        source_rows=query.rows[0],
        target_rows=query.rows[1],
        total_differences=findings.total,
        differences=tuple(findings.differences),
        accepted=findings.accepted,
        not_compared=tuple(findings.not_compared),
        hints=tuple(findings.hints),
    )


def _outcome(counts: Counter[QueryStatus]) -> tuple[TranslationOutcome, str]:
    good = counts[QueryStatus.EQUIVALENT]
    ignored = counts[QueryStatus.IGNORED]
    bad = counts.total() - good - ignored
    aside = f" ({ignored} ignored)" if ignored else ""
    if bad:
        words = ", ".join(
            f"{count} {status.value.replace('_', ' ')}"
            for status, count in sorted(counts.items())
            if status not in (QueryStatus.EQUIVALENT, QueryStatus.IGNORED)
        )
        return TranslationOutcome.DIFFERENT, f"{good} of {bad + good} queries are equivalent; {words}{aside}."
    if good:
        which = "The only query is" if good == 1 else f"All {good} queries are"
        return TranslationOutcome.EQUIVALENT, f"{which} equivalent{aside}."
    return TranslationOutcome.NOTHING_COMPARED, f"There is no query that could be compared{aside}."


def _listed(queries: list[_Query]) -> list[_Query]:
    """Returns the queries to list: if there are too many, those that are not equivalent go first."""
    if len(queries) <= MAX_QUERIES:
        return queries
    fine = (QueryStatus.EQUIVALENT, QueryStatus.IGNORED)
    first = sorted(range(len(queries)), key=lambda index: (queries[index].status in fine, index))
    return [queries[index] for index in sorted(first[:MAX_QUERIES])]


def _quoted(key: str) -> str:
    import json

    return json.dumps(key)
