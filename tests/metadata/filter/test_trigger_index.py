"""The index of triggering rules finds what each rule gives on its own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from research.metadata.semantics import evaluate_atomic_rule
from tests.support.strategies.metadata import properties_of, resources, schemas
from tidings.metadata.filter.trigger_index import TriggerIndex
from tidings.metadata.resources import SUBJECT, Ref, Resource
from tidings.metadata.rules.atomic import TriggeringRule
from tidings.metadata.rules.syntax import Operator
from tidings.metadata.schema.model import Schema
from tidings.values import Kind

ORDERED = tuple(each for each in Operator if each is not Operator.CONTAINS)
BY_KIND = {
    Kind.NUMBER: ORDERED,
    Kind.INSTANT: ORDERED,
    Kind.STRING: (Operator.EQUAL, Operator.UNEQUAL, Operator.CONTAINS),
    Kind.BOOLEAN: (Operator.EQUAL, Operator.UNEQUAL),
    None: (Operator.EQUAL, Operator.UNEQUAL),
}


@st.composite
def rules(draw: st.DrawFn, schema: Schema, resources_in_use: tuple[Resource, ...]) -> TriggeringRule:
    """Draw a rule about a class and one of its properties, with a value of some resource."""
    cls = draw(st.sampled_from(sorted(schema.classes)))
    values = [
        (each.name, each.kind, value)
        for each in properties_of(schema, cls)
        for resource in resources_in_use
        for value in resource.values.get(each.name, ())
    ]
    references = [(SUBJECT, None, Ref(resource.uri)) for resource in resources_in_use]
    name, kind, value = draw(st.sampled_from([(None, None, None), *references, *values]))
    if name is None:
        return TriggeringRule(cls)
    operator = draw(st.sampled_from(BY_KIND[kind]))
    if isinstance(value, Ref):
        return TriggeringRule(cls, name, operator, value.uri, is_resource=True)
    return TriggeringRule(cls, name, operator, value)


@given(st.data())
def test_satisfied_equals_evaluation_of_each_rule(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    drawn = data.draw(resources(schema))
    drawn_rules = data.draw(st.lists(rules(schema, drawn), min_size=1, max_size=12))
    first, removed = (
        data.draw(st.integers(0, len(drawn_rules))),
        data.draw(st.sets(st.integers(0, len(drawn_rules) - 1))),
    )
    triggers, numbered = TriggerIndex(schema), dict(enumerate(drawn_rules))
    triggers.add({n: rule for n, rule in numbered.items() if n < first})
    triggers.add({n: rule for n, rule in numbered.items() if n >= first})
    triggers.remove(removed)
    expected = {
        (uri, n)
        for n, rule in numbered.items()
        if n not in removed
        for uri in evaluate_atomic_rule(rule, drawn, schema)
    }
    actual = list(triggers.find_satisfied(drawn))
    assert set(actual) == expected and len(actual) == len(expected)
