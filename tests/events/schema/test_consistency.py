"""Consistency rules R1, R2 and R3: violations name the attribute and the event type."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.paths import ROOT
from tests.support.strategies.schemas import instances, schemas
from tidings.errors import ConsistencyProblem
from tidings.events.schema.consistency import check, violations
from tidings.events.schema.event_schema import Attribute, EventSchema, EventType, Member
from tidings.events.schema.files import load, load_text

FURNITURE = load(ROOT / "examples" / "furniture.yaml")
BOTH_TYPES = ["antiques", "furniture"]
E1 = {
    "event_type": BOTH_TYPES,
    "price": [200],
    "quantity": [2],
    "period": ["XVI"],
    "furniture_category": ["table"],
}
E2 = {"event_type": BOTH_TYPES, "price": [100], "quantity": [1], "period": ["XVIII"]}


def test_check_event_e1_of_paper_is_consistent() -> None:
    check(E1, FURNITURE)


def test_check_event_e2_of_paper_violates_r2() -> None:
    with pytest.raises(ConsistencyProblem) as caught:
        check(E2, FURNITURE)
    assert str(caught.value) == "furniture_category is mandatory for furniture (rule R2)"
    assert caught.value.rule == "R2" and caught.value.facts()["rule"] == "R2"


VIOLATIONS: dict[str, dict[str, list[Any]]] = {
    "event_type is missing (rule R1); accepted: antiques, furniture": {"event_type": []},
    "no event type 'antique' (rule R1); accepted: antiques, furniture; did you mean 'antiques'?": {
        "event_type": ["antique", "furniture"]
    },
    "event_type 7 is not a name (rule R1); accepted: antiques, furniture": {"event_type": [7]},
    "price is mandatory for antiques and furniture (rule R2)": {"price": []},
    "price 'cheap' is not in the domain numeric, for antiques and furniture (rule R2); accepted: a number": {
        "price": ["cheap"]
    },
    "price true is not in the domain numeric, for antiques and furniture (rule R2); accepted: a number": {
        "price": [True]
    },
    "period 'XVl' is not in the domain period, for antiques (rule R2); "
    "accepted: 'XV', 'XVI', 'XVII', 'XVIII', 'XIX', 'XX'; did you mean 'XV'?": {"period": ["XVl"]},
    "furniture_category 'sofa' is not in the domain furniture_category, for furniture (rule R2); "
    "accepted: 'furniture', 'bedroom', 'bed', 'four-poster bed', 'wardrobe', 'dining room', 'table', 'dining table', "
    "'extending table', 'chair', 'garden chair', 'sideboard' and 2 more": {
        "furniture_category": ["table", "sofa"]
    },
    "quantity is unique for antiques and furniture (rule R2); received 1, 2": {"quantity": [1, 2]},
    "colour is not an attribute of antiques or furniture (rule R3); "
    "accepted: price, quantity, period, furniture_category, material": {"colour": ["red"]},
    "prices is not an attribute of antiques or furniture (rule R3); "
    "accepted: price, quantity, period, furniture_category, material; did you mean 'price'?": {"prices": [3]},
    "\\x1b[31mred is not an attribute of antiques or furniture (rule R3); "
    "accepted: price, quantity, period, furniture_category, material": {"\x1b[31mred": [3]},
}


@pytest.mark.parametrize("message", VIOLATIONS)
def test_check_violation_names_attribute_and_event_types(message: str) -> None:
    with pytest.raises(ConsistencyProblem) as caught:
        check(E1 | VIOLATIONS[message], FURNITURE)
    assert str(caught.value) == message


def test_check_attribute_of_another_type_violates_r3() -> None:
    with pytest.raises(ConsistencyProblem, match=r"period is not an attribute of furniture \(rule R3\)"):
        check(E1 | {"event_type": ["furniture"]}, FURNITURE)


def test_violations_lists_all_violations() -> None:
    event = {
        "event_type": BOTH_TYPES,
        "price": ["x", "y"],
        "quantity": [1],
        "period": ["XVI"],
        "colour": ["red"],
    }
    assert [violation.rule for violation in violations(event, FURNITURE)] == ["R2", "R2", "R2", "R3"]


def test_check_repeated_value_counts_once() -> None:
    """The paper's V is a set: {2, 2} is a singleton. True is not 1."""
    schema = load_text("attributes: {a: numeric}\nevent_types: {x: {attributes: {a: mandatory}}}")
    check({"event_type": ["x", "x"], "a": [2, 2.0]}, schema)
    with pytest.raises(ConsistencyProblem, match="R2"):
        check({"event_type": ["x"], "a": [1, 2]}, schema)


def test_check_instant_is_string_in_iso_8601() -> None:
    schema = load_text("attributes: {at: instant}\nevent_types: {x: {attributes: {at: }}}")
    check({"event_type": ["x"], "at": ["2026-01-31T12:00:00Z"]}, schema)
    with pytest.raises(ConsistencyProblem, match=r"at '31\.1\.2026' is not in the domain instant.*ISO 8601"):
        check({"event_type": ["x"], "at": ["31.1.2026"]}, schema)


def test_check_number_is_not_string_of_same_digits() -> None:
    schema = load_text("""
        domains: {size: {values: [1, 2]}}
        attributes: {size: size}
        event_types: {x: {attributes: {size: mandatory}}}
    """)
    check({"event_type": ["x"], "size": ["1"]}, schema)
    with pytest.raises(ConsistencyProblem, match="accepted: '1', '2'; 1 is not the string '1'"):
        check({"event_type": ["x"], "size": [1]}, schema)


OPEN = EventSchema.of(
    attributes=[Attribute("price", "numeric"), Attribute("colour", "string")],
    event_types=[
        EventType("news", (Member("price"),), open=True),
        EventType("sale", (Member("price", True),)),
    ],
)


def test_check_open_type_allows_undeclared_attributes() -> None:
    check({"event_type": ["news"], "anything": [1, "x"], "colour": [7]}, OPEN)
    check({"event_type": ["sale", "news"], "price": [1], "anything": [True]}, OPEN)
    with pytest.raises(ConsistencyProblem, match="anything is not an attribute of sale"):
        check({"event_type": ["sale"], "price": [1], "anything": [True]}, OPEN)


def test_check_open_type_checks_declared_attributes() -> None:
    with pytest.raises(
        ConsistencyProblem, match=r"price 'x' is not in the domain numeric, for news \(rule R2\)"
    ):
        check({"event_type": ["news"], "price": ["x"]}, OPEN)


def test_check_schema_without_event_types_has_no_rules() -> None:
    check({"anything": [1, "x"]}, EventSchema())
    check({"price": ["x"]}, EventSchema.of(attributes=[Attribute("price", "numeric")]))


def test_check_ignores_paths_beside_event() -> None:
    check(E1 | {"cloudevent.id": ["7"]}, FURNITURE, beside=["cloudevent.id"])
    with pytest.raises(ConsistencyProblem, match="R3"):
        check(E1 | {"cloudevent.id": ["7"]}, FURNITURE)


@given(schemas(), st.data())
def test_violations_of_changed_instances_name_rule(schema: EventSchema, data: st.DataObject) -> None:
    assume(schema.event_types)
    event = data.draw(instances(schema, unnamed=True))
    view = schema.view(event["event_type"])
    check(event, schema)
    assert _violated_rules(event | {"event_type": ["nothing of the sort"]}, schema) == {"R1"}
    assert _violated_rules(event | {"not named": [1]}, schema) == (set() if view.open else {"R3"})
    for member in view.members.values():
        without = {path: values for path, values in event.items() if path != member.attribute}
        assert _violated_rules(without, schema) == ({"R2"} if member.mandatory else set())


def _violated_rules(event: dict[str, list[Any]], schema: EventSchema) -> set[str]:
    return {violation.rule for violation in violations(event, schema)}
