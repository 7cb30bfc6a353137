"""The four extension rules; other changes are rejected."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.paths import ROOT
from tests.support.strategies.effort import share
from tests.support.strategies.schemas import additions, instances, schemas
from tidings.errors import SchemaError
from tidings.events.schema.consistency import check
from tidings.events.schema.event_schema import EventSchema
from tidings.events.schema.extension import ACCEPTED, RULES, Change, extend
from tidings.events.schema.files import load, parts_of_text

FURNITURE = load(ROOT / "examples" / "furniture.yaml")


def test_extension_has_four_rules() -> None:
    assert [rule.__name__ for rule in RULES] == [
        "domain_creation",
        "attribute_creation",
        "event_schema_creation",
        "event_schema_extension",
    ]


def test_extend_changes_name_rule_and_addition() -> None:
    addition = parts_of_text("""
        domains: {shape: {values: [round, square]}}
        attributes: {shape: shape, weight: numeric}
        event_types:
          rug: {attributes: {shape: mandatory, price: mandatory}}
          furniture: {attributes: {shape: optional multiple, weight: optional}}
    """)
    extended = extend(FURNITURE, addition)
    assert extended.changes == (
        Change("domain creation", "domain shape: enumerated, 2 values"),
        Change("attribute creation", "attribute shape: shape"),
        Change("attribute creation", "attribute weight: numeric"),
        Change("event schema creation", "event type rug"),
        Change("event schema extension", "furniture.shape: optional multiple"),
        Change("event schema extension", "furniture.weight: optional unique"),
    )
    assert list(extended.schema.event_types) == ["antiques", "furniture", "rug"]
    assert [member.attribute for member in extended.schema.event_types["furniture"].members] == [
        "price",
        "quantity",
        "furniture_category",
        "material",
        "shape",
        "weight",
    ]


def test_extend_existing_declarations_changes_no_schema() -> None:
    assert extend(FURNITURE, FURNITURE).changes == ()
    assert extend(FURNITURE, FURNITURE).schema == FURNITURE
    again = parts_of_text("event_types: {furniture: {attributes: {material: optional}}}")
    assert extend(FURNITURE, again).schema == FURNITURE


OTHER_CHANGES = {
    "domain period exists and cannot be changed (without 'XV', 'XVI', 'XIX', 'XX' and with 'XXI')": (
        "domains: {period: {values: [XVII, XVIII, XXI]}}"
    ),
    "domain material exists and cannot be changed (with 'teak')": (
        "domains: {material: {values: [oak, walnut, pine, iron, wicker, teak]}}"
    ),
    "domain material exists and cannot be changed (with a different order)": (
        "domains: {material: {values: [oak, walnut, pine, iron, wicker], ordered: true}}"
    ),
    "domain material exists and cannot be changed (from enumerated to string)": "domains: {material: string}",
    "attribute price exists and cannot move from domain numeric to string": "attributes: {price: string}",
    "event type furniture is closed and cannot become open": "event_types: {furniture: {open: true}}",
    "material is optional unique for furniture and cannot become mandatory unique": (
        "event_types: {furniture: {attributes: {material: mandatory}}}"
    ),
    "price is mandatory unique for furniture and cannot become optional unique": (
        "event_types: {furniture: {attributes: {price: optional}}}"
    ),
    "price is mandatory unique for furniture and cannot become mandatory multiple": (
        "event_types: {furniture: {attributes: {price: mandatory multiple}}}"
    ),
    "period cannot become mandatory for furniture: events without it are valid today": (
        "event_types: {furniture: {attributes: {period: mandatory}}}"
    ),
}


@pytest.mark.parametrize("message", OTHER_CHANGES)
def test_extend_other_change_is_rejected(message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        extend(FURNITURE, parts_of_text(OTHER_CHANGES[message]))
    error = caught.value
    assert error.what == message
    assert error.accepted == ACCEPTED and error.hint and error.place


def test_extend_error_points_into_file() -> None:
    addition = "event_types:\n  furniture:\n    attributes:\n      period: mandatory\n"
    with pytest.raises(SchemaError) as caught:
        extend(FURNITURE, parts_of_text(addition))
    first, *underlined = str(caught.value).splitlines()
    assert "valid today (line 4, column 7); accepted: the four extensions: a new domain," in first
    assert underlined == [
        "        period: mandatory",
        "        ^^^^^^   make it optional, or create a new event type",
    ]


def test_extend_rejected_change_adds_no_attribute() -> None:
    addition = parts_of_text("attributes: {weight: numeric, price: string}")
    with pytest.raises(SchemaError):
        extend(FURNITURE, addition)
    assert "weight" not in FURNITURE.attributes


def test_extend_undeclared_domain_or_attribute_is_rejected() -> None:
    with pytest.raises(SchemaError, match="unknown domain 'shape'"):
        extend(FURNITURE, parts_of_text("attributes: {shape: shape}"))
    with pytest.raises(SchemaError, match="has an unknown attribute 'shape'"):
        extend(FURNITURE, parts_of_text("event_types: {furniture: {attributes: {shape: optional}}}"))


@share(2)
@given(schemas(), st.data())
def test_extend_valid_events_stay_valid(schema: EventSchema, data: st.DataObject) -> None:
    """Holds for declared attributes: those that an open type lets through may be declared later."""
    assume(schema.event_types)
    event = data.draw(instances(schema))
    check(event, schema)
    check(event, extend(schema, data.draw(additions(schema))).schema)


@given(schemas(), st.data())
def test_extend_new_attributes_and_domains_affect_no_event(schema: EventSchema, data: st.DataObject) -> None:
    """Not even an event that has an attribute of the same name through an open type."""
    assume(schema.event_types)
    event = data.draw(instances(schema, unnamed=True))
    addition = parts_of_text("domains: {d: {values: [v]}}\nattributes: {something else: d}")
    check(event, extend(schema, addition).schema)


@share(2)
@given(schemas(), st.data())
def test_extend_is_idempotent(schema: EventSchema, data: st.DataObject) -> None:
    addition = data.draw(additions(schema))
    once = extend(schema, addition)
    twice = extend(once.schema, addition)
    assert twice.changes == () and twice.schema == once.schema
