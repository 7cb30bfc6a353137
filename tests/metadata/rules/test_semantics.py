"""Rules have the results of equivalent SPARQL, and their atomic rules have the same results."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.metadata.semantics import evaluate_atomic_rule, infer_types
from tests.support.oracles.metadata_sparql import sparql_results
from tests.support.stores.cycle_providers import SCHEMA, rule
from tests.support.strategies.metadata import DOCUMENTS, FRAGMENTS, MOMENTS, properties_of, resources, schemas
from tests.support.strategies.rules import programs, rules
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.rules.atomic import decompose
from tidings.metadata.rules.semantics import evaluate_rule
from tidings.metadata.rules.validation import check_rule
from tidings.metadata.schema.model import Property, Schema
from tidings.values import Kind

FEW: dict[Kind, tuple[Value, ...]] = {
    Kind.NUMBER: (0, 1, 2, 64, 2.5),
    Kind.STRING: ("a", "ab", "it's"),
    Kind.BOOLEAN: (True, False),
    Kind.INSTANT: MOMENTS,
}


def some_schema() -> st.SearchStrategy[Schema]:
    """Draw mostly the schema of the paper's example: in generated schemas, few references match."""
    return st.one_of(st.just(SCHEMA), st.just(SCHEMA), schemas())


def stored(schema: Schema) -> st.SearchStrategy[list[Resource]]:
    """Draw the resources of three documents, or resources with most properties and few values.

    In the latter, joins have many results.
    """
    every = st.tuples(*(resources(schema, uri) for uri in DOCUMENTS))
    drawn = every.map(lambda documents: [each for document in documents for each in document])
    return st.one_of(drawn, *3 * [st.integers(0, 2**32).map(lambda seed: dense(schema, Random(seed)))])


def dense(schema: Schema, random: Random) -> list[Resource]:
    uris = [f"{uri}#{name}" for uri in DOCUMENTS[:2] for name in FRAGMENTS]
    classes = {uri: random.choice(sorted(schema.classes)) for uri in uris}

    def value(property: Property) -> Value:
        if property.kind is not None:
            return random.choice(FEW[property.kind])
        fitting = [uri for uri in uris if property.leads_to in schema.at_or_above(classes[uri])]
        return Ref(random.choice(fitting if fitting and random.random() < 0.8 else uris))

    def values(property: Property) -> tuple[Value, ...]:
        count = random.choice((1, 2, 3) if property.several else (0, 1, 1, 1))
        return tuple(dict.fromkeys(value(property) for _ in range(count)))

    return [
        Resource(uri, cls, {each.name: values(each) for each in properties_of(schema, cls)})
        for uri, cls in classes.items()
    ]


@given(st.data())
def test_evaluate_rule_equals_sparql(data: st.DataObject) -> None:
    schema = data.draw(some_schema())
    drawn_rule = data.draw(rules(schema))
    resources_drawn = data.draw(stored(schema))
    assert evaluate_rule(drawn_rule, resources_drawn, schema) == sparql_results(
        drawn_rule, resources_drawn, schema
    )


@given(st.data())
def test_evaluate_rule_over_rules_equals_sparql(data: st.DataObject) -> None:
    schema = data.draw(some_schema())
    program = data.draw(programs(schema))
    resources_drawn = data.draw(stored(schema))
    for name, rule_of_program in program.items():
        assert evaluate_rule(rule_of_program, resources_drawn, schema, program) == sparql_results(
            rule_of_program, resources_drawn, schema, program
        ), name


@given(st.data())
def test_evaluate_atomic_rules_equals_definition(data: st.DataObject) -> None:
    schema = data.draw(some_schema())
    drawn_rule = data.draw(rules(schema))
    resources_drawn = data.draw(stored(schema))
    check_rule(drawn_rule, schema, {})
    results = set().union(
        *(evaluate_atomic_rule(each, resources_drawn, schema) for each in decompose(drawn_rule, schema))
    )
    assert results == evaluate_rule(drawn_rule, resources_drawn, schema)


@given(st.data())
def test_evaluate_atomic_rules_over_rules_equals_definition(data: st.DataObject) -> None:
    schema = data.draw(some_schema())
    program = data.draw(programs(schema))
    resources_drawn = data.draw(stored(schema))
    decomposed = {}
    for name in infer_types(program, schema):
        decomposed[name] = decompose(program[name], schema, decomposed)
        results = set().union(
            *(evaluate_atomic_rule(each, resources_drawn, schema) for each in decomposed[name])
        )
        assert results == evaluate_rule(program[name], resources_drawn, schema, program), name


SERVERS = (
    Resource(
        "a",
        "CycleProvider",
        {
            "serverHost": ("pirates.uni-passau.de",),
            "serverPort": (80,),
            "serverInformation": (Ref("i"),),
            "tags": ("fast", "new"),
            "since": ("2004-05-31T00:00:00.000000Z",),
            "partners": (Ref("b"), Ref("c")),
            "twin": (Ref("b"),),
        },
    ),
    Resource(
        "b",
        "CycleProvider",
        {"serverPort": (443,), "serverInformation": (Ref("i"),), "open": (True,), "twin": (Ref("c"),)},
    ),
    Resource(
        "c", "DataProvider", {"serverPort": (80,), "serverInformation": (Ref("a"),), "domain": ("uni",)}
    ),
    Resource("d", "DataProvider", {"serverInformation": (Ref("gone"),), "partners": (Ref("c"),)}),
    Resource("i", "ServerInformation", {"memory": (92,), "cpu": (600,), "backup": (Ref("j"),)}),
    Resource("j", "ServerInformation", {"memory": (32,)}),
)
EXPECTED_RESULTS = [
    ("search CycleProvider c register c", "a b"),
    ("search Provider p register p", "a b c d"),
    ("search Provider p register p where p.serverPort != 80", "b"),
    ("search Provider p register p where p.serverPort >= 80 and p.serverPort < 443", "a c"),
    ("search Provider p register p where 100 < p.serverPort", "b"),
    ("search Provider p register p where p.open = true", "b"),
    ("search Provider p register p where p.since = 2004-05-31", "a"),
    ("search Provider p register p where p.since < '2004-05-31T02:00:01+02:00'", "a"),
    ("search Provider p register p where p.tags? = 'fast' and p.tags? = 'new'", "a"),
    ("search Provider p register p where p.tags? != 'fast'", "a"),
    ("search Provider p register p where p = <b>", "b"),
    ("search Provider p register p where p = 'b' or p = 'c'", "b c"),
    ("search CycleProvider p register p where p = <c>", ""),
    ("search Provider p register p where p.serverInformation = <gone>", "d"),
    # A reference to a missing resource or to another class has no target, but it differs from the one to i.
    ("search Provider p register p where p.serverInformation != <i>", "c d"),
    ("search Provider p register p where p.serverInformation.memory > 0", "a b"),
    ("search Provider p, ServerInformation s register p where p.serverInformation = s", "a b"),
    ("search Provider p register p where p.serverInformation.backup.memory = 32", "a b"),
    # The twin of b has a port, but is no CycleProvider.
    ("search Provider p register p where p.twin.serverPort > 0", "a"),
    ("search Provider p, Provider q register p where p.twin = q", "a b"),
    # Two partners may satisfy one condition each; a named one must satisfy both.
    ("search Provider p register p where p.partners?.serverPort = 443 and p.partners?.serverPort = 80", "a"),
    (
        "search Provider p, Provider q register p "
        "where p.partners? = q and q.serverPort = 443 and q.serverPort = 80",
        "",
    ),
    ("search Provider p register p where p.partners?.partners?.serverPort = 80", ""),
    ("search Provider p, Provider q register q where p.partners? = q", "b c"),
    ("search Provider p, Provider q register p where p.serverPort < q.serverPort", "a c"),
    ("search Provider p, Provider q register q where p.serverPort < q.serverPort", "b"),
    ("search Provider p, DataProvider q register p where p.serverHost contains q.domain", "a"),
    ("search Provider p, DataProvider q register q where p.serverHost contains q.domain", "c"),
    ("search Provider p, DataProvider q register p where p = q and q.domain = 'uni'", "c"),
    (
        "search Provider p, Provider q, ServerInformation s register s "
        "where p.partners? = q and q.serverPort = 443 and p.serverInformation = s",
        "i",
    ),
    # One q must satisfy both: the twin of a is among its partners, but another one has a's port.
    ("search Provider p, Provider q register p where p.partners? = q and p.twin = q", "a"),
    ("search Provider p, Provider q register q where p.partners? = q and p.serverPort = q.serverPort", "c"),
    ("search Provider p, Provider q register p where p.twin = q and p.serverPort = q.serverPort", ""),
    ("search Provider p, Provider q register p where p.twin = q and p.serverPort < q.serverPort", "a"),
    ("search Provider p register p where p.twin.serverPort > p.serverPort", "a"),
    ("search Provider p register p where p.serverInformation.memory > p.serverPort", "a"),
    (
        "search Provider p, Provider q register p where p != q and p.serverInformation = q.serverInformation",
        "a b",
    ),
    # Of one resource: i has both, j has one of them.
    ("search ServerInformation s register s where s.cpu > s.memory", "i"),
    ("search ServerInformation s register s where s.memory = s.memory", "i j"),
    ("search ServerInformation s register s where s.backup != s", "i"),
    ("search Provider p register p where p.serverInformation.cpu > p.serverInformation.memory", "a b"),
    ("search Provider p register p where p.tags? != p.tags?", "a"),
]


@pytest.mark.parametrize(("text", "expected"), EXPECTED_RESULTS)
def test_evaluate_rule_gives_expected_results(text: str, expected: str) -> None:
    parsed = rule(text)
    assert evaluate_rule(parsed, SERVERS, SCHEMA) == set(expected.split())
    assert sparql_results(parsed, SERVERS, SCHEMA) == set(expected.split())
    results = (evaluate_atomic_rule(each, SERVERS, SCHEMA) for each in decompose(parsed, SCHEMA))
    assert set().union(*results) == set(expected.split())
