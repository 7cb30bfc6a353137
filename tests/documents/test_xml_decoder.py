"""Decoding of XML documents: nodes agree with lxml; harmful input is rejected before it is parsed."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from tests.support.paths import ROOT
from tests.support.strategies.xml import documents
from tidings.documents.model import Node, NodeKind
from tidings.documents.xml_decoder import DEFAULT, MOST, OVER, Limits, decode
from tidings.errors import DecodeProblem, InputError
from tidings.parsers import xml_parser


def nodes_of(node: Node) -> list[Node]:
    return [node, *(inner for child in node.children for inner in nodes_of(child))]


def outline(node: Node) -> list[tuple[str, str, str]]:
    return [(each.kind.name, each.name, each.value) for each in nodes_of(node)]


def lxml_outline(body: bytes) -> dict[NodeKind, list[tuple[str, str]]]:
    """Return elements, attributes and texts with their values, as found by lxml's XPath."""
    parser = etree.XMLParser(resolve_entities=False, collect_ids=False)
    root = etree.fromstring(body, parser)
    for entry in parser.error_log.filter_from_errors():  # lxml forgets errors before a warning
        raise etree.XMLSyntaxError(entry.message, entry.type, entry.line, entry.column)
    text: Any = root.xpath("//text()")
    attributes: Any = root.xpath("//@*")
    elements: Any = root.xpath("//*")
    return {
        NodeKind.ELEMENT: [(element.tag, element.xpath("string(.)")) for element in elements],
        NodeKind.ATTRIBUTE: [(value.attrname, str(value)) for value in attributes],
        NodeKind.TEXT: [("", str(value)) for value in text],
    }


def try_decode(body: bytes) -> Node | None:
    try:
        return decode(body)
    except DecodeProblem:
        return None


def assert_same_as_lxml(body: bytes) -> None:
    try:
        expected = lxml_outline(body)
    except etree.XMLSyntaxError:
        assert try_decode(body) is None, body
        return
    decoded = nodes_of(decode(body))
    for kind, nodes in expected.items():
        assert [(node.name, node.value) for node in decoded if node.kind is kind] == nodes, body
    assert all(child.parent is node for node in decoded for child in node.children)


# --- Nodes of documents ----------------------------------------------------------------------------------------


@given(documents().map(str.encode))
@example(b"<a>x<!--c-->y<?p?>z<![CDATA[]]>w</a>")
@example(b"<a><![CDATA[]]></a>")
@example(b'<a xml:id="x"><b xml:id="x"/></a>')
def test_decode_generated_document_agrees_with_lxml(body: bytes) -> None:
    assert_same_as_lxml(body)


def test_decode_nodes_are_in_document_order() -> None:
    body = b'<s xmlns:p="u" id="7">IBM<p:price p:in="USD">83</p:price> <!-- c --> &amp;<![CDATA[<x>]]></s>'
    assert outline(decode(body)) == [
        ("ELEMENT", "s", "IBM83  &<x>"),
        ("ATTRIBUTE", "id", "7"),
        ("TEXT", "", "IBM"),
        ("ELEMENT", "{u}price", "83"),
        ("ATTRIBUTE", "{u}in", "USD"),
        ("TEXT", "", "83"),
        ("TEXT", "", " "),
        ("TEXT", "", " &<x>"),
    ]


ENCODED = ("iso-8859-1", "windows-1252", "us-ascii", "iso-8859-15", "koi8-r", "gbk", "utf-8", "UTF8")


@given(st.text(st.characters(codec="latin-1", min_codepoint=32), max_size=8), st.sampled_from(ENCODED))
def test_decode_declared_encoding_agrees_with_lxml(text: str, encoding: str) -> None:
    inner = re.sub("[<&>]", "", text)
    body = f'<?xml version="1.0" encoding="{encoding}"?><a b="1">{inner}</a>'.encode(encoding, "ignore")
    assert_same_as_lxml(body)


@given(documents(), st.sampled_from(["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"]))
def test_decode_byte_order_mark_agrees_with_lxml(text: str, encoding: str) -> None:
    head = '<?xml version="1.0" encoding="utf-16"?>' if encoding != "utf-8-sig" else '<?xml version="1.0"?>'
    body = re.sub(r"^<\?xml .*?\?>", "", text)
    assert_same_as_lxml((head + body).encode(encoding))


@pytest.mark.parametrize("encoding", ["utf-7", "zlib", "punycode", "utf-32", "no-such", "utf-16", "ibm037"])
def test_decode_unsupported_encoding_is_rejected(encoding: str) -> None:
    with pytest.raises(DecodeProblem, match="encoding") as problem:
        decode(f'<?xml version="1.0" encoding="{encoding}"?><a/>'.encode())
    assert problem.value.received == encoding
    assert "UTF-8, UTF-16" in str(problem.value.accepted)


# --- Rejected documents -----------------------------------------------------------------------------------------

LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
HARMFUL = {
    "billion laughs": f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a>&l9;</a>',
    "quadratic blow-up": f'<!DOCTYPE a [<!ENTITY x "{"x" * 50_000}">]><a>{"&x;" * 50_000}</a>',
    "external entity": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
    "external DTD": '<!DOCTYPE a SYSTEM "http://example.org/a.dtd"><a/>',
    "public DTD": '<!DOCTYPE a PUBLIC "-//X//Y//EN" "http://example.org/a.dtd"><a/>',
    "parameter entity": '<!DOCTYPE a [<!ENTITY % x SYSTEM "http://example.org/x"> %x;]><a/>',
    "internal subset": '<!DOCTYPE a [<!ATTLIST a b CDATA "1">]><a/>',
    "bare": "<!DOCTYPE a><a/>",
    "behind other things": '<?xml version="1.0"?>\n<!-- <a> --><?p <a> ?>\r\n<!DOCTYPE a><a/>',
    "an entity on its own": '<!ENTITY x "y"><a/>',
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("text", HARMFUL.values(), ids=HARMFUL)
def test_decode_declarations_are_rejected_before_parsing(
    text: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*given: object) -> None:
        raise AssertionError("the parser was called")

    monkeypatch.setattr(xml_parser, "etree", SimpleNamespace(fromstring=never, XMLParser=etree.XMLParser))
    with pytest.raises(DecodeProblem, match="document type declaration is not accepted") as problem:
        decode(text.encode(encoding))
    assert str(problem.value.received).startswith(("<!DOCTYPE", "<!ENTITY"))


def test_decode_declaration_in_text_is_text() -> None:
    declaration = "<!DOCTYPE a [<!ENTITY x 'y'>]>"
    assert decode(f"<!-- {declaration} --><a><![CDATA[{declaration}]]></a>".encode()).value == declaration


SMALL = Limits(100, 3, 8, 5, 12, 2, 5, 2, 6, 12, 5)
BEYOND = {
    "document": b"<a>" + b" " * 94 + b"</a>",
    "depth": b"<a><a><a><a/></a></a></a>",
    "nodes": b"<a><a/><a/><a/><a/><a/><a/><a/><a/></a>",
    "text": b"<a>123<![CDATA[45]]>6</a>",
    "nested_text": b"<a>12345<a>1234</a></a>",
    "attributes": b"<a b='' c='' d=''/>",
    "attribute_length": b"<a b='12345&amp;'/>",
    "namespaces": b"<a xmlns='u' xmlns:p='u'><a xmlns='v'/></a>",
    "name_length": b"<a xmlns='u'><abcd/></a>",
    "path_length": b"<abcdef><abcde/></abcdef>",
    "tag_paths": b"<a><b/><c/><d/><e/><f/></a>",
}
WITHIN = {
    "document": b"<a>" + b"<!--" + b" " * 86 + b"-->" + b"</a>",
    "depth": b"<a><a><a/></a></a>",
    "nodes": b"<a><a/><a/><a/><a/><a/><a/><a/></a>",
    "text": b"<a>123<![CDATA[45]]></a>",
    "nested_text": b"<a>1234<a>1234</a></a>",
    "attributes": b"<a b='' c=''/>",
    "attribute_length": b"<a b='1234&amp;'/>",
    "namespaces": b"<a xmlns='u'><a xmlns='v'/></a>",
    "name_length": b"<a xmlns='u'><abc/></a>",
    "path_length": b"<abcd><abcdef/></abcd>",
    "tag_paths": b"<a><b/><c/><d/><e/><b/></a>",
}


@pytest.mark.parametrize("limit", OVER)
def test_decode_beyond_limit_error_names_limit(limit: str) -> None:
    assert decode(WITHIN[limit], SMALL) is not None
    with pytest.raises(DecodeProblem) as problem:
        decode(BEYOND[limit], SMALL)
    assert problem.value.what == OVER[limit][0]
    assert f"at most {getattr(SMALL, limit)} " in str(problem.value.accepted)
    assert f"(the limit {limit})" in str(problem.value.accepted)
    assert problem.value.where or limit == "document"


def test_decode_stops_at_first_node_beyond_limit() -> None:
    """The rest is malformed, but the decoder does not read it."""
    with pytest.raises(DecodeProblem, match="nested too deeply"):
        decode(b"<a>" * 201 + b"<<<")


def test_decode_depth_of_200_is_accepted() -> None:
    assert len(nodes_of(decode(b"<a>" * 200 + b"</a>" * 200))) == 200


@pytest.mark.parametrize("limit", OVER)
def test_limits_out_of_range_are_rejected(limit: str) -> None:
    for value in (0, -1, MOST.get(limit, 2**31 - 1) + 1):
        with pytest.raises(InputError, match=limit):
            Limits(**{limit: value})


def test_decode_brace_in_namespace_is_rejected() -> None:
    """Its tag path would be /{a}b}c, which cannot be parsed."""
    with pytest.raises(DecodeProblem, match="a namespace name contains a }"):
        decode(b"<c xmlns='a}b'/>")


@pytest.mark.parametrize(
    ("body", "line", "column", "message"),
    [
        (b"<a><b></a>", 1, 11, "tag mismatch"),
        (b"<a>\n <b>\xc3\xa9</c></a>", 2, 10, "tag mismatch"),
        (b"<p:a/>", 1, 5, "prefix p on a is not defined"),
        (b"<a>&nbsp;</a>", 1, 10, "Entity 'nbsp' not defined"),
        (b"<p:a><?xml-x?></p:a>", 1, 5, "prefix p on a is not defined"),
        (b"", 1, 1, "empty"),
        (b"{}", 1, 1, "Start tag expected"),
    ],
)
def test_decode_malformed_document_error_has_line_and_column(
    body: bytes, line: int, column: int, message: str
) -> None:
    with pytest.raises(DecodeProblem, match=f"not well-formed XML: .*{message}") as problem:
        decode(body)
    place = problem.value.place
    assert place is not None
    assert (place.line, place.column) == (line, column)


def test_decode_error_in_large_document_has_position_without_text() -> None:
    with pytest.raises(DecodeProblem) as problem:
        decode(b"<a>" + b"\n" * 70_000 + b" <b></a>")
    assert (problem.value.place, problem.value.where) == (None, "line 70001, column 9")


@pytest.mark.parametrize("limit", OVER)
def test_limits_are_documented_with_defaults(limit: str) -> None:
    page = (ROOT / "docs/documents.md").read_text()
    assert f"\n| `{limit}` | {getattr(DEFAULT, limit):,} | " in page
