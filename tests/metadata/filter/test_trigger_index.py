"""Triggering rules in the common index: what it finds is what each rule says by itself."""

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
def rules(draw: st.DrawFn, schema: Schema, given: tuple[Resource, ...]) -> TriggeringRule:
    """A rule about a class and one of its properties, with a value that some resource has."""
    cls = draw(st.sampled_from(sorted(schema.classes)))
    values = [
        (each.name, each.kind, value)
        for each in properties_of(schema, cls)
        for resource in given
        for value in resource.values.get(each.name, ())
    ]
    named = [(SUBJECT, None, Ref(resource.uri)) for resource in given]
    name, kind, value = draw(st.sampled_from([(None, None, None), *named, *values]))
    if name is None:
        return TriggeringRule(cls)
    compares = draw(st.sampled_from(BY_KIND[kind]))
    if isinstance(value, Ref):
        return TriggeringRule(cls, name, compares, value.uri, is_resource=True)
    return TriggeringRule(cls, name, compares, value)


@given(st.data())
def test_the_index_finds_what_each_rule_says(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    given = data.draw(resources(schema))
    asked = data.draw(st.lists(rules(schema, given), min_size=1, max_size=12))
    first, gone = data.draw(st.integers(0, len(asked))), data.draw(st.sets(st.integers(0, len(asked) - 1)))
    triggers, numbered = TriggerIndex(schema), dict(enumerate(asked))
    triggers.add({n: rule for n, rule in numbered.items() if n < first})
    triggers.add({n: rule for n, rule in numbered.items() if n >= first})
    triggers.remove(gone)
    expected = {
        (uri, n)
        for n, rule in numbered.items()
        if n not in gone
        for uri in evaluate_atomic_rule(rule, given, schema)
    }
    found = list(triggers.satisfied(given))
    assert set(found) == expected and len(found) == len(expected)
