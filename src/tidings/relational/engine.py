"""Matching as joins: documents and tables of subscriptions in, pairs of publication and subscription out.

documents -> sax_parse_result -> probes -> candidates -> branch check -> verified -> distinct pairs
                  x path_match      x predicates   x query_branchpoint
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import InputError
from tidings.relational import branch_check, lookup, reader
from tidings.relational.plans import (
    CheckpointedTables,
    Predicates,
    Probes,
    candidates,
    checkpointed_tables,
    probes_of,
    sax_parse_result,
)
from tidings.relational.table_store import TableStore, drop_removed


@dataclass(frozen=True, slots=True)
class Outcome:
    """Distinct pairs with the subscriber, rejects (publication, problem), and the number of documents."""

    pairs: DataFrame
    rejects: DataFrame
    documents: int


SETTINGS = {
    "spark.sql.codegen.wholeStage": "true",  # off in our sessions, whose plans have two steps; here joins have many
    # Spark 4.3 generates Java for it that does not compile ("java.lang.Long" is not an rvalue) where states that may be
    # there twice are joined, logs hundreds of lines for each batch and interprets the whole stage instead.
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    **lookup.PUSHDOWN,
}


@contextmanager
def set_for_joins(session: SparkSession) -> Iterator[None]:
    """Apply the settings for joins to a session, which may be the caller's own; restore them afterwards."""
    before = {name: session.conf.get(name) for name in SETTINGS}
    try:
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


@contextmanager
def matching(session: SparkSession, store: TableStore, documents: DataFrame) -> Iterator[Outcome]:
    """Match documents (publication, body) with all subscriptions. Tag paths that are new to the store are learned.

    What comes out is to be used within the context: it stands on tables that are kept only so long.
    """
    with set_for_joins(session), checkpointed_tables() as kept:
        asked = documents.select("publication", "body")
        parsed = kept(asked.mapInArrow(reader.stage(store.version), reader.SPARK_SCHEMA))
        count = _check_names(parsed)
        probes = probes_of_batch(session, store, parsed, kept)
        found = candidates(predicates_of(session, store), probes, kept)
        checked = kept(check(session, store, found, kept))
        pairs = [_exact(checked), *_verified(checked, asked), *_everywhere(store, asked)]
        yield Outcome(_distinct(pairs), _rejects(parsed), count)


def probes_of_batch(
    session: SparkSession, store: TableStore, parsed: DataFrame, kept: CheckpointedTables
) -> Probes:
    """What the parsed documents ask the tables, once their tag paths are known."""
    nodes = parsed.filter("tagpath is not null")
    store.learn(row.tagpath for row in nodes.select("tagpath").distinct().collect())
    result = sax_parse_result(nodes, store.table(session, "tagpath_map"))
    events = parsed.filter("tagpath is null and problem is null").select("event_id")
    return probes_of(events, result, store.table(session, "path_match"), kept)


def predicates_of(session: SparkSession, store: TableStore) -> Predicates:
    chained, unrolled = (store.table(session, name) for name in ("query_predicate", "predicate_unroll"))
    repeats = len(store.version.files.get("query_predicate", ())) > 1
    chained_rows, unrolled_rows = map(store.version.count, ("query_predicate", "predicate_unroll"))
    return Predicates(store.layout, chained, unrolled, chained_rows, unrolled_rows, repeats)


def check(session: SparkSession, store: TableStore, found: DataFrame, kept: CheckpointedTables) -> DataFrame:
    """Keep candidates of live subscriptions whose branches meet (Op12 of figure 3.9)."""
    found, meetings = _look_up_meetings(session, store, found, kept)
    met = drop_removed(session, store, found.join(meetings, "sub_id")).withColumn(
        "branches", F.expr("IF(branchpoint_info IS NULL, NULL, branches)")
    )
    columns = ["event_id", "subscription", "subscriber", "text", "branchpoint_info", "branches"]
    few = met.select(columns).coalesce(int(session.conf.get("spark.sql.shuffle.partitions")))
    return few.mapInArrow(branch_check.check_branches(store.version), branch_check.CHECKED)


def _look_up_meetings(
    session: SparkSession, store: TableStore, found: DataFrame, kept: CheckpointedTables
) -> tuple[DataFrame, DataFrame]:
    """Return candidates and the rows of Query_Branchpoint to join them with."""
    meetings, size = store.table(session, "query_branchpoint"), store.version.count("query_branchpoint")
    if size < lookup.PRUNED_FROM:
        return found, meetings
    found = kept(found)
    counted = lookup.count_keys(found, "sub_id")
    return lookup.choose_sides(
        found, counted.rows, lookup.filter_keys(meetings, "sub_id", counted.keys), size
    )


def _check_names(parsed: DataFrame) -> int:
    """Count the documents; refuse two with the same id, which the joins would merge."""
    documents = parsed.filter("tagpath is null").groupBy("event_id").count()
    found = documents.agg(F.sum("count"), F.max("count"), F.max_by("event_id", "count"))
    count, most, name = found.collect()[0]
    if count and most > 1:
        raise InputError("two publications have the same id", received=repr(name))
    return count or 0


def _rejects(parsed: DataFrame) -> DataFrame:
    refused = parsed.filter("problem is not null")
    return refused.select(F.col("event_id").alias("publication"), "problem")


def _exact(checked: DataFrame) -> DataFrame:
    return checked.filter("text is null").select("event_id", "subscription", "subscriber")


def _verified(checked: DataFrame, documents: DataFrame) -> Iterator[DataFrame]:
    """Verify what joins cannot decide; each document is parsed once for all its candidates."""
    undecided = checked.filter("text is not null")
    if not undecided.count():
        return
    each = undecided.distinct().groupBy("event_id")
    wanted = each.agg(F.collect_list(F.struct("subscription", "subscriber", "text")).alias("wanted"))
    bodies = documents.withColumnRenamed("publication", "event_id")
    asked = bodies.join(wanted, "event_id").select("event_id", "body", "wanted")
    yield asked.mapInArrow(branch_check.verify(), branch_check.PAIRS)


def _everywhere(store: TableStore, documents: DataFrame) -> Iterator[DataFrame]:
    """Evaluate the subscriptions that joins cannot select on every document."""
    if store.version.files.get("query_everywhere"):
        yield documents.mapInArrow(branch_check.verify_everywhere(store.version), branch_check.PAIRS)


def _distinct(pairs: Iterable[DataFrame]) -> DataFrame:
    together = reduce(DataFrame.unionByName, pairs)
    return together.distinct().withColumnRenamed("event_id", "publication")
