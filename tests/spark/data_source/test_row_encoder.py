"""Typed rows as JSON: what is written is what the row holds, for every type of column."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from tidings.errors import InputError
from tidings.spark import match
from tidings.spark.data_source.publication_rows import RowLayout
from tidings.spark.data_source.row_encoder import RowEncoder

Typed = tuple[t.DataType, Any]

texts = st.text(st.characters(codec="utf-8"), max_size=8)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
SCALARS: list[tuple[t.DataType, st.SearchStrategy[Any]]] = [
    (t.StringType(), texts),
    (t.BooleanType(), st.booleans()),
    (t.LongType(), st.integers(-(2**63), 2**63 - 1)),
    (t.DoubleType(), st.floats(allow_nan=False, allow_infinity=False)),
    (t.FloatType(), st.floats(allow_nan=False, allow_infinity=False, width=32)),
    (t.DecimalType(38, 18), st.decimals(-(10**9), 10**9, places=18)),
    (t.BinaryType(), st.binary(max_size=5)),
    (t.DateType(), st.dates()),
    (t.TimestampType(), moments),
    (t.TimestampNTZType(), moments.map(lambda each: each.replace(tzinfo=None))),
]


def expected(kind: t.DataType, value: Any) -> Any:
    """Return the value as it is after reading the JSON, with numbers as decimals."""
    if value is None:
        return None
    if isinstance(kind, t.ArrayType):
        return [expected(kind.elementType, item) for item in value]
    if isinstance(kind, t.MapType):
        return {key: expected(kind.valueType, item) for key, item in value if item is not None}
    if isinstance(kind, t.StructType):
        return {
            field.name: expected(field.dataType, value[field.name])
            for field in kind
            if value[field.name] is not None
        }
    if isinstance(kind, t.BinaryType):
        return b64encode(value).decode()
    if isinstance(kind, t.TimestampType):
        return value.replace(tzinfo=None).isoformat() + "Z"
    if isinstance(kind, t.DatetimeType):
        return value.isoformat()
    if isinstance(kind, t.FloatType):
        return Decimal(repr(float(str(np.float32(value)))))
    return Decimal(repr(value)) if isinstance(value, float) else value


def nested(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        inner.map(lambda each: (t.ArrayType(each[0]), [each[1], None, each[1]])),
        st.tuples(texts, inner).map(
            lambda each: (t.MapType(t.StringType(), each[1][0]), [(each[0], each[1][1])])
        ),
        st.lists(inner, max_size=3).map(build_struct),
    )


def build_struct(members: list[Typed]) -> Typed:
    fields = [t.StructField(f"m {number}", kind) for number, (kind, _) in enumerate(members)]
    return t.StructType(fields), {
        field.name: value for field, (_, value) in zip(fields, members, strict=True)
    }


scalars = st.one_of([st.tuples(st.just(kind), st.none() | values) for kind, values in SCALARS])
columns = st.lists(st.recursive(scalars, nested, max_leaves=6), max_size=4)


@given(columns)
def test_encode_any_row_is_read_as_the_same_values(row: list[Typed]) -> None:
    kind, value = build_struct(row)
    assert isinstance(kind, t.StructType)
    text = RowEncoder(list(kind)).encode([each for _, each in row])
    assert json.loads(text, parse_float=Decimal) == expected(kind, value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_encode_number_that_is_not_finite_gives_no_json(value: float) -> None:
    text = RowEncoder([t.StructField("a", t.DoubleType())]).encode([value])
    assert text in (b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}')


def test_encode_keys_of_other_types_and_times_are_texts() -> None:
    fields = [t.StructField("m", t.MapType(t.IntegerType(), t.DateType())), t.StructField("t", t.TimeType())]
    text = RowEncoder(fields).encode([[(7, date(2024, 5, 1))], time(12, 30)])
    assert json.loads(text) == {"m": {"7": "2024-05-01"}, "t": "12:30:00"}


def test_rows_with_a_time_that_python_cannot_represent_have_a_problem() -> None:
    schema = t.StructType().add("id", "string").add("at", "timestamp")
    far = pa.array([0, 2**60], pa.int64()).cast(pa.timestamp("us", "UTC"))
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b"]), far], names=["id", "at"])
    good, bad = RowLayout.of(schema).rows(batch)
    assert good.problem is None and good.body == b'{"id":"a","at":"1970-01-01T00:00:00Z"}'
    assert isinstance(bad.problem, InputError) and "column at" in str(bad.problem)
    assert bad.body == b'{"id":"b"}'


@pytest.mark.spark
def test_published_rows_match_like_the_rows_themselves(session: SparkSession) -> None:
    """`match` writes rows with Spark's `to_json`: both are the same events."""
    moment = datetime(2024, 5, 1, 12, tzinfo=UTC)
    frame = session.createDataFrame(
        [("a", Decimal("1.50"), 0.1, True, {"x": 1}, [{"n": 1}, {"n": 2}], moment, date(2024, 5, 2), 2**62)],
        "id string, d decimal(9,2), f float, b boolean, m map<string, int>, s array<struct<n: int>>,"
        " t timestamp, day date, big bigint",
    ).withColumn("v", F.parse_json(F.lit('{"deep": [1, {"er": "x"}]}')))
    texts = ["d = 1.5", "f = 0.1", "b = true", "m.x = 1", "s.n = 2", "v.deep.er = 'x'", "id = 'a'"]
    texts += ["t >= 2024-05-01T11:00:00Z", "day = 2024-05-02", f"big = {2**62}"]
    subscriptions = session.createDataFrame([(text, text) for text in texts], "id string, text string")
    layout = RowLayout.of(frame.schema)
    rows = [row for batch in frame.toArrow().to_batches() for row in layout.rows(batch)]
    bodies = session.createDataFrame([(row.id, row.body) for row in rows], "id string, value binary")
    own = {row.subscription for row in match(frame, subscriptions).collect()}
    assert {row.subscription for row in match(bodies, subscriptions).collect()} == own == set(texts)
