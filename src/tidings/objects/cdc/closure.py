"""The closure: all that counts as changed with an object, for all changes at once, step by step.

Recursive queries of Spark never end in a circle, since they do not know what they have had. So each round joins what
was reached last with the links of that moment, and goes on with what is new. Pairs of a change and an object are all
that is kept: a hub that thousands of changes lead to is joined once for each of them, however many ways lead there.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tidings.objects.cdc.model_tables import ModelTables
from tidings.objects.cdc.state import TemporalState, is_valid_at
from tidings.objects.model.class_model import ChangeKind
from tidings.objects.propagation import HitKind

ROUNDS_PER_UNION = 8
"""After so many rounds what was reached in them is put together: a plan with hundreds of parts is slow to make."""

OBJECT_COLUMNS = ("change", "family", "key")


def compute_closure(
    changes: DataFrame, edges: DataFrame, relations: ModelTables, most: int | None
) -> DataFrame:
    """change, moment, kind, family, key, and `attributes`, which only the object has with which a change began."""
    ways = relations.ways(propagates=True)
    begin = changes.select("change", "moment", "kind", "family", "key", "attributes", F.lit(0).alias("steps"))
    parts = [begin]
    newest, taken = begin, 0
    while taken != most:
        found = follow_links(newest, ways, edges).select(
            "change", "moment", "kind", F.col("far_family").alias("family"), F.col("far").alias("key")
        )
        new = found.distinct().join(
            _together(parts).select(*OBJECT_COLUMNS), list(OBJECT_COLUMNS), "left_anti"
        )
        newest = _later(new, taken + 1).localCheckpoint()
        if newest.isEmpty():
            break
        parts.append(newest)
        taken += 1
        if len(parts) > ROUNDS_PER_UNION:
            parts = [_together(parts).localCheckpoint()]
    return _together(parts).localCheckpoint(eager=False) if taken else begin


def _later(new: DataFrame, steps: int) -> DataFrame:
    nothing = F.lit(None).cast("array<string>").alias("attributes")
    return new.select("change", "moment", "kind", "family", "key", nothing, F.lit(steps).alias("steps"))


def _together(parts: list[DataFrame]) -> DataFrame:
    first, *more = parts
    for each in more:
        first = first.union(each)
    return first


def follow_links(objects: DataFrame, ways: DataFrame, edges: DataFrame) -> DataFrame:
    """What links lead to from objects, along ways whose limits admit the change.

    Ways come first: they are few, and what they do not admit need not be looked up among the links.
    """
    asked = objects.join(ways, F.col("near_family") == F.col("family")).where(_admits())
    wanted = asked.withColumnRenamed("key", "near").drop("table")
    wanted = wanted.hint("shuffle_hash")  # of links there are many: nobody should sort them
    return wanted.join(edges, ["way", "near"]).where(is_valid_at()).withColumnRenamed("near", "key")


def _admits() -> Column:
    """Attributes limit what comes from the object that was updated; from there on only kinds count."""
    kinds = F.col("kinds").isNull() | F.array_contains("kinds", F.col("kind"))
    begins = (
        (F.col("steps") == 0) & (F.col("kind") == ChangeKind.UPDATE.value) & F.col("limited_to").isNotNull()
    )
    return kinds & (~begins | F.coalesce(F.arrays_overlap("limited_to", "attributes"), F.lit(False)))


def find_steps(objects: DataFrame, edges: DataFrame, relations: ModelTables) -> DataFrame:
    """All steps that lead on from reached objects: change, family, key, association, forwards, to_family, to_key."""
    found = follow_links(objects, relations.ways(propagates=True), edges)
    return found.select(
        *OBJECT_COLUMNS,
        "association",
        "forwards",
        F.col("far_family").alias("to_family"),
        F.col("far").alias("to_key"),
    ).distinct()


def filter_steps(leading: DataFrame, objects: DataFrame, how: str) -> DataFrame:
    """Of these steps those to objects that were reached ("left_semi"), or to others ("left_anti")."""
    ends = objects.select("change", F.col("family").alias("to_family"), F.col("key").alias("to_key"))
    return leading.join(ends, ["change", "to_family", "to_key"], how)


# Who is told: those who watch what was reached or its class, and those at the far end of implicit associations.


HIT_COLUMNS = ("change", "subscriber_family", "subscriber_key", "family", "key", "how", "by", "forwards")


def find_hits(objects: DataFrame, state: TemporalState, relations: ModelTables) -> DataFrame:
    """Change, subscriber, object, and how it concerns the subscriber. A hit may be there several times, as a row of
    links may: leaving that out here would be an exchange of all hits that most who use them make anyway."""
    watched = _watched(objects, state).union(_by_class(objects, state, relations))
    return watched.union(_implicit(objects, state, relations))


def _watched(objects: DataFrame, state: TemporalState) -> DataFrame:
    watches = state.watches.where(F.col("key").isNotNull()).drop("class")
    found = objects.join(watches, ["family", "key"]).where(is_valid_at())
    return _add_hit_kind(found, HitKind.WATCHED)


def _by_class(objects: DataFrame, state: TemporalState, relations: ModelTables) -> DataFrame:
    """Every object is of its topmost class, whether or not its row is known."""
    lower = objects.join(state.classes, ["family", "key"]).where(is_valid_at())
    over = lower.join(relations.frame("above"), "class").select(*_NAMED, F.col("over").alias("class"))
    of = objects.select(*_NAMED, F.col("family").alias("class")).union(over).distinct()
    watches = state.watches.where(F.col("key").isNull()).drop("key", "family")
    return _add_hit_kind(of.join(watches, "class").where(is_valid_at()), HitKind.CLASS, "class")


_NAMED = ("change", "moment", "family", "key")


def _implicit(objects: DataFrame, state: TemporalState, relations: ModelTables) -> DataFrame:
    found = follow_links(objects, relations.ways(propagates=False), state.edges)
    subscriber = F.col("far_family").alias("subscriber_family"), F.col("far").alias("subscriber_key")
    return found.select(
        *("change", *subscriber, "family", "key", F.lit(HitKind.IMPLICIT.value).alias("how")),
        F.col("association").alias("by"),
        "forwards",
    )


def _add_hit_kind(found: DataFrame, how: HitKind, by: str | None = None) -> DataFrame:
    words = F.lit(how.value).alias("how"), (F.lit("") if by is None else F.col(by)).alias("by")
    return found.select(*HIT_COLUMNS[:5], *words, F.lit(False).alias("forwards"))


def limit_hits(hits: DataFrame, most: int | None) -> tuple[DataFrame, DataFrame]:
    """Hits of the first so many subscribers of each change, and of changes that have more how many: change, found.

    By family, then by key as a text. Spark compares texts by their bytes in UTF-8, which is the order of code points.
    """
    if most is None:
        return hits, hits.groupBy("change").agg(F.count("*").alias("found")).where(F.lit(False))
    each = Window.partitionBy("change").orderBy("subscriber_family", "subscriber_key")
    ranked = hits.withColumn("place", F.dense_rank().over(each))
    found = ranked.groupBy("change").agg(F.max("place").alias("found")).where(F.col("found") > most)
    return ranked.where(F.col("place") <= most).drop("place"), found
