"""Decoding of JSON events and CloudEvents; errors have places."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.paths import ROOT
from tidings.errors import ConsistencyProblem, DecodeProblem
from tidings.events.json_decoder import MOST_PATH_TEXT, decode, event_of, flatten, publication_id
from tidings.events.schema.files import load, load_text
from tidings.parsers.strict_json import MAX_DEPTH

FURNITURE = load(ROOT / "examples" / "furniture.yaml")

DECODED: dict[str, dict[str, tuple[Any, ...]]] = {
    '{"price": 180, "name": "table", "sold": false}': {"price": (180,), "name": ("table",), "sold": (False,)},
    '{"seller": {"city": "Oslo", "since": {"year": 1998}}}': {
        "seller.city": ("Oslo",),
        "seller.since.year": (1998,),
    },
    '{"tags": ["oak", "round", "oak"]}': {"tags": ("oak", "round", "oak")},
    '{"bids": [{"by": "ana", "sum": 3}, {"by": "bo"}, 7]}': {
        "bids.by": ("ana", "bo"),
        "bids.sum": (3,),
        "bids": (7,),
    },
    '{"a": [1, [2, [3]]]}': {"a": (1, 2, 3)},
    '{"a": null, "b": [], "c": {}, "d": [null, {"e": null}]}': {},
    '{"a.b": 1, "a": {"b": 2}}': {"a.b": (1, 2)},
    '{"": 1, "x": {"": 2}, "y.": 3}': {"": (1,), "x.": (2,), "y.": (3,)},
    '{"": {"a": 1}}': {".a": (1,)},
    "{}": {},
    ' \n\t\r{"a" : 1 } \n': {"a": (1,)},
    '{"a": 9223372036854775807, "b": -9223372036854775808}': {"a": (2**63 - 1,), "b": (-(2**63),)},
    '{"a": 9223372036854775808}': {"a": (float(2**63),)},
    '{"a": 1.0, "b": 1e2, "c": -0.0, "d": -0, "e": 1e-999}': {
        "a": (1.0,),
        "b": (100.0,),
        "c": (-0.0,),
        "d": (0,),
        "e": (0.0,),
    },
    '{"a": "\\u00e9\\ud83d\\ude00\\n\\u0000", "\\u0061b": "é"}': {"a": ("é😀\n\0",), "ab": ("é",)},
}


@pytest.mark.parametrize("text", DECODED)
def test_decode_returns_values_by_path(text: str) -> None:
    event = decode(text.encode())
    assert event == DECODED[text]
    kinds = {path: [type(value) for value in values] for path, values in event.items()}
    assert kinds == {path: [type(value) for value in values] for path, values in DECODED[text].items()}
    assert list(event) == list(DECODED[text])


INVALID: dict[bytes, str] = {
    b"": 'the body is empty; accepted: a JSON object, such as {"price": 180}',
    b" \n ": 'the body is empty; accepted: a JSON object, such as {"price": 180}',
    b"[1, 2]": 'the body is not a JSON object; received an array; accepted: a JSON object, such as {"price": 180}',
    b"7": 'the body is not a JSON object; received 7; accepted: a JSON object, such as {"price": 180}',
    b'"x"': 'the body is not a JSON object; received a string; accepted: a JSON object, such as {"price": 180}',
    b"null": 'the body is not a JSON object; received null; accepted: a JSON object, such as {"price": 180}',
    b'\xef\xbb\xbf{"a": 1}': "the body starts with a byte order mark; accepted: UTF-8 without a byte order mark",
    b'{"a": "\xc3\xa9\xff"}': (
        "the body is not UTF-8 (column 9); received byte 0xff at offset 9; accepted: UTF-8\n"
        '  {"a": "é�"}\n'
        "          ^"
    ),
    b'{"a": 1, "b": {"a": 2, "a": 3}}': (
        "the key 'a' occurs twice in one object (column 24); accepted: each key once; several values as an array\n"
        '  {"a": 1, "b": {"a": 2, "a": 3}}\n'
        "                         ^^^"
    ),
    b'{"ab": 1, "\\u0061b": 3}': (
        "the key 'ab' occurs twice in one object (column 11); accepted: each key once; several values as an array\n"
        '  {"ab": 1, "\\u0061b": 3}\n'
        "            ^^^^^^^^^"
    ),
    b'{\n  "price": NaN\n}': (
        'NaN is not JSON (line 2, column 12); accepted: a finite number or null\n    "price": NaN\n             ^^^'
    ),
    b'{"a": -Infinity}': (
        "-Infinity is not JSON (column 7); accepted: a finite number or null\n"
        '  {"a": -Infinity}\n'
        "        ^^^^^^^^^"
    ),
    b'{"a": [1, 1e999]}': (
        "the number is too large for a double (column 11); received 1e999; accepted: a number up to about 1.8e308\n"
        '  {"a": [1, 1e999]}\n'
        "            ^^^^^"
    ),
    b'{"a": ' + b"9" * 5000 + b"}": (
        "the number is too large for a double (column 7); received a number of 5000 characters; "
        "accepted: a number up to about 1.8e308"
    ),
    b'{"a": "\\ud83d!"}': (
        'half of a surrogate pair (column 7); received "\\ud83d!"; accepted: both halves, such as \\ud83d\\ude00\n'
        '  {"a": "\\ud83d!"}\n'
        "        ^^^^^^^^^"
    ),
    b"hello": 'expected a value (column 1); accepted: a JSON object, such as {"price": 180}\n  hello\n  ^',
    b" <a/>": 'expected a value (column 2); accepted: a JSON object, such as {"price": 180}\n   <a/>\n   ^',
    b'{"a": }': (
        "expected a value (column 7); accepted: an object, an array, a string, a number, true, false or null\n"
        '  {"a": }\n'
        "        ^"
    ),
    b'{"a": 1': 'expected a comma or the end (column 8); accepted: , or a closing bracket\n  {"a": 1\n         ^',
    b'{"a": 1,}': 'expected a key (column 9); accepted: a string in double quotes\n  {"a": 1,}\n          ^',
    b"{'a': 1}": "expected a key (column 2); accepted: a string in double quotes\n  {'a': 1}\n   ^",
    b'{"a": 01}': 'expected a comma or the end (column 8); accepted: , or a closing bracket\n  {"a": 01}\n         ^',
    b'{"a": 1} {}': (
        "extra data after the JSON value (column 10); accepted: one JSON value and nothing after it\n"
        '  {"a": 1} {}\n'
        "           ^"
    ),
    b'{"a": "\x1b[31m"}': "a control character in a string (column 8); accepted: its escape, such as \\n",
    b'{"a": "x': 'unterminated string (column 7); accepted: a closing "\n  {"a": "x\n        ^',
    b'{"a": "\\x"}': (
        'unknown escape sequence (column 8); accepted: \\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u and four hex digits\n'
        '  {"a": "\\x"}\n'
        "         ^"
    ),
    b'{"a": ' * 65: "nested too deeply (column 385); accepted: at most 64 levels",
}


@pytest.mark.parametrize("body", INVALID, ids=lambda body: repr(body[:24]))
def test_decode_invalid_json_is_rejected(body: bytes) -> None:
    with pytest.raises(DecodeProblem) as caught:
        decode(body)
    assert str(caught.value) == INVALID[body]


def nested(depth: int, open_: str = '{"a":', close: str = "}") -> bytes:
    """Build an object with `depth` levels, including the outermost."""
    return (f'{{"x":{open_ * (depth - 1)}1{close * (depth - 1)}}}').encode()


@pytest.mark.parametrize("brackets", [('{"a":', "}"), ("[", "]")])
def test_decode_deep_nesting_is_rejected(brackets: tuple[str, str]) -> None:
    assert list(decode(nested(MAX_DEPTH, *brackets)).values()) == [(1,)]
    with pytest.raises(DecodeProblem, match="nested too deeply"):
        decode(nested(MAX_DEPTH + 1, *brackets))
    with pytest.raises(DecodeProblem, match="nested too deeply"):
        decode(nested(1_000_000, *brackets))
    with pytest.raises(DecodeProblem, match="nested too deeply"):
        decode(b'{"x":' * 1_000_000)


def test_decode_many_siblings_are_accepted() -> None:
    assert decode(b'{"a":[' + b",".join([b'{"b":[1]}'] * 1000) + b"]}") == {"a.b": (1,) * 1000}


def test_decode_brackets_in_strings_do_not_count_as_depth() -> None:
    assert decode(b'{"a": "' + b"[" * 1000 + b'\\"{"}') == {"a": ("[" * 1000 + '"{',)}


def test_decode_error_of_long_body_is_short() -> None:
    with pytest.raises(DecodeProblem) as caught:
        decode(b'{"a": "' + b"x" * 100_000 + b'", "a": 1}')
    assert len(str(caught.value)) < 300 and "column 100011" in str(caught.value)


def test_flatten_python_objects() -> None:
    assert flatten({"a": {"b": (1, 2)}, "c": 2**70}) == {"a.b": (1, 2), "c": (float(2**70),)}
    for wrong in ({"a": float("nan")}, {"a": 10**400}, {"a": object()}, {1: 2}, {"a": {2: 3}}):
        with pytest.raises(DecodeProblem):
            flatten(wrong)  # type: ignore[arg-type]
    deep: Any = 1
    for _ in range(sys.getrecursionlimit() * 2):
        deep = [deep]
    with pytest.raises(DecodeProblem, match="nested too deeply"):
        flatten({"a": deep})


# --- with a schema


def test_decode_events_of_paper_are_checked() -> None:
    e1 = b"""{"event_type": ["antiques", "furniture"], "price": 200, "quantity": 2, "period": "XVI",
            "furniture_category": "table"}"""
    assert decode(e1, FURNITURE) == {
        "event_type": ("antiques", "furniture"),
        "price": (200,),
        "quantity": (2,),
        "period": ("XVI",),
        "furniture_category": ("table",),
    }
    e2 = b'{"event_type": ["antiques", "furniture"], "price": 100, "quantity": 1, "period": "XVIII"}'
    with pytest.raises(
        ConsistencyProblem, match=r"^furniture_category is mandatory for furniture \(rule R2\)$"
    ):
        decode(e2, FURNITURE)


def test_decode_attribute_with_dot_is_nested_path() -> None:
    schema = load_text(
        "attributes: {seller.city: string}\nevent_types: {sale: {attributes: {seller.city: mandatory}}}"
    )
    assert decode(b'{"event_type": "sale", "seller": {"city": "Oslo"}}', schema)
    with pytest.raises(ConsistencyProblem, match=r"seller\.town is not an attribute of sale \(rule R3\)"):
        decode(b'{"event_type": "sale", "seller": {"city": "Oslo", "town": "Oslo"}}', schema)


# --- CloudEvents

ENVELOPE = {"specversion": "1.0", "id": "7", "source": "/shop", "type": "sale"}
ENVELOPE_PATHS = {
    "cloudevent.specversion": ("1.0",),
    "cloudevent.id": ("7",),
    "cloudevent.source": ("/shop",),
    "cloudevent.type": ("sale",),
}


def cloud_event(**more: Any) -> bytes:
    return json.dumps(ENVELOPE | more).encode()


def encode_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_decode_cloud_event_data_paths_have_no_prefix() -> None:
    event = decode(cloud_event(data={"price": 180, "seller": {"city": "Oslo"}}, time="2026-01-31T12:00:00Z"))
    assert event == ENVELOPE_PATHS | {
        "price": (180,),
        "seller.city": ("Oslo",),
        "event_type": ("sale",),
        "cloudevent.time": ("2026-01-31T12:00:00Z",),
    }


def test_decode_cloud_event_data_may_declare_event_types() -> None:
    assert decode(cloud_event(data={"event_type": ["a", "b"]}))["event_type"] == ("a", "b")


@pytest.mark.parametrize(
    ("more", "paths"),
    [
        ({}, {}),
        ({"data": None}, {}),
        ({"data": "hello"}, {"data": ("hello",)}),
        ({"data": [1, {"b": 2}]}, {"data": (1,), "data.b": (2,)}),
        ({"data_base64": encode_base64(b'{"price": 180}')}, {"price": (180,)}),
        ({"data_base64": encode_base64(b"[1]"), "datacontenttype": "application/vnd.x+json"}, {"data": (1,)}),
        (
            {"data_base64": encode_base64(b'{"a":1}'), "datacontenttype": "text/JSON; charset=utf-8"},
            {"a": (1,)},
        ),
        ({"data_base64": encode_base64(b"<a/>"), "datacontenttype": "text/xml"}, {"data": ("<a/>",)}),
        (
            {"data_base64": encode_base64("schön".encode()), "datacontenttype": "text/plain"},
            {"data": ("schön",)},
        ),
        (
            {"data_base64": encode_base64(b"sch\xf6n"), "datacontenttype": "text/plain; charset=latin-1"},
            {"data_base64": (encode_base64(b"sch\xf6n"),)},
        ),
        (
            {"data_base64": encode_base64(b"\xff"), "datacontenttype": "text/plain"},
            {"data_base64": (encode_base64(b"\xff"),)},
        ),
        (
            {"data_base64": encode_base64(b"ab"), "datacontenttype": "image/png"},
            {"data_base64": (encode_base64(b"ab"),)},
        ),
    ],
)
def test_decode_cloud_event_accepts_any_data(more: dict[str, Any], paths: dict[str, tuple[Any, ...]]) -> None:
    event = {
        path: values
        for path, values in decode(cloud_event(**more)).items()
        if not path.startswith("cloudevent.")
    }
    assert event == {"event_type": ("sale",), **paths}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"specversion": "0.3"},
            "unsupported CloudEvents version; received '0.3'; accepted: specversion '1.0'",
        ),
        ({"specversion": 1.0}, "unsupported CloudEvents version; received 1.0"),
        (
            {"id": None},
            "a CloudEvent needs the attribute id; accepted: non-empty strings for id, source and type",
        ),
        ({"source": ""}, "a CloudEvent needs the attribute source"),
        ({"type": 7}, "a CloudEvent needs the attribute type"),
        ({"data": 1, "data_base64": "MQ=="}, "a CloudEvent has both data and data_base64"),
        ({"data_base64": "!"}, "data_base64 is not Base64"),
        ({"data_base64": "é"}, "data_base64 is not Base64"),
        ({"data_base64": 7}, "data_base64 is not Base64"),
        ({"data_base64": encode_base64(b'{"a": }')}, "expected a value (column 7)"),
        ({"data_base64": encode_base64(b"[" * 100_000)}, "nested too deeply"),
        (
            {"data": {"cloudevent": {"id": "8"}}},
            "data has the path cloudevent.id, but cloudevent is reserved for the envelope",
        ),
        ({"data": {"cloudevent.id": "8"}}, "data has the path cloudevent.id"),
        (
            {"time": "lunchtime"},
            "invalid value of the CloudEvents attribute time; received 'lunchtime'; accepted: an RFC 3339 time",
        ),
        *(
            ({"time": wrong}, "invalid value of the CloudEvents attribute time")
            for wrong in (
                "2018-04-05T18:31Z",
                "2018-04-05T18:31:00",
                "2018-04-05T18:31:00X",
                "2018-04-05T18:31:00+25:00",
                "2018-04-05T18:31:00+xx:00",
                "2018-04-05T18:31:00+05",
                "2018-02-30T18:31:00Z",
                "",
                5,
            )
        ),
        ({"datacontenttype": "xyz"}, "invalid value of the CloudEvents attribute datacontenttype"),
        ({"datacontenttype": ""}, "invalid value of the CloudEvents attribute datacontenttype"),
        ({"dataschema": ""}, "invalid value of the CloudEvents attribute dataschema"),
        ({"subject": ""}, "invalid value of the CloudEvents attribute subject"),
        ({"MyExtension": "x"}, "invalid CloudEvents attribute name; received 'MyExtension'"),
        ({"my.extension": "x"}, "invalid CloudEvents attribute name"),
        ({"extension": 1.5}, "invalid value of the CloudEvents attribute extension; received 1.5"),
        ({"extension": {"a": 1}}, "invalid value of the CloudEvents attribute extension"),
        ({"extension": ["a"]}, "invalid value of the CloudEvents attribute extension"),
    ],
)
def test_decode_invalid_cloud_event_is_rejected(more: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeProblem) as caught:
        decode(cloud_event(**more))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "more",
    [
        {"datacontenttype": None, "dataschema": None, "subject": None, "time": None},
        {"datacontenttype": "text/plain", "dataschema": "https://e.org/s", "subject": "tests"},
        {"time": "2018-04-05T17:31:00.000000000Z"},
        {"time": "2018-04-05T17:31:00.1234567890123z"},
        {"time": "2018-04-05t18:31:00+01:00"},
        {"extinteger": 10, "extboolean": True, "extstring": "", "extbinary": "TWE=", "7": "seven"},
    ],
)
def test_decode_cloud_event_accepts_valid_envelopes(more: dict[str, Any]) -> None:
    """Includes cases of the CloudEvents conformance suite, as does the test of rejected envelopes above."""
    decoded = decode(cloud_event(**more))
    expected = {f"cloudevent.{name}": (value,) for name, value in more.items() if value is not None}
    assert {path: values for path, values in decoded.items() if path in expected} == expected


def test_decode_cloud_event_envelope_needs_no_declaration() -> None:
    body = json.dumps(
        ENVELOPE | {"type": "furniture", "data": {"price": 1, "quantity": 1, "furniture_category": "bed"}}
    )
    assert decode(body.encode(), FURNITURE)["cloudevent.type"] == ("furniture",)
    with pytest.raises(ConsistencyProblem, match=r"no event type 'sale' \(rule R1\)"):
        decode(cloud_event(), FURNITURE)
    named = load_text(
        "attributes: {cloudevent.subject: string}\n"
        + "event_types: {sale: {attributes: {cloudevent.subject: mandatory}}}"
    )
    assert decode(cloud_event(subject="x"), named)
    with pytest.raises(ConsistencyProblem, match=r"cloudevent\.subject is mandatory for sale"):
        decode(cloud_event(), named)


def test_decode_key_cloudevent_in_plain_event_is_checked() -> None:
    with pytest.raises(ConsistencyProblem, match="R3"):
        decode(
            b'{"event_type": "antiques", "price": 1, "quantity": 1, "period": "XV", "cloudevent": {"id": 1}}',
            FURNITURE,
        )


# --- ids


@pytest.mark.parametrize(
    ("content", "id"),
    [
        ({"id": "p1"}, "p1"),
        ({"id": 7}, "7"),
        ({"id": ""}, None),
        ({"id": True}, None),
        ({"id": 1.5}, None),
        ({"id": 2**70}, None),
        ({"id": ["a", "b"]}, None),
        ({"id": {"x": 1}}, None),
        ({}, None),
        (ENVELOPE | {"data": {"id": "other"}}, "7"),
    ],
)
def test_publication_id_is_string_or_integer(content: dict[str, Any], id: str | None) -> None:
    assert publication_id(content) == publication_id(json.dumps(content).encode()) == id


def test_publication_id_other_id_field_is_path() -> None:
    assert (
        publication_id({"meta": {"key": "k"}}, "meta.key")
        == publication_id({"meta.key": "k"}, "meta.key")
        == "k"
    )


# --- anything at all

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
FRAGMENTS = [
    b'{"a":',
    b"[",
    b"]",
    b"}",
    b",",
    b":",
    b'"',
    b'"a"',
    b"\\",
    b"\\ud800",
    b"\\u0041",
    b"1",
    b"-",
    b"1e999",
]
FRAGMENTS += [
    b"9" * 5000,
    b"NaN",
    b"Infinity",
    b"true",
    b"null",
    b" ",
    b"\n",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\0",
]
FRAGMENTS += [b'"specversion":"1.0",', b'"data_base64":"e30="', b"[" * 70, "é".encode()]


@given(st.binary() | st.lists(st.sampled_from(FRAGMENTS)).map(b"".join))
@example(b"[" * 2000)
@example(b'{"a":' * 2000)
@example(b'{"a":' + b"1" * 5000 + b"}")
@example(b'{"a":1e' + b"9" * 5000 + b"}")
@example(b'{"a":-' + b"9" * 309 + b"}")
@example('{"a":"x'.encode("utf-16"))
@example(b'{"a":[1,2')
@example(b'{"a":[}')
@example(b'{"\\ud800":1}')
def test_decode_any_bytes_give_event_or_decode_problem(body: bytes) -> None:
    try:
        event = decode(body)
    except DecodeProblem:
        return
    for path, values in event.items():
        (path + "".join(value for value in values if isinstance(value, str))).encode()
        assert values and all(isinstance(value, bool | int | float | str) for value in values)


def test_decode_id_needs_no_declaration() -> None:
    schema = load_text("attributes: {price: numeric}\nevent_types: {sale: {attributes: {price: mandatory}}}")
    event = {"id": "e1", "event_type": "sale", "price": 5}
    assert event_of(event, schema) == {"id": ("e1",), "event_type": ("sale",), "price": (5,)}
    other = {"key": 7, "event_type": "sale", "price": 5}
    assert event_of(other, schema, id_field="key")["key"] == (7,)
    with pytest.raises(ConsistencyProblem, match=r"key is not an attribute of sale \(rule R3\)"):
        event_of(other, schema)


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=5), st.booleans())
def test_decode_of_json_dumps_equals_flatten(content: dict[str, Any], ascii_only: bool) -> None:
    body = json.dumps(content, ensure_ascii=ascii_only).encode()
    assert decode(body) == event_of(content)


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=5), st.data())
def test_decode_truncated_json_is_rejected(content: Any, data: st.DataObject) -> None:
    body = json.dumps(content).encode()
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(DecodeProblem):
        decode(body[:cut])


def test_decode_many_values_below_long_key_are_rejected_early() -> None:
    """Each value repeats the key in its path: these paths would take 20 GB."""
    long = "k" * 1_000_000
    for content in (
        {long: {f"a{n}": 1 for n in range(20_000)}},
        {"a": {long: [{"b": n} for n in range(20_000)]}},
    ):
        with pytest.raises(DecodeProblem, match="the paths of this event are too long"):
            decode(json.dumps(content))


def test_flatten_paths_within_length_limit_are_accepted() -> None:
    key, values = "k" * 1_000, {str(n): n for n in range(10_000, 29_000)}
    assert len(flatten({key: values})) == len(values)
    assert len(flatten({"k" * MOST_PATH_TEXT: 1, "l" * MOST_PATH_TEXT: 2})) == 2
