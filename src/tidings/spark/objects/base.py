"""Tables as they were before the log began: today's links, a nightly export. Most of their rows never change.

Only rows that the log speaks of have to be put in order with it. The others are there from the beginning to the end,
and their columns are used as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.errors import InputError
from tidings.spark.objects.log import BEGINNING, EVER
from tidings.spark.objects.relations import Relations

BROADCAST = 500_000
"""So many ids of rows fit into every task."""


@dataclass(frozen=True)
class Base:
    """Tables by name: all of their rows, and which columns the model has in them."""

    relations: Relations
    tables: Mapping[str, DataFrame]
    columns: Mapping[str, list[str]]

    @classmethod
    def of(cls, relations: Relations, tables: Mapping[str, DataFrame]) -> Base:
        known = {row["table"]: row for row in relations.rows["tables"]}
        for name, frame in tables.items():
            if name not in known:
                raise InputError("the model has no such table", received=name, accepted=", ".join(known))
            missing = [each for each in _columns(relations, known[name]) if each not in frame.columns]
            if missing:
                accepted = ", ".join(_columns(relations, known[name]))
                raise InputError("a column is missing", where=name, received=missing[0], accepted=accepted)
        return cls(relations, tables, {name: _columns(relations, known[name]) for name in tables})

    def split(self, numbered: DataFrame) -> tuple[DataFrame | None, Mapping[str, DataFrame]]:
        """Rows that the log changes, as (table, row, after); and of each table the rows that stay."""
        if not self.tables:
            return None, {}
        ids = numbered.select("table", F.explode(F.array("was", "is")).alias("row"))
        touched = ids.where(F.col("row").isNotNull()).distinct().localCheckpoint()
        counts = {row["table"]: row["count"] for row in touched.groupBy("table").count().collect()}
        moving: DataFrame | None = None
        staying = {}
        for name, frame in self.tables.items():
            staying[name] = frame
            if name in counts:
                some = touched.where(F.col("table") == name).select("row")
                some = F.broadcast(some) if counts[name] < BROADCAST else some
                rows = frame.withColumn("row", F.array(*(text_of(each) for each in self._ids(name))))
                staying[name] = rows.join(some, "row", "left_anti")
                found = rows.join(some, "row", "left_semi").select(*self._row(name))
                moving = found if moving is None else moving.union(found)
        return moving, staying

    def _ids(self, name: str) -> list[str]:
        found: list[str] = next(
            row["id_columns"] for row in self.relations.rows["tables"] if row["table"] == name
        )
        return found

    def _row(self, name: str) -> Iterator[Any]:
        values = [part for each in self.columns[name] for part in (F.lit(each), text_of(each))]
        yield from (F.lit(name).alias("table"), "row", F.create_map(*values).alias("after"))


def _columns(relations: Relations, table: Mapping[str, Any]) -> list[str]:
    """What the model has in a table: keys, attributes, references, and by what classes are told apart."""
    named = [*table["id_columns"], *(each["column"] for each in table.get("columns") or ())]
    ways = [row for row in relations.rows["ways"] if row["table"] == table["table"]]
    named += [row[end] for row in ways for end in ("near_column", "far_column")]
    members = [row for row in relations.rows["members"] if row["table"] == table["table"]]
    return list(dict.fromkeys([*named, *(row["column"] for row in members if row["column"] is not None)]))


def text_of(column: str) -> Any:
    return F.col(f"`{column.replace('`', '``')}`").cast("string")


def always(frame: DataFrame, **columns: Any) -> DataFrame:
    """Rows that are there all the time; a column is one of the frame, by its name in a list, or a constant."""
    named = {
        name: text_of(each[0]) if isinstance(each, list) else F.lit(each) for name, each in columns.items()
    }
    ever = (F.lit(BEGINNING).cast("long").alias("since"), F.lit(EVER).cast("long").alias("until"))
    return frame.select(*(each.alias(name) for name, each in named.items()), *ever)
