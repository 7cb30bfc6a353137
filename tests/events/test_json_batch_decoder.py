"""The batch decoder agrees with the specification: whole batches, broken bytes, corner cases of RFC 8259."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.atoms import events_of
from tests.support.oracles.json_decoders import decode_bodies, same_as_definition
from tidings.atoms import AtomKind
from tidings.events.json_batch_decoder import decode_many, documents_of, split_lines
from tidings.events.json_decoder import MOST_PATH_TEXT
from tidings.events.kernel_tables import PathTable
from tidings.matching.kernels.decode import json_objects as kernel

# --- Generated texts -------------------------------------------------------------------------------------------

keys = st.sampled_from(["a", "b", "c", "id", "é", "a.b", "", "specversion", "data", "键", 'q"', "long name"])
numbers = st.from_regex(r"-?(0|[1-9][0-9]{0,21})(\.[0-9]{1,22})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
spaces = st.sampled_from(["", "", "", " ", "\t", "\n", "\r\n", "  "])


@st.composite
def strings(draw: st.DrawFn, content: st.SearchStrategy[str]) -> str:
    return json.dumps(draw(content), ensure_ascii=draw(st.booleans()))


scalars = st.one_of(
    numbers,
    strings(st.text(max_size=12)),
    st.sampled_from(
        ["true", "false", "null", r'"\ud83d\ude00"', r'"\ud83d"', r'"\/"', r'"\u0000"', '"1"', "1.5", "7"]
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(2**65), 2**65).map(str),
)


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    elements = [draw(spaces) + draw(inner) + draw(spaces) for _ in range(draw(st.integers(0, 3)))]
    return "[" + ",".join(elements or [draw(spaces)]) + "]"


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[str], names: st.SearchStrategy[list[str]]) -> str:
    members = [
        draw(spaces) + draw(strings(st.just(name))) + draw(spaces) + ":" + draw(spaces) + draw(inner)
        for name in draw(names)
    ]
    return "{" + ",".join(members or [draw(spaces)]) + "}"


some_keys = st.lists(keys, max_size=5, unique=True)
values = st.recursive(scalars, lambda inner: arrays(inner) | objects(inner, some_keys), max_leaves=12)
documents = objects(values, some_keys).map(str.encode)

INTERESTING = (
    b'{}[]",:\\.-+eE0192tfnu \n\r\t\x00\x1f\x7f\x80\xbf\xc0\xc3\xa9\xe2\x82\xac\xed\xf0\x9f\x98\x80\xff'
)


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A document with a few bytes removed, inserted or doubled."""
    body = bytearray(draw(documents))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(body)))
        end = min(len(body), start + draw(st.integers(0, 3)))
        body[start:end] = draw(st.sampled_from([b"", bytes(body[start:end]) * 2]) | _interesting())
    return bytes(body)


def _interesting() -> st.SearchStrategy[bytes]:
    return st.lists(st.sampled_from(INTERESTING), max_size=3).map(bytes)


@given(st.lists(documents, max_size=4), st.lists(keys, max_size=2))
@example([b'{"a":[{"b":1},{"b":[2,3]}],"b":[[1],[],[[2]]]}'], [])
@example(
    [b'{"id":["x"]}', b'{"id":["x","y"]}', b'{"id":{"id":1}}', b'{"id":-0}', b'{"id":1.0}', b'{"id":""}'],
    ["id"],
)
def test_decode_many_generated_documents_agree_with_specification(
    bodies: list[bytes], unwanted: list[str]
) -> None:
    same_as_definition(bodies, unwanted)


@given(st.lists(broken(), max_size=6), st.sampled_from(["id", "a.b", "é", "missing"]))
def test_decode_many_broken_documents_agree_with_specification(bodies: list[bytes], id_field: str) -> None:
    same_as_definition(bodies, id_field=id_field)


@given(documents)
def test_decode_many_document_prefixes_agree_with_specification(body: bytes) -> None:
    same_as_definition([body[:i] for i in range(len(body))])


@pytest.mark.parametrize(
    "special", ['"', r"\n", r"\"", "é", "\x1f", "\x7f", "\x80", "😀", r"\u00e9", "\\", "1", ""]
)
def test_decode_many_strings_and_keys_with_special_characters_agree(special: str) -> None:
    texts = ["x" * before + special + "y" * after for before in range(18) for after in (0, 3, 9)]
    bodies = [f'{{"{key}":"{value}"}}' for text in texts for key, value in (("a", text), (text, "a"))]
    same_as_definition([body.encode() for body in bodies])


@pytest.mark.parametrize("after", ["", " ", ",", "}", "e", ".", "/", ":", "x", "é"])
def test_decode_many_numbers_of_any_length_agree_with_specification(after: str) -> None:
    digits = ["123456789012345678901234567890"[:count] for count in range(1, 25)]
    numbers = [sign + text for text in digits for sign in ("", "-")]
    bodies = [f'{{"a":{number}{after}}}' for number in (*numbers, *(f"0.{text}" for text in digits))]
    same_as_definition([body.encode() for body in bodies])


plain_keys = st.lists(st.sampled_from(["a", "b", "c", "id", "é"]), max_size=4)
small_values = st.recursive(st.sampled_from("12"), lambda inner: arrays(inner) | objects(inner, plain_keys))


@given(st.lists(objects(small_values, plain_keys).map(str.encode), max_size=4))
def test_decode_many_duplicate_keys_agree_with_specification(bodies: list[bytes]) -> None:
    same_as_definition(bodies)


@st.composite
def near_midpoints(draw: st.DrawFn) -> str:
    """Up to 21 digits of the midpoint of two doubles, where the last digit decides which one is nearer."""
    low = draw(st.floats(1e-200, 1e200))
    midpoint = (Decimal(low) + Decimal(math.nextafter(low, math.inf))) / 2
    return f"{midpoint:.{draw(st.integers(14, 20))}e}"


decimals = st.floats(allow_nan=False, allow_infinity=False).map(repr)


@given(st.lists(numbers | decimals | near_midpoints(), max_size=20))
@example(["9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551616"])
@example(
    [
        "9007199254740993",
        "9007199254740993.0",
        "0.30000000000000004",
        "1e22",
        "1e23",
        "1.7976931348623157e308",
    ]
)
@example(
    ["5e-324", "2.2250738585072014e-308", "2.2250738585072011e-308", "1e-400", "0e400", "-0", "-0.0", "0.0e5"]
)
@example(["0.000000000000000000001", "0.00000000000000000000000000000000012345", "1234567890123456789.5"])
def test_decode_many_numbers_agree_with_specification(literals: list[str]) -> None:
    same_as_definition([f'{{"a":{each},"id":{each}}}'.encode() for each in literals])
    same_as_definition([f'{{"a":[{",".join(literals)}]}}'.encode()], unwanted=["a"])


@given(st.lists(st.binary(max_size=6), max_size=5), st.lists(st.text(max_size=5), max_size=5))
def test_decode_many_possibly_invalid_utf8_agrees_with_specification(
    raw: list[bytes], texts: list[str]
) -> None:
    for content in [*raw, *(text.encode() for text in texts)]:
        bodies = [b'{"a":"' + content + b'"}', b'{"' + content + b'":1}', b'{"z":["' + content + b'"]}']
        same_as_definition(bodies, unwanted=["z"])


# --- Documents that the kernel must decode itself ---------------------------------------------------------------

STOCK = b'{"id":"e123","symbol":"S0042","price":12345,"open":12000.5,"high":-1e3,"volume":553311}'


@pytest.mark.parametrize(
    "body",
    [
        STOCK,
        b' { "id" : 17 , "a" : { "b" : [ true , false , null , { } , [ ] ] } , "c" : 0.30000000000000004 } ',
        '{"a":"Zürich 東京 😀","é":"ß"}'.encode(),
        b'{"unwanted":"escapes \\" \\u00e9 \\ud83d\\ude00 are read over","a":1,"unwanted too":123456789012345678901}',
        b'{"a":[{"b":1},{"b":2}],"c":3.141592653589793,"d":-0.0,"e":9223372036854775807}',
        b'{"a":{"b":{"c":1},"c":2},"b":[{"a":3,"b":4}],"c":5}',
        b"{}",
    ],
)
def test_decode_many_plain_documents_are_not_declined(body: bytes) -> None:
    unwanted = ["unwanted", "unwanted too"]
    assert same_as_definition([body], unwanted).declined == 0


def test_decode_many_strings_are_not_copied() -> None:
    buffer = np.frombuffer(STOCK, np.uint8)
    got = decode_many(buffer, np.array([0]), np.array([len(buffer)]), PathTable(["symbol"]))
    assert np.shares_memory(got.atoms.text, buffer)


def test_decode_many_declined_documents_keep_positions() -> None:
    bodies = [
        b'{"id":"p1","a":"x"}',
        b'{"id":"p\\u0032","a":["\\n","y",1]}',
        b"[",
        b'{"a":"z","id":3}',
        b'{"a":"\\t"}',
    ]
    got = same_as_definition(bodies)
    assert got.ids.to_pylist() == ["p1", "p2", None, "3", None]
    assert got.declined == 3
    assert got.ids.type == pa.string()


def test_decode_many_reject_has_index_and_column() -> None:
    [(index, problem)] = decode_bodies([b'{"a":1}', b'{"a":tru}'], ["a"]).rejects
    assert index == 1
    assert problem.place is not None
    assert problem.place.column == 6


def test_decode_many_enlarges_columns() -> None:
    many = json.dumps({"a": list(range(1000)), "id": "x"}).encode()
    got = same_as_definition([STOCK, many, STOCK, many.replace(b"1,", b"1 ,")])
    assert got.declined == 0
    assert got.atoms.count == 4


def test_decode_many_without_documents_is_empty() -> None:
    got = decode_bodies([], ["a"])
    assert (got.atoms.count, len(got.ids), got.rejects) == (0, 0, [])
    empty = decode_many(np.empty(0, np.uint8), np.zeros(1, np.int64), np.zeros(1, np.int64), PathTable([]))
    assert not empty.ok[0]


def test_decode_many_without_paths_and_id_field_checks_syntax() -> None:
    got = decode_bodies([STOCK, b"{"], [], None)
    assert (got.ok.tolist(), got.ids.to_pylist(), len(got.atoms.path)) == ([True, False], [None, None], 0)


def test_decode_many_object_with_many_keys_agrees_with_specification() -> None:
    wide = {f"k{i}": i for i in range(kernel.MOST_KEYS + 1)}
    twice = json.dumps(wide)[:-1] + ', "k7": 1}'
    same_as_definition(
        [json.dumps(wide).encode(), twice.encode()], unwanted=[f"k{i}" for i in range(5, 5000)]
    )


@pytest.mark.parametrize("depth", [1, kernel.MOST_DEPTH, kernel.MOST_DEPTH + 1, 64, 65, 100_000])
def test_decode_many_depth_limit_agrees_with_specification(depth: int) -> None:
    inside = depth - 1
    nested = b'{"a":' * inside + b"1" + b"}" * inside
    bodies = [
        b'{"a":' + b"[" * inside + b"]" * inside + b"}",
        b'{"x":' + nested + b"}",
        b'{"a":' + b"[" * inside,
    ]
    same_as_definition(bodies, unwanted=["x" + ".a" * inside])


def test_json_kernel_kinds_equal_atom_kinds() -> None:
    kinds = (kernel.INTEGER, kernel.DOUBLE, kernel.STRING, kernel.BOOLEAN)
    assert kinds == (AtomKind.INTEGER, AtomKind.DOUBLE, AtomKind.STRING, AtomKind.BOOLEAN)


# --- Paths -----------------------------------------------------------------------------------------------------


def test_decode_many_path_and_nested_path_are_both_found() -> None:
    body = b'{"a":[1,{"b":2,"c":{"d":3}}],"b":4,"aa":5}'
    [event] = events_of(decode_bodies([body], ["a", "a.b", "a.c.d", "aa"]).atoms)
    assert event == {"a": (1,), "a.b": (2,), "a.c.d": (3,), "aa": (5,)}


@given(
    st.lists(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=4), min_size=1, max_size=40, unique=True
    )
)
def test_decode_many_any_set_of_paths_agrees_with_specification(names: list[str]) -> None:
    body = json.dumps({name: i for i, name in enumerate(names)}, ensure_ascii=False).encode()
    same_as_definition([body], unwanted=names[::3])


def test_decode_many_paths_with_special_characters_agree() -> None:
    odd = ['a"', 'a":1,"b', "a\\", "a\n", "", ".", "a.", ".a", "a..b"]
    bodies = [json.dumps({path: 1, "a": 2, "b": 3}).encode() for path in odd]
    same_as_definition([*bodies, b'{"a":1,"b":2}', b'{"a"":1}', b'{"a\n":1}', *bodies])


def test_decode_many_path_with_lone_surrogate_never_matches() -> None:
    [event] = events_of(decode_bodies([b'{"a":1,"\\n":2}'], ["\ud800", "a", "\n"]).atoms)
    assert event == {"a": (1,), "\n": (2,)}


def test_path_table_reused_for_several_id_fields() -> None:
    table = PathTable(["a", "b", "a"])
    assert table.paths == ("a", "b")
    body = np.frombuffer(b'{"a":"x","b":"y","c":{"d":5}}', np.uint8)
    bounds = np.array([0]), np.array([len(body)])
    ids = [
        decode_many(body, *bounds, table, field).ids.to_pylist()
        for field in ("a", "b", "c.d", "c", "a", None)
    ]
    assert ids == [["x"], ["y"], ["5"], [None], ["x"], [None]]


# --- Lines and Arrow -------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([b'{"a":1}', b"", b" ", b"\t\r", b"x\ry", "é".encode()])), st.booleans())
def test_split_lines_numbers_nonempty_lines(content: list[bytes], ends_with_newline: bool) -> None:
    for newline in (b"\n", b"\r\n"):
        text = newline.join(content) + newline * ends_with_newline
        split = split_lines(np.frombuffer(text, np.uint8))
        expected = [(i + 1, line) for i, line in enumerate(content) if line.strip(b" \t\r")]
        lines = [text[start:end] for start, end in zip(split.starts, split.ends, strict=True)]
        assert list(zip(split.numbers.tolist(), lines, strict=True)) == [
            (i, line[:-1] if newline == b"\n" and line.endswith(b"\r") and i < len(content) else line)
            for i, line in expected
        ]


@given(st.binary(max_size=60) | st.text("\n\r a", max_size=20).map(str.encode))
def test_split_lines_any_bytes_agree_with_bytes_split(text: bytes) -> None:
    split = split_lines(np.frombuffer(text, np.uint8))
    expected = [(i + 1, line) for i, line in enumerate(text.split(b"\n")) if line.strip(b" \t\r")]
    last = text.count(b"\n") + 1
    wanted = [(i, line.removesuffix(b"\r") if i != last else line) for i, line in expected]
    lines = [text[start:end] for start, end in zip(split.starts, split.ends, strict=True)]
    assert list(zip(split.numbers.tolist(), lines, strict=True)) == wanted


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()])
def test_documents_of_arrow_array_decodes_all_types(kind: pa.DataType) -> None:
    array = pa.array(['{"a":0}', '{"a":1}', None, "", '{"a":"\\n"}', '{"a":2}'], kind)[1:]
    got = decode_many(*documents_of(array), PathTable(["a"]))
    assert events_of(got.atoms) == [{"a": (1,)}, {}, {}, {"a": ("\n",)}, {"a": (2,)}]
    assert got.ok.tolist() == [True, False, False, True, True]
    assert len(documents_of(array[:0])[1]) == 0


def test_decode_many_too_long_paths_are_rejected_as_by_specification() -> None:
    long = b'{"%s":{%s}}' % (b"k" * 10_000, b",".join(b'"a%d":1' % n for n in range(4_000)))
    short = b'{"%s":{"a":1}}' % (b"k" * 10_000)
    same_as_definition([b'{"a":1}', long, short, b'{"a":2}'], ["a"])


def test_decode_many_large_events_with_ordinary_paths_are_not_declined() -> None:
    rows = [{"symbol": f"S{n}", "quote": {"bid": n, "ask": {"price": n / 4}}} for n in range(2_000)]
    body = json.dumps({"id": "day", "rows": rows, "source": {"name": "exchange"}}).encode()
    assert len(body) > 100_000
    wanted = ["rows.symbol", "rows.quote.ask.price", "source.name", "source"]
    assert same_as_definition([body, b'{"source": 1}', body], wanted).declined == 0


SHAPES = {
    "object": '{"%s":[%s],"%s":{"%s":1}}',
    "deeper": '{"x":{"y":1},"%s":[[%s]],"z":[1],"%s":[{"%s":{}},2]}',
    "after": '{"%s":[1,[2],%s,{}],"v":2,"%s":{"%s":[]}}',
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("beyond", [0, 1])
def test_decode_many_declines_only_paths_beyond_limit(shape: str, beyond: int) -> None:
    """1,999 paths of 10,000 characters each, and one that brings their sum to the limit or one above it."""
    assert kernel.MOST_PATH_TEXT == MOST_PATH_TEXT
    rest = 10_000 + beyond - (3 if shape == "deeper" else 0)  # x.y
    body = SHAPES[shape] % ("k" * 9_998, ",".join(['{"a":1}'] * 1_999), "last", "l" * (rest - len("last.")))
    got = same_as_definition([b'{"v":1}', body.encode(), b'{"v":3}'], ["v", "x.y"])
    assert (got.declined, len(got.rejects)) == (beyond, beyond)
