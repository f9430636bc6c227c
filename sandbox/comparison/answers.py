"""The shapes a query's answer comes in: its rows, or how many there are and the first and the last of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from sandbox.comparison.findings import ABSENT, Absent
from sandbox.comparison.names import Names
from sandbox.comparison.rules import ComparisonRules

COUNT: Final = "count"
FIRST: Final = "firstSample"
LAST: Final = "lastSample"


@dataclass(slots=True, kw_only=True)
class Answer:
    """One query's answer, taken apart.

    Attributes:
        value: The answer as it is.
        count: Rows, as the answer says; ``ABSENT`` when it does not.
        rows: The rows; ``None`` when it has none.
        first: The first row as a sample; ``ABSENT`` when there is none.
        last: The last one.
        keys: The keys of ``count``, ``rows``, ``first`` and ``last`` in the answer, as far as it has them.
    """

    value: Any
    count: Any = ABSENT
    rows: list[Any] | None = None
    first: Any = ABSENT
    last: Any = ABSENT
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def number(self) -> int | None:
        """How many rows there are: as told, else as counted; ``None`` when neither."""
        if isinstance(self.count, int) and not isinstance(self.count, bool):
            return self.count
        return None if self.rows is None else len(self.rows)

    @property
    def is_sampled(self) -> bool:
        """True when it has samples and no rows."""
        return self.rows is None and not (isinstance(self.first, Absent) and isinstance(self.last, Absent))

    @property
    def shape(self) -> str:
        """What its rows look like: ``list``, ``rows`` in an object, ``samples``, or ``other``."""
        if self.rows is not None:
            return "list" if isinstance(self.value, list) else "rows"
        return "samples" if self.is_sampled else "other"


def answer_of(value: Any, *, rules: ComparisonRules, names: Names) -> Answer:
    """Takes an answer apart; one of another shape has nothing but its value."""
    if isinstance(value, list):
        return Answer(value=value, rows=value)
    answer = Answer(value=value)
    if not isinstance(value, dict):
        return answer
    parts = {names.of(COUNT): "count", names.of(FIRST): "first", names.of(LAST): "last"}
    parts |= {names.of(key): "rows" for key in rules.row_keys}
    keys = tuple(value)
    for name, key in zip(names.of_all(keys), keys, strict=True):
        part = parts.get(name)
        if part is None or part in answer.keys or (part == "rows" and not isinstance(value[key], list)):
            continue
        setattr(answer, part, value[key])
        answer.keys[part] = key
    return answer


def failure_of(answer: Answer, *, rules: ComparisonRules, names: Names) -> str | None:
    """Returns why a query failed on its side, in the program's words; ``None`` when it did not."""
    value = answer.value
    if not isinstance(value, dict) or answer.shape != "other" or not isinstance(answer.count, Absent):
        return None
    failures = {names.of(key) for key in rules.failure_keys}
    keys = tuple(value)
    for name, key in zip(names.of_all(keys), keys, strict=True):
        if name in failures and value[key] not in (None, False, "", [], {}):
            text = value[key] if isinstance(value[key], str) else repr(value[key])
            return " ".join(text.split())[:500]
    return None
