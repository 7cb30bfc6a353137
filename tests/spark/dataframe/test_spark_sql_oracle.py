"""Subscriptions that are also conditions of Spark SQL: both select the same rows.

The conditions use the part of the predicate language that Spark SQL has, in Spark's spellings. Rows have one value per
column. A comparison with a missing value is unknown in SQL and false here, which differs below `not`: so a column with
nulls is compared only together with `is not null`.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidings import Subscription
from tidings.spark import match

pytestmark = pytest.mark.spark

NUMBERS = st.integers(-3, 4)
TEXTS = st.sampled_from(["", "a", "b", "ab", "B", "é", "日本", "it's", " "])
COLUMNS = {"price": NUMBERS, "rating": NUMBERS.map(lambda number: number / 2), "symbol": TEXTS}
OPTIONAL = "reserve"
COMPARISONS = st.sampled_from(["=", "==", "!=", "<>", "<", "<=", ">", ">="])


def show(value: float | str) -> str:
    return str(value) if isinstance(value, int | float) else "'" + value.replace("'", "''") + "'"


@st.composite
def predicates(draw: st.DrawFn, name: str) -> str:
    values = COLUMNS.get(name, NUMBERS).map(show)
    negated = draw(st.sampled_from(["", " not", " NOT"]))
    form = draw(st.sampled_from(["compared", "reversed", "listed", "bounded"]))
    if form == "compared":
        return f"{name} {draw(COMPARISONS)} {draw(values)}"
    if form == "reversed":
        return f"{draw(values)}{draw(COMPARISONS)}{name}"
    if form == "listed":
        return f"{name}{negated} in ({', '.join(draw(st.lists(values, min_size=1, max_size=3)))})"
    bounds = sorted(draw(st.tuples(*[COLUMNS.get(name, NUMBERS)] * 2)))
    return f"{name}{negated} between {show(bounds[0])} and {show(bounds[1])}"


def optional_predicates() -> st.SearchStrategy[str]:
    return st.sampled_from([f"{OPTIONAL} is null", f"{OPTIONAL} IS NOT NULL"]) | predicates(OPTIONAL).map(
        lambda text: f"({OPTIONAL} is not null and {text})"
    )


def conditions() -> st.SearchStrategy[str]:
    single = st.sampled_from([*COLUMNS]).flatmap(predicates) | optional_predicates()
    return st.recursive(
        single,
        lambda inner: (
            st.tuples(inner, st.sampled_from(["and", "or", "AND"]), inner).map(" ".join)
            | inner.map(lambda text: f"({text})")
            | inner.map(lambda text: f"not ({text})")
            | inner.map(lambda text: f"!({text})")
        ),
        max_leaves=4,
    )


ROWS = st.fixed_dictionaries({**COLUMNS, OPTIONAL: st.none() | NUMBERS})


@settings(max_examples=3, phases=[Phase.generate])
@given(
    rows=st.lists(ROWS, min_size=10, max_size=30),
    texts=st.lists(conditions(), min_size=100, max_size=150, unique=True),
)
def test_match_selects_the_rows_of_spark_sql(
    session: SparkSession, rows: list[dict[str, float | str | None]], texts: list[str]
) -> None:
    columns = "id string, price bigint, rating double, symbol string, reserve bigint"
    numbered = [
        (f"r{number}", *(row[name] for name in (*COLUMNS, OPTIONAL))) for number, row in enumerate(rows)
    ]
    frame = session.createDataFrame(numbered, columns)
    subscriptions = [
        Subscription(f"s{number}", "ana", "predicates", text) for number, text in enumerate(texts)
    ]
    found = {(row.publication, row.subscription) for row in match(frame, subscriptions, id="id").collect()}
    selected = frame.select("id", *[F.expr(text).alias(f"s{number}") for number, text in enumerate(texts)])
    expected = {
        (row.id, name) for row in selected.collect() for name, holds in row.asDict().items() if holds is True
    }
    wrong = sorted((texts[int(name[1:])], rows[int(row[1:])]) for row, name in found ^ expected)
    assert wrong == []
