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
    objects = _detect_object_changes(rows, relations)
    links = _detect_link_changes(rows, state, relations)
    changes = _merge_row_changes(objects.unionByName(links, allowMissingColumns=True), relations)
    sorted_changes = changes.orderBy(
        "pos", F.col("kind") != UNLINK, "family", "key", "association", "other_key"
    )
    numbered = sorted_changes.withColumn("change", F.monotonically_increasing_id()).withColumn(
        "id", _build_change_id()
    )
    return _with_class(numbered.localCheckpoint(), state)


def _build_change_id() -> Column:
    """Build the id of a change, the same for each reading of a log; a row change may be several object changes."""
    subject, other = F.concat_ws(":", "family", "key"), F.concat_ws(":", "other_family", "other_key")
    return F.concat_ws(
        " ", "id", "kind", subject, "association", F.when(F.col("other_key").isNotNull(), other)
    )


def _detect_object_changes(rows: DataFrame, relations: ModelTables) -> DataFrame:
    tables = relations.frame("tables").where(F.col("holds") == OBJECTS)
    changes = rows.where(F.col("op").isin(CREATED, UPDATED, DELETED)).join(tables, "table")
    kind = F.when(F.col("op") == CREATED, INSERT).when(F.col("op") == UPDATED, UPDATE).otherwise(DELETE)
    counted = F.when(F.col("kind") == UPDATE, _select_changed_columns()).otherwise(F.col("columns"))
    with_kind = changes.withColumn("kind", kind).withColumn("counted", counted)
    is_change = (F.col("kind") != UPDATE) | (F.col("before").isNotNull() & (F.size("counted") > 0))
    attributes = F.when(F.col("kind") == UPDATE, F.array_sort(_list_names()))
    return with_kind.where(is_change).select(
        *("pos", "id", "at", "transaction", "kind", "family", "several"),
        F.when(F.col("kind") == DELETE, F.col("pos") - 1).otherwise(F.col("pos")).alias("moment"),
        F.col("row")[0].alias("key"),
        (~F.col("topmost")).alias("lower"),
        attributes.alias("attributes"),
        F.when(F.col("kind") != INSERT, _build_values("before")).alias("before"),
        F.when(F.col("kind") != DELETE, _build_values("after")).alias("after"),
    )


def _select_changed_columns() -> Column:
    """Select the columns whose values differ; columns missing in the new row did not change."""

    def differs(column: Column) -> Column:
        new = F.try_element_at("after", column["column"])
        old = F.try_element_at("before", column["column"])
        return F.map_contains_key("after", column["column"]) & ~new.eqNullSafe(old)

    return F.filter("columns", differs)


def _list_names() -> Column:
    """List attribute names, each once: classes of one table may have one name in several columns."""
    return F.array_distinct(F.transform("counted", lambda each: each["name"]))


def _build_values(row: str) -> Column:
    """Build the map of a row's attributes, null if it has none; of several columns, one that is not null."""

    def value(name: Column) -> Column:
        present = F.filter(
            "counted",
            lambda entry: (entry["name"] == name) & F.try_element_at(row, entry["column"]).isNotNull(),
        )
        return F.try_element_at(row, F.try_element_at(present, F.lit(1))["column"])

    pairs = F.map_from_arrays(_list_names(), F.transform(_list_names(), value))
    return F.when(F.size("counted") > 0, pairs).otherwise(F.lit(None).cast(TEXT_MAP))


def _detect_link_changes(rows: DataFrame, state: TemporalState, relations: ModelTables) -> DataFrame:
    """Detect links: by rows of link tables, and by updates of references, whose rows are objects themselves."""
    ways = relations.ways(propagates=True)
    changes = rows.where(F.col("op").isin(CREATED, UPDATED, DELETED)).join(ways, "table")
    with_ends = changes.select(
        "*", *(_select_end(row, end) for row in ("before", "after") for end in ("near", "far"))
    )
    reference = F.col("reference")
    moved = ~_get_column("before", reference).eqNullSafe(_get_column("after", reference))
    swapped = ~F.struct("before_near", "before_far").eqNullSafe(F.struct("after_near", "after_far"))
    differs = F.when(reference.isNotNull(), moved).otherwise(swapped)
    is_link = (F.col("op") == UPDATED) & F.col("before").isNotNull() & differs
    new = with_ends.where(is_link | (reference.isNull() & (F.col("op") == CREATED)))
    old = with_ends.where(is_link | (reference.isNull() & (F.col("op") == DELETED)))
    return _build_links(new, LINK, "after").union(
        _drop_links_of_deleted_objects(_build_links(old, UNLINK, "before"), state)
    )


def _select_end(row: str, end: str) -> Column:
    return _get_column(row, F.col(f"{end}_column")).alias(f"{row}_{end}")


def _get_column(row: str, column: Column) -> Column:
    return F.try_element_at(row, column)


def _build_links(changes: DataFrame, kind: str, row: str) -> DataFrame:
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


def _drop_links_of_deleted_objects(links: DataFrame, state: TemporalState) -> DataFrame:
    """Drop links of a deleted object: they are part of the deletion."""
    for table, key in (("near_table", "other_key"), ("far_table", "key")):
        deleted = state.deleted.select(
            F.col("table").alias("gone_table"), F.col("key").alias("gone_key"), "since", "until"
        )
        same = (F.col(table) == F.col("gone_table")) & (F.col(key) == F.col("gone_key"))
        links = links.join(deleted, same & is_valid_at(), "left_anti")
    return links


def _merge_row_changes(changes: DataFrame, relations: ModelTables) -> DataFrame:
    """Merge changes of objects with several rows: the last insertion and the first deletion in a transaction count.

    Transactions are compared as far as the log has them.
    """
    if not any(row.get("several") for row in relations.rows["tables"]):
        return changes
    same_object = Window.partitionBy("family", "key").orderBy("pos", F.col("kind") != UNLINK)
    this = F.struct("kind", "transaction", F.coalesce("lower", F.lit(False)).alias("lower"))
    with_neighbours = changes.withColumn("before_it", F.lag(this).over(same_object)).withColumn(
        "after_it", F.lead(this).over(same_object)
    )
    continued = (F.col("kind") == INSERT) & _is_neighbour("after_it", INSERT) & F.col("after_it.lower")
    repeated = (F.col("kind") == DELETE) & F.col("several") & _is_neighbour("before_it", DELETE)
    first_changes = with_neighbours.where(~F.coalesce(continued | repeated, F.lit(False)))
    return first_changes.drop("before_it", "after_it")


def _is_neighbour(other: str, kind: str) -> Column:
    same = F.col(f"{other}.transaction").eqNullSafe(F.col("transaction"))
    return F.coalesce(F.col(f"{other}.kind") == kind, F.lit(False)) & same


def _with_class(changes: DataFrame, state: TemporalState) -> DataFrame:
    """Add the deepest class with a row of the object."""
    rows = state.classes.join(changes.select("change", "moment", "family", "key"), ["family", "key"]).where(
        is_valid_at()
    )
    lowest = rows.groupBy("change").agg(F.max_by("class", "rank").alias("class"))
    joined = changes.join(lowest, "change", "left")
    return joined.withColumn("class", F.coalesce("class", "family")).localCheckpoint()
