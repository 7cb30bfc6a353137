"""Previews join publications with the same reference rows as tasks of the stream."""

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
from tidings.reference_data.table_rows import Row, build_table
from tidings.spark.decoder import Decoder

values = st.sampled_from([1, 2.5, "1", "IBM", "é<&", True, "", 0])
texts = st.sampled_from(["1", "IBM", "é", "]]>", ""])
tables = st.lists(st.tuples(st.lists(values, min_size=1, max_size=2), texts), max_size=5)


def a_table(name: str, on: str, rows: Sequence[tuple[Sequence[Any], Any]]) -> Lookup:
    table = build_table([Row(tuple(keys), {"x": (value,)}) for keys, value in rows])
    return Lookup(declare(name, "t.csv", "k", on), table)


def added_in_task(lookups: Enrichment, body: bytes, media_type: str) -> tuple[Reader, Sequence[Any]]:
    decoder = Decoder(Environment(enrichment=lookups))
    buffer = np.frombuffer(body, np.uint8)
    decoded = decoder.decode(media_type, buffer, np.array([0]), np.array([len(body)]))
    assert decoded.rejects == []
    return decoder.reader(media_type), decoded.added.get(0, ())


@share(2)
@given(first=tables, second=tables, keys=st.lists(values, max_size=3))
def test_preview_and_task_join_events_alike(first: Any, second: Any, keys: list[Any]) -> None:
    lookups = Enrichment.of([a_table("b", "k", first), a_table("a", "n.k", second)])
    body = json.dumps({"k": keys, "n": {"k": keys[:1]}, "ref": {"x": "own"}}).encode()
    reader, added = added_in_task(lookups, body, "application/json")
    assert repr([*reader.find_added(body, "application/json")]) == repr([*added])


@share(2)
@given(first=tables, second=tables, keys=st.lists(texts, max_size=3))
def test_preview_and_task_join_documents_alike(first: Any, second: Any, keys: list[str]) -> None:
    lookups = Enrichment.of([a_table("b", "//k", first), a_table("a", "/d/@k", second)])
    inner = "".join(f"<k>{key.replace('>', '&gt;')}</k>" for key in keys)
    body = f'<d k="IBM">{inner}</d>'.encode()
    reader, added = added_in_task(lookups, body, "application/xml")
    assert [*reader.find_added(body, "application/xml")] == [*added]


def test_preview_join_over_limit_adds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Too many rows, or too many namespace declarations for one document: the limits equal those of tasks."""
    body = b"<d xmlns:p='u'><k>IBM</k></d>"
    for rows, most in ((300, 10_000), (6, 5)):
        for module in (enrichment, document_reader):
            monkeypatch.setattr(module, "MOST_ADDED", most)
        lookups = Enrichment.of([a_table(f"t{rows}", "//k", [(["IBM"], "x")] * rows)])
        reader, added = added_in_task(lookups, body, "application/xml")
        assert added == () == reader.find_added(body, "application/xml")
