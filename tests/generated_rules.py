"""Generated rules over a schema, which are correct: what they compare can be compared, and all variables connect.

    rules(schema)               a Rule
    rules(schema, types)        one that may search rules with names, whose classes are `types`
    programs(schema)            named rules, some of which search others: a dict in the order they can be added

Variables join one after the other, each through one comparison with a variable that is there. Conditions with constants
stand anywhere, joined by `and` and `or`. Constants are those that generated resources have as values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.generated_metadata import DOCUMENTS, FRAGMENTS, MOMENTS, NUMBERS, properties_of
from tidings.languages.rules_tree import (
    Both,
    Compares,
    Comparison,
    Condition,
    Constant,
    Either,
    Path,
    Rule,
    Searched,
    Step,
)
from tidings.metadata.schema import Schema
from tidings.values import Kind

EQUALITY = (Compares.EQUAL, Compares.UNEQUAL)
ORDER = (Compares.LESS, Compares.AT_MOST, Compares.GREATER, Compares.AT_LEAST)
VARIABLES = ("c", "s", "d", "x1")
CONSTANTS = {
    Kind.NUMBER: NUMBERS,
    Kind.STRING: ("", "a", "ab", "it's", "uni-passau.de", "日本"),
    Kind.BOOLEAN: (True, False),
    Kind.INSTANT: (*MOMENTS, "2004-05-31", "2004-05-31T14:30:00.5+02:00"),
}
URIS = [f"{uri}#{name}" for uri in DOCUMENTS[:2] for name in (*FRAGMENTS, "nowhere")]


@dataclass(frozen=True)
class End:
    """A path, and what stands at its end: values of a kind, or resources of a class."""

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


def operators(kind: Kind | None) -> tuple[Compares, ...]:
    if kind in (Kind.NUMBER, Kind.INSTANT):
        return EQUALITY + ORDER
    return (*EQUALITY, Compares.CONTAINS) if kind is Kind.STRING else EQUALITY


@st.composite
def constants(draw: st.DrawFn, kind: Kind | None, compares: Compares) -> Constant:
    if kind is None:
        return Constant(draw(st.sampled_from(URIS)), draw(st.booleans()))
    value = draw(st.sampled_from(CONSTANTS[kind]))
    return Constant("a" if compares is Compares.CONTAINS and not value else value)


@st.composite
def with_constants(draw: st.DrawFn, schema: Schema, classes: Mapping[str, str]) -> Comparison:
    variable = draw(st.sampled_from(sorted(classes)))
    end = draw(ends(schema, variable, classes[variable]))
    compares = draw(st.sampled_from(operators(end.kind)))
    return Comparison(end.path, compares, draw(constants(end.kind, compares)))


@st.composite
def conditions(draw: st.DrawFn, schema: Schema, classes: Mapping[str, str], depth: int) -> Condition:
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(with_constants(schema, classes))
    parts = draw(st.lists(conditions(schema, classes, depth - 1), min_size=2, max_size=2))
    return _joined(draw(st.sampled_from((Both, Either))), parts)


def _joined(kind: type[Both | Either], parts: list[Condition]) -> Condition:
    """Parts of the same kind are taken in, as the parser does."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,))]
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


@st.composite
def joins(
    draw: st.DrawFn, schema: Schema, there: Mapping[str, str], new: str, cls: str, most: int
) -> Condition | None:
    """A comparison of a new variable with one that is there, or several with `or`; None if there is no way."""
    tried = range(draw(st.integers(1, most)))
    found = [each for _ in tried if (each := draw(_join(schema, there, new, cls)))]
    return _joined(Either, list(found)) if found else None


@st.composite
def _join(draw: st.DrawFn, schema: Schema, there: Mapping[str, str], new: str, cls: str) -> Comparison | None:
    variable = draw(st.sampled_from(sorted(there)))
    left = draw(ends(schema, variable, there[variable], 2))
    fitting = [each for each in _near_ends(schema, new, cls) if each.kind is left.kind]
    if not fitting:
        left, fitting = End(Path(variable), None, there[variable]), [End(Path(new), None, cls)]
    right = draw(st.sampled_from(fitting))
    if left.cls and right.cls and not schema.at_or_below(left.cls) & schema.at_or_below(right.cls):
        return None
    if draw(st.booleans()):
        left, right = right, left
    return Comparison(left.path, draw(st.sampled_from(operators(left.kind))), right.path)


def _near_ends(schema: Schema, variable: str, cls: str) -> list[End]:
    """A variable, and its properties."""
    found = properties_of(schema, cls)
    paths = [Path(variable, (Step(each.name, each.several),)) for each in found]
    reached = [End(path, each.kind, each.leads_to) for path, each in zip(paths, found, strict=True)]
    return [End(Path(variable), None, cls), *reached]


@st.composite
def rules(
    draw: st.DrawFn, schema: Schema, types: Mapping[str, str] | None = None, most: int = 3, depth: int = 2
) -> Rule:
    """`depth` is that of `and` and `or`; without it, there is no `or` at all."""
    known = {name: name for name in schema.classes} | dict(types or {})
    classes: dict[str, str] = {}
    searched: list[Searched] = []
    parts: list[Condition] = []
    for variable in VARIABLES[: draw(st.integers(1, most))]:
        extension = draw(st.sampled_from(sorted(known)))
        joined = (
            draw(joins(schema, classes, variable, known[extension], 1 + bool(depth))) if classes else None
        )
        if classes and joined is None:
            continue
        parts += [joined] if joined else []
        searched.append(Searched(extension, variable))
        classes[variable] = known[extension]
    parts += draw(st.lists(conditions(schema, classes, depth), max_size=2))
    where = _joined(Both, draw(st.permutations(parts))) if parts else None
    return Rule(tuple(draw(st.permutations(searched))), draw(st.sampled_from(sorted(classes))), where)


@st.composite
def programs(draw: st.DrawFn, schema: Schema, most: int = 3) -> dict[str, Rule]:
    """Rules with names. Each may search those before it; `or` is in the first only, since it multiplies."""
    found: dict[str, Rule] = {}
    types: dict[str, str] = {}
    for name in ("First", "Second", "Third")[: draw(st.integers(1, most))]:
        rule = draw(rules(schema, types, 2, depth=0 if found else 1))
        extension = next(each.extension for each in rule.searched if each.variable == rule.register)
        found[name], types[name] = rule, types.get(extension, extension)
    return found
