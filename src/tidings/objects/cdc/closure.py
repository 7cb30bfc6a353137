"""Closure of changes under propagation, for all changes together, and their hits.

Recursive queries of Spark do not end in cycles, since they keep duplicates. So each round joins the objects reached
last with the links of that moment, and continues with the new ones. Only pairs of change and object are kept: a hub is
joined once for each change that reaches it, however many paths lead there.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tidings.objects.cdc.model_tables import ModelTables
from tidings.objects.cdc.state import TemporalState, is_valid_at
from tidings.objects.model.class_model import ChangeKind
from tidings.objects.propagation import HitKind

ROUNDS_PER_UNION = 8
"""Rounds after which results are merged: a plan with hundreds of parts is slow to optimize."""

OBJECT_COLUMNS = ("change", "family", "key")


def compute_closure(
    changes: DataFrame, edges: DataFrame, relations: ModelTables, max_steps: int | None
) -> DataFrame:
    """Compute change, moment, kind, family, key, and `attributes`, which only the changed object itself has."""
    ways = relations.ways(propagates=True)
    begin = changes.select("change", "moment", "kind", "family", "key", "attributes", F.lit(0).alias("steps"))
    parts = [begin]
    frontier, steps = begin, 0
    while steps != max_steps:
        neighbours = follow_links(frontier, ways, edges).select(
            "change", "moment", "kind", F.col("far_family").alias("family"), F.col("far").alias("key")
        )
        new = neighbours.distinct().join(
            _union(parts).select(*OBJECT_COLUMNS), list(OBJECT_COLUMNS), "left_anti"
        )
        frontier = _add_steps(new, steps + 1).localCheckpoint()
        if frontier.isEmpty():
            break
        parts.append(frontier)
        steps += 1
        if len(parts) > ROUNDS_PER_UNION:
            parts = [_union(parts).localCheckpoint()]
    return _union(parts).localCheckpoint(eager=False) if steps else begin


def _add_steps(new: DataFrame, steps: int) -> DataFrame:
    nothing = F.lit(None).cast("array<string>").alias("attributes")
    return new.select("change", "moment", "kind", "family", "key", nothing, F.lit(steps).alias("steps"))


def _union(parts: list[DataFrame]) -> DataFrame:
    result, *others = parts
    for other in others:
        result = result.union(other)
    return result


def follow_links(objects: DataFrame, ways: DataFrame, edges: DataFrame) -> DataFrame:
    """Find the objects linked to objects, along associations whose limits admit the change.

    Associations are joined first: they are few, and the links of those that do not admit a change are not read.
    """
    admitted = objects.join(ways, F.col("near_family") == F.col("family")).where(_build_admission_test())
    starts = admitted.withColumnRenamed("key", "near").drop("table")
    starts = starts.hint("shuffle_hash")  # sorting the links, which are many, would be slow
    return starts.join(edges, ["way", "near"]).where(is_valid_at()).withColumnRenamed("near", "key")


def _build_admission_test() -> Column:
    """Apply limits: attributes only at the object that was updated, kinds at each step."""
    kinds = F.col("kinds").isNull() | F.array_contains("kinds", F.col("kind"))
    is_limited = (
        (F.col("steps") == 0) & (F.col("kind") == ChangeKind.UPDATE.value) & F.col("limited_to").isNotNull()
    )
    return kinds & (~is_limited | F.coalesce(F.arrays_overlap("limited_to", "attributes"), F.lit(False)))


def find_steps(objects: DataFrame, edges: DataFrame, relations: ModelTables) -> DataFrame:
    """Find all steps from reached objects: change, family, key, association, forwards, to_family, to_key."""
    followed = follow_links(objects, relations.ways(propagates=True), edges)
    return followed.select(
        *OBJECT_COLUMNS,
        "association",
        "forwards",
        F.col("far_family").alias("to_family"),
        F.col("far").alias("to_key"),
    ).distinct()


def filter_steps(leading: DataFrame, objects: DataFrame, how: str) -> DataFrame:
    """Select the steps to reached objects ("left_semi"), or to others ("left_anti")."""
    ends = objects.select("change", F.col("family").alias("to_family"), F.col("key").alias("to_key"))
    return leading.join(ends, ["change", "to_family", "to_key"], how)


HIT_COLUMNS = ("change", "subscriber_family", "subscriber_key", "family", "key", "how", "by", "forwards")


def find_hits(objects: DataFrame, state: TemporalState, relations: ModelTables) -> DataFrame:
    """Find hits by watches of objects and classes, and by implicit associations.

    Duplicate links give duplicate hits: removing them here would shuffle all hits, which most callers do anyway.
    """
    watched = _find_watchers(objects, state).union(_find_class_watchers(objects, state, relations))
    return watched.union(_find_implicit_subscribers(objects, state, relations))


def _find_watchers(objects: DataFrame, state: TemporalState) -> DataFrame:
    watches = state.watches.where(F.col("key").isNotNull()).drop("class")
    hits = objects.join(watches, ["family", "key"]).where(is_valid_at())
    return _add_hit_kind(hits, HitKind.WATCHED)


def _find_class_watchers(objects: DataFrame, state: TemporalState, relations: ModelTables) -> DataFrame:
    """Find hits by class; every object is of its topmost class, even if its row is unknown."""
    lower = objects.join(state.classes, ["family", "key"]).where(is_valid_at())
    ancestors = lower.join(relations.frame("above"), "class").select(
        *_OBJECT_AT, F.col("over").alias("class")
    )
    with_classes = objects.select(*_OBJECT_AT, F.col("family").alias("class")).union(ancestors).distinct()
    watches = state.watches.where(F.col("key").isNull()).drop("key", "family")
    return _add_hit_kind(with_classes.join(watches, "class").where(is_valid_at()), HitKind.CLASS, "class")


_OBJECT_AT = ("change", "moment", "family", "key")


def _find_implicit_subscribers(objects: DataFrame, state: TemporalState, relations: ModelTables) -> DataFrame:
    followed = follow_links(objects, relations.ways(propagates=False), state.edges)
    subscriber = F.col("far_family").alias("subscriber_family"), F.col("far").alias("subscriber_key")
    return followed.select(
        *("change", *subscriber, "family", "key", F.lit(HitKind.IMPLICIT.value).alias("how")),
        F.col("association").alias("by"),
        "forwards",
    )


def _add_hit_kind(hits: DataFrame, how: HitKind, by: str | None = None) -> DataFrame:
    columns = F.lit(how.value).alias("how"), (F.lit("") if by is None else F.col(by)).alias("by")
    return hits.select(*HIT_COLUMNS[:5], *columns, F.lit(False).alias("forwards"))


def limit_hits(hits: DataFrame, max_subscribers: int | None) -> tuple[DataFrame, DataFrame]:
    """Return the hits of the first subscribers of each change, and the counts of changes with more: change, found.

    The order is by family, then by key as text. Spark compares UTF-8 bytes, which is the order of code points.
    """
    if max_subscribers is None:
        return hits, hits.groupBy("change").agg(F.count("*").alias("found")).where(F.lit(False))
    by_change = Window.partitionBy("change").orderBy("subscriber_family", "subscriber_key")
    ranked = hits.withColumn("place", F.dense_rank().over(by_change))
    exceeded = (
        ranked.groupBy("change").agg(F.max("place").alias("found")).where(F.col("found") > max_subscribers)
    )
    return ranked.where(F.col("place") <= max_subscribers).drop("place"), exceeded
