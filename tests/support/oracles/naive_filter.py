"""Results of atomic rules and closures of strong references by specification, and generated metadata and rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import product

from hypothesis import strategies as st

from research.metadata.semantics import evaluate_atomic_rule
from tidings.metadata.resources import SUBJECT, Ref, Resource
from tidings.metadata.rules.atomic import AtomicRule, JoinCondition, JoinRule, JoinSide, TriggeringRule
from tidings.metadata.rules.normal_form import JoinPredicate
from tidings.metadata.rules.syntax import Operator
from tidings.metadata.schema.model import Class, Property, Reference, Schema, format_instant
from tidings.values import Kind, parse_instant

Stored = Mapping[str, Resource]

ORDERS = (Operator.LESS, Operator.AT_MOST, Operator.GREATER, Operator.AT_LEAST)


def results(rule: AtomicRule, stored: Stored, schema: Schema) -> set[str]:
    """Return the resources that an atomic rule registers: the specification."""
    return evaluate_atomic_rule(rule, stored.values(), schema)


def closure(uri: str, stored: Stored, schema: Schema) -> set[str]:
    """Return a resource and its transitive strong references; the resource itself may be missing."""
    found, todo = {uri}, [uri]
    while todo:
        resource = stored.get(todo.pop())
        for name, held in resource.values.items() if resource else ():
            declared = schema.property_of(resource.cls, name)
            if declared.reference is Reference.STRONG:
                led = {value.uri for value in held if _leads(value, declared, stored, schema)} - found
                found |= led
                todo += led
    return found


def _leads(value: Ref, declared: Property, stored: Stored, schema: Schema) -> bool:
    return value.uri in stored and declared.leads_to in schema.at_or_above(stored[value.uri].cls)


def parts(rule: AtomicRule) -> list[AtomicRule]:
    """Return an atomic rule and all its parts."""
    return [rule, *parts(rule.left), *parts(rule.right)] if isinstance(rule, JoinRule) else [rule]


def _property(name: str, of: str, kind: Kind | None = None, **more: object) -> Property:
    return Property(name, f"http://example.org/{name}", of, kind, **more)


SCHEMA = Schema(
    {
        name: Class(name, f"http://example.org/{name}", parents)
        for name, parents in {"Provider": (), "Cycle": ("Provider",), "Info": ()}.items()
    },
    {
        each.name: (each,)
        for each in (
            _property("host", "Provider", Kind.STRING),
            _property("port", "Provider", Kind.NUMBER),
            _property("tags", "Provider", Kind.STRING, several=True),
            _property("since", "Provider", Kind.INSTANT),
            _property("open", "Cycle", Kind.BOOLEAN),
            _property("info", "Provider", leads_to="Info", reference=Reference.STRONG),
            _property("peers", "Provider", leads_to="Provider", reference=Reference.WEAK, several=True),
            _property("next", "Cycle", leads_to="Cycle", reference=Reference.STRONG),
            _property("memory", "Info", Kind.NUMBER),
            _property("cpu", "Info", Kind.NUMBER),
            _property("label", "Info", Kind.STRING),
            _property("seen", "Info", Kind.INSTANT),
            _property("owner", "Info", leads_to="Provider", reference=Reference.STRONG),
        )
    },
)


def _instant(text: str) -> str:
    """Format an instant as in parsed documents and rules."""
    return str(format_instant(parse_instant(text)))


URIS = tuple(f"d{i // 2}.rdf#r{i}" for i in range(6))
BIG = 2**53
VALUES = {
    Kind.NUMBER: st.sampled_from([1, 1, 2, 2, 2.5, BIG, BIG + 1, float(BIG), 1e300]),
    Kind.STRING: st.sampled_from(["a", "a", "ab", "", "%", "A", "é", "1", "x" * 300, "x" * 301]),
    Kind.INSTANT: st.sampled_from(
        [_instant(text) for text in ("2020-01-01", "2020-01-01T00:00:00.5", "2021-05-05")]
    ),
    Kind.BOOLEAN: st.booleans(),
    None: st.sampled_from([Ref(uri) for uri in (*URIS, "nowhere.rdf#x")]),
}


def properties_of(cls: str) -> list[Property]:
    return [each for (each,) in SCHEMA.properties.values() if each.of in SCHEMA.at_or_above(cls)]


USUAL = dict(zip(URIS, ["Cycle", "Cycle", "Provider", "Info", "Info", "Info"], strict=True))
"""The usual class of each resource: with random classes, most references would be invalid."""


@st.composite
def resources(draw: st.DrawFn, uri: str) -> Resource:
    cls = draw(st.sampled_from([*[USUAL[uri]] * 9, "Provider", "Cycle", "Info"]))
    held = {}
    for each in properties_of(cls):
        if drawn := draw(_held(each)):
            held[each.name] = drawn
    return Resource(uri, cls, held)


@st.composite
def changed(draw: st.DrawFn, resource: Resource) -> Resource:
    """A copy of a resource with other values of one property."""
    each = draw(st.sampled_from(properties_of(resource.cls)))
    held = {name: values for name, values in resource.values.items() if name != each.name}
    drawn = draw(_held(each))
    return Resource(resource.uri, resource.cls, held | {each.name: drawn} if drawn else held)


def _held(each: Property) -> st.SearchStrategy[tuple[object, ...]]:
    choices = VALUES[each.kind]
    if each.leads_to:
        usual = [Ref(uri) for uri, cls in USUAL.items() if each.leads_to in SCHEMA.at_or_above(cls)]
        choices = st.sampled_from(usual * 3) | choices
    return st.lists(choices, max_size=3 if each.several else 1, unique_by=str).map(tuple)


@st.composite
def triggerings(draw: st.DrawFn, cls: str) -> TriggeringRule:
    each = draw(st.sampled_from([*[None] * 5, SUBJECT, *properties_of(cls)]))
    if each is None:
        return TriggeringRule(cls)
    if each == SUBJECT or each.kind is None:
        name = SUBJECT if each == SUBJECT else each.name
        return TriggeringRule(cls, name, draw(EQUALITIES), draw(st.sampled_from(URIS)), True)
    constant = draw(VALUES[each.kind])
    return TriggeringRule(cls, each.name, draw(_fitting(each.kind)), constant)


EQUALITIES = st.sampled_from([Operator.EQUAL, Operator.EQUAL, Operator.UNEQUAL])
BOTH = (Operator.EQUAL, Operator.UNEQUAL)
FITTING = {
    Kind.NUMBER: (*BOTH, *ORDERS),
    Kind.INSTANT: (*BOTH, *ORDERS),
    Kind.STRING: (*BOTH, Operator.CONTAINS),
    Kind.BOOLEAN: BOTH,
    None: BOTH,
}
"""Operators for values of each kind, and for references."""


def _fitting(kind: Kind | None) -> st.SearchStrategy[Operator]:
    return EQUALITIES | st.sampled_from(FITTING[kind])


@st.composite
def atomics(draw: st.DrawFn, cls: str | None = None, depth: int = 3) -> AtomicRule:
    """A rule that registers resources of a class, with all kinds of joins, most of them along references."""
    cls = cls or draw(st.sampled_from(["Provider", "Cycle", "Info"]))
    if not depth or draw(st.integers(0, 3)) == 0:
        return draw(triggerings(cls))
    own, compares, other = draw(st.one_of(_same(cls), _along(cls), _back(cls), _by_value(cls)))
    mine, others = draw(atomics(cls, depth - 1)), draw(atomics(other.cls, depth - 1))
    if draw(st.booleans()):
        return JoinRule(JoinCondition(own, compares, other, True, draw(_also(own, other))), mine, others)
    return JoinRule(JoinCondition(other, compares, own, False, draw(_also(other, own))), others, mine)


def _also(left: JoinSide, right: JoinSide) -> st.SearchStrategy[tuple[JoinPredicate, ...]]:
    """No further comparison, or one or two."""
    every = comparisons(left.cls, right.cls)
    return st.lists(st.sampled_from(every), max_size=2, unique=True).map(tuple)


@lru_cache
def comparisons(left: str, right: str) -> list[JoinPredicate]:
    """List all comparisons of resources or properties of two classes, with all kinds."""
    own, other = (
        [(None, None), *((each.name, each.kind) for each in properties_of(cls))] for cls in (left, right)
    )
    found = [
        JoinPredicate(one, compares, two, turned)
        for (one, kind), (two, other_kind) in product(own, other)
        if kind is other_kind
        for compares in FITTING[kind]
        for turned in ((False, True) if compares is Operator.CONTAINS else (False,))
    ]
    return sorted(found, key=str)


JoinParts = tuple[JoinSide, Operator, JoinSide]


@st.composite
def _same(draw: st.DrawFn, cls: str) -> JoinParts:
    return JoinSide(cls), draw(EQUALITIES), JoinSide(cls)


@st.composite
def _along(draw: st.DrawFn, cls: str) -> JoinParts:
    each = draw(st.sampled_from([each for each in properties_of(cls) if each.leads_to]))
    return JoinSide(cls, each.name), draw(EQUALITIES), JoinSide(str(each.leads_to))


@st.composite
def _back(draw: st.DrawFn, cls: str) -> JoinParts:
    choices = [
        (other, each.name)
        for other in SCHEMA.classes
        for each in properties_of(other)
        if each.leads_to and SCHEMA.at_or_above(cls) & SCHEMA.at_or_below(each.leads_to)
    ]
    other, name = draw(st.sampled_from(choices))
    return JoinSide(cls), draw(EQUALITIES), JoinSide(other, name)


@st.composite
def _by_value(draw: st.DrawFn, cls: str) -> JoinParts:
    kind = draw(st.sampled_from([Kind.NUMBER, Kind.STRING, Kind.INSTANT, None]))
    own = draw(st.sampled_from([each for each in properties_of(cls) if each.kind is kind]))
    other_cls = draw(st.sampled_from(list(SCHEMA.classes)))
    other = draw(st.sampled_from([each for each in properties_of(other_cls) if each.kind is kind]))
    compares = draw(_fitting(kind))
    return JoinSide(cls, own.name), compares, JoinSide(other_cls, other.name)


def plain_joins() -> list[JoinRule]:
    """List a rule for each join condition, class and side, over all resources of the classes."""
    joins: list[JoinParts] = []
    for cls in SCHEMA.classes:
        joins += [(JoinSide(cls), compares, JoinSide(cls)) for compares in BOTH]
        for own in properties_of(cls):
            if own.leads_to:
                joins += [(JoinSide(cls, own.name), Operator.EQUAL, JoinSide(own.leads_to))]
                joins += [(JoinSide(own.leads_to), Operator.EQUAL, JoinSide(cls, own.name))]
                joins += [(JoinSide(cls, own.name), Operator.UNEQUAL, JoinSide(own.leads_to))]
    for one, other in (
        ("port", "memory"),
        ("host", "label"),
        ("since", "seen"),
        ("tags", "host"),
        ("info", "info"),
    ):
        for compares in FITTING[SCHEMA.properties[one][0].kind]:
            joins += [(_side(one), compares, _side(other)), (_side(other), compares, _side(one))]
    return [
        JoinRule(
            JoinCondition(left, compares, right, is_left), TriggeringRule(left.cls), TriggeringRule(right.cls)
        )
        for left, compares, right in joins
        for is_left in (True, False)
    ]


def joins_by_two() -> list[JoinRule]:
    """List the plain joins with each possible further comparison."""
    return [
        replace(join, condition=replace(join.condition, also=(each,)))
        for join in plain_joins()
        for each in comparisons(join.condition.left.cls, join.condition.right.cls)
    ]


def _side(name: str) -> JoinSide:
    return JoinSide(SCHEMA.properties[name][0].of, name)
