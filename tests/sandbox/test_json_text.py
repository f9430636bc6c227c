from __future__ import annotations

import codecs
import json

import pytest

from sandbox.json_text import JsonTextError, json_path, parse_json


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -1, 1.5, "x", [], {}, {"a": [1, {"b": None}], "ž日": "😀"}, 2**64 - 1, -(2**63), [[[[]]]]],
)
def test_json_is_read(value: object) -> None:
    assert parse_json(json.dumps(value).encode()) == value


def test_a_byte_order_mark_is_stripped() -> None:
    assert parse_json(codecs.BOM_UTF8 + b'{"a": 1}\n') == {"a": 1}


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        ('{"a": 1}'.encode("utf-16"), ["UTF-16", "expected UTF-8"]),
        ('{"a": 1}'.encode("utf-16-le"), ["UTF-16"]),
        ('{"a": 1}'.encode("utf-16-be"), ["UTF-16"]),
        ('{"a": 1}'.encode("utf-32"), ["UTF-32"]),
        (b'{"a":\n "\xe9"}', ["not UTF-8", "0xe9", "line 2, column 3"]),
        (b'{"q": {"avg": NaN}}', ["NaN", "$.q.avg", "line 1, column 15"]),
        (b'[1, {"unit price": [0, -Infinity]}]', ["-Infinity", '$[1]["unit price"][1]']),
        (b'{"a": Infinity}', ["Infinity", "$.a"]),
        (b'{"a": {"b": 1,\n "b": 2}}', ['"b"', "twice", "$.a", "line 2"]),
        (b'{"a": 123456789012345678901234567890}', ["64 bits", "$.a"]),
        (b'{"a": [1, -9223372036854775809]}', ["64 bits", "$.a[1]"]),
        (b'{"a" 1}', ["`:`", "$.a"]),
        (b'{"a": 1,}', ["key", "$"]),
        (b"[1 2]", ["`,` or `]`", "line 1, column 4"]),
        (b'{"a": 1} {', ["more after the end", "column 10"]),
        (b'{"a": hello}', ["expected a value", "$.a"]),
        (b"{'a': 1}", ['key in `"`']),
        (b'{"a": "x\ny"}', ["control character", "$.a"]),
        (b'{"a": "\\x"}', ["escape", "$.a"]),
        (b'{"a": 01}', ["expected `,`", "column 8"]),
    ],
)
def test_faults_are_told_by_place(data: bytes, parts: list[str]) -> None:
    with pytest.raises(JsonTextError) as caught:
        parse_json(data)
    for part in parts:
        assert part.lower() in caught.value.message.lower()
    assert not caught.value.incomplete


@pytest.mark.parametrize("end", range(1, 40))
def test_half_a_file_is_called_incomplete(end: int) -> None:
    whole = '{"orders": {"count": 3, "first": "ž", "all": [1, 2.5, true]}}'.encode()
    with pytest.raises(JsonTextError) as caught:
        parse_json(whole[:end])
    if whole[end - 1 : end] not in (b"t", b"r", b"u"):  # `t` of `true` is no value either, but says so differently
        assert caught.value.incomplete, caught.value.message


@pytest.mark.parametrize("data", [b"", b"  \n", codecs.BOM_UTF8])
def test_an_empty_file_says_so(data: bytes) -> None:
    with pytest.raises(JsonTextError, match="empty"):
        parse_json(data)


def test_depth_is_bounded_without_a_crash() -> None:
    with pytest.raises(JsonTextError):
        parse_json(b"[" * 100_000)
    with pytest.raises(JsonTextError, match="deeper than 200"):
        parse_json(b"[" * 201 + b"]" * 201)
    assert parse_json(b'[{"a": ' * 100 + b"1" + b"}]" * 100) is not None
    assert parse_json(b"[" + b"[{}]," * 1000 + b"1]") is not None


def test_long_digits_inside_text_and_fractions_are_fine() -> None:
    assert parse_json(b'{"a": "123456789012345678901234567890", "b": 0.1234567890123456789}') == {
        "a": "123456789012345678901234567890",
        "b": 0.1234567890123456789,
    }


def test_paths_quote_what_needs_it() -> None:
    assert json_path(json_path(json_path("$", "a"), 3), 'x "y"') == '$.a[3]["x \\"y\\""]'
