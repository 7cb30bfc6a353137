"""Rejected graphs: places of errors, limits, and input that would crash or exhaust the process."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graphs.rdf.graph_bodies import CELLS, JSON, NQ, NT, TRIG, TTL, XML, decode_error, json_ld, rdf_xml
from tidings.errors import DecodeProblem, InputError
from tidings.graphs.rdf.rdf_decoder import decode, decode_graphs
from tidings.graphs.rdf.rdf_errors import DEFAULT, MOST, OVER, Limits

MALFORMED = {
    "turtle": (TTL, b"<urn:a> <urn:p>\n  q .", "line 2, column 3"),
    "turtle ends": (TTL, b"<urn:a> <urn:p> 'x", "column 17"),
    "turtle prefix": (TTL, b"x:a <urn:p> 1 .", "column 1"),
    "turtle triple term": (TTL, b"<urn:a> <urn:p> <<( <urn:a> <urn:p> 1 )>> .", "column 17"),
    "turtle reified": (TTL, b"<< <urn:a> <urn:p> 1 >> <urn:p> 1 .", "column 1"),
    "turtle surrogate": (TTL, b'<urn:a> <urn:p> "\\uD800" .', "column 18"),
    "turtle bytes": (TTL, b'<urn:a> <urn:p> "\xff" .', "column 18"),
    "utf-16": (TTL, "<urn:a> <urn:p> 1 .".encode("utf-16"), "column 1"),
    "n-triples": (NT, b"<urn:a> <urn:p> 1 .", "column 17"),
    "n-triples second": (NT, b"<urn:a> <urn:p> <urn:b> .\n<urn:a> 'x' <urn:b> .", "line 2, column 9"),
    "trig": (TRIG, b"<urn:g> { <urn:a> <urn:p> }", "column 27"),
    "n-quads": (NQ, b"<urn:a> <urn:p> <urn:b> 'x' .", "column 25"),
    "rdf/xml": (XML, rdf_xml("\n<e:a>"), "line 2"),
    "rdf/xml entity": (XML, rdf_xml("<e:a>&nbsp;</e:a>"), "column"),
    "rdf/xml namespace": (XML, rdf_xml('\n<e:a><e:p resource="urn:x"/></e:a>'), "line 2"),
    "rdf/xml twice": (
        XML,
        rdf_xml('\n<rdf:Bag><rdf:li resource="urn:a" rdf:resource="urn:b"/></rdf:Bag>'),
        "line 2",
    ),
    "rdf/xml empty": (XML, b"", "column 1"),
    "json-ld": (JSON, b'{"@id": "urn:a",\n "urn:p": }', "line 2, column 11"),
    "json-ld twice": (JSON, b'{"urn:p": 1, "urn:p": 2}', "column 14"),
}


@pytest.mark.parametrize(("media_type", "body", "where"), MALFORMED.values(), ids=MALFORMED)
def test_decode_malformed_graph_error_has_place(media_type: str, body: bytes, where: str) -> None:
    problem = decode_error(body, media_type)
    assert where in str(problem.place.describe() if problem.place else problem.where)


def test_decode_error_column_counts_characters() -> None:
    problem = decode_error('<urn:a> <urn:p> "é日\U0001f600" q'.encode(), TTL)
    assert problem.place is not None and problem.place.column == 23


WITHOUT_PLACE = {
    "rdf/xml": (XML, rdf_xml('<e:a rdf:about="urn:a" rdf:ID="x"/>'), "invalid RDF/XML"),
    "json-ld": (JSON, b'{"@id": "urn:a", "@reverse": 3}', "invalid JSON-LD"),
    "direction": (TTL, b'<urn:a> <urn:p> "x"@en--ltr .', "direction"),
}


@pytest.mark.parametrize(("media_type", "body", "what"), WITHOUT_PLACE.values(), ids=WITHOUT_PLACE)
def test_decode_error_without_place_names_problem(media_type: str, body: bytes, what: str) -> None:
    assert what in decode_error(body, media_type).what


TOKENS = (
    *("<<(", ")>>", "<<", ">>", "{|", "|}", "~", "<urn:a>", "'", '"""', '"', "\\", "#", "\n", " ", "e:a\\"),
    *("[", "]", "(", ")", ".", "<", "e:", ":", "1"),
)


@given(st.lists(st.sampled_from(TOKENS), max_size=30))
def test_decode_triple_terms_are_rejected_before_parsing(tokens: list[str]) -> None:
    """No combination of strings, comments and escapes lets a triple term reach the parser."""
    text = "@prefix e: <urn:e:> . e:a e:p " + "".join(tokens)
    try:
        decode(text.encode(), TTL)
    except DecodeProblem as problem:
        assert problem.place is not None or "triple" not in problem.what, text


@pytest.mark.parametrize(
    "written", ["<urn:c> {| <urn:q> 1 |}", "<urn:c> ~ <urn:r>", "<urn:c>~", "<<( <urn:a> <urn:b> 1 )>>"]
)
@pytest.mark.parametrize("media_type", [TTL, TRIG])
def test_decode_triple_term_error_has_place(written: str, media_type: str) -> None:
    problem = decode_error(f"<urn:a> <urn:b> {written} .".encode(), media_type)
    assert "triple" in problem.what and "(RDF 1.2)" in problem.what and problem.place is not None


def test_decode_signs_of_triple_terms_elsewhere_are_accepted() -> None:
    text = '@prefix e: <urn:e> . # ~ {| <<\n<http://e/~a> e:\\~b \'~ {| <<\', """<< ~""" .'
    assert [edge.subject.text for edge in decode(text.encode(), TTL).edges] == ["http://e/~a"] * 2


BEYOND = {
    "publication": (TTL, b"#" * 401, 400),
    "depth": (TTL, b"<urn:a> <urn:p> [<urn:p> ([])], ([<urn:p> ([])]) .", 3),
    "graphs": (NQ, b"\n".join(b"<urn:a> <urn:a> <urn:a> <urn:%d> ." % i for i in range(3)), 2),
    "edges": (TTL, b"<urn:a> <urn:p> 1, 2, 3, 4, 5, 6 .", 5),
    "nodes": (TTL, b"<urn:1> <urn:p> <urn:2> . <urn:3> <urn:p> <urn:4> . <urn:3> <urn:p> <urn:5> .", 4),
    "term": (TTL, b"<urn:a> <http://example.org/p> '123' .", 19),
    "text": (TTL, b"<urn:a> <urn:p> '1234567890', '1234567890' .", 39),
    "namespaces": (XML, rdf_xml("<a xmlns='urn:u'/><b xmlns='urn:u'/>"), 3),
    "namespaces_in_scope": (XML, rdf_xml("<a xmlns='urn:u' xmlns:b='urn:u'/>"), 3),
    "attributes": (XML, rdf_xml('<rdf:Description rdf:about="urn:e:a" e:p="" e:q=""/>'), 2),
    "context_terms": (JSON, json_ld(at_context={"a": "urn:a", "b": "urn:b", "c": {"@id": "urn:c"}}, a=1), 2),
    "context_work": (
        JSON,
        json_ld(at_context={"a": {"@id": "urn:a", "@context": {"b": "urn:b"}}}, a=[{}] * 9),
        12,
    ),
}


@pytest.mark.parametrize("limit", BEYOND)
def test_decode_beyond_limit_error_names_limit(limit: str) -> None:
    media_type, body, most = BEYOND[limit]
    with pytest.raises(DecodeProblem) as problem:
        decode_graphs(body, media_type, limits=Limits(**{limit: most}))
    assert problem.value.what == OVER[limit][0]
    assert f"at most {most:,} " in str(problem.value.accepted)
    assert f"(the limit {limit})" in str(problem.value.accepted)
    decode_graphs(body, media_type)  # valid within the defaults


def test_limits_all_have_test_case() -> None:
    assert BEYOND.keys() | {"items"} == OVER.keys() == {field.name for field in fields(Limits)}


def test_decode_list_members_count_as_edges() -> None:
    """A list of n cells that are all referenced has n * n / 2 members: the limit prevents computing them."""
    cells = "".join(f"e:{i} rdf:first {i} ; rdf:rest e:{i + 1} . e:x e:p e:{i} ." for i in range(2_000))
    assert decode_error(f"@prefix e: <urn:e:> . {CELLS}{cells}".encode(), TTL).what == OVER["edges"][0]


@pytest.mark.parametrize("limit", MOST)
def test_limits_above_parser_maximum_are_rejected(limit: str) -> None:
    with pytest.raises(InputError, match="not a limit"):
        Limits(**{limit: MOST[limit] + 1})


# --- Input that would crash the process if it reached the parser ----------------------------------------------------

N = 100_000
LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
HARMFUL = {
    "entities": (XML, f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a>&l9;</a>', "document type declaration"),
    "external entity": (XML, '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', "document type"),
    "elements": (XML, rdf_xml("<e:a><e:p>" * N + "</e:p></e:a>" * N).decode(), "nested too deeply"),
    "elements within libxml2's depth": (XML, rdf_xml("<e:a><e:p>" * 110 + "</e:p></e:a>" * 110).decode(), "nested"),
    "blank nodes": (TTL, "<urn:a> <urn:p> " + "[<urn:p> " * N + "1" + "]" * N + " .", "nested too deeply"),
    "lists": (TTL, "<urn:a> <urn:p> " + "(" * N + ")" * N + " .", "nested too deeply"),
    "triple terms": (TTL, "<urn:a> <urn:p> " + "<<( <urn:a> <urn:p> " * N + "1" + ")>>" * N + " .", "triple as a term"),
    "triple terms behind a string": (TTL, "<urn:a> <urn:p> '''\\'''', " + "<<( <urn:a> <urn:p> " * N, "triple as"),
    "triple terms in N-Triples": (NT, "<urn:a> <urn:p> " + "<<( <urn:a> <urn:p> " * N + "<urn:a>", "triple"),
    "graphs": (TRIG, "<urn:g> { <urn:a> <urn:p> " + "[ <urn:p> " * N, "nested too deeply"),
    "objects": (JSON, '{"urn:p":' * N + "1" + "}" * N, "nested too deeply"),
    "objects the parser would take": (JSON, '{"urn:p":' * 16_000 + "1" + "}" * 16_000, "nested too deeply"),
    "reverse": (JSON, '{"@reverse":{"urn:p":' * 16_000 + "{}" + "}}" * 16_000, "nested too deeply"),
    "arrays": (JSON, '{"urn:p":' + "[" * N + "]" * N + "}", "nested too deeply"),
    "terms defined by terms": (
        JSON,
        json.dumps({"@context": {f"t{i}": f"t{i + 1}:x" for i in range(20_000)}, "t0": 1}),
        "too many terms",
    ),
    "contexts of terms": (
        JSON,
        json.dumps({"@context": {"p": {"@context": {f"t{i}": f"urn:{i}" for i in range(400)}}}, "p": [{}] * N}),
        "read too often",
    ),
    "long terms": (TTL, "<urn:a> <urn:p> '" + "x" * 2_000_000 + "' .", "a term is too long"),
    "a long prefix": (TTL, f"@prefix e: <urn:{'x' * 900_000}> . e:a e:p " + "e:b, " * N + "e:f .", "too long"),
    "a long vocabulary": (
        JSON,
        json.dumps({"@context": {"@vocab": "urn:" + "x" * 900_000}} | {f"k{i}": 1 for i in range(50_000)}),
        "too long",
    ),
    "closing brackets": (TTL, "<urn:a> <urn:p> " + ")" * 5_000_000, "without an opening one"),
    "brackets": (TTL, "<urn:a> <urn:p> " + "(), " * 3_000_000, "too many edges"),
    "attributes": (XML, rdf_xml("<e:a " + " ".join(f'e:a{i}=""' for i in range(N)) + "/>").decode(), "too many attr"),
    "edges": (NT, "".join(f"<urn:a> <urn:{i}> <urn:b> .\n" for i in range(N + 1)), "too many edges"),
    "the same edge": (TTL, "<urn:a> <urn:p> <urn:b> .\n" * (N + 1), "too many edges"),
    "namespaces": (XML, rdf_xml("<e:a" + "".join(f' xmlns:n{i}="urn:n"' for i in range(N)) + "/>").decode(), "names"),
}  # fmt: skip

CHILD = """
import json, sys
from tidings.errors import DecodeProblem
from tidings.graphs.rdf.rdf_decoder import decode
for name, (media_type, text, _) in json.load(sys.stdin).items():
    try:
        decode(text.encode(), media_type)
        print(json.dumps([name, "accepted"]))
    except DecodeProblem as problem:
        print(json.dumps([name, problem.what]), flush=True)
"""


def test_decode_harmful_publications_are_rejected_without_crash() -> None:
    """The test uses a separate process, because some of these would crash it without the checks before parsing."""
    process = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps(HARMFUL), capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr[-2_000:]
    problems = dict(json.loads(line) for line in process.stdout.splitlines())
    assert problems.keys() == HARMFUL.keys()
    assert {name: what for name, what in problems.items() if HARMFUL[name][2] not in what} == {}


def test_decode_graphs_at_limits_are_accepted_without_crash() -> None:
    """Use the maximum depth and numbers of the defaults."""
    deepest = DEFAULT.depth
    assert decode(b"<urn:a> <urn:p> " + b"[<urn:p> " * deepest + b"1" + b"]" * deepest + b" .", TTL).edges
    terms = DEFAULT.context_terms
    chain = {f"t{i}": f"t{i + 1}:x" for i in range(terms - 1)} | {f"t{terms - 1}": "urn:x"}
    assert decode(json_ld(at_context=chain, t0=1), JSON).edges
    elements = (deepest - 2) // 2
    assert decode(rdf_xml("<e:a><e:p>" * elements + "</e:p></e:a>" * elements), XML).edges
