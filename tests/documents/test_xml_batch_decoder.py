"""The batch decoder agrees with the specification: whole batches, broken bytes, limits, real documents."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from tests.documents.test_xml_decoder import BEYOND, HARMFUL, SMALL, WITHIN
from tests.support.paths import ROOT
from tests.support.strategies.xml import broken, documents
from tidings.atoms import AtomKind, Atoms
from tidings.documents.model import steps_of
from tidings.documents.tag_paths import TagPaths, too_many_tag_paths
from tidings.documents.xml_batch_decoder import MOST_AT_ONCE, DecodedDocuments, atoms_of, decode_documents
from tidings.documents.xml_decoder import DEFAULT, OVER, Limits, decode
from tidings.errors import DecodeProblem
from tidings.parsers import xml_parser

BETWEEN = b"]]></a>-->"
"""Separates documents: a decoder that reads beyond the end of a document finds valid input to continue with."""


def decode_bodies(
    bodies: Sequence[bytes], table: TagPaths | None = None, limits: Limits = DEFAULT
) -> DecodedDocuments:
    buffer = np.frombuffer(BETWEEN + b"".join(body + BETWEEN for body in bodies), np.uint8)
    sizes = np.array([len(body) for body in bodies], np.int64)
    ends = np.cumsum(sizes + len(BETWEEN))
    return decode_documents(buffer, ends - sizes, ends, table or TagPaths(), limits)


Row = tuple[str, str, int, int]


def rows(atoms: Atoms, i: int) -> list[Row]:
    """Return tag path, value, parent and offset of the text in its document, for each atom of a document."""
    result = []
    base = {True: 0, False: 0}
    for k in range(atoms.starts[i], atoms.starts[i + 1]):
        path, start = atoms.paths[atoms.path[k]], int(atoms.payload[k])
        value = atoms.text[start : start + atoms.length[k]].tobytes().decode()
        is_text = "/@" not in path
        if k == atoms.starts[i]:
            base[True] = start
        result.append((path, value, int(atoms.parent[k]), start - base[True] if is_text else -1))
    return result


def decode_and_compare(
    bodies: Sequence[bytes], table: TagPaths | None = None, limits: Limits = DEFAULT
) -> DecodedDocuments:
    nodes = []
    for body in bodies:
        try:
            nodes.append(decode(body, limits))
        except DecodeProblem:
            nodes.append(None)
    expected, got = atoms_of(nodes), decode_bodies(bodies, table, limits)
    assert got.atoms.count == len(bodies)
    assert [i for i, _ in got.rejects] == [i for i, node in enumerate(nodes) if node is None]
    for i, body in enumerate(bodies):
        assert rows(got.atoms, i) == rows(expected, i), body
    assert np.all(got.atoms.kind == AtomKind.STRING)
    return got


# --- Generated documents ---------------------------------------------------------------------------------------

SHARED = TagPaths()


@given(st.lists(documents().map(str.encode), max_size=3))
@example([b"<a>x<!--c-->y<?p?>z<![CDATA[]]>w</a>", b"<a><![CDATA[]]></a>", b"<a/>", b"<a></a>"])
@example([b"<a xmlns:p='u'><p:b xmlns:p='v' p:c='1'><p:b/></p:b><p:b/></a>", b"<p:a xmlns:p='u'/>"])
@example([b"<a xmlns='u'><b xmlns=''><c/></b><d e='1'/></a>", b"<a xmlns='u' xmlns:p='u' b='' p:b=''/>"])
@example([b"<xml:a/>", b"<a xmlns:xml='http://www.w3.org/XML/1998/namespace'/>", b"<a xmlns:xml='u'/>"])
@example([b"<a b='x\r\n\r\n&#13;&#10;\ty'>\r\r\n&#13;\n</a>", b"<a b='&#x1f600;&#233;&#8364;'/>"])
def test_decode_documents_generated_documents_agree_with_specification(bodies: list[bytes]) -> None:
    decode_and_compare(bodies)
    decode_and_compare(bodies, SHARED)


@given(st.lists(broken(), max_size=3))
def test_decode_documents_broken_documents_agree_with_specification(bodies: list[bytes]) -> None:
    decode_and_compare(bodies)


@given(documents())
def test_decode_documents_prefixes_agree_with_specification(text: str) -> None:
    body = text.encode()
    decode_and_compare([body[:i] for i in range(len(body))][:: max(1, len(body) // 50)])


@given(st.lists(st.binary(max_size=12), max_size=5), st.lists(broken(), max_size=2))
def test_decode_documents_any_bytes_agree_with_specification(bodies: list[bytes], more: list[bytes]) -> None:
    decode_and_compare([*bodies, *more, b"<a>good</a>"])


@given(
    st.lists(
        st.tuples(documents(), st.sampled_from(["utf-16", "utf-16-le", "utf-8-sig", "latin-1"])), max_size=3
    )
)
def test_decode_documents_mixed_encodings_agree_with_specification(texts: list[tuple[str, str]]) -> None:
    head = {"latin-1": '<?xml version="1.0" encoding="ISO-8859-1"?>', "utf-8-sig": ""}
    plain = '<?xml version="1.0"?>'
    bodies = [
        (head.get(encoding, plain) + text.split("?>", 1)[-1]).encode(encoding, "replace")
        for text, encoding in texts
    ]
    decode_and_compare([b"<a/>", *bodies, DECLINED, b"<c/>"], limits=ROOMY)


@pytest.mark.parametrize("head", ["utf-8", "UTF-8", "Utf8", "utf-16", "utf-8x", "x", "us-ascii", "latin1"])
@pytest.mark.parametrize("form", ['encoding="{}"', "encoding = '{}' ", "encoding='{}' standalone='yes'"])
def test_decode_documents_xml_declarations_agree_with_specification(head: str, form: str) -> None:
    text = f'<?xml version="1.0" {form.format(head)}?><a>x</a>'
    decode_and_compare([text.encode(), text.replace("x</a>", "é</a>").encode()])


@pytest.mark.parametrize(
    "special", ["&lt;", "<b/>", "é", "\r\n", "\r", "<!---->", "<![CDATA[\r]]>", "&#233;", ""]
)
def test_decode_documents_special_characters_at_any_offset_are_not_declined(special: str) -> None:
    texts = ["x" * before + special + "y" * after for before in range(18) for after in (0, 3, 9)]
    bodies = [f"<a b='{'' if '<' in text else text}'>{text}</a>" for text in texts]
    assert decode_and_compare([body.encode() for body in bodies]).declined == 0


def test_decode_documents_names_of_any_length_are_not_declined() -> None:
    names = ["n" * length + end for length in range(1, 24) for end in ("", "é", "x", "y")]
    bodies = [f"<{name} {name}='1' p:{name}='2' xmlns:p='{name[:9]}'/>".encode() for name in names]
    plain = [body for body in bodies if b"\xc3" not in body]
    decode_and_compare(bodies, SHARED)
    assert decode_and_compare(plain, SHARED).declined == 0


# --- Columns ---------------------------------------------------------------------------------------------------


def test_decode_documents_element_is_one_span_of_inner_texts() -> None:
    atoms = decode_bodies([b"<s id='7'>IBM<p>83</p> up</s>"]).atoms
    assert rows(atoms, 0) == [
        ("/s", "IBM83 up", -1, 0),
        ("/s/@id", "7", 0, -1),
        ("/s/text()", "IBM", 0, 0),
        ("/s/p", "83", 0, 3),
        ("/s/p/text()", "83", 3, 3),
        ("/s/text()", " up", 0, 5),
    ]


def test_decode_documents_common_namespaces_are_not_declined() -> None:
    body = b"<f xmlns='http://www.w3.org/2005/Atom' xmlns:d='urn:d'><e d:x='1' xml:lang='en'><d:y/></e></f>"
    got = decode_and_compare([body] * 3)
    assert got.declined == 0
    assert "/{http://www.w3.org/2005/Atom}f/{http://www.w3.org/2005/Atom}e/@{urn:d}x" in got.atoms.paths


ROOMY = Limits(namespaces=2 * MOST_AT_ONCE, attributes=2 * MOST_AT_ONCE)
PREFIXES = " ".join(f"xmlns:p{i}='u{i}'" for i in range(MOST_AT_ONCE + 1))
DECLINED = f"<a {PREFIXES} p7:c='1'>x<p7:b/>\r\n</a>".encode()
"""A document that exceeds the buffers of the kernel with these limits."""


def test_decode_documents_declined_documents_agree_with_specification() -> None:
    attributes = " ".join(f"a{i}='{i}'" for i in range(MOST_AT_ONCE + 1))
    many = f"<a {attributes}/>".encode()
    bodies = [b"<a>1</a>", DECLINED, b"<b>2</b>", DECLINED.replace(b"\r", b""), b"<a>", DECLINED[:-1], many]
    assert decode_and_compare(bodies, limits=ROOMY).declined == 3


@pytest.mark.parametrize(
    "body",
    [
        b"<a xmlns='u&amp;v&#x26;w'><b/></a>",
        b"<p:a xmlns:p='http://example.org/?a=1&amp;b=2' p:b='&amp;'/>",
        b"<a xmlns:xml='http://www.w3.org/XML/1998/namespace' xml:lang='en'/>",
        f"<a xmlns:p='{'u' * 1001}' xmlns='v'/>".encode(),
        b"<a " + b" ".join(b"xmlns:p%d='u%d'" % (i, i) for i in range(256)) + b" p255:b=''/>",
    ],
)
def test_decode_documents_unusual_namespaces_are_not_declined(body: bytes) -> None:
    """Otherwise a publisher could make each document take a hundred times as long."""
    got = decode_and_compare([body, b"<a/>"])
    assert (got.rejects, got.declined) == ([], 0)


@pytest.mark.parametrize("used", ["<p:b/>", "<b p:c=''/>", "<b xmlns='{0}'/>", "<b xmlns='{0}' c=''/>"])
def test_decode_documents_too_long_namespace_in_use_is_rejected(used: str) -> None:
    uri = "u" * 1001
    body = f"<a xmlns:p='{uri}'>{used.format(uri)}</a>".encode()
    [(_, problem)] = decode_and_compare([body]).rejects
    assert problem.what == OVER["name_length"][0]


def test_decode_documents_buffers_grow_with_nodes_and_names() -> None:
    many = "".join(f"<n{i}{'x' * (i % 40)} a{i}='{i}'>t</n{i}{'x' * (i % 40)}>" for i in range(900))
    declared = "".join(f"<a xmlns='urn:space:number:{i}'/>" for i in range(200))
    body = f"<a>{many}{declared}{'<b/>' * 2000}</a>".encode()
    assert decode_and_compare([b"<a>x</a>", body, b"<a>y</a>", body]).declined == 0


def test_decode_documents_empty_batch_is_empty_and_empty_documents_are_rejected() -> None:
    assert decode_and_compare([]).atoms.count == 0
    assert len(decode_and_compare([b"", b" ", b"\n"]).rejects) == 3


def test_decode_documents_invalid_documents_do_not_affect_others() -> None:
    got = decode_and_compare(
        [b"<a>1</a>", b"<a>", b"<a>2</a>", b"\xff\xfe", b"<!DOCTYPE a><a/>", b"<a>3</a>"]
    )
    assert [i for i, _ in got.rejects] == [1, 3, 4]
    assert [rows(got.atoms, i)[0][1] for i in (0, 2, 5)] == ["1", "2", "3"]


# --- Tag paths --------------------------------------------------------------------------------------------------


def test_tag_paths_keep_numbers_across_batches() -> None:
    table = TagPaths()
    first = decode_bodies([b"<a><b c=''/></a>"], table).atoms.paths
    second = decode_bodies([b"<a><b c=''/></a>"], table).atoms.paths
    assert first == ("/a", "/a/b", "/a/b/@c")
    assert second is first
    assert decode_bodies([b"<a><d>x</d></a>"], table).atoms.paths == (*first, "/a/d", "/a/d/text()")


def test_tag_paths_number_of_path_is_found_by_name() -> None:
    table = TagPaths()
    paths = decode_bodies(
        [b"<a xmlns='u' xmlns:p='v' p:c='' d=''>x<p:b/><e xmlns=''>y</e></a>"], table
    ).atoms.paths
    assert [table.number(path) for path in paths] == list(range(len(paths)))
    new = table.number("/{u}a/{w}new/@{v}c")
    assert table.names[new] == "/{u}a/{w}new/@{v}c"
    assert len(table.names) == len(set(table.names)) == len(paths) + 2


@given(st.lists(documents().map(str.encode), max_size=3))
def test_tag_paths_steps_of_path_round_trip(bodies: list[bytes]) -> None:
    table = TagPaths()
    decode_bodies(bodies, table)
    for path in table.names:
        above = path[: path.rindex("/")] if "}" not in path else None
        assert steps_of(path)
        assert not above or above in table.names
    assert len(set(table.names)) == len(table.names)


def test_tag_paths_too_large_table_is_cleared_at_next_batch() -> None:
    table = TagPaths(most=3)
    assert decode_bodies([b"<a><b/></a>", b"<c><d/></c>"], table).atoms.paths == ("/a", "/a/b", "/c", "/c/d")
    assert decode_and_compare([b"<e>x</e>"], table).atoms.paths == ("/e", "/e/text()")
    assert decode_bodies([b"<f/>"], table).atoms.paths == ("/e", "/e/text()", "/f")


def test_tag_paths_hash_collisions_end_in_error() -> None:
    table = TagPaths()
    table.spaces.slots[:] = 0  # as if every hash collided with the first name
    table.paths.slots[:] = 0
    with pytest.raises(DecodeProblem, match="too many different tag paths"):
        table.number("/{u}a")
    got = decode_bodies([b"<a xmlns='u'/>", b"<a><b/></a>"], table)
    assert [problem.what for _, problem in got.rejects] == [too_many_tag_paths().what] * 2


# --- Rejected documents -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", OVER)
def test_decode_documents_beyond_limit_error_names_limit(limit: str) -> None:
    good = b"<a>x</a>"
    got = decode_and_compare([good, BEYOND[limit], WITHIN[limit], good], limits=SMALL)
    [(_, problem)] = got.rejects
    assert got.declined == 0
    assert problem.what == OVER[limit][0]
    assert f"at most {getattr(SMALL, limit)} " in str(problem.accepted)
    assert f"(the limit {limit})" in str(problem.accepted)
    assert str(problem.where).startswith("line 1, column ") or limit == "document"


@given(st.lists(documents().map(str.encode), max_size=3), st.sampled_from(sorted(OVER)), st.integers(1, 40))
def test_decode_documents_limits_on_generated_documents_agree_with_specification(
    bodies: list[bytes], limit: str, value: int
) -> None:
    decode_and_compare(bodies, limits=Limits(**{limit: value}))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig"])
@pytest.mark.parametrize("text", HARMFUL.values(), ids=HARMFUL)
def test_decode_documents_declarations_are_rejected_before_parsing(
    text: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*given: object) -> None:
        raise AssertionError("the parser was called")

    monkeypatch.setattr(xml_parser, "etree", SimpleNamespace(fromstring=never, XMLParser=etree.XMLParser))
    got = decode_bodies([text.encode(encoding)])
    [(_, problem)] = got.rejects
    assert problem.what == "a document type declaration is not accepted"
    assert got.atoms.starts.tolist() == [0, 0]


def test_decode_documents_malformed_document_error_equals_specification() -> None:
    body = b"<a>\n <b>\xc3\xa9</c></a>"
    [(_, problem)] = decode_bodies([body]).rejects
    with pytest.raises(DecodeProblem) as expected:
        decode(body)
    assert problem.facts() == expected.value.facts()


def test_decode_documents_too_many_tag_paths_rejects_new_paths_only() -> None:
    """Each document is within its limits: many names below a long path. Known paths are still accepted."""
    deep = "n" * 990
    opened, closed = f"<{deep}>" * 4, f"</{deep}>" * 4
    large = [(opened + "".join(f"<m{k}x{i}/>" for i in range(9000)) + closed).encode() for k in range(3)]
    table = TagPaths()
    got = decode_bodies([*large, b"<new/>", DECLINED, (opened + closed).encode()], table, ROOMY)
    assert [i for i, _ in got.rejects] == [1, 2, 3, 4]
    assert {problem.what for _, problem in got.rejects} == {too_many_tag_paths().what}
    assert decode_bodies([large[1], b"<new/>", DECLINED], table, ROOMY).rejects == []


# --- Real documents ---------------------------------------------------------------------------------------------

ACL = ROOT.parent / "shared/data/acl-anthology-2020-2021.tar.gz"
EVERY = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "fuzz" else 47


def anthology_papers() -> Iterator[bytes]:
    with tarfile.open(ACL) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                for paper in etree.fromstring(file.read()).iter("paper"):
                    yield etree.tostring(paper, encoding="utf-8", with_tail=False)


@pytest.mark.skipif(not ACL.exists(), reason=f"{ACL.name} is not beside the checkout")
def test_decode_documents_acl_anthology_agrees_with_specification() -> None:
    bodies = list(anthology_papers())
    assert len(bodies) == 14_159
    got = decode_and_compare(bodies[::EVERY], SHARED)
    assert (got.rejects, got.declined) == ([], 0)
