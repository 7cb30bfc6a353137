"""What there was at each moment: links along ways, classes of objects, watches, labels; and which rows were gone.

Each is a table whose rows have the moments from `since` to before `until`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.spark.objects.base import always, text_of
from tidings.spark.objects.log import BEGINNING, CREATED, DELETED, MOVED, versions
from tidings.spark.objects.relations import OBJECTS, WATCH_COLUMNS, WATCHES, Relations


@dataclass(frozen=True)
class State:
    """`edges`: way, near, far. `classes`: family, key, class, rank. `gone`: table, key. `watches`: subscriber_family,
    subscriber_key, class, family, key. `labels`: family, key, label, rank."""

    edges: DataFrame
    classes: DataFrame
    gone: DataFrame
    watches: DataFrame
    labels: DataFrame

    def kept(self) -> State:
        """With links that are found once and lie where they are looked for: every round asks them, and only what it
        asks for has to travel."""
        parts = int(self.edges.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        spread = self.edges.repartition(parts, "way", "near")
        return replace(self, edges=spread.localCheckpoint(eager=False))


def state_of(rows: DataFrame, staying: Mapping[str, DataFrame], relations: Relations) -> State:
    known = versions(rows)
    return State(
        _edges(known, staying, relations),
        _classes(known, staying, relations),
        _gone(rows, relations),
        _watches(known, staying, relations),
        _labels(known, staying, relations),
    )


def at_moment(moment: str | Column = "moment") -> Column:
    """Whether a row of a state was there in the moment of a change."""
    when = F.col(moment) if isinstance(moment, str) else moment
    return (F.col("since") <= when) & (when < F.col("until"))


def _value(column: str) -> Column:
    return F.try_element_at("values", F.col(column))


def _edges(known: DataFrame, staying: Mapping[str, DataFrame], relations: Relations) -> DataFrame:
    ways = relations.frame("ways").select("way", "table", "near_column", "far_column")
    moving = known.join(ways, "table").select(
        "way", _value("near_column").alias("near"), _value("far_column").alias("far"), "since", "until"
    )
    fixed = (
        always(staying[way["table"]], way=way["way"], near=[way["near_column"]], far=[way["far_column"]])
        for way in relations.rows["ways"]
        if way["table"] in staying
    )
    edges = reduce(DataFrame.unionByName, fixed, moving)
    return edges.where(F.col("near").isNotNull() & F.col("far").isNotNull())


def _classes(known: DataFrame, staying: Mapping[str, DataFrame], relations: Relations) -> DataFrame:
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
            some = frame if row["column"] is None else frame.where(text_of(row["column"]) == row["value"])
            said = {name: row[name] for name in ("family", "class", "rank")}
            fixed.append(always(some, key=keys[row["table"]], **said))
    return reduce(DataFrame.unionByName, fixed, moving)


def _gone(rows: DataFrame, relations: Relations) -> DataFrame:
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


def _watches(known: DataFrame, staying: Mapping[str, DataFrame], relations: Relations) -> DataFrame:
    columns = [F.col("values")[name].alias(name) for name in WATCH_COLUMNS]
    said = known.where(F.col("table") == WATCHES).select(*columns, "since", "until")
    if WATCHES in staying:
        said = said.unionByName(always(staying[WATCHES], **{name: [name] for name in WATCH_COLUMNS}))
    families = relations.frame("families")
    who = families.select(
        F.col("class").alias("subscriber_class"), F.col("family").alias("subscriber_family")
    )
    return said.join(who, "subscriber_class").join(families, "class").drop("subscriber_class")


def _labels(known: DataFrame, staying: Mapping[str, DataFrame], relations: Relations) -> DataFrame:
    labels = relations.frame("labels")
    columns = ("family", "key", "label", "rank", "since", "until")
    moving = known.join(labels, "table").select(
        "*", F.col("row")[0].alias("key"), _value("column").alias("label")
    )
    keys = {row["table"]: row["id_columns"] for row in relations.rows["tables"]}
    fixed = (
        always(
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
