"""The log of row changes: in its order, and each with what its row was before.

A *mark* is where a version of a row begins or ends. Its `pos` are even numbers in the order of the log; what is looked
at right after a change is looked at in the moment `pos`, what is looked at before it in the moment `pos - 1`. A version
has the moments from `since` to before `until`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tidings.objects.cdc.model_tables import OBJECTS, WATCHED, ModelTables

BEGINNING, EVER = 0, 2**62
"""Before the first change, and after the last."""

SNAPSHOT, CREATED, UPDATED, DELETED, MOVED = "r", "c", "u", "d", "moved"
"""Debezium's words for what happened; the last is ours: the row has another id now."""


@dataclass(frozen=True)
class VersionMarks:
    """Where versions of rows begin and end, and what of the log cannot be used: id, table, op, reason."""

    rows: DataFrame
    rejects: DataFrame


def number_changes(log: DataFrame, relations: ModelTables) -> DataFrame:
    """What concerns the model, with the id of its row before and after and a number by which it is ordered.

    Numbers have gaps. Without gaps one task would have to count all of it.
    """
    known = log.join(relations.frame("tables"), "table")
    sorted_ = known.orderBy("place").withColumn("pos", (F.monotonically_increasing_id() + 1) * 2)
    ids = sorted_.withColumn("was", _id("before")).withColumn("is", _id("after"))
    return ids.withColumn("reason", _problem()).localCheckpoint()


def _id(row: str) -> Column:
    return F.when(F.col(row).isNotNull(), F.transform("id_columns", lambda name: F.try_element_at(row, name)))


def _problem() -> Column:
    """What is wrong with a change of a row; null if nothing is."""
    op, has_key = F.col("op"), ~F.exists(F.coalesce("is", "was"), F.isnull)
    is_watch = F.col("holds") == WATCHED
    watched, subscriber = F.try_element_at("after", F.lit("class")), F.lit("subscriber_class")
    cases = (
        (op == "t", "a truncated table does not say which rows are gone: give the deletions instead"),
        (~op.isin(SNAPSHOT, CREATED, UPDATED, DELETED), "no such operation; accepted: r, c, u, d"),
        ((op != DELETED) & F.col("after").isNull(), "the row after the change is missing"),
        ((op == DELETED) & F.col("before").isNull(), "the row that was deleted is missing"),
        ((F.col("holds") == OBJECTS) & ~has_key, "the row has no key"),
        (is_watch & (op != DELETED) & ~F.array_contains("classes", watched), "the model has no such class"),
        (
            is_watch
            & (op != DELETED)
            & ~F.array_contains("subscribers", F.try_element_at("after", subscriber)),
            "no such class of subscribers",
        ),
    )
    found = F.lit(None).cast("string")
    for condition, reason in reversed(cases):
        found = F.when(condition, reason).otherwise(found)
    return found


MARK_COLUMNS = ("table", "op", "before", "after", "id", "transaction", "at", "pos")


def mark_versions(numbered: DataFrame, base: DataFrame | None) -> VersionMarks:
    """`base` has rows that were there before the log began, those of them that it changes: table, row, after."""
    good = numbered.where(F.col("reason").isNull())
    arrived = (F.col("op") == UPDATED) & F.col("was").isNotNull() & ~F.col("was").eqNullSafe(F.col("is"))
    begun = good.where(F.col("op") != DELETED).select(
        *MARK_COLUMNS, F.col("is").alias("row"), arrived.alias("arrived")
    )
    ended = good.where(F.col("op") == DELETED).transform(_end)
    moved = good.where(arrived).withColumn("op", F.lit(MOVED)).transform(_end)
    every = begun.union(ended).union(moved)
    if base is not None:
        every = every.unionByName(_begun_before(base), allowMissingColumns=True)
    rows = _followed(every).localCheckpoint()
    unknown = (F.col("op") == UPDATED) & F.col("before").isNull()
    why = "what the row was is missing, and nothing before says it: REPLICA IDENTITY FULL, or the table as it was"
    rejects = numbered.where(F.col("reason").isNotNull()).select("id", "table", "op", "reason")
    return VersionMarks(rows, rejects.union(rows.where(unknown).select("id", "table", "op", F.lit(why))))


TEXT_MAP = "map<string,string>"


def _end(changes: DataFrame) -> DataFrame:
    nothing = changes.withColumn("after", F.lit(None).cast(TEXT_MAP))
    return nothing.select(*MARK_COLUMNS, F.col("was").alias("row"), F.lit(False).alias("arrived"))


def _begun_before(base: DataFrame) -> DataFrame:
    marked = base.withColumn("op", F.lit(SNAPSHOT)).withColumn("arrived", F.lit(False))
    return marked.withColumn("pos", F.lit(BEGINNING).cast("long"))


def _followed(every: DataFrame) -> DataFrame:
    """Each mark with the next one of its row, and what is known of the row before it.

    Envelopes come first in this: formats of values may be others in the base. Of what is deleted the log may have
    the key only, so there the last version comes first.
    """
    row = Window.partitionBy("table", "row").orderBy("pos")
    known = F.lag("after").over(row)
    was = F.when(F.col("op") == DELETED, F.coalesce(known, "before")).otherwise(F.coalesce("before", known))
    return (
        every.withColumn("first", F.lag("pos").over(row).isNull())
        .withColumn("until", F.coalesce(F.lead("pos").over(row), F.lit(EVER)))
        .withColumn("before", was)
    )


def build_versions(rows: DataFrame) -> DataFrame:
    """table, row, values, since, until. What is first heard of by an update or its end was there from the beginning,
    unless it had another id until then."""
    since = F.when(F.col("first") & (F.col("op") == SNAPSHOT), F.lit(BEGINNING)).otherwise(F.col("pos"))
    begun = rows.where(F.col("after").isNotNull()).select(
        "table", "row", F.col("after").alias("values"), since.cast("long").alias("since"), "until"
    )
    was_there = F.col("first") & F.col("op").isin(UPDATED, DELETED, MOVED) & F.col("before").isNotNull()
    earlier = rows.where(was_there & ~F.col("arrived")).select(
        "table",
        "row",
        F.col("before").alias("values"),
        F.lit(BEGINNING).cast("long").alias("since"),
        F.col("pos").alias("until"),
    )
    return begun.union(earlier)
