"""Rows of subscriptions that were not removed."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.relational.table_store import TableStore


def living(session: SparkSession, store: TableStore, name: str) -> DataFrame:
    """The rows of a table without those that a tombstone of a later generation names."""
    rows = store.table(session, name)
    if not store.version.files.get("tombstone"):
        return rows
    dead = store.table(session, "tombstone").groupBy("subscription").agg(F.max("generation").alias("ended"))
    both = rows.join(dead, "subscription", "left")
    return both.filter("ended is null or generation > ended").drop("ended")
