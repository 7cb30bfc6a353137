"""Generated queries over a schema: a generated rule, what is selected of its variables, an order and a limit."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from tests.generated_rules import ends, rules
from tidings.languages.rules_tree import Path, Query
from tidings.metadata.normal import class_of
from tidings.metadata.schema import Schema


@st.composite
def queries(draw: st.DrawFn, schema: Schema, types: Mapping[str, str] | None = None) -> Query:
    rule = draw(rules(schema, types))
    classes = {each.variable: class_of(each.extension, schema, types or {}) for each in rule.searched}

    def paths(variables: list[str], most: int) -> list[Path]:
        chosen = draw(st.lists(st.sampled_from(variables), max_size=most))
        return [draw(ends(schema, variable, classes[variable], 2)).path for variable in chosen]

    select = paths([rule.register, *classes], 3)
    shown = sorted({rule.register, *(path.variable for path in select)})
    order = [path for path in paths(shown, 2) if not any(step.any for step in path.steps)]
    falls = [draw(st.booleans()) for _ in order]
    limit = draw(st.none() | st.integers(1, 4))
    return Query(
        rule.searched,
        rule.register,
        rule.where,
        tuple(select),
        tuple(zip(order, falls, strict=True)),
        limit,
    )
