"""Several comparisons of two variables, and comparisons within one resource, step by step.

Each step has the text of a document and the results of the rule after it. The results are written down, and checked
with the definition as well.
"""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from tidings.metadata.documents import DocumentReader
from tidings.metadata.provider.provider import Provider
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.rules.semantics import evaluate_rule
from tidings.metadata.sql.tables import atomic_rules, rule_group_predicates, rule_groups
from tidings.store.store import Store

DOC = "http://example.org/doc.rdf"
PREFIX = "@prefix : <http://example.org/jobs#> . "
SCHEMA = """
    @prefix : <http://example.org/jobs#> . @prefix md: <https://tidings.dev/metadata#> .
    @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :Job a rdfs:Class . :Host a rdfs:Class .
    :first a rdf:Property ; rdfs:domain :Job ; rdfs:range :Host .
    :second a rdf:Property ; rdfs:domain :Job ; rdfs:range :Host .
    :others a rdf:Property ; rdfs:domain :Job ; rdfs:range :Host ; md:several true .
    :size a rdf:Property ; rdfs:domain :Job ; rdfs:range xsd:integer .
    :name a rdf:Property ; rdfs:domain :Job ; rdfs:range xsd:string .
    :tags a rdf:Property ; rdfs:domain :Job ; rdfs:range xsd:string ; md:several true .
    :label a rdf:Property ; rdfs:domain :Host ; rdfs:range xsd:string .
    :memory a rdf:Property ; rdfs:domain :Host ; rdfs:range xsd:integer .
    :used a rdf:Property ; rdfs:domain :Host ; rdfs:range xsd:integer .
    :spare a rdf:Property ; rdfs:domain :Host ; rdfs:range :Host .
"""

HOSTS = "<#a> a :Host ; :memory 5 ; :label 'pass' . <#b> a :Host ; :memory 9 ; :label 'au' . "
JOB = "<#j> a :Job ; "
BOTH = "search Job j, Host h register j where "

STEPS: dict[str, list[tuple[str, str]]] = {
    # Two separate joins would match the first: its references are two different hosts.
    BOTH + "j.first = h and j.second = h": [
        (HOSTS + JOB + ":first <#a> ; :second <#b> .", ""),
        (HOSTS + JOB + ":first <#a> ; :second <#a> .", "j"),
        (HOSTS + JOB + ":first <#b> ; :second <#a> .", ""),
        (HOSTS + JOB + ":first <#b> ; :second <#b> .", "j"),
        (HOSTS + JOB + ":first <#c> ; :second <#c> .", ""),
        (HOSTS + JOB + ":first <#b> ; :second <#b> .", "j"),
        (JOB + ":first <#b> ; :second <#b> .", ""),
    ],
    # The partner is found by the reference. Each of the two compared values changes; then one is missing.
    BOTH + "j.first = h and j.size < h.memory": [
        (HOSTS + JOB + ":first <#a> ; :size 5 .", ""),
        (HOSTS + JOB + ":first <#a> ; :size 4 .", "j"),
        (HOSTS.replace("5", "4") + JOB + ":first <#a> ; :size 4 .", ""),
        (HOSTS.replace("5", "6") + JOB + ":first <#a> ; :size 4 .", "j"),
        (HOSTS.replace("5", "6") + JOB + ":first <#a> .", ""),
        (HOSTS.replace("5", "6") + JOB + ":first <#b> ; :size 8 .", "j"),
        (HOSTS.replace(":memory 9 ;", "") + JOB + ":first <#b> ; :size 8 .", ""),
        (HOSTS + JOB + ":first <#b> ; :size 8 .", "j"),
        (HOSTS, ""),
    ],
    # The other side is registered, and then removed.
    "search Job j, Host h register h where j.first = h and j.size < h.memory": [
        (HOSTS + JOB + ":first <#a> ; :size 7 .", ""),
        (HOSTS + JOB + ":first <#b> ; :size 7 .", "b"),
        (HOSTS.replace("5", "8") + JOB + ":first <#a> ; :size 7 .", "a"),
        (HOSTS.replace("5", "8") + JOB + ":first <#a> ; :size 8 .", ""),
        (HOSTS.replace("5", "9") + JOB + ":first <#a> ; :size 8 .", "a"),
        (JOB + ":first <#a> ; :size 8 .", ""),
        ("", ""),
    ],
    # A path gives its own variable, with which its owner is compared.
    "search Job j register j where j.first.memory > j.size": [
        (HOSTS + JOB + ":first <#a> ; :size 7 .", ""),
        (HOSTS + JOB + ":first <#b> ; :size 7 .", "j"),
        (HOSTS.replace("9", "7") + JOB + ":first <#b> ; :size 7 .", ""),
    ],
    BOTH + "j.others? = h and j.first != h": [
        (HOSTS + JOB + ":first <#a> ; :others <#a> .", ""),
        (HOSTS + JOB + ":first <#a> ; :others <#a>, <#b> .", "j"),
        (HOSTS + JOB + ":first <#b> ; :others <#b> .", ""),
        (HOSTS + JOB + ":first <#a> ; :others <#b> .", "j"),
        (HOSTS + JOB + ":others <#b> .", ""),
    ],
    # No equality to find partners by, and `contains` in both directions.
    BOTH + "j.name contains h.label and h.memory > j.size": [
        (HOSTS + JOB + ":name 'passau' ; :size 6 .", "j"),
        (HOSTS + JOB + ":name 'pass' ; :size 6 .", ""),
        (HOSTS.replace("'pass'", "'as'") + JOB + ":name 'pass' ; :size 6 .", ""),
        (HOSTS.replace("5", "7").replace("'pass'", "'as'") + JOB + ":name 'pass' ; :size 6 .", "j"),
        ("<#b> a :Host ; :memory 9 ; :label 'au' . " + JOB + ":name 'pass' ; :size 6 .", ""),
        ("<#b> a :Host ; :memory 9 ; :label 'a' . " + JOB + ":name 'pass' ; :size 6 .", "j"),
    ],
    BOTH + "j.first = h and h.label contains j.tags? and j.name contains h.label": [
        (HOSTS + JOB + ":first <#a> ; :tags 'x', 'ass' ; :name 'passau' .", "j"),
        (HOSTS + JOB + ":first <#a> ; :tags 'x' ; :name 'passau' .", ""),
        (HOSTS + JOB + ":first <#a> ; :tags 'x', 'pa' ; :name 'as' .", ""),
        (HOSTS + JOB + ":first <#b> ; :tags 'x', 'u' ; :name 'au' .", "j"),
        (HOSTS.replace("'au'", "'a'") + JOB + ":first <#b> ; :tags 'x', 'u' ; :name 'au' .", ""),
    ],
    # Each `?` is a separate choice, but all must hold for one h.
    BOTH + "j.tags? = h.label and j.tags? != h.label": [
        (HOSTS + JOB + ":tags 'pass' .", ""),
        (HOSTS + JOB + ":tags 'pass', 'x' .", "j"),
        (HOSTS.replace("'pass'", "'y'") + JOB + ":tags 'pass', 'x' .", ""),
    ],
    # A cycle of two values: both must hold for the same h.
    BOTH + "j.size = h.memory and j.name = h.label": [
        (HOSTS + JOB + ":size 5 ; :name 'au' .", ""),
        (HOSTS + JOB + ":size 5 ; :name 'pass' .", "j"),
        (HOSTS.replace("'pass'", "'x'") + JOB + ":size 5 ; :name 'pass' .", ""),
        (HOSTS.replace("'pass'", "'x'") + JOB + ":size 9 ; :name 'au' .", "j"),
        (HOSTS.replace("9", "8") + JOB + ":size 9 ; :name 'au' .", ""),
    ],
    # One resource: values, strings, any of several, and a reference to itself.
    "search Host h register h where h.memory > h.used": [
        ("<#a> a :Host ; :memory 5 ; :used 5 . <#b> a :Host ; :memory 6 .", ""),
        ("<#a> a :Host ; :memory 5 ; :used 4 . <#b> a :Host ; :memory 6 .", "a"),
        ("<#a> a :Host ; :memory 3 ; :used 4 . <#b> a :Host ; :memory 6 ; :used 1 .", "b"),
        ("<#a> a :Host ; :memory 9 ; :used 4 . <#b> a :Host ; :used 1 .", "a"),
        ("<#b> a :Host ; :used 1 .", ""),
    ],
    "search Job j register j where j.name contains j.tags? and j.tags? != j.name": [
        (JOB + ":name 'abc' ; :tags 'b' .", "j"),
        (JOB + ":name 'abc' ; :tags 'abc' .", ""),
        (JOB + ":name 'abc' ; :tags 'abc', 'x' .", "j"),
        (JOB + ":name 'ac' ; :tags 'abc', 'x' .", ""),
    ],
    "search Host h register h where h.spare = h": [
        ("<#a> a :Host ; :spare <#b> . <#b> a :Host ; :spare <#b> .", "b"),
        ("<#a> a :Host ; :spare <#a> . <#b> a :Host ; :spare <#a> .", "a"),
        ("<#a> a :Host .", ""),
    ],
    "search Job j register j where j.first.memory > j.first.used and j.size < 3": [
        ("<#a> a :Host ; :memory 5 ; :used 4 . " + JOB + ":first <#a> ; :size 2 .", "j"),
        ("<#a> a :Host ; :memory 5 ; :used 5 . " + JOB + ":first <#a> ; :size 2 .", ""),
        ("<#a> a :Host ; :memory 6 ; :used 5 . " + JOB + ":first <#a> ; :size 3 .", ""),
        ("<#a> a :Host ; :memory 6 ; :used 5 . " + JOB + ":first <#a> ; :size 1 .", "j"),
    ],
    "search Host h register h where h.memory != h.memory or h = h and h.used >= h.used": [
        ("<#a> a :Host ; :memory 5 ; :used 4 . <#b> a :Host ; :memory 3 .", "a"),
        ("<#a> a :Host ; :memory 5 . <#b> a :Host ; :used 3 .", "b"),
    ],
}


@pytest.fixture
def provider(store: Store) -> Provider:
    opened = Provider(store)
    opened.load_schema(SCHEMA.encode(), "text/turtle")
    return opened


def members(provider: Provider, name: str) -> set[str]:
    return {each.uri.removeprefix(f"{DOC}#") for each in provider.results(name)}


@pytest.mark.parametrize("text", STEPS)
def test_register_step_by_step_gives_expected_results(provider: Provider, text: str) -> None:
    provider.add_rules({"r": text}, "ana")
    before: set[str] = set()
    for step, expected in STEPS[text]:
        body = (PREFIX + step).encode()
        resources = DocumentReader(provider.schema).read(body, "text/turtle", DOC).resources
        by_definition = {
            uri.removeprefix(f"{DOC}#") for uri in evaluate_rule(parse_rule(text), resources, provider.schema)
        }
        assert by_definition == set(expected.split()), step
        outcome = provider.register(DOC, body, "text/turtle").outcome
        now = members(provider, "r")
        assert now == by_definition, step
        moved = {uri.removeprefix(f"{DOC}#") for _, uri in outcome.entered | outcome.left}
        assert moved == before ^ now
        before = now


def test_add_rules_new_rule_has_stored_results(provider: Provider) -> None:
    text = HOSTS + JOB + ":first <#b> ; :second <#b> ; :size 8 ; :name 'au' ."
    provider.register(DOC, (PREFIX + text).encode(), "text/turtle")
    rules = {
        "same": BOTH + "j.first = h and j.second = h",
        "large": "search Job j register j where j.first.memory > j.size",
        "label": "search Job j, Host h register h where j.name = h.label and j.size < h.memory",
        "none": "search Host h register h where h.memory < h.memory",
    }
    entered = {(name, uri.removeprefix(f"{DOC}#")) for name, uri in provider.add_rules(rules, "ana")}
    assert entered == {("same", "j"), ("large", "j"), ("label", "b")}


def test_add_rules_equivalent_rules_are_shared(provider: Provider, store: Store) -> None:
    """Names of variables and the order and direction of comparisons do not matter."""
    texts = [
        BOTH + "j.first = h and j.size < h.memory and j.name contains h.label",
        "search Host a, Job b register b where b.name contains a.label and a.memory > b.size and a = b.first",
        "search Host x register x where x.used < x.memory and x.spare = x",
        "search Host y register y where y.memory > y.used and y = y.spare",
    ]

    def count_rows() -> tuple[int, ...]:
        with store.database.read() as connection:
            counts = (
                select(func.count()).select_from(each)
                for each in (atomic_rules, rule_groups, rule_group_predicates)
            )
            return tuple(connection.execute(each).scalar_one() for each in counts)

    provider.add_rules({"r0": texts[0], "r2": texts[2]}, "ana")
    before = count_rows()
    assert before == (2 + 1 + 3, 1 + 3, 2 + 2)
    provider.add_rules({"r1": texts[1], "r3": texts[3]}, "ana")
    assert count_rows() == before
