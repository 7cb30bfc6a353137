"""Generated valid rules over a schema: all comparisons are allowed, and all variables are connected.

    rules(schema)               a Rule
    rules(schema, types)        a Rule that may search named rules, whose classes are `types`
    programs(schema)            named rules, some of which search others: a dict in the order of addition

Variables are joined one after the other, each by comparisons with an earlier variable. Conditions with constants, and
comparisons within one resource, are combined by `and` and `or`. Some rules have comparisons that close cycles, where
these are allowed. Constants are values of generated resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from hypothesis import strategies as st

from tests.support.strategies.metadata import DOCUMENTS, FRAGMENTS, MOMENTS, NUMBERS, properties_of
from tidings.errors import SubscriptionError
from tidings.metadata.rules.syntax import (
    And,
    Comparison,
    Condition,
    Constant,
    Operator,
    Or,
    Path,
    Rule,
    Step,
    Variable,
)
from tidings.metadata.rules.validation import check_rule
from tidings.metadata.schema.model import Schema
from tidings.values import Kind

EQUALITY = (Operator.EQUAL, Operator.UNEQUAL)
ORDER = (Operator.LESS, Operator.AT_MOST, Operator.GREATER, Operator.AT_LEAST)
VARIABLES = ("c", "s", "d", "x1")
MOST_ALTERNATIVES = 64
"""A rule of a program is rejected from 257 on, and a program of that size tests no more than a smaller one."""
CONSTANTS = {
    Kind.NUMBER: NUMBERS,
    Kind.STRING: ("", "a", "ab", "it's", "uni-passau.de", "日本"),
    Kind.BOOLEAN: (True, False),
    Kind.INSTANT: (*MOMENTS, "2004-05-31", "2004-05-31T14:30:00.5+02:00"),
}
URIS = [f"{uri}#{name}" for uri in DOCUMENTS[:2] for name in (*FRAGMENTS, "nowhere")]


@dataclass(frozen=True)
class End:
    """A path, and the kind of the values or the class of the resources at its end."""

    path: Path
    kind: Kind | None
    cls: str | None


@st.composite
def ends(draw: st.DrawFn, schema: Schema, variable: str, cls: str, most: int = 3) -> End:
    steps: list[Step] = []
    end: tuple[Kind | None, str | None] = (None, cls)
    for _ in range(draw(st.integers(0, most))):
        found = properties_of(schema, end[1]) if end[1] else []
        if not found:
            break
        chosen = draw(st.sampled_from(found))
        steps.append(Step(chosen.name, chosen.several))
        end = (chosen.kind, chosen.leads_to)
    return End(Path(variable, tuple(steps)), *end)


def operators(kind: Kind | None) -> tuple[Operator, ...]:
    if kind in (Kind.NUMBER, Kind.INSTANT):
        return EQUALITY + ORDER
    return (*EQUALITY, Operator.CONTAINS) if kind is Kind.STRING else EQUALITY


@st.composite
def constants(draw: st.DrawFn, kind: Kind | None, compares: Operator) -> Constant:
    if kind is None:
        return Constant(draw(st.sampled_from(URIS)), draw(st.booleans()))
    value = draw(st.sampled_from(CONSTANTS[kind]))
    return Constant("a" if compares is Operator.CONTAINS and not value else value)


@st.composite
def with_constants(draw: st.DrawFn, schema: Schema, classes: Mapping[str, str]) -> Comparison:
    variable = draw(st.sampled_from(sorted(classes)))
    end = draw(ends(schema, variable, classes[variable]))
    compares = draw(st.sampled_from(operators(end.kind)))
    return Comparison(end.path, compares, draw(constants(end.kind, compares)))


@st.composite
def leaves(draw: st.DrawFn, schema: Schema, classes: Mapping[str, str]) -> Comparison:
    """A comparison without join: with a constant, or within one resource."""
    found = draw(within(schema, classes)) if draw(st.integers(0, 2)) == 0 else None
    return found or draw(with_constants(schema, classes))


@st.composite
def within(draw: st.DrawFn, schema: Schema, classes: Mapping[str, str]) -> Comparison | None:
    """A comparison of two properties of a resource, or of one and a property of a referenced resource, or None.

    `c.info.size > c.info.used` compares within one resource; with `?` it would be two, in a cycle with the first.
    """
    variable = draw(st.sampled_from(sorted(classes)))
    left = draw(ends(schema, variable, classes[variable], 2))
    near = _near_ends(schema, Path(variable), classes[variable])
    if len(left.path.steps) == 2 and not left.path.steps[0].any:
        near += _behind(schema, left.path, classes[variable])
    return draw(_compared(schema, left, near))


def _behind(schema: Schema, path: Path, cls: str) -> list[End]:
    """Return the properties of the resources in the middle of a path of two steps."""
    through = schema.property_of(cls, path.steps[0].property)
    assert through is not None and through.leads_to is not None
    return _near_ends(schema, Path(path.variable, path.steps[:1]), through.leads_to)[1:]


@st.composite
def _compared(draw: st.DrawFn, schema: Schema, left: End, rights: list[End]) -> Comparison | None:
    """A comparison of a path with one of the others, or None."""
    fitting = [each for each in rights if each.kind is left.kind and _may_be_one(schema, left, each)]
    if not fitting:
        return None
    right = draw(st.sampled_from(fitting))
    if draw(st.booleans()):
        left, right = right, left
    return Comparison(left.path, draw(st.sampled_from(operators(left.kind))), right.path)


def _may_be_one(schema: Schema, left: End, right: End) -> bool:
    both = left.cls is not None and right.cls is not None
    return not both or bool(schema.at_or_below(str(left.cls)) & schema.at_or_below(str(right.cls)))


@st.composite
def conditions(draw: st.DrawFn, schema: Schema, classes: Mapping[str, str], depth: int) -> Condition:
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(leaves(schema, classes))
    parts = draw(st.lists(conditions(schema, classes, depth - 1), min_size=2, max_size=2))
    return joined(draw(st.sampled_from((And, Or))), parts)


def joined(kind: type[And | Or], parts: list[Condition]) -> Condition:
    """Join conditions, merging parts of the same kind as the parser does."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,))]
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


@st.composite
def joins(
    draw: st.DrawFn, schema: Schema, there: Mapping[str, str], new: str, cls: str, most: int
) -> Condition | None:
    """Comparisons of a new variable with earlier ones, joined by `or` if several; None if there are none."""
    tried = range(draw(st.integers(1, most)))
    found = [each for _ in tried if (each := draw(_join(schema, there, new, cls)))]
    return joined(Or, list(found)) if found else None


@st.composite
def _join(draw: st.DrawFn, schema: Schema, there: Mapping[str, str], new: str, cls: str) -> Condition | None:
    variable = draw(st.sampled_from(sorted(there)))
    left, news = draw(ends(schema, variable, there[variable], 2)), _near_ends(schema, Path(new), cls)
    if not any(each.kind is left.kind for each in news):
        left, news = End(Path(variable), None, there[variable]), news[:1]
    first = draw(_compared(schema, left, news))
    if first is None:
        return None
    near = _beside(schema, left.path, there[variable])
    more = [
        draw(_compared(schema, draw(st.sampled_from(near)), news)) for _ in range(draw(_HOW_MANY)) if near
    ]
    return joined(And, [first, *(each for each in more if each is not None)])


_HOW_MANY = st.sampled_from((0, 0, 1, 2))
"""Numbers of further comparisons of two variables after the first one."""


def _beside(schema: Schema, path: Path, cls: str) -> list[End]:
    """Return further ends to compare with the same variable, of the resource that was compared first."""
    if len(path.steps) < 2:
        return _near_ends(schema, Path(path.variable), cls)
    return [] if path.steps[0].any else _behind(schema, path, cls)


def _near_ends(schema: Schema, path: Path, cls: str) -> list[End]:
    """Return the end of a path, and the properties of its resources."""
    found = properties_of(schema, cls)
    paths = [Path(path.variable, (*path.steps, Step(each.name, each.several))) for each in found]
    reached = [End(path, each.kind, each.leads_to) for path, each in zip(paths, found, strict=True)]
    return [End(path, None, cls), *reached]


@st.composite
def rules(
    draw: st.DrawFn, schema: Schema, types: Mapping[str, str] | None = None, most: int = 3, depth: int = 2
) -> Rule:
    """A rule; `depth` is the depth of `and` and `or`, and with 0 there is no `or`."""
    known = {name: name for name in schema.classes} | dict(types or {})
    classes: dict[str, str] = {}
    searched: list[Variable] = []
    parts: list[Condition] = []
    for variable in VARIABLES[: draw(st.integers(1, most))]:
        extension = draw(st.sampled_from(sorted(known)))
        connected = (
            draw(joins(schema, classes, variable, known[extension], 1 + bool(depth))) if classes else None
        )
        if classes and connected is None:
            continue
        parts += [connected] if connected else []
        searched.append(Variable(extension, variable))
        classes[variable] = known[extension]
    parts += draw(st.lists(conditions(schema, classes, depth), max_size=2))
    where = joined(And, draw(st.permutations(parts))) if parts else None
    rule = Rule(tuple(draw(st.permutations(searched))), draw(st.sampled_from(sorted(classes))), where)
    return draw(with_cycles(schema, classes, rule, dict(types or {})))


@st.composite
def with_cycles(
    draw: st.DrawFn, schema: Schema, classes: Mapping[str, str], rule: Rule, types: Mapping[str, str]
) -> Rule:
    """A rule with further comparisons between its variables, if the rule remains valid."""
    for _ in range(draw(_HOW_MANY)):
        more = draw(_across(schema, classes))
        if more is None:
            continue
        parts = [more] if rule.where is None else [rule.where, more]
        closed = Rule(rule.searched, rule.register, joined(And, parts))
        rule = closed if _is_valid(closed, schema, types) else rule
    return rule


@st.composite
def _across(draw: st.DrawFn, schema: Schema, classes: Mapping[str, str]) -> Comparison | None:
    one, other = draw(st.sampled_from(sorted(classes))), draw(st.sampled_from(sorted(classes)))
    left = draw(ends(schema, one, classes[one]))
    rights = [draw(ends(schema, other, classes[other])) for _ in range(3)]
    return draw(_compared(schema, left, rights))


def _is_valid(rule: Rule, schema: Schema, types: Mapping[str, str]) -> bool:
    try:
        check_rule(rule, schema, types)
    except SubscriptionError:
        return False
    return True


@st.composite
def programs(draw: st.DrawFn, schema: Schema, most: int = 3) -> dict[str, Rule]:
    """Named rules. Each may search earlier ones; only the first has `or`, because alternatives multiply."""
    found: dict[str, Rule] = {}
    types: dict[str, str] = {}
    alternatives: dict[str, int] = {}
    for name in ("First", "Second", "Third")[: draw(st.integers(1, most))]:
        rule = draw(rules(schema, types, 2, depth=0 if found else 1))
        alternatives[name] = _alternatives(rule, alternatives)
        if alternatives[name] > MOST_ALTERNATIVES:  # searching a rule of sixteen alternatives twice gives 256
            break
        extension = next(each.extension for each in rule.searched if each.variable == rule.register)
        found[name], types[name] = rule, types.get(extension, extension)
    return found


def _alternatives(rule: Rule, known: Mapping[str, int]) -> int:
    """Return the number of rules without `or` into which a rule is split."""
    searched = prod(known.get(each.extension, 1) for each in rule.searched)
    return searched * (_alternatives_of(rule.where) if rule.where else 1)


def _alternatives_of(condition: Condition) -> int:
    if isinstance(condition, And):
        return prod(_alternatives_of(part) for part in condition.parts)
    return sum(map(_alternatives_of, condition.parts)) if isinstance(condition, Or) else 1
