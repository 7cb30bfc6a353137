"""Enriched publications: documents as bytes and as nodes, events as atoms and as values, agree with each other."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.support.atoms import events_of
from tests.support.strategies.effort import share
from tests.support.strategies.events import SCHEMA
from tests.support.strategies.xml import documents
from tidings.atoms import AtomShape
from tidings.documents import xml_decoder
from tidings.documents.model import Node, place_of
from tidings.documents.xml_batch_decoder import atoms_of
from tidings.errors import DecodeProblem
from tidings.events import json_decoder
from tidings.events.schema.event_schema import EventSchema
from tidings.events.schema.extension import extend
from tidings.kinds import DecodedPublications, Environment
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.index.index import Index
from tidings.model import Subscription
from tidings.reference_data import enrichment
from tidings.reference_data.declarations import declare
from tidings.reference_data.enrichment import (
    Enrichment,
    Snapshot,
    enrich_body,
    enrich_document,
    enrich_event,
    open_lookup,
)
from tidings.reference_data.table_rows import Row, read_file, write_rows
from tidings.spark.decoder import Decoder, match_decoded

ROWS = ({"sector": ["tech & more"], "in": ["US", ""]}, {})


def places_and_values(node: Node) -> Iterable[tuple[str, str]]:
    yield place_of(node), node.value
    for child in node.children:
        yield from places_and_values(child)


ENRICHED = [
    (b"<a/>", b"<a>%s</a>"),
    (b"<a b='/>' />", b"<a b='/>' >%s</a>"),
    (b"<a\n/>\n", b"<a\n>%s</a>\n"),
    (b"<a>x</a >\n", b"<a>x%s</a >\n"),
    (b"<a><b/></a>", b"<a><b/>%s</a>"),
    (b"<a><![CDATA[</a>]]></a>", b"<a><![CDATA[</a>]]>%s</a>"),
    (b"<a/><!-- <b/> --><?p </a>?>", b"<a>%s</a><!-- <b/> --><?p </a>?>"),
    (b"<a></a><?p </a><?q?>", b"<a>%s</a><?p </a><?q?>"),
    (b"<a><!-- </a><?p --></a><?q?>", b"<a><!-- </a><?p -->%s</a><?q?>"),
    (b"<a-->x</a-->", b"<a-->x%s</a-->"),
    (b"<p:a xmlns:p='u'/>", b"<p:a xmlns:p='u'>%s</p:a>"),
    ('<?xml version="1.0" encoding="latin1"?><a>\u00e9</a>'.encode("latin-1"),
     '<?xml version="1.0"?><a>\u00e9%s</a>'.encode()),
    ('<?xml version="1.0" encoding="UTF-16"?><a>\u00e9</a>'.encode("utf-16"),
     '<?xml version="1.0"?><a>\u00e9%s</a>'.encode()),
    (b"\xef\xbb\xbf<a/>", b"<a>%s</a>"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "frame"), ENRICHED)
def test_enrich_body_appends_rows_to_root_element(body: bytes, frame: bytes) -> None:
    tag = b'<ref xmlns="">' if b"xmlns" in body else b"<ref>"
    refs = tag + b"<sector>tech &amp; more</sector><in>US</in><in></in></ref>" + tag + b"</ref>"
    before, _, after = frame.partition(b"%s")
    assert enrich_body(body, ROWS) == before + refs + after
    assert list(places_and_values(xml_decoder.decode(enrich_body(body, ROWS)))) == list(
        places_and_values(enrich_document(xml_decoder.decode(body), ROWS))
    )


def test_enrich_document_added_elements_have_no_namespace() -> None:
    enriched = enrich_document(xml_decoder.decode(b'<a xmlns="urn:a"><ref/></a>'), [{"b": ["1"]}])
    places = [
        "/{urn:a}a[1]",
        "/{urn:a}a[1]/{urn:a}ref[1]",
        "/{urn:a}a[1]/ref[1]",
        "/{urn:a}a[1]/ref[1]/b[1]",
        "/{urn:a}a[1]/ref[1]/b[1]/text()[1]",
    ]
    assert [place for place, _ in places_and_values(enriched)] == places
    decoded = xml_decoder.decode(enrich_body(b'<a xmlns="urn:a"><ref/></a>', [{"b": ["1"]}]))
    assert [place for place, _ in places_and_values(decoded)] == places


texts = st.text(st.sampled_from("ab<>&\"' \t\n\r]é日\U0001f600\x85\u2028{}/!-?"), max_size=6)
names = st.sampled_from(["a", "b", "ref", "größe", "x.y", "_-"])
added = st.lists(st.dictionaries(names, st.lists(texts, min_size=1, max_size=2), max_size=3), max_size=3)


@share(2)
@given(st.lists(st.tuples(documents(), added), min_size=1, max_size=4))
@example([("<a>]]&gt;</a>", [{"b": ["]]>"]}])])
def test_decoder_enriched_documents_agree_with_specification(
    documents_and_rows: list[tuple[str, list[dict[str, list[str]]]]],
) -> None:
    """Holds for the batch decoder, and next to documents without rows."""
    expected = []
    for text, rows in documents_and_rows:
        try:
            expected.append(enrich_document(xml_decoder.decode(text.encode()), rows))
        except DecodeProblem:
            assume(False)
    decoder = Decoder(
        Environment(
            enrichment=_FixedRows({i: rows for i, (_, rows) in enumerate(documents_and_rows) if rows})
        )
    )
    decoded = _decode(decoder, [text.encode() for text, _ in documents_and_rows], "application/xml")
    assert decoded.problems == []
    assert list_atoms(decoded.atoms) == list_atoms(atoms_of(expected))


class _FixedRows(Enrichment):
    """An enrichment that always adds the given rows."""

    def __init__(self, added: Mapping[int, Any]) -> None:
        super().__init__(())
        self.added = added

    def find_rows(self, atoms: Any, are_documents: bool) -> dict[int, Any]:
        return dict(self.added)


def list_atoms(atoms: Any) -> list[list[tuple[str, str, int]]]:
    """Return tag path, value and parent of all atoms of each document, whose texts are one span."""
    atoms_by_document = []
    for first, last in zip(atoms.starts, atoms.starts[1:], strict=False):
        rows = []
        for k in range(first, last):
            start = int(atoms.payload[k])
            value = atoms.text[start : start + atoms.length[k]].tobytes().decode()
            rows.append((atoms.paths[atoms.path[k]], value, int(atoms.parent[k])))
        atoms_by_document.append(rows)
    return atoms_by_document


def _decode(decoder: Decoder, bodies: Sequence[bytes], media_type: str) -> DecodedPublications:
    sizes = np.array([len(body) for body in bodies], np.int64)
    ends = np.cumsum(sizes)
    return decoder.decode(media_type, np.frombuffer(b"".join(bodies), np.uint8), ends - sizes, ends)


def snapshot(tmp_path: Path, name: str, on: str, lines: str) -> Snapshot:
    (tmp_path / f"{name}.jsonl").write_text(lines)
    reference = declare(name, str(tmp_path / f"{name}.jsonl"), "k", on)
    write_rows(read_file(reference), tmp_path / f"{name}.parquet")
    return Snapshot(reference, str(tmp_path / f"{name}.parquet"))


SECTORS = """
{"k": "IBM", "sector": "tech", "since": 1911}
{"k": "SAP", "sector": "soft", "country": null}
{"k": "IBM", "sector": "services"}
{"k": 7, "sector": "seven"}
{"k": ["a", "b"], "sector": "both"}
"""


def test_decoder_documents_are_looked_up_as_text(tmp_path: Path) -> None:
    enrichment = Enrichment(
        [snapshot(tmp_path, "z", "/stock/symbol", SECTORS), snapshot(tmp_path, "a", "//@id", '{"k": 7, "n": 1}')]
    )  # fmt: skip
    decoder = Decoder(Environment(enrichment=enrichment))
    bodies = [
        b"<stock><symbol>IBM</symbol><symbol>IBM</symbol></stock>",
        b"<stock>",
        b"<stock><symbol>I<!-- -->BM</symbol><symbol>SAP</symbol><x id='7'/></stock>",
        b"<stock><symbol> IBM </symbol><symbol>7.0</symbol></stock>",
        b"<stock><symbol>7</symbol><symbol>b</symbol><symbol>a</symbol></stock>",
        b"<other><symbol>IBM</symbol></other>",
    ]
    decoded = _decode(decoder, bodies, "text/xml")
    tech, services = {"sector": ["tech"], "since": ["1911"]}, {"sector": ["services"]}
    assert decoded.added == {
        0: [tech, services],
        2: [{"n": ["1"]}, tech, {"sector": ["soft"]}, services],
        4: [{"sector": ["seven"]}, {"sector": ["both"]}],
    }
    assert [place for place, _ in decoded.problems] == [1]
    expected = [
        None if i == 1 else enrich_document(xml_decoder.decode(body), decoded.added.get(i, ()))
        for i, body in enumerate(bodies)
    ]
    assert list_atoms(decoded.atoms) == list_atoms(atoms_of(expected))


def test_match_decoded_subscriptions_match_added_rows(tmp_path: Path) -> None:
    texts = {
        "sector": '/stock/ref/sector = "tech"',
        "both": '//ref[sector = "tech" and since < 1912]',
        "other": '//ref[sector = "services" and since]',
        "own": '/stock/ref/sector = "mine"',
        "none": "not(/stock/ref)",
    }
    index = Index.create(tmp_path / "index")
    index.add(compile_many([Subscription(id, "ana", "xpath", text) for id, text in texts.items()], None))
    enrichment = Enrichment([snapshot(tmp_path, "s", "/stock/symbol", SECTORS)])
    decoder = Decoder.for_index(index, enrichment=enrichment)
    bodies = [
        b"<stock><symbol>IBM</symbol><ref><sector>mine</sector></ref></stock>",
        b"<stock><symbol>HAL</symbol></stock>",
    ]
    pairs = [
        (int(place), id)
        for matches in match_decoded(_decode(decoder, bodies, "application/xml"), "application/xml", index)
        for place, id in matches.pairs()
    ]
    assert sorted(pairs) == [(0, "both"), (0, "own"), (0, "sector"), (1, "none")]


def test_decoder_too_large_enriched_document_is_matched_without_rows(tmp_path: Path) -> None:
    lines = "".join(f'{{"k": "IBM", "n": {n}}}\n' for n in range(400))
    decoder = Decoder(Environment(enrichment=Enrichment([snapshot(tmp_path, "s", "//symbol", lines)])))
    bodies = [
        b"<a xmlns:p='u'><symbol>IBM</symbol></a>",
        b"<a><symbol>IBM</symbol></a>",
        b"<a><symbol>HAL</symbol></a>",
    ]
    decoded = _decode(decoder, bodies, "application/xml")
    assert decoded.rejects == []
    [(place, problem)] = decoded.plain
    assert place == 0
    assert problem.headline() == (
        "matched without reference data, because the enriched publication is rejected: "
        "the document declares too many namespaces; "
        "accepted: at most 256 declarations (the limit namespaces)"
    )
    assert sorted(decoded.added) == [1]
    assert np.diff(decoded.atoms.starts).tolist() == [3, 3 + 3 * 400, 3]


@pytest.mark.parametrize(
    ("kind", "on", "body"),
    [("text/xml", "//a", b"<x><a>k</a><a>k</a></x>"), ("application/json", "a", b'{"a": ["k", "k"]}')],
)
def test_decoder_rows_beyond_limit_are_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, on: str, body: bytes
) -> None:
    monkeypatch.setattr(enrichment, "MOST_ADDED", 5)
    few, many = (
        Enrichment([snapshot(tmp_path, name, on, '{"k": "k", "n": 1}\n' * rows)])
        for name, rows in (("few", 5), ("many", 6))
    )
    assert len(_decode(Decoder(Environment(enrichment=few)), [body], kind).added[0]) == 5
    decoded = _decode(Decoder(Environment(enrichment=many)), [body], kind)
    assert (decoded.rejects, decoded.added) == ([], {})
    [(place, problem)] = decoded.problems
    assert place == 0
    assert problem.headline() == (
        "matched without reference data, because the enriched publication is rejected: "
        "the publication matches too many rows; "
        "received 6 rows or more; accepted: at most 5 rows of reference tables"
    )


def test_open_lookup_unused_table_is_released(tmp_path: Path) -> None:
    table = snapshot(tmp_path, "t", "a", '{"k": 1, "n": 1}')
    first = Enrichment([table])
    assert open_lookup(table) is open_lookup(table)
    second = Enrichment([table])
    reference = weakref.ref(open_lookup(table))
    del first
    assert reference() is open_lookup(table)
    del second
    assert reference() is None


values = st.sampled_from([1, 1.0, 2.5, 2**53, 2**53 + 1, "1", "IBM", "é\n", True, False, "", -0.0, 0])
objects = st.fixed_dictionaries(
    {}, optional={"k": values | st.lists(values, max_size=2), "ref": st.just({"x": 0}), "n": values}
)
keys = st.lists(st.tuples(st.lists(values, min_size=1, max_size=2), values), max_size=6)


def same_value(one: Any, other: Any) -> bool:
    """Compare values of the same kind: a boolean is neither a number nor a string."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def repr_values(event: Mapping[str, Sequence[Any]]) -> dict[str, list[str]]:
    """Represent values as texts, so that 1, 1.0 and true differ."""
    return {path: list(map(repr, values)) for path, values in event.items()}


@given(table=keys, contents=st.lists(objects, min_size=1, max_size=4))
def test_decoder_enriched_events_agree_with_specification(
    table: list[tuple[list[Any], Any]], contents: list[dict[str, Any]], tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    write_rows([Row(tuple(keys), {"x": (value,)}) for keys, value in table], folder / "t.parquet")
    enrichment = Enrichment([Snapshot(declare("t", "t.csv", "k", "k"), str(folder / "t.parquet"))])
    decoder = Decoder(Environment({AtomShape.FLAT: ["n", "ref.x"]}, enrichment=enrichment))
    bodies = [json.dumps(content).encode() for content in contents]
    decoded = _decode(decoder, bodies, "application/json")
    expected = []
    for body in bodies:
        plain = json_decoder.decode(body)
        rows = [
            {"x": (value,)}
            for keys, value in table
            if any(same_value(key, value) for key in keys for value in plain.get("k", ()))
        ]
        expected.append(enrich_event(plain, rows))
    assert [*map(repr_values, events_of(decoded.atoms))] == [*map(repr_values, expected)]
    added = [decoded.added.get(place, ()) for place in range(len(bodies))]
    assert [*map(enrich_event, map(json_decoder.decode, bodies), added)] == expected


def test_decoder_schema_checks_event_before_enrichment(tmp_path: Path) -> None:
    """An event of a closed type may be enriched with undeclared attributes."""
    schema = extend(EventSchema(), SCHEMA).schema
    tables = [snapshot(tmp_path, "t", "price", '{"k": 9, "class": "cheap"}\n{"k": "9", "class": "odd"}')]
    paths = {AtomShape.FLAT: ["ref.class"]}
    decoder = Decoder(Environment(paths, schema, "id", Enrichment(tables)))
    body = b'{"event_type": "furniture", "price": 9, "category": "chair"}'
    decoded = _decode(decoder, [body, b'{"event_type": "furniture"}'], "application/json")
    assert [place for place, _ in decoded.rejects] == [1]
    assert decoded.added == {0: [{"class": ["cheap"]}]}
    assert enrich_event(json_decoder.decode(body, schema), decoded.added[0])["ref.class"] == ["cheap"]
