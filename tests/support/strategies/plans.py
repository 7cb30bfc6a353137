"""Plans and events for the algorithms, with few paths and values, so that predicates often match."""

from __future__ import annotations

from hypothesis import strategies as st

from tidings.atoms import Aspect, Column
from tidings.events.schema.domains import Domain, DomainKind
from tidings.matching.compiler.plan import Plan, Relation, Test, TestShape
from tidings.values import Instant, kind_of, parse_instant

ROOMS = Domain(
    "rooms",
    DomainKind.HIERARCHICAL,
    {
        "furniture": (),
        "dining room": ("furniture",),
        "antique": ("furniture",),
        "table": ("dining room",),
        "old table": ("table", "antique"),
    },
)
PATHS = ("a", "b", "c.d", "event_type")
NUMBERS = (0, 1, 2, 3, 5, 2.5, -1.5, 2**53, 2**53 + 1, float(2**53))
STRINGS = ("", "a", "ab", "abc", "bc", "ba", "2024-01-01", "2024-01-01T12:00:00+02:00", *ROOMS.values)
MOMENTS = tuple(found for text in STRINGS if (found := parse_instant(text)))
ORDER_ASPECTS = (Aspect.AT_MOST, Aspect.BELOW, Aspect.AT_LEAST, Aspect.ABOVE)

values = st.one_of(st.sampled_from(NUMBERS), st.sampled_from(STRINGS), st.booleans())
events = st.dictionaries(st.sampled_from(PATHS), st.lists(values, min_size=1, max_size=3), max_size=4)
paths = st.sampled_from(PATHS)


def a_test(column: Column, relation: Relation, operand: object, negated: bool = False) -> Test:
    literal = operand[0] if isinstance(operand, tuple) else operand
    kind = None if literal is None else kind_of(literal)  # type: ignore[arg-type]
    return Test(TestShape(column, relation, kind, negated), operand)  # type: ignore[arg-type]


@st.composite
def plain_tests(draw: st.DrawFn) -> Test:
    """Every relation on numbers, strings and moments; equality on booleans; existence."""
    literals = draw(st.sampled_from((NUMBERS, NUMBERS, STRINGS, MOMENTS, (True, False))))
    relation = draw(st.sampled_from(Relation))
    if literals == (True, False) and relation not in (Relation.EQ, Relation.NE, Relation.IN):
        relation = Relation.EXISTS
    some = draw(st.lists(st.sampled_from(literals), min_size=2, max_size=3))
    operand: object = some[0]
    if relation is Relation.EXISTS:
        operand = None
    elif relation is Relation.BETWEEN:
        operand = tuple(sorted(some[:2]))  # type: ignore[type-var]
    elif relation is Relation.IN:
        operand = tuple(some)
    aspect = Aspect.INSTANT if isinstance(some[0], Instant) and operand is not None else Aspect.VALUE
    return a_test(Column(draw(paths), aspect), relation, operand, draw(negated))


@st.composite
def aspect_tests(draw: st.DrawFn) -> Test:
    """Texts that begin with, end with or contain another; concepts above or below another."""
    aspect = draw(st.sampled_from((Aspect.PREFIX, Aspect.SUFFIX, Aspect.SUBSTRING, *ORDER_ASPECTS)))
    ordered = aspect in ORDER_ASPECTS
    operand = draw(st.sampled_from(ROOMS.values if ordered else ("", "a", "ab", "c", "2024")))
    return a_test(
        Column(draw(paths), aspect, "rooms" if ordered else ""), Relation.EQ, operand, draw(negated)
    )


negated = st.sampled_from((False, False, False, True))
clauses = st.lists(st.one_of(plain_tests(), plain_tests(), aspect_tests()), max_size=4).map(tuple)
plans = st.lists(clauses, min_size=1, max_size=3).map(lambda found: Plan(tuple(found), (ROOMS,)))
