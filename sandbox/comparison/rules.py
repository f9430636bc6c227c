"""The rules of a comparison: which differences between two results count, and which are accepted.

Everything is strict unless a rule says otherwise. A rule that accepts a difference is named in the report, with a count
and an example; a rule that accepts nothing leaves no trace.

=====================  =============================================================================================
rule                   what it accepts
=====================  =============================================================================================
``rows``               the same rows of a query in another order, as a multiset
``unordered``          the same elements of the arrays at these paths in another order
``absolute_tolerance``  numbers that differ by at most so much
``relative_tolerance``  numbers that differ by at most this share of the larger one
``numeric_text``       text that is a decimal numeral counts as the number: ``"49.90"``, ``"49.9"`` and ``49.9``
``dates``              ISO 8601 texts count as dates: ``2024-01-10 12:00`` and ``2024-01-10T12:00:00.000``
``null_is_absent``     a member that is null on one side and not there on the other
``names``              other spellings of a name: ``OrderId``, ``order_id``, ``orderId``; also ``_id`` and ``id``
``aliases``            other names, as listed
``ids``                other values of identifiers: any, or any that are mapped one to one
``ignored``            anything at these paths, also that there is nothing
``samples``            another shape: ``count``, first and last row on one side, whole rows on the other
=====================  =============================================================================================

Numbers are compared as decimals, never as binary fractions: ``0.1`` is the decimal 0.1. JSON numbers are read as 64-bit
floats, which keep 15 significant digits exactly; a program whose numbers have more writes them as text.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from sandbox.comparison.json_paths import parse_path
from sandbox.errors import ConfigurationError
from sandbox.models import Model

MAX_PATHS: Final = 100


def _checked_path(text: str) -> str:
    parse_path(text)
    return text


PathPattern = Annotated[str, Field(max_length=1024), AfterValidator(_checked_path)]
"""A JSONPath with wildcards, such as ``$..orderId`` or ``$.openOrders[*].note``; see ``json_paths``."""


class RowOrder(StrEnum):
    """Whether the order of a query's rows counts."""

    ORDERED = "ordered"
    UNORDERED = "unordered"


class NameRule(StrEnum):
    """Which names are the same: equal ones, or those that case and separators alone tell apart."""

    EXACT = "exact"
    WORDS = "words"


class SampleRule(StrEnum):
    """What becomes of two shapes of one query's answer: a difference, or comparing what both sides have."""

    STRICT = "strict"
    COMPARABLE = "comparable"


class Precision(StrEnum):
    """The unit to which times are cut off before they are compared."""

    NANOSECOND = "nanosecond"
    MICROSECOND = "microsecond"
    MILLISECOND = "millisecond"
    SECOND = "second"
    MINUTE = "minute"
    DAY = "day"


class DateRules(Model):
    """How ISO 8601 texts are compared when they count as dates.

    Accepted are ``2024-01-10`` and ``2024-01-10T12:00``, with ``T`` or a space, with or without seconds, a fraction of
    up to nine digits, and ``Z`` or an offset; a zone in brackets after it (Java's ``[Europe/Prague]``) is passed over.
    Two times with offsets are equal when they are the same instant.

    Attributes:
        naive: What a time without offset is: something else than a time with one (``distinct``), or a time in UTC.
        midnight: Whether a date without time equals midnight of that day.
        precision: Times are cut off to this unit, not rounded.
    """

    naive: Literal["distinct", "utc"] = "distinct"
    midnight: bool = False
    precision: Precision = Precision.NANOSECOND


class IdRule(Model):
    """Identifiers of one kind: all values at these paths.

    Attributes:
        paths: Where they are, such as ``$..orderId``; one kind may have several names.
        treat: ``map``: values may differ between the sides, one to one and everywhere the same way. ``ignore``: any
            value equals any other; both sides must have one.
    """

    paths: tuple[PathPattern, ...] = Field(min_length=1, max_length=MAX_PATHS)
    treat: Literal["map", "ignore"] = "map"


class ComparisonRules(Model):
    """Which differences are accepted; the default accepts none. The module's text has the table.

    No field may be called ``keys``: ``dict(model)``, as Prefect does it, would take the model for a mapping.

    Attributes:
        rows: Whether the order of each query's rows counts. Nested arrays keep theirs, see ``unordered``.
        unordered: Further arrays whose order does not count: single queries (``$.openOrders``) or nested arrays
            (``$..tags``). Inside them, a path with a fixed index matches nothing.
        absolute_tolerance: Numbers may differ by so much.
        relative_tolerance: Numbers may differ by this share of the larger absolute value.
        numeric_text: Whether text that is a decimal numeral counts as the number.
        dates: How dates are compared; ``None`` compares them as text.
        null_is_absent: Whether null equals a missing member.
        names: Which names of members (and queries) are the same.
        aliases: Name → name that it stands for, on both sides.
        ids: Identifiers that may differ.
        ignored: Paths of members that are not compared.
        samples: What becomes of samples against whole rows.
        row_keys: Members of a query's answer that hold its rows, where the answer is an object.
        failure_keys: A query whose answer is an object with one of these members (and no rows and no count) has
            failed on that side; two such failures are never equivalent.
    """

    rows: RowOrder = RowOrder.ORDERED
    unordered: tuple[PathPattern, ...] = Field(default=(), max_length=MAX_PATHS)
    absolute_tolerance: Annotated[Decimal, Field(ge=0, allow_inf_nan=False)] = Decimal(0)
    relative_tolerance: Annotated[Decimal, Field(ge=0, lt=1, allow_inf_nan=False)] = Decimal(0)
    numeric_text: bool = False
    dates: DateRules | None = None
    null_is_absent: bool = False
    names: NameRule = NameRule.EXACT
    aliases: dict[str, str] = Field(default_factory=dict)
    ids: tuple[IdRule, ...] = Field(default=(), max_length=MAX_PATHS)
    ignored: tuple[PathPattern, ...] = Field(default=(), max_length=MAX_PATHS)
    samples: SampleRule = SampleRule.STRICT
    row_keys: tuple[str, ...] = ("rows",)
    failure_keys: tuple[str, ...] = ("error", "exception")

    @model_validator(mode="after")
    def _aliases_end(self) -> Self:
        if both := sorted(self.aliases.keys() & set(self.aliases.values())):
            raise ValueError(f"aliases: {', '.join(both)} stands for a name and is one that others stand for; keep one")
        return self

    @property
    def has_tolerance(self) -> bool:
        """True when numbers may differ."""
        return self.absolute_tolerance > 0 or self.relative_tolerance > 0

    def in_words(self) -> list[str]:
        """Returns the rules that are not strict, one ``name=value`` each."""
        document = self.model_dump(mode="json", exclude_defaults=True)
        return [f"{name}={value}" for name, value in document.items()]


STRICT: Final = ComparisonRules()


def checked_rules(document: Any, *, field: str = "rules") -> ComparisonRules:
    """Validates rules given as a mapping.

    Args:
        document: The rules' fields.
        field: What to call the whole in an error.

    Raises:
        ConfigurationError: A rule is unknown or its value wrong; the text names every wrong one.
    """
    try:
        return ComparisonRules.model_validate(document)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        wrong = [(".".join(map(str, (field, *one["loc"]))), _complaint(one["type"], one["msg"])) for one in found]
        first, text = wrong[0]
        rest = "; ".join(f"{name}: {message}" for name, message in wrong[1:])
        raise ConfigurationError(f"{text}; {rest}" if rest else text, field=first) from None


def _complaint(kind: str, message: str) -> str:
    return "there is no such rule" if kind == "extra_forbidden" else message.removeprefix("Value error, ")


def load_rules_file(path: Path) -> ComparisonRules:
    """Reads rules from a TOML or JSON file.

    Raises:
        ConfigurationError: The file cannot be read, or a rule is wrong; the text names it.
    """
    import tomllib

    import orjson

    try:
        text = path.read_bytes()
        document = orjson.loads(text) if path.suffix == ".json" else tomllib.loads(text.decode())
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}", field="rules") from None
    except ValueError as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise ConfigurationError(f"{path} is not {kind}: {error}", field="rules") from None
    return checked_rules(document, field=str(path))
