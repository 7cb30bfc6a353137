"""The closure: all that counts as changed with an object, for all changes at once, step by step.

Recursive queries of Spark never end in a circle, since they do not know what they have had. So each round joins what
was reached last with the links of that moment, and goes on with what is new. Pairs of a change and an object are all
that is kept: a hub that thousands of changes lead to is joined once for each of them, however many ways lead there.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.objects.model import Kind
from tidings.spark.objects.relations import Relations
from tidings.spark.objects.state import at_moment

ROUNDS = 8
"""After so many rounds what was reached in them is put together: a plan with hundreds of parts is slow to make."""

PAIR = ("change", "family", "key")


def reached(changes: DataFrame, edges: DataFrame, relations: Relations, most: int | None) -> DataFrame:
    """change, moment, kind, family, key, and `attributes`, which only the object has with which a change began."""
    ways = relations.ways(propagates=True)
    begin = changes.select("change", "moment", "kind", "family", "key", "attributes", F.lit(0).alias("steps"))
    parts = [begin]
    newest, taken = begin, 0
    while taken != most:
        found = followed(newest, ways, edges).select(
            "change", "moment", "kind", F.col("far_family").alias("family"), F.col("far").alias("key")
        )
        new = found.distinct().join(_together(parts).select(*PAIR), list(PAIR), "left_anti")
        newest = _later(new, taken + 1).localCheckpoint()
        if newest.isEmpty():
            break
        parts.append(newest)
        taken += 1
        if len(parts) > ROUNDS:
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


def followed(objects: DataFrame, ways: DataFrame, edges: DataFrame) -> DataFrame:
    """What links lead to from objects, along ways whose limits admit the change.

    Ways come first: they are few, and what they do not admit need not be looked up among the links.
    """
    asked = objects.join(ways, F.col("near_family") == F.col("family")).where(_admits())
    wanted = asked.withColumnRenamed("key", "near").drop("table")
    wanted = wanted.hint("shuffle_hash")  # of links there are many: nobody should sort them
    return wanted.join(edges, ["way", "near"]).where(at_moment()).withColumnRenamed("near", "key")


def _admits() -> Column:
    """Attributes limit what comes from the object that was updated; from there on only kinds count."""
    kinds = F.col("kinds").isNull() | F.array_contains("kinds", F.col("kind"))
    begins = (F.col("steps") == 0) & (F.col("kind") == Kind.UPDATE.value) & F.col("limited_to").isNotNull()
    return kinds & (~begins | F.coalesce(F.arrays_overlap("limited_to", "attributes"), F.lit(False)))


def steps(objects: DataFrame, edges: DataFrame, relations: Relations) -> DataFrame:
    """All steps that lead on from reached objects: change, family, key, association, forwards, to_family, to_key."""
    found = followed(objects, relations.ways(propagates=True), edges)
    return found.select(
        *PAIR, "association", "forwards", F.col("far_family").alias("to_family"), F.col("far").alias("to_key")
    ).distinct()


def between(leading: DataFrame, objects: DataFrame, how: str) -> DataFrame:
    """Of these steps those to objects that were reached ("left_semi"), or to others ("left_anti")."""
    ends = objects.select("change", F.col("family").alias("to_family"), F.col("key").alias("to_key"))
    return leading.join(ends, ["change", "to_family", "to_key"], how)
