"""What there was at each moment: links along ways, classes of objects, watches, labels; and which rows were gone.

Each is a table whose rows have the moments from `since` to before `until`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.errors import InputError
from tidings.objects.cdc.change_log import BEGINNING, CREATED, DELETED, EVER, MOVED, build_versions
from tidings.objects.cdc.model_tables import OBJECTS, WATCH_COLUMNS, WATCH_TABLE_NAME, ModelTables

# Tables as they were before the log began: today's links, a nightly export. Most of their rows never change.
#
# Only rows that the log speaks of have to be put in order with it. The others are there from the beginning to the
# end, and their columns are used as they are.


MAX_BROADCAST_IDS = 500_000
"""So many ids of rows fit into every task."""


@dataclass(frozen=True)
class BaseTables:
    """Tables by name: all of their rows, and which columns the model has in them."""

    relations: ModelTables
    tables: Mapping[str, DataFrame]
    columns: Mapping[str, list[str]]

    @classmethod
    def of(cls, relations: ModelTables, tables: Mapping[str, DataFrame]) -> BaseTables:
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
                some = F.broadcast(some) if counts[name] < MAX_BROADCAST_IDS else some
                rows = frame.withColumn("row", F.array(*(cast_to_text(each) for each in self._ids(name))))
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
        values = [part for each in self.columns[name] for part in (F.lit(each), cast_to_text(each))]
        yield from (F.lit(name).alias("table"), "row", F.create_map(*values).alias("after"))


def _columns(relations: ModelTables, table: Mapping[str, Any]) -> list[str]:
    """What the model has in a table: keys, attributes, references, and by what classes are told apart."""
    named = [*table["id_columns"], *(each["column"] for each in table.get("columns") or ())]
    ways = [row for row in relations.rows["ways"] if row["table"] == table["table"]]
    named += [row[end] for row in ways for end in ("near_column", "far_column")]
    members = [row for row in relations.rows["members"] if row["table"] == table["table"]]
    return list(dict.fromkeys([*named, *(row["column"] for row in members if row["column"] is not None)]))


def cast_to_text(column: str) -> Any:
    return F.col(f"`{column.replace('`', '``')}`").cast("string")


def select_permanent(frame: DataFrame, **columns: Any) -> DataFrame:
    """Rows that are there all the time; a column is one of the frame, by its name in a list, or a constant."""
    named = {
        name: cast_to_text(each[0]) if isinstance(each, list) else F.lit(each)
        for name, each in columns.items()
    }
    ever = (F.lit(BEGINNING).cast("long").alias("since"), F.lit(EVER).cast("long").alias("until"))
    return frame.select(*(each.alias(name) for name, each in named.items()), *ever)


@dataclass(frozen=True)
class TemporalState:
    """`edges`: way, near, far. `classes`: family, key, class, rank. `gone`: table, key. `watches`: subscriber_family,
    subscriber_key, class, family, key. `labels`: family, key, label, rank."""

    edges: DataFrame
    classes: DataFrame
    gone: DataFrame
    watches: DataFrame
    labels: DataFrame

    def kept(self) -> TemporalState:
        """With links that are found once and lie where they are looked for: every round asks them, and only what it
        asks for has to travel."""
        parts = int(self.edges.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        spread = self.edges.repartition(parts, "way", "near")
        return replace(self, edges=spread.localCheckpoint(eager=False))


def build_state(rows: DataFrame, staying: Mapping[str, DataFrame], relations: ModelTables) -> TemporalState:
    known = build_versions(rows)
    return TemporalState(
        _edges(known, staying, relations),
        _classes(known, staying, relations),
        _gone(rows, relations),
        _watches(known, staying, relations),
        _labels(known, staying, relations),
    )


def is_valid_at(moment: str | Column = "moment") -> Column:
    """Whether a row of a state was there in the moment of a change."""
    when = F.col(moment) if isinstance(moment, str) else moment
    return (F.col("since") <= when) & (when < F.col("until"))


def _value(column: str) -> Column:
    return F.try_element_at("values", F.col(column))


def _edges(known: DataFrame, staying: Mapping[str, DataFrame], relations: ModelTables) -> DataFrame:
    ways = relations.frame("ways").select("way", "table", "near_column", "far_column")
    moving = known.join(ways, "table").select(
        "way", _value("near_column").alias("near"), _value("far_column").alias("far"), "since", "until"
    )
    fixed = (
        select_permanent(
            staying[way["table"]], way=way["way"], near=[way["near_column"]], far=[way["far_column"]]
        )
        for way in relations.rows["ways"]
        if way["table"] in staying
    )
    edges = reduce(DataFrame.unionByName, fixed, moving)
    return edges.where(F.col("near").isNotNull() & F.col("far").isNotNull())


def _classes(known: DataFrame, staying: Mapping[str, DataFrame], relations: ModelTables) -> DataFrame:
    members = relations.frame("members")
    is_one = F.col("column").isNull() | (_value("column") == F.col("value"))
    columns = ("family", "key", "class", "rank", "since", "until")
    moving = (
        known.join(members, "table").where(is_one).select("*", F.col("row")[0].alias("key")).select(*columns)
    )
    keys = {row["table"]: row["id_columns"] for row in relations.rows["tables"]}
    fixed = []
    for row in relations.rows["members"]:
        if row["table"] in staying:
            frame = staying[row["table"]]
            some = (
                frame if row["column"] is None else frame.where(cast_to_text(row["column"]) == row["value"])
            )
            said = {name: row[name] for name in ("family", "class", "rank")}
            fixed.append(select_permanent(some, key=keys[row["table"]], **said))
    return reduce(DataFrame.unionByName, fixed, moving)


def _gone(rows: DataFrame, relations: ModelTables) -> DataFrame:
    """Rows that are known not to be there. Of others nothing is known, but who links them says that they are."""
    tables = relations.frame("tables").where(F.col("holds") == OBJECTS).select("table")
    of_objects = rows.join(tables, "table").withColumn("key", F.col("row")[0])
    ended = of_objects.where(F.col("op").isin(DELETED, MOVED)).select(
        "table", "key", F.col("pos").alias("since"), "until"
    )
    not_yet = of_objects.where(F.col("first") & (F.col("op") == CREATED)).select(
        "table", "key", F.lit(BEGINNING).cast("long").alias("since"), F.col("pos").alias("until")
    )
    return ended.union(not_yet)


def _watches(known: DataFrame, staying: Mapping[str, DataFrame], relations: ModelTables) -> DataFrame:
    columns = [F.col("values")[name].alias(name) for name in WATCH_COLUMNS]
    said = known.where(F.col("table") == WATCH_TABLE_NAME).select(*columns, "since", "until")
    if WATCH_TABLE_NAME in staying:
        said = said.unionByName(
            select_permanent(staying[WATCH_TABLE_NAME], **{name: [name] for name in WATCH_COLUMNS})
        )
    families = relations.frame("families")
    who = families.select(
        F.col("class").alias("subscriber_class"), F.col("family").alias("subscriber_family")
    )
    return said.join(who, "subscriber_class").join(families, "class").drop("subscriber_class")


def _labels(known: DataFrame, staying: Mapping[str, DataFrame], relations: ModelTables) -> DataFrame:
    labels = relations.frame("labels")
    columns = ("family", "key", "label", "rank", "since", "until")
    moving = known.join(labels, "table").select(
        "*", F.col("row")[0].alias("key"), _value("column").alias("label")
    )
    keys = {row["table"]: row["id_columns"] for row in relations.rows["tables"]}
    fixed = (
        select_permanent(
            staying[row["table"]],
            key=keys[row["table"]],
            label=[row["column"]],
            family=row["family"],
            rank=row["rank"],
        )
        for row in relations.rows["labels"]
        if row["table"] in staying
    )
    return reduce(DataFrame.unionByName, fixed, moving.select(*columns)).where(F.col("label").isNotNull())
