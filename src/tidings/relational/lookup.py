"""Look-ups of a batch in tables that may be much larger: which rows are read, and which side is broadcast.

Files are clustered by the columns of their look-up (`CLUSTERED_BY`), and Parquet has the bounds of these columns for
each row group and page. Spark does not compare them with the other side of a join. So for a small batch the driver
collects its keys, and each look-up has them as a filter, which reads the row groups and pages that may have such keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

MAX_KEYS = 1_000
"""The most keys of a filter. A batch with more reads most of a table in any case."""

MAX_PATHS = 100
"""The most paths that a filter has with their own values each."""

PRUNED_FROM = 50_000
"""Rows from which on a table is worth the jobs that collect keys."""

MAX_BROADCAST = 500_000
"""Maximum number of rows to broadcast: some hundred megabytes."""

PUSHDOWN = {"spark.sql.parquet.pushdown.inFilterThreshold": str(MAX_KEYS)}
"""Without it, Spark compares the bounds of row groups with the least and the greatest key only."""

PathValues = Mapping[int, Collection[str]]
"""The values of a batch by linear path, written as in the tables."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The number of rows of a frame, and its keys unless they are too many."""

    rows: int
    keys: frozenset[bytes] | None = None


def count_keys(frame: DataFrame, column: str, collects: bool = True) -> Counted:
    """Count rows, and collect the distinct values of a binary column if there are few."""
    if collects:
        groups = frame.groupBy(column).count().limit(MAX_KEYS + 1).collect()
        if len(groups) <= MAX_KEYS:
            return Counted(
                sum(group["count"] for group in groups), frozenset(bytes(key) for key, _ in groups)
            )
    return Counted(frame.count())


def unite_keys(counted: Iterable[Counted]) -> Counted:
    """Return the counts of several frames together."""
    each = list(counted)
    keys: frozenset[bytes] | None = frozenset()
    for one in each:
        keys = None if keys is None or one.keys is None else keys | one.keys
    return Counted(
        sum(one.rows for one in each), keys if keys is not None and len(keys) <= MAX_KEYS else None
    )


def collect_values(equal: DataFrame, rows: float) -> PathValues | None:
    """Collect the values of documents by path (`Probes.equal`), unless they are too many."""
    if rows > 20 * MAX_KEYS:
        return None
    found = equal.select("linearpath_id", "value", "numeric").distinct().limit(MAX_KEYS + 1).collect()
    values: dict[int, set[str]] = {}
    for path, value, numeric in found:
        values.setdefault(path, set()).add(repr(float(value)) if numeric else value)
    return values if len(found) <= MAX_KEYS else None


def filter_keys(table: DataFrame, column: str, keys: Collection[bytes] | None) -> DataFrame:
    """Keep rows with one of these keys; None keeps all."""
    return table if keys is None else table.filter(_is_in(column, (_binary(key) for key in keys)))


def filter_paths(table: DataFrame, path: str, values: PathValues | None) -> DataFrame:
    """Keep rows with a path of the batch."""
    return table if values is None else table.filter(_is_in(path, (f"{number}L" for number in values)))


def filter_values(table: DataFrame, path: str, value: str, values: PathValues | None) -> DataFrame:
    """Keep rows with a path of the batch and one of its values."""
    if values is None:
        return table
    if len(values) > MAX_PATHS:
        known = {text for texts in values.values() for text in texts}
        return filter_paths(table, path, values).filter(_is_in(value, map(_text, known)))
    pairs = ((F.col(path) == number) & _is_in(value, map(_text, texts)) for number, texts in values.items())
    return table.filter(reduce(Column.__or__, pairs, F.lit(False)))


def _is_in(column: str, literals: Iterable[str]) -> Column:
    """Return the condition as one text: each literal by itself would be a call of the JVM."""
    listed = ", ".join(literals)
    return F.expr(f"`{column}` IN ({listed})") if listed else F.lit(False)


def _binary(key: bytes) -> str:
    return f"X'{key.hex()}'"


def _text(value: str) -> str:
    """Write a value of a document as hexadecimal digits, which need no quoting; Spark folds the cast."""
    return f"CAST(X'{value.encode().hex()}' AS STRING)"


def choose_sides(
    batch: DataFrame, rows: float, table: DataFrame, table_rows: float
) -> tuple[DataFrame, DataFrame]:
    """Broadcast the smaller side of a join if it is small enough.

    Spark would not: it estimates a join's result as the product of both sides.
    """
    if min(rows, table_rows) > MAX_BROADCAST:
        return batch, table
    return (F.broadcast(batch), table) if rows <= table_rows else (batch, F.broadcast(table))


def broadcast_small(batch: DataFrame, rows: float) -> DataFrame:
    """Broadcast a side that is the smaller one, if it is small enough."""
    return F.broadcast(batch) if rows <= MAX_BROADCAST else batch
