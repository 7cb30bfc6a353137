"""Who is told: those who watch what was reached or its class, and those at the far end of implicit associations."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tidings.objects.reasons import How
from tidings.spark.objects.closure import followed
from tidings.spark.objects.relations import Relations
from tidings.spark.objects.state import State, at_moment

HIT = ("change", "subscriber_family", "subscriber_key", "family", "key", "how", "by", "forwards")


def hits(objects: DataFrame, state: State, relations: Relations) -> DataFrame:
    """Change, subscriber, object, and how it concerns the subscriber. A hit may be there several times, as a row of
    links may: leaving that out here would be an exchange of all hits that most who use them make anyway."""
    watched = _watched(objects, state).union(_by_class(objects, state, relations))
    return watched.union(_implicit(objects, state, relations))


def _watched(objects: DataFrame, state: State) -> DataFrame:
    watches = state.watches.where(F.col("key").isNotNull()).drop("class")
    found = objects.join(watches, ["family", "key"]).where(at_moment())
    return _said(found, How.WATCHED)


def _by_class(objects: DataFrame, state: State, relations: Relations) -> DataFrame:
    """Every object is of its topmost class, whether or not its row is known."""
    lower = objects.join(state.classes, ["family", "key"]).where(at_moment())
    over = lower.join(relations.frame("above"), "class").select(*_NAMED, F.col("over").alias("class"))
    of = objects.select(*_NAMED, F.col("family").alias("class")).union(over).distinct()
    watches = state.watches.where(F.col("key").isNull()).drop("key", "family")
    return _said(of.join(watches, "class").where(at_moment()), How.CLASS, "class")


_NAMED = ("change", "moment", "family", "key")


def _implicit(objects: DataFrame, state: State, relations: Relations) -> DataFrame:
    found = followed(objects, relations.ways(propagates=False), state.edges)
    subscriber = F.col("far_family").alias("subscriber_family"), F.col("far").alias("subscriber_key")
    return found.select(
        *("change", *subscriber, "family", "key", F.lit(How.IMPLICIT.value).alias("how")),
        F.col("association").alias("by"),
        "forwards",
    )


def _said(found: DataFrame, how: How, by: str | None = None) -> DataFrame:
    words = F.lit(how.value).alias("how"), (F.lit("") if by is None else F.col(by)).alias("by")
    return found.select(*HIT[:5], *words, F.lit(False).alias("forwards"))


def first(hits: DataFrame, most: int | None) -> tuple[DataFrame, DataFrame]:
    """Hits of the first so many subscribers of each change, and of changes that have more how many: change, found.

    By family, then by key as a text. Spark compares texts by their bytes in UTF-8, which is the order of code points.
    """
    if most is None:
        return hits, hits.groupBy("change").agg(F.count("*").alias("found")).where(F.lit(False))
    each = Window.partitionBy("change").orderBy("subscriber_family", "subscriber_key")
    placed = hits.withColumn("place", F.dense_rank().over(each))
    found = placed.groupBy("change").agg(F.max("place").alias("found")).where(F.col("found") > most)
    return placed.where(F.col("place") <= most).drop("place"), found
