"""Generated events, predicates, texts and subscriptions, shared by the tests of the language, the index and Spark.

The vocabularies are small on purpose, so that about half of the pairs match. They contain difficult cases: several
values, no values, values of several kinds at one path, integers that are equal as doubles, strings that are instants,
quotes, other scripts, prefixes of each other.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tidings.events.operators import BETWEEN, CONTAINS, ENDS_WITH, EXISTS, IN, OPERATORS, STARTS_WITH, Takes
from tidings.events.predicate_tree import And, Comparison, Not, Or, Tree, both, either, show_tree
from tidings.events.schema.domains import Domain, DomainKind
from tidings.events.schema.event_schema import Attribute, EventSchema, EventType, Member
from tidings.model import Subscription
from tidings.values import Instant, Kind, parse_instant

PATHS = ("a", "b", "price", "seller.city", "odd name", "in")
BIG = 2**53
NUMBERS = (0, 1, 2, 3, -1, 2.5, -0.0, 1e300, BIG, BIG + 1, float(BIG), 2**63 - 1, -(2**63), 2**62 + 1)
STRINGS = ("", "x", "xy", "xyz", "yx", "it's", "ü", "日本", "\U0001f600", "1", "true", "x" * 20)
MOMENTS = (
    "2004-05-31",
    "2004-05-31T12:30:00Z",
    "2004-05-31T14:30:00+02:00",
    "2004-05-31 12:30",
    "2005-01-01",
)
BETWEEN_MICROSECONDS = (
    "2004-05-31T12:30:00.0000001Z",
    "2004-05-31t14:30:00.0000000+02:00",
    "2004-12-31T23:59:60z",
)
"""Instants between microseconds, which events may have and subscriptions may not."""
PATTERNS = ("", "x", "y", "xy", "z", "'", "ü", "本", "2004", "x" * 10)

numbers = st.sampled_from(NUMBERS) | st.integers(-3, 12)
strings = st.sampled_from(STRINGS + MOMENTS)
booleans = st.booleans()
scalars = numbers | strings | booleans | st.sampled_from(BETWEEN_MICROSECONDS)
paths = st.sampled_from(PATHS)


@st.composite
def instants(draw: st.DrawFn) -> Instant:
    """Instants as the parser normalises them: with T instead of a space before the time."""
    text = draw(st.sampled_from(MOMENTS))
    instant = parse_instant(text)
    assert instant is not None
    return replace(instant, text=text.replace(" ", "T"))


def events(
    scalars: st.SearchStrategy[bool | int | float | str] = scalars,
) -> st.SearchStrategy[dict[str, list]]:
    """Events by path: most paths once, some not at all, some with several values."""
    some = st.lists(scalars, min_size=1, max_size=1) | st.lists(scalars, min_size=1, max_size=3)
    return st.dictionaries(paths, some, max_size=len(PATHS))


def _literals(kinds: frozenset[Kind]) -> st.SearchStrategy:
    by_kind = {Kind.NUMBER: numbers, Kind.STRING: strings, Kind.BOOLEAN: booleans, Kind.INSTANT: instants()}
    return st.one_of(*(by_kind[kind] for kind in sorted(kinds)))


@st.composite
def comparisons(draw: st.DrawFn, paths: st.SearchStrategy[str] = paths) -> Comparison:
    """A predicate that compiles without a schema."""
    operator = draw(st.sampled_from([each for each in OPERATORS if each.spelling != "is a"]))
    path = draw(paths)
    if operator is EXISTS:
        return Comparison(path, operator)
    if operator in (CONTAINS, STARTS_WITH, ENDS_WITH):
        return Comparison(path, operator, draw(st.sampled_from(PATTERNS)))
    if operator is IN:
        return Comparison(path, operator, tuple(draw(st.lists(_literals(IN.kinds), min_size=1, max_size=4))))
    if operator is BETWEEN:
        kind = st.sampled_from([numbers, st.sampled_from(STRINGS), instants()])
        pair = st.lists(draw(kind), min_size=2, max_size=2)
        return Comparison(path, operator, tuple(sorted(draw(pair))))
    assert operator.takes is Takes.ONE
    return Comparison(path, operator, draw(_literals(operator.kinds)))


def trees(
    leaves: st.SearchStrategy[Comparison] | None = None, max_leaves: int = 6
) -> st.SearchStrategy[Tree]:
    """Trees as the parser returns them: no `and` directly inside an `and`, no `or` directly inside an `or`."""

    def grow(parts: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        several = st.lists(parts, min_size=2, max_size=3).map(tuple)
        return several.map(both) | several.map(either) | parts.map(Not)

    return st.recursive(comparisons() if leaves is None else leaves, grow, max_leaves=max_leaves)


def conjunctions(max_size: int = 5) -> st.SearchStrategy[Tree]:
    """Typical subscriptions: a few predicates joined by `and`, some of them negated."""
    part = comparisons() | comparisons() | comparisons().map(Not)
    return st.lists(part, min_size=1, max_size=max_size).map(lambda parts: both(tuple(parts)))


def texts() -> st.SearchStrategy[str]:
    """Texts that compile without a schema, unless they need too many clauses or contradict themselves."""
    return (conjunctions() | trees()).map(show_tree)


def untidy(text: str, seed: int) -> str:
    """Change spaces, capitals and spellings of a text where they have no meaning."""
    spaces = (" ", "  ", "\n", "\t ")[seed % 4]
    for word in (" and ", " or "):
        shown = word.upper() if seed % 2 else word
        text = text.replace(word, shown.replace(" ", spaces))
    for word, other in ((" = ", " == "), (" != ", " <> ")) if seed % 5 == 0 else ():
        text = text.replace(word, other)
    return f"{spaces}{text}{spaces}" if seed % 3 else text


def subscriptions(max_size: int = 12) -> st.SearchStrategy[list[Subscription]]:
    """Subscriptions with unique ids and mostly different texts."""
    return st.lists(texts(), max_size=max_size).map(_numbered)


def _numbered(predicates: list[str]) -> list[Subscription]:
    return [
        Subscription(f"s-{i}", f"someone-{i % 3}", "predicates", text) for i, text in enumerate(predicates)
    ]


CATEGORIES = Domain(
    "categories",
    DomainKind.HIERARCHICAL,
    {
        "furniture": (),
        "dining room": ("furniture",),
        "outdoor": ("furniture",),
        "table": ("dining room", "outdoor"),
        "chair": ("dining room",),
    },
)
PERIODS = Domain("periods", DomainKind.ENUMERATED, {"XVI": ("XVII",), "XVII": ("XVIII",), "XVIII": ()})
COLORS = Domain("colors", DomainKind.ENUMERATED, {"red": (), "blue": ()})
SCHEMA = EventSchema.of(
    [CATEGORIES, PERIODS, COLORS],
    [
        Attribute("category", "categories"),
        Attribute("period", "periods"),
        Attribute("color", "colors"),
        Attribute("price", "numeric"),
        Attribute("bids", "numeric"),
        Attribute("title", "string"),
        Attribute("since", "instant"),
        Attribute("sold", "boolean"),
    ],
    [
        EventType(
            "furniture",
            (
                Member("category", mandatory=True),
                Member("price", mandatory=True),
                Member("bids", multiple=True),
                *(Member(name) for name in ("period", "color", "title", "since", "sold")),
            ),
        ),
        EventType("antiques", (Member("period", mandatory=True), Member("price", mandatory=True))),
    ],
)
"""The furniture and antiques of paper 004, section 2.1, with an attribute of every domain."""

_OF_DOMAIN = {
    "category": st.sampled_from(CATEGORIES.values),
    "period": st.sampled_from(PERIODS.values),
    "color": st.sampled_from(COLORS.values),
    "price": st.integers(0, 9) | st.sampled_from([2.5, BIG, BIG + 1]),
    "bids": st.integers(0, 9),
    "title": strings,
    "since": st.sampled_from(MOMENTS),
    "sold": booleans,
    "event_type": st.sampled_from(["furniture", "antiques"]),
}


def schema_events() -> st.SearchStrategy[dict[str, list]]:
    """Events whose values are of `SCHEMA`'s domains: one value, or several where the schema allows several."""
    several = {"bids", "event_type"}
    members = {
        name: st.lists(values, min_size=1, max_size=3 if name in several else 1)
        for name, values in _OF_DOMAIN.items()
    }
    return st.fixed_dictionaries({}, optional=members)


@st.composite
def schema_comparisons(draw: st.DrawFn) -> Comparison:
    """Predicates over the attributes of `SCHEMA`, which rejects some of them."""
    name = draw(st.sampled_from(sorted(_OF_DOMAIN)))
    operator = draw(st.sampled_from(OPERATORS))
    size = {Takes.NOTHING: 0, Takes.ONE: 1, Takes.PAIR: 2}.get(operator.takes, draw(st.integers(1, 3)))
    literals = tuple(draw(st.lists(_OF_DOMAIN[name], min_size=size, max_size=size)))
    if operator.takes in (Takes.PAIR, Takes.SEVERAL):
        return Comparison(name, operator, literals)
    return Comparison(name, operator, literals[0] if literals else None)


def schema_texts() -> st.SearchStrategy[str]:
    """Texts about `SCHEMA`, which rejects some of them."""
    parts = st.lists(schema_comparisons() | schema_comparisons().map(Not), min_size=1, max_size=3)
    return (parts.map(lambda found: both(tuple(found))) | trees(schema_comparisons(), 4)).map(show_tree)


__all__ = [
    "SCHEMA",
    "And",
    "Or",
    "comparisons",
    "conjunctions",
    "events",
    "instants",
    "paths",
    "scalars",
    "schema_events",
    "schema_texts",
    "subscriptions",
    "texts",
    "trees",
    "untidy",
]
