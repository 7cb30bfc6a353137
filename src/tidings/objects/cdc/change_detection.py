"""Detection of object changes in row changes, with the same rules as the triggers (triggers/generator.py)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tidings.objects.cdc.model_tables import OBJECTS, ModelTables
from tidings.objects.cdc.state import CREATED, DELETED, TEXT_MAP, UPDATED, TemporalState, is_valid_at
from tidings.objects.model.class_model import ChangeKind

INSERT, UPDATE, DELETE, LINK, UNLINK = (kind.value for kind in ChangeKind)


def detect_changes(rows: DataFrame, state: TemporalState, relations: ModelTables) -> DataFrame:
    """Detect changes of objects, numbered in order by `change`, with the class of the object."""
    objects = _of_objects(rows, relations)
    links = _of_links(rows, state, relations)
    every = _once(objects.unionByName(links, allowMissingColumns=True), relations)
    ordered = every.orderBy("pos", F.col("kind") != UNLINK, "family", "key", "association", "other_key")
    numbers = ordered.withColumn("change", F.monotonically_increasing_id()).withColumn("id", _which())
    return _with_class(numbers.localCheckpoint(), state)


def _which() -> Column:
    """Build the id of a change, the same for each reading of a log; a row change may be several object changes."""
    one, other = F.concat_ws(":", "family", "key"), F.concat_ws(":", "other_family", "other_key")
    return F.concat_ws(" ", "id", "kind", one, "association", F.when(F.col("other_key").isNotNull(), other))


def _of_objects(rows: DataFrame, relations: ModelTables) -> DataFrame:
    tables = relations.frame("tables").where(F.col("holds") == OBJECTS)
    changes = rows.where(F.col("op").isin(CREATED, UPDATED, DELETED)).join(tables, "table")
    kind = F.when(F.col("op") == CREATED, INSERT).when(F.col("op") == UPDATED, UPDATE).otherwise(DELETE)
    differs = F.when(F.col("kind") == UPDATE, _differing()).otherwise(F.col("columns"))
    found = changes.withColumn("kind", kind).withColumn("counted", differs)
    is_one = (F.col("kind") != UPDATE) | (F.col("before").isNotNull() & (F.size("counted") > 0))
    attributes = F.when(F.col("kind") == UPDATE, F.array_sort(_names()))
    return found.where(is_one).select(
        *("pos", "id", "at", "transaction", "kind", "family", "several"),
        F.when(F.col("kind") == DELETE, F.col("pos") - 1).otherwise(F.col("pos")).alias("moment"),
        F.col("row")[0].alias("key"),
        (~F.col("topmost")).alias("lower"),
        attributes.alias("attributes"),
        F.when(F.col("kind") != INSERT, _named("before")).alias("before"),
        F.when(F.col("kind") != DELETE, _named("after")).alias("after"),
    )


def _differing() -> Column:
    """Select the columns whose values differ; columns missing in the new row did not change."""

    def differs(each: Column) -> Column:
        became = F.try_element_at("after", each["column"])
        was = F.try_element_at("before", each["column"])
        return F.map_contains_key("after", each["column"]) & ~became.eqNullSafe(was)

    return F.filter("columns", differs)


def _names() -> Column:
    """List attribute names, each once: classes of one table may have one name in several columns."""
    return F.array_distinct(F.transform("counted", lambda each: each["name"]))


def _named(row: str) -> Column:
    """Build the map of a row's attributes, null if it has none; of several columns, one that is not null."""

    def value(name: Column) -> Column:
        known = F.filter(
            "counted", lambda each: (each["name"] == name) & F.try_element_at(row, each["column"]).isNotNull()
        )
        return F.try_element_at(row, F.try_element_at(known, F.lit(1))["column"])

    pairs = F.map_from_arrays(_names(), F.transform(_names(), value))
    return F.when(F.size("counted") > 0, pairs).otherwise(F.lit(None).cast(TEXT_MAP))


def _of_links(rows: DataFrame, state: TemporalState, relations: ModelTables) -> DataFrame:
    """Detect links: by rows of link tables, and by updates of references, whose rows are objects themselves."""
    ways = relations.ways(propagates=True)
    changes = rows.where(F.col("op").isin(CREATED, UPDATED, DELETED)).join(ways, "table")
    both = changes.select("*", *(_end(row, end) for row in ("before", "after") for end in ("near", "far")))
    reference = F.col("reference")
    moved = ~_at("before", reference).eqNullSafe(_at("after", reference))
    swapped = ~F.struct("before_near", "before_far").eqNullSafe(F.struct("after_near", "after_far"))
    differs = F.when(reference.isNotNull(), moved).otherwise(swapped)
    is_link = (F.col("op") == UPDATED) & F.col("before").isNotNull() & differs
    new = both.where(is_link | (reference.isNull() & (F.col("op") == CREATED)))
    old = both.where(is_link | (reference.isNull() & (F.col("op") == DELETED)))
    return _link(new, LINK, "after").union(_unlinked(_link(old, UNLINK, "before"), state))


def _end(row: str, end: str) -> Column:
    return _at(row, F.col(f"{end}_column")).alias(f"{row}_{end}")


def _at(row: str, column: Column) -> Column:
    return F.try_element_at(row, column)


def _link(changes: DataFrame, kind: str, row: str) -> DataFrame:
    near, far = F.col(f"{row}_near"), F.col(f"{row}_far")
    admitted = F.col("kinds").isNull() | F.array_contains("kinds", kind)
    moment = F.col("pos") - 1 if kind == UNLINK else F.col("pos")
    return changes.where(near.isNotNull() & far.isNotNull() & admitted).select(
        *("pos", "id", "at", "transaction", "association", "near_table", "far_table"),
        F.lit(kind).alias("kind"),
        F.col("far_family").alias("family"),
        moment.alias("moment"),
        far.alias("key"),
        F.col("near_family").alias("other_family"),
        near.alias("other_key"),
    )


def _unlinked(links: DataFrame, state: TemporalState) -> DataFrame:
    """Drop links that go with a deleted object: they are part of the deletion."""
    for table, key in (("near_table", "other_key"), ("far_table", "key")):
        gone = state.gone.select(
            F.col("table").alias("gone_table"), F.col("key").alias("gone_key"), "since", "until"
        )
        same = (F.col(table) == F.col("gone_table")) & (F.col(key) == F.col("gone_key"))
        links = links.join(gone, same & is_valid_at(), "left_anti")
    return links


def _once(changes: DataFrame, relations: ModelTables) -> DataFrame:
    """Merge changes of objects with several rows: the last insertion and the first deletion in a transaction count.

    Transactions are compared as far as the log has them.
    """
    if not any(row.get("several") for row in relations.rows["tables"]):
        return changes
    one = Window.partitionBy("family", "key").orderBy("pos", F.col("kind") != UNLINK)
    here = F.struct("kind", "transaction", F.coalesce("lower", F.lit(False)).alias("lower"))
    around = changes.withColumn("before_it", F.lag(here).over(one)).withColumn(
        "after_it", F.lead(here).over(one)
    )
    continued = (F.col("kind") == INSERT) & _is("after_it", INSERT) & F.col("after_it.lower")
    ended = (F.col("kind") == DELETE) & F.col("several") & _is("before_it", DELETE)
    kept = around.where(~F.coalesce(continued | ended, F.lit(False)))
    return kept.drop("before_it", "after_it")


def _is(other: str, kind: str) -> Column:
    same = F.col(f"{other}.transaction").eqNullSafe(F.col("transaction"))
    return F.coalesce(F.col(f"{other}.kind") == kind, F.lit(False)) & same


def _with_class(changes: DataFrame, state: TemporalState) -> DataFrame:
    """Add the deepest class with a row of the object."""
    made = state.classes.join(changes.select("change", "moment", "family", "key"), ["family", "key"]).where(
        is_valid_at()
    )
    lowest = made.groupBy("change").agg(F.max_by("class", "rank").alias("class"))
    joined = changes.join(lowest, "change", "left")
    return joined.withColumn("class", F.coalesce("class", "family")).localCheckpoint()
