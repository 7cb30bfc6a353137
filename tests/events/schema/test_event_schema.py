"""Event schemas: domains of attributes, views over several types, completeness."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.paths import ROOT
from tests.support.strategies.schemas import schemas
from tidings.errors import ConsistencyProblem, SchemaError
from tidings.events.schema.domains import DomainKind
from tidings.events.schema.event_schema import Attribute, EventSchema, EventType, Member, SchemaParts
from tidings.events.schema.files import load
from tidings.events.schema.rows import summary

FURNITURE = load(ROOT / "examples" / "furniture.yaml")


def test_event_schema_of_paper_has_attribute_and_mandatory_sets() -> None:
    """Section 2.1: the attribute set of furniture, its mandatory set, and the event types as a domain."""
    furniture = FURNITURE.event_types["furniture"]
    mandatory = {member.attribute for member in furniture.members if member.mandatory}
    assert mandatory == {"price", "quantity", "furniture_category"}
    assert {member.attribute for member in furniture.members} - mandatory == {"material"}
    types = FURNITURE.domain_of("event_type")
    assert (
        types is not None
        and types.kind is DomainKind.ENUMERATED
        and types.values == ("antiques", "furniture")
    )


def test_view_of_paper_merges_types() -> None:
    view = FURNITURE.view(["antiques", "furniture"])
    assert list(view.members) == ["price", "quantity", "period", "furniture_category", "material"]
    assert view.members["furniture_category"].mandatory and not view.members["material"].mandatory
    assert not view.open


def test_view_mandatory_and_multiple_take_precedence() -> None:
    schema = EventSchema.of(
        attributes=[Attribute("a", "numeric")],
        event_types=[
            EventType("x", (Member("a", mandatory=True),)),
            EventType("y", (Member("a", multiple=True),)),
        ],
    )
    assert schema.view(["x", "y"]).members["a"] == Member("a", mandatory=True, multiple=True)


def test_summary_counts_types_attributes_and_domains() -> None:
    assert summary(FURNITURE) == "2 event types, 5 attributes, 3 domains (furniture_category: 14 concepts)"
    assert summary(EventSchema()) == "0 event types, 0 attributes, 0 domains"
    assert summary(EventSchema.of(event_types=[EventType("x")])) == "1 event type, 0 attributes, 0 domains"


def test_event_schema_empty_is_open() -> None:
    assert EventSchema().is_empty and EventSchema().open
    assert EventSchema().domain_of("event_type") is None and EventSchema().domain_of("price") is None
    assert not FURNITURE.is_empty and not FURNITURE.open
    assert EventSchema.of(event_types=[EventType("x"), EventType("y", open=True)]).open


def test_view_unknown_event_type_suggests_similar_name() -> None:
    with pytest.raises(
        ConsistencyProblem, match=r"no event type 'furnitur' \(rule R1\).*did you mean 'furniture'"
    ):
        FURNITURE.view(["furnitur"])


INCOMPLETE = {
    "attribute price has an unknown domain 'numric'.*did you mean 'numeric'": SchemaParts.of(
        attributes=[Attribute("price", "numric")]
    ),
    "event type x has an unknown attribute 'prise'.*did you mean 'price'": SchemaParts.of(
        attributes=[Attribute("price", "numeric")], event_types=[EventType("x", (Member("prise"),))]
    ),
    "event type x declares price twice": SchemaParts.of(
        attributes=[Attribute("price", "numeric")],
        event_types=[EventType("x", (Member("price"), Member("price")))],
    ),
    "event_type is in every schema": SchemaParts.of(attributes=[Attribute("event_type", "string")]),
    "the domain numeric is built in": SchemaParts(domains={"numeric": FURNITURE.domains["period"]}),
    "an attribute needs a name": SchemaParts.of(attributes=[Attribute("", "string")]),
    "an event type needs a name": SchemaParts.of(event_types=[EventType("a\nb")]),
}


@pytest.mark.parametrize("message", INCOMPLETE)
def test_event_schema_undeclared_name_is_rejected(message: str) -> None:
    parts = INCOMPLETE[message]
    with pytest.raises(SchemaError, match=message):
        EventSchema(parts.domains, parts.attributes, parts.event_types)


@given(schemas(), st.data())
def test_view_satisfies_three_properties_of_paper(schema: EventSchema, data: st.DataObject) -> None:
    assume(schema.event_types)
    types = data.draw(st.lists(st.sampled_from(sorted(schema.event_types)), min_size=1))
    view = schema.view(types)
    members = [member for name in types for member in schema.event_types[name].members]
    assert {m.attribute for m in members if m.mandatory} == {
        m.attribute for m in view.members.values() if m.mandatory
    }
    assert {m.attribute for m in members if m.multiple} == {
        m.attribute for m in view.members.values() if m.multiple
    }
    assert set(view.members) == {member.attribute for member in members}
    assert view.open == any(schema.event_types[name].open for name in types)


@given(schemas(), st.data())
def test_view_ignores_order_and_repetition_of_types(schema: EventSchema, data: st.DataObject) -> None:
    assume(schema.event_types)
    types = data.draw(st.lists(st.sampled_from(sorted(schema.event_types)), min_size=1))
    view, reordered = schema.view(types), schema.view([*reversed(types), *types])
    assert dict(view.members) == dict(reordered.members) and view.open == reordered.open


@given(schemas(), st.data())
def test_view_merging_is_associative(schema: EventSchema, data: st.DataObject) -> None:
    assume(schema.event_types)
    some = st.lists(st.sampled_from(sorted(schema.event_types)), min_size=1)
    first, second = data.draw(some), data.draw(some)
    merged = dict(schema.view(first).members)
    for member in schema.view(second).members.values():
        merged[member.attribute] = member.merged(merged.get(member.attribute, member))
    assert merged == dict(schema.view(first + second).members)
