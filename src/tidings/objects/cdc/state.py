"""Versions of rows in the log, and the state at each moment: links, classes, watches, labels, missing rows.

A *mark* is the start or end of a version of a row. Its `pos` are even numbers in the order of the log: the state right
after a change is that of the moment `pos`, the state before it that of `pos - 1`. Rows of a state are valid from
`since` to before `until`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tidings.errors import InputError
from tidings.objects.cdc.model_tables import OBJECTS, WATCH_COLUMNS, WATCH_TABLE_NAME, WATCHED, ModelTables

BEGINNING, END_OF_TIME = 0, 2**62
"""Moments before the first change and after the last."""

SNAPSHOT, CREATED, UPDATED, DELETED, MOVED = "r", "c", "u", "d", "moved"
"""Debezium's operations; `MOVED` is ours: the row has another id now."""


@dataclass(frozen=True)
class VersionMarks:
    """Starts and ends of versions, and rejected changes of the log: id, table, op, reason."""

    rows: DataFrame
    rejects: DataFrame


def number_changes(log: DataFrame, relations: ModelTables) -> DataFrame:
    """Select the changes of the model's tables, with the ids of their rows before and after, and number them.

    Numbers have gaps: without gaps one task would have to count all changes.
    """
    model_changes = log.join(relations.frame("tables"), "table")
    in_order = model_changes.orderBy("place").withColumn("pos", (F.monotonically_increasing_id() + 1) * 2)
    with_ids = in_order.withColumn("was", _build_row_id("before")).withColumn("is", _build_row_id("after"))
    return with_ids.withColumn("reason", _find_problem()).localCheckpoint()


def _build_row_id(row: str) -> Column:
    return F.when(F.col(row).isNotNull(), F.transform("id_columns", lambda name: F.try_element_at(row, name)))


def _find_problem() -> Column:
    """Build the reason to reject a row change; null if it is valid."""
    op, has_key = F.col("op"), ~F.exists(F.coalesce("is", "was"), F.isnull)
    is_watch = F.col("holds") == WATCHED
    watched, subscriber = F.try_element_at("after", F.lit("class")), F.lit("subscriber_class")
    cases = (
        (op == "t", "a truncation does not list the deleted rows: log the deletions instead"),
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
    problem = F.lit(None).cast("string")
    for condition, reason in reversed(cases):
        problem = F.when(condition, reason).otherwise(problem)
    return problem


MARK_COLUMNS = ("table", "op", "before", "after", "id", "transaction", "at", "pos")


def mark_versions(numbered: DataFrame, base: DataFrame | None) -> VersionMarks:
    """Find starts and ends of versions; `base` has the rows before the log that it changes: table, row, after."""
    valid = numbered.where(F.col("reason").isNull())
    is_moved = (F.col("op") == UPDATED) & F.col("was").isNotNull() & ~F.col("was").eqNullSafe(F.col("is"))
    starts = valid.where(F.col("op") != DELETED).select(
        *MARK_COLUMNS, F.col("is").alias("row"), is_moved.alias("arrived")
    )
    ends = valid.where(F.col("op") == DELETED).transform(_end_versions)
    moves = valid.where(is_moved).withColumn("op", F.lit(MOVED)).transform(_end_versions)
    marks = starts.union(ends).union(moves)
    if base is not None:
        marks = marks.unionByName(_mark_base(base), allowMissingColumns=True)
    rows = _link_versions(marks).localCheckpoint()
    unknown = (F.col("op") == UPDATED) & F.col("before").isNull()
    reason = (
        "the previous row is unknown: set REPLICA IDENTITY FULL, or pass the table before the log as base"
    )
    rejects = numbered.where(F.col("reason").isNotNull()).select("id", "table", "op", "reason")
    return VersionMarks(rows, rejects.union(rows.where(unknown).select("id", "table", "op", F.lit(reason))))


TEXT_MAP = "map<string,string>"


def _end_versions(changes: DataFrame) -> DataFrame:
    ended = changes.withColumn("after", F.lit(None).cast(TEXT_MAP))
    return ended.select(*MARK_COLUMNS, F.col("was").alias("row"), F.lit(False).alias("arrived"))


def _mark_base(base: DataFrame) -> DataFrame:
    starts = base.withColumn("op", F.lit(SNAPSHOT)).withColumn("arrived", F.lit(False))
    return starts.withColumn("pos", F.lit(BEGINNING).cast("long"))


def _link_versions(marks: DataFrame) -> DataFrame:
    """Add to each mark the next one of its row, and the row before it.

    Envelopes have priority, since values may be formatted differently in the base. For deletions the last version has
    priority, since the log may have only the key.
    """
    row = Window.partitionBy("table", "row").orderBy("pos")
    previous = F.lag("after").over(row)
    row_before = F.when(F.col("op") == DELETED, F.coalesce(previous, "before")).otherwise(
        F.coalesce("before", previous)
    )
    return (
        marks.withColumn("first", F.lag("pos").over(row).isNull())
        .withColumn("until", F.coalesce(F.lead("pos").over(row), F.lit(END_OF_TIME)))
        .withColumn("before", row_before)
    )


def build_versions(rows: DataFrame) -> DataFrame:
    """Build versions: table, row, values, since, until.

    A row that first appears in an update or deletion existed from the beginning, unless it had another id.
    """
    since = F.when(F.col("first") & (F.col("op") == SNAPSHOT), F.lit(BEGINNING)).otherwise(F.col("pos"))
    started = rows.where(F.col("after").isNotNull()).select(
        "table", "row", F.col("after").alias("values"), since.cast("long").alias("since"), "until"
    )
    existed = F.col("first") & F.col("op").isin(UPDATED, DELETED, MOVED) & F.col("before").isNotNull()
    earlier = rows.where(existed & ~F.col("arrived")).select(
        "table",
        "row",
        F.col("before").alias("values"),
        F.lit(BEGINNING).cast("long").alias("since"),
        F.col("pos").alias("until"),
    )
    return started.union(earlier)


# Base tables have the state before the log: current links, a nightly export. Most of their rows never change. Only rows
# that the log mentions are ordered with it; the others are valid all the time, and their columns are used directly.

MAX_BROADCAST_IDS = 500_000
"""Number of row ids that fit into every task."""


@dataclass(frozen=True)
class BaseTables:
    """Tables by name, and the columns of the model in them."""

    relations: ModelTables
    tables: Mapping[str, DataFrame]
    columns: Mapping[str, list[str]]

    @classmethod
    def of(cls, relations: ModelTables, tables: Mapping[str, DataFrame]) -> BaseTables:
        declared = {row["table"]: row for row in relations.rows["tables"]}
        for name, frame in tables.items():
            if name not in declared:
                raise InputError("the model has no such table", received=name, accepted=", ".join(declared))
            missing = [each for each in _list_columns(relations, declared[name]) if each not in frame.columns]
            if missing:
                accepted = ", ".join(_list_columns(relations, declared[name]))
                raise InputError("a column is missing", where=name, received=missing[0], accepted=accepted)
        return cls(relations, tables, {name: _list_columns(relations, declared[name]) for name in tables})

    def split(self, numbered: DataFrame) -> tuple[DataFrame | None, Mapping[str, DataFrame]]:
        """Split rows into those that the log changes, as (table, row, after), and those that stay, by table."""
        if not self.tables:
            return None, {}
        row_ids = numbered.select("table", F.explode(F.array("was", "is")).alias("row"))
        changed_ids = row_ids.where(F.col("row").isNotNull()).distinct().localCheckpoint()
        counts = {row["table"]: row["count"] for row in changed_ids.groupBy("table").count().collect()}
        logged: DataFrame | None = None
        permanent = {}
        for name, frame in self.tables.items():
            permanent[name] = frame
            if name in counts:
                row_ids = changed_ids.where(F.col("table") == name).select("row")
                row_ids = F.broadcast(row_ids) if counts[name] < MAX_BROADCAST_IDS else row_ids
                rows = frame.withColumn("row", F.array(*(cast_to_text(each) for each in self._ids(name))))
                permanent[name] = rows.join(row_ids, "row", "left_anti")
                changed = rows.join(row_ids, "row", "left_semi").select(*self._row(name))
                logged = changed if logged is None else logged.union(changed)
        return logged, permanent

    def _ids(self, name: str) -> list[str]:
        columns: list[str] = next(
            row["id_columns"] for row in self.relations.rows["tables"] if row["table"] == name
        )
        return columns

    def _row(self, name: str) -> Iterator[Any]:
        values = [part for each in self.columns[name] for part in (F.lit(each), cast_to_text(each))]
        yield from (F.lit(name).alias("table"), "row", F.create_map(*values).alias("after"))


def _list_columns(relations: ModelTables, table: Mapping[str, Any]) -> list[str]:
    """List the columns of the model in a table: keys, attributes, references, discriminators."""
    columns = [*table["id_columns"], *(each["column"] for each in table.get("columns") or ())]
    ways = [row for row in relations.rows["ways"] if row["table"] == table["table"]]
    columns += [row[end] for row in ways for end in ("near_column", "far_column")]
    members = [row for row in relations.rows["members"] if row["table"] == table["table"]]
    return list(dict.fromkeys([*columns, *(row["column"] for row in members if row["column"] is not None)]))


def cast_to_text(column: str) -> Any:
    return F.col(f"`{column.replace('`', '``')}`").cast("string")


def select_permanent(frame: DataFrame, **columns: Any) -> DataFrame:
    """Select rows that are valid all the time; a column is a name in a list, or a constant."""
    selected = {
        name: cast_to_text(column[0]) if isinstance(column, list) else F.lit(column)
        for name, column in columns.items()
    }
    always = (F.lit(BEGINNING).cast("long").alias("since"), F.lit(END_OF_TIME).cast("long").alias("until"))
    return frame.select(*(column.alias(name) for name, column in selected.items()), *always)


@dataclass(frozen=True)
class TemporalState:
    """`edges`: way, near, far. `classes`: family, key, class, rank. `deleted`: table, key. `watches`:
    subscriber_family, subscriber_key, class, family, key. `labels`: family, key, label, rank."""

    edges: DataFrame
    classes: DataFrame
    deleted: DataFrame
    watches: DataFrame
    labels: DataFrame

    def cached(self) -> TemporalState:
        """Compute links once, partitioned by the keys of the joins: each round of the closure reads them."""
        parts = int(self.edges.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        distributed = self.edges.repartition(parts, "way", "near")
        return replace(self, edges=distributed.localCheckpoint(eager=False))


def build_state(rows: DataFrame, permanent: Mapping[str, DataFrame], relations: ModelTables) -> TemporalState:
    versions = build_versions(rows)
    return TemporalState(
        _build_edges(versions, permanent, relations),
        _build_classes(versions, permanent, relations),
        _build_deleted(rows, relations),
        _build_watches(versions, permanent, relations),
        _build_labels(versions, permanent, relations),
    )


def is_valid_at(moment: str | Column = "moment") -> Column:
    """Test whether a row of a state is valid at the moment of a change."""
    position = F.col(moment) if isinstance(moment, str) else moment
    return (F.col("since") <= position) & (position < F.col("until"))


def _get_value(column: str) -> Column:
    return F.try_element_at("values", F.col(column))


def _build_edges(
    versions: DataFrame, permanent: Mapping[str, DataFrame], relations: ModelTables
) -> DataFrame:
    ways = relations.frame("ways").select("way", "table", "near_column", "far_column")
    logged = versions.join(ways, "table").select(
        "way",
        _get_value("near_column").alias("near"),
        _get_value("far_column").alias("far"),
        "since",
        "until",
    )
    unchanged = (
        select_permanent(
            permanent[way["table"]], way=way["way"], near=[way["near_column"]], far=[way["far_column"]]
        )
        for way in relations.rows["ways"]
        if way["table"] in permanent
    )
    edges = reduce(DataFrame.unionByName, unchanged, logged)
    return edges.where(F.col("near").isNotNull() & F.col("far").isNotNull())


def _build_classes(
    versions: DataFrame, permanent: Mapping[str, DataFrame], relations: ModelTables
) -> DataFrame:
    members = relations.frame("members")
    is_member = F.col("column").isNull() | (_get_value("column") == F.col("value"))
    columns = ("family", "key", "class", "rank", "since", "until")
    logged = (
        versions.join(members, "table")
        .where(is_member)
        .select("*", F.col("row")[0].alias("key"))
        .select(*columns)
    )
    keys = {row["table"]: row["id_columns"] for row in relations.rows["tables"]}
    unchanged = []
    for row in relations.rows["members"]:
        if row["table"] in permanent:
            frame = permanent[row["table"]]
            members_of = (
                frame if row["column"] is None else frame.where(cast_to_text(row["column"]) == row["value"])
            )
            constants = {name: row[name] for name in ("family", "class", "rank")}
            unchanged.append(select_permanent(members_of, key=keys[row["table"]], **constants))
    return reduce(DataFrame.unionByName, unchanged, logged)


def _build_deleted(rows: DataFrame, relations: ModelTables) -> DataFrame:
    """Find when rows are known to be missing; links to rows that the log does not mention are valid."""
    tables = relations.frame("tables").where(F.col("holds") == OBJECTS).select("table")
    objects = rows.join(tables, "table").withColumn("key", F.col("row")[0])
    ended = objects.where(F.col("op").isin(DELETED, MOVED)).select(
        "table", "key", F.col("pos").alias("since"), "until"
    )
    uncreated = objects.where(F.col("first") & (F.col("op") == CREATED)).select(
        "table", "key", F.lit(BEGINNING).cast("long").alias("since"), F.col("pos").alias("until")
    )
    return ended.union(uncreated)


def _build_watches(
    versions: DataFrame, permanent: Mapping[str, DataFrame], relations: ModelTables
) -> DataFrame:
    columns = [F.col("values")[name].alias(name) for name in WATCH_COLUMNS]
    watches = versions.where(F.col("table") == WATCH_TABLE_NAME).select(*columns, "since", "until")
    if WATCH_TABLE_NAME in permanent:
        watches = watches.unionByName(
            select_permanent(permanent[WATCH_TABLE_NAME], **{name: [name] for name in WATCH_COLUMNS})
        )
    families = relations.frame("families")
    subscribers = families.select(
        F.col("class").alias("subscriber_class"), F.col("family").alias("subscriber_family")
    )
    return watches.join(subscribers, "subscriber_class").join(families, "class").drop("subscriber_class")


def _build_labels(
    versions: DataFrame, permanent: Mapping[str, DataFrame], relations: ModelTables
) -> DataFrame:
    labels = relations.frame("labels")
    columns = ("family", "key", "label", "rank", "since", "until")
    logged = versions.join(labels, "table").select(
        "*", F.col("row")[0].alias("key"), _get_value("column").alias("label")
    )
    keys = {row["table"]: row["id_columns"] for row in relations.rows["tables"]}
    unchanged = (
        select_permanent(
            permanent[row["table"]],
            key=keys[row["table"]],
            label=[row["column"]],
            family=row["family"],
            rank=row["rank"],
        )
        for row in relations.rows["labels"]
        if row["table"] in permanent
    )
    return reduce(DataFrame.unionByName, unchanged, logged.select(*columns)).where(F.col("label").isNotNull())
