"""Corner cases of RFC 8259, one value a line, accepted or rejected by the specification and the batch decoder.

Each value is put into the object {"a": value}; the last tables are whole documents.
"""

from __future__ import annotations

import pytest

from tests.support.oracles.json_decoders import by_definition, same_as_definition

ACCEPTED_VALUES = r"""
0
-0
1
-1
10
123456789
9223372036854775807
-9223372036854775807
-9223372036854775808
9223372036854775808
18446744073709551615
18446744073709551616
123456789012345678901234567890
0.0
-0.0
0.5
1.50
123.456e78
1e5
1E5
1e+5
1E+5
1e-5
1E-5
0e0
0e+1
0E-1
1e00005
1.0e1
1e-400
-1e-400
4.9e-324
1.7976931348623157e308
0.1000000000000000055511151231257827021181583404541015625
9007199254740993
9007199254740993.0
0.000000000000000000000000000000000000000000000000000001
""
"a"
" "
"0"
"null"
"a/b"
"\/"
"\""
"\\"
"\b\f\n\r\t"
"\\u0041"
"\u0041"
"\u00e9"
"\u00E9"
"\u0000"
"\u001f"
"\uFFFF"
"\ud83d\ude00"
"\uD83D\uDE00 and \ud800\udc00"
"é"
"東京"
"😀"
"…  "
"{}[]:,"
"/* no comment */"
true
false
null
[]
[ ]
{}
{ }
[1]
[1,2]
[ 1 , 2 ]
[[]]
[[],{}]
[[1],[2,[3]]]
[null]
[null,1,true,"x",1.5,{"b":2}]
{"b":1}
{"b":{"c":[1,{"d":2}]}}
{"b":[],"c":{}}
{"":1}
{"b.c":1}
{"b":{"c":1},"b.c":2}
{"\u0062":1}
{"b":1,"B":2}
{"a":{"a":{"a":"a"}}}
"""

REJECTED_VALUES = r"""
00
01
-01
-
--1
+1
+
.5
-.5
1.
-1.
1.e5
1e
1e+
1E-
1e1.5
1e5e5
1.2.3
1_000
1,000
0x10
0b1
1f
Infinity
-Infinity
NaN
nan
1e309
-1e309
1e99999
1e999999999999
١
１
TRUE
True
tru
truee
true1
fals
nul
nulll
undefined
'a'
a
"
"a
a"
"\"
"\a"
"\x41"
"\'"
"\u"
"\u1"
"\u12"
"\u123"
"\u123g"
"\u+123"
"\u 123"
"\U0041"
"\ud800"
"\udc00"
"\ud800\ud800"
"\ude00\ud83d"
"\ud83d \ude00"
"\ud83dé"
"\
"a" "b"
[
]
[1
[1,
[1,]
[,1]
[,]
[1,,2]
[1 2]
[1;2]
[1:2]
[}
{]
{
}
{"b"}
{"b":}
{"b":1,}
{,}
{"b":1,,"c":2}
{"b":1 "c":2}
{"b" 1}
{"b"::1}
{"b",1}
{b:1}
{'b':1}
{1:1}
{null:1}
{"b":1,"b":2}
{"b":1,"\u0062":2}
{"c":{"b":1,"b":1}}
{"b":1
{"b":1]
{"b":1}}
1 2
1 // comment
/* comment */ 1
# 1
*
"""

ACCEPTED_DOCUMENTS = (
    b"{}",
    b" \t\r\n{ \t\r\n} \t\r\n",
    b'{"a"\n:\r1\t,\n"b"\n:\n2\n}',
    b'{"a":1}\n',
    b'{"\x7f":"\x7f"}',
    b'{"a":"\xf4\x8f\xbf\xbf"}',
    b'{"a":"\xed\x9f\xbf \xee\x80\x80"}',
    b'{"a":"\xef\xbb\xbf"}',
    b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"a":1}}',
    b'{"a":{"specversion":"1.0"}}',
)

REJECTED_DOCUMENTS = (
    b"",
    b" ",
    b"\n",
    b"1",
    b'"a"',
    b"null",
    b"[]",
    b'[{"a":1}]',
    b"{",
    b"}",
    b"{}}",
    b"{}{}",
    b"{} 1",
    b"{},",
    b"{}\x00",
    b"\x00{}",
    b"\x0b{}",
    b"{\x0c}",
    b"{\xa0}",
    b"\xef\xbb\xbf{}",
    b"\xff\xfe{\x00}\x00",
    b"{\x00}\x00",
    b'{"a":"\x00"}',
    b'{"a":"\x1f"}',
    b'{"a":"\n"}',
    b'{"a":"\t"}',
    b'{"\n":1}',
    b'{"a":"\\\n"}',
    b'{"a":"\\\x00"}',
    b'{"a":"\x80"}',
    b'{"a":"\xbf"}',
    b'{"a":"\xc0\x80"}',
    b'{"a":"\xc1\xbf"}',
    b'{"a":"\xc3"}',
    b'{"a":"\xc3("}',
    b'{"a":"\xe0\x80\x80"}',
    b'{"a":"\xe0\x9f\xbf"}',
    b'{"a":"\xe2\x82"}',
    b'{"a":"\xe2("}',
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":"\xed\xbf\xbf"}',
    b'{"a":"\xf0\x80\x80\x80"}',
    b'{"a":"\xf0\x8f\xbf\xbf"}',
    b'{"a":"\xf0\x9f\x98"}',
    b'{"a":"\xf4\x90\x80\x80"}',
    b'{"a":"\xf5\x80\x80\x80"}',
    b'{"a":"\xfe"}',
    b'{"\xff":1}',
    b'{"a":1,"a":1}',
    b'{"specversion":"1.0"}',
    b'{"specversion":"0.3","id":"1","source":"/s","type":"t"}',
)


def _bodies(table: str) -> list[bytes]:
    return [b'{"a":' + line.encode() + b"}" for line in table.strip("\n").split("\n")]


ACCEPTED = [*_bodies(ACCEPTED_VALUES), *ACCEPTED_DOCUMENTS]
REJECTED = [*_bodies(REJECTED_VALUES), *REJECTED_DOCUMENTS]


@pytest.mark.parametrize("body", ACCEPTED)
def test_decode_valid_json_is_accepted(body: bytes) -> None:
    assert by_definition(body)[0] is not None
    for unwanted in ([], ["a", "a.b", "a.b.c"]):
        assert same_as_definition([body], unwanted).ok.all()


@pytest.mark.parametrize("body", REJECTED)
def test_decode_invalid_json_is_rejected(body: bytes) -> None:
    assert by_definition(body)[0] is None
    for unwanted in ([], ["a", "a.b", "a.b.c"]):
        assert not same_as_definition([body], unwanted).ok.any()


def test_decode_many_mixed_batch_agrees_with_specification() -> None:
    """State of one document does not affect its neighbours in the batch."""
    mixed = [body for pair in zip(ACCEPTED, REJECTED, strict=False) for body in pair]
    same_as_definition(mixed)
    same_as_definition(mixed[::-1])
