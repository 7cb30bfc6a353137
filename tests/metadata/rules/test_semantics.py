"""Rules mean what SPARQL says they mean, and what they are taken apart into means the same."""

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
    """That of the paper's example most of the time: in a generated one, little leads anywhere."""
    return st.one_of(st.just(SCHEMA), st.just(SCHEMA), schemas())


def stored(schema: Schema) -> st.SearchStrategy[list[Resource]]:
    """What three documents say. Or resources that have nearly all properties, with few values: then joins find much."""
    every = st.tuples(*(resources(schema, uri) for uri in DOCUMENTS))
    drawn = every.map(lambda said: [each for document in said for each in document])
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
def test_the_definition_agrees_with_sparql(data: st.DataObject) -> None:
    schema = data.draw(some_schema())
    asked = data.draw(rules(schema))
    there = data.draw(stored(schema))
    assert evaluate_rule(asked, there, schema) == sparql_results(asked, there, schema)


@given(st.data())
def test_rules_in_rules_agree_with_sparql(data: st.DataObject) -> None:
    schema = data.draw(some_schema())
    program = data.draw(programs(schema))
    there = data.draw(stored(schema))
    for name, asked in program.items():
        assert evaluate_rule(asked, there, schema, program) == sparql_results(
            asked, there, schema, program
        ), name


@given(st.data())
def test_atomic_rules_agree_with_the_definition(data: st.DataObject) -> None:
    schema = data.draw(some_schema())
    asked = data.draw(rules(schema))
    there = data.draw(stored(schema))
    check_rule(asked, schema, {})
    found = set().union(*(evaluate_atomic_rule(each, there, schema) for each in decompose(asked, schema)))
    assert found == evaluate_rule(asked, there, schema)


@given(st.data())
def test_atomic_rules_of_rules_in_rules_agree_with_the_definition(data: st.DataObject) -> None:
    schema = data.draw(some_schema())
    program = data.draw(programs(schema))
    there = data.draw(stored(schema))
    named = {}
    for name in infer_types(program, schema):
        named[name] = decompose(program[name], schema, named)
        found = set().union(*(evaluate_atomic_rule(each, there, schema) for each in named[name]))
        assert found == evaluate_rule(program[name], there, schema, program), name


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
MEANT = [
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
    # A reference to nothing, or to something of another class, leads nowhere; but it is not the one to i.
    ("search Provider p register p where p.serverInformation != <i>", "c d"),
    ("search Provider p register p where p.serverInformation.memory > 0", "a b"),
    ("search Provider p, ServerInformation s register p where p.serverInformation = s", "a b"),
    ("search Provider p register p where p.serverInformation.backup.memory = 32", "a b"),
    # The twin of b has a port, but is no CycleProvider.
    ("search Provider p register p where p.twin.serverPort > 0", "a"),
    ("search Provider p, Provider q register p where p.twin = q", "a b"),
    # Of two partners, each may satisfy one of the conditions; of one that has a name, both are asked.
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
    # Both are asked of one q: the twin of a is among its partners, the one with a's port is another of them.
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


@pytest.mark.parametrize(("text", "expected"), MEANT)
def test_what_rules_mean(text: str, expected: str) -> None:
    asked = rule(text)
    assert evaluate_rule(asked, SERVERS, SCHEMA) == set(expected.split())
    assert sparql_results(asked, SERVERS, SCHEMA) == set(expected.split())
    found = (evaluate_atomic_rule(each, SERVERS, SCHEMA) for each in decompose(asked, SCHEMA))
    assert set().union(*found) == set(expected.split())
