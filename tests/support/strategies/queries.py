"""Generated queries over a schema: a generated rule, selected paths, an order and a limit.

queries(schema)          of any kind
wide_queries(schema)     several variables with selected paths, and few conditions that make the result empty
"""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from tests.support.strategies.rules import VARIABLES, ends, joined, joins, leaves, rules
from tidings.metadata.rules.normal_form import class_of
from tidings.metadata.rules.syntax import And, Condition, Path, Query, Rule, Variable
from tidings.metadata.schema.model import Schema


@st.composite
def queries(draw: st.DrawFn, schema: Schema, types: Mapping[str, str] | None = None) -> Query:
    rule = draw(rules(schema, types))
    classes = {each.variable: class_of(each.extension, schema, types or {}) for each in rule.searched}
    chosen = draw(st.lists(st.sampled_from([rule.register, *classes]), max_size=3))
    return draw(_selecting(schema, rule, classes, chosen))


@st.composite
def wide_queries(draw: st.DrawFn, schema: Schema) -> Query:
    names = sorted(schema.classes)
    classes = {VARIABLES[0]: draw(st.sampled_from(names))}
    parts: list[Condition] = []
    for variable in VARIABLES[1 : draw(st.integers(2, 3))]:
        cls = draw(st.sampled_from(names))
        connected = draw(joins(schema, classes, variable, cls, 1))
        if connected is not None:
            parts.append(connected)
            classes[variable] = cls
    parts += draw(st.lists(leaves(schema, classes), max_size=1))
    where = joined(And, parts) if parts else None
    searched = tuple(Variable(cls, variable) for variable, cls in classes.items())
    register = draw(st.sampled_from(sorted(classes)))
    return draw(
        _selecting(schema, Rule(searched, register, where), classes, draw(st.permutations(sorted(classes))))
    )


@st.composite
def _selecting(
    draw: st.DrawFn, schema: Schema, rule: Rule, classes: Mapping[str, str], chosen: list[str]
) -> Query:
    """A query that selects a path of each of the chosen variables."""

    def path(variable: str) -> Path:
        return draw(ends(schema, variable, classes[variable], 2)).path

    select = tuple(path(variable) for variable in chosen)
    ordered = draw(st.lists(st.sampled_from(sorted({rule.register, *chosen})), max_size=2))
    order = [each for each in map(path, ordered) if not any(step.any for step in each.steps)]
    falls = [draw(st.booleans()) for _ in order]
    limit = draw(st.none() | st.integers(1, 4))
    return Query(
        rule.searched, rule.register, rule.where, select, tuple(zip(order, falls, strict=True)), limit
    )
