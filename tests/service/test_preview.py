"""What previews join publications with is what tasks of the stream join them with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies.effort import share
from tidings.documents import reader as document_reader
from tidings.kinds import Environment, Reader
from tidings.reference_data import enrichment
from tidings.reference_data.declarations import declare
from tidings.reference_data.enrichment import Enrichment, Lookup
from tidings.reference_data.tables import Row, table_of
from tidings.spark.decoder import Decoder

values = st.sampled_from([1, 2.5, "1", "IBM", "é<&", True, "", 0])
texts = st.sampled_from(["1", "IBM", "é", "]]>", ""])
tables = st.lists(st.tuples(st.lists(values, min_size=1, max_size=2), texts), max_size=5)


def a_table(name: str, on: str, rows: Sequence[tuple[Sequence[Any], Any]]) -> Lookup:
    table = table_of([Row(tuple(keys), {"x": (value,)}) for keys, value in rows])
    return Lookup(declare(name, "t.csv", "k", on), table)


def added_in_a_task(found: Enrichment, body: bytes, media_type: str) -> tuple[Reader, Sequence[Any]]:
    decoder = Decoder(Environment(enrichment=found))
    buffer = np.frombuffer(body, np.uint8)
    decoded = decoder.decode(media_type, buffer, np.array([0]), np.array([len(body)]))
    assert decoded.rejects == []
    return decoder.reader(media_type), decoded.added.get(0, ())


@share(2)
@given(first=tables, second=tables, keys=st.lists(values, max_size=3))
def test_preview_and_task_join_events_alike(first: Any, second: Any, keys: list[Any]) -> None:
    found = Enrichment.of([a_table("b", "k", first), a_table("a", "n.k", second)])
    body = json.dumps({"k": keys, "n": {"k": keys[:1]}, "ref": {"x": "own"}}).encode()
    reader, added = added_in_a_task(found, body, "application/json")
    assert repr([*reader.find_added(body, "application/json")]) == repr([*added])


@share(2)
@given(first=tables, second=tables, keys=st.lists(texts, max_size=3))
def test_preview_and_task_join_documents_alike(first: Any, second: Any, keys: list[str]) -> None:
    found = Enrichment.of([a_table("b", "//k", first), a_table("a", "/d/@k", second)])
    inner = "".join(f"<k>{key.replace('>', '&gt;')}</k>" for key in keys)
    body = f'<d k="IBM">{inner}</d>'.encode()
    reader, added = added_in_a_task(found, body, "application/xml")
    assert [*reader.find_added(body, "application/xml")] == [*added]


def test_join_that_would_grow_too_large_adds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Too many rows, or too many declarations of namespaces for one document: the limits of a task are these."""
    body = b"<d xmlns:p='u'><k>IBM</k></d>"
    for rows, most in ((300, 10_000), (6, 5)):
        for module in (enrichment, document_reader):
            monkeypatch.setattr(module, "MOST_ADDED", most)
        found = Enrichment.of([a_table(f"t{rows}", "//k", [(["IBM"], "x")] * rows)])
        reader, added = added_in_a_task(found, body, "application/xml")
        assert added == () == reader.find_added(body, "application/xml")
