"""Schemas as rows: round trips in any order; extensions only insert rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies.schemas import additions, schemas
from tidings.errors import SchemaError
from tidings.events.schema.event_schema import EventSchema
from tidings.events.schema.extension import extend
from tidings.events.schema.files import load_text
from tidings.events.schema.rows import SchemaRow, from_rows, to_rows


def test_to_rows_lists_all_parts() -> None:
    schema = load_text("""
        domains:
          category: {concepts: {dining room: [table], outdoor: [table]}}
          amount: {kind: numeric, minimum: 0}
        attributes: {price: amount, category: category}
        event_types:
          furniture: {attributes: {price: mandatory, category: optional multiple}}
          news: {open: true}
    """)
    assert to_rows(schema) == [
        SchemaRow("domain", "category", "hierarchical", "", 0),
        SchemaRow("domain", "amount", "numeric", "0 -", 1),
        SchemaRow("value", "category", "dining room", "", 0),
        SchemaRow("value", "category", "table", "dining room", 1),
        SchemaRow("value", "category", "table", "outdoor", 2),
        SchemaRow("value", "category", "outdoor", "", 3),
        SchemaRow("attribute", "price", "amount", "", 0),
        SchemaRow("attribute", "category", "category", "", 1),
        SchemaRow("event_type", "furniture", "closed", "", 0),
        SchemaRow("event_type", "news", "open", "", 1),
        SchemaRow("member", "furniture", "price", "mandatory unique", 0),
        SchemaRow("member", "furniture", "category", "optional multiple", 1),
    ]


@given(schemas(), st.randoms())
def test_from_rows_of_to_rows_is_same_schema(schema: EventSchema, random: st.random.Random) -> None:
    rows = to_rows(schema)
    random.shuffle(rows)
    restored = from_rows(rows)
    assert restored == schema and to_rows(restored) == to_rows(schema)


@given(schemas(), st.data())
def test_to_rows_of_extended_schema_only_adds_rows(schema: EventSchema, data: st.DataObject) -> None:
    extended = extend(schema, data.draw(additions(schema))).schema
    assert set(to_rows(schema)) <= set(to_rows(extended))


def test_from_rows_unknown_section_is_rejected() -> None:
    with pytest.raises(SchemaError, match="unknown section in a schema row"):
        from_rows([SchemaRow("index", "a", "b")])
