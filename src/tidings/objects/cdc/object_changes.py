"""Pipeline from a log of row changes to notices of subscribers, for a whole log at once.

    with_links = {"attends": spark.read.parquet("attends"), "used_in": spark.read.parquet("used_in")}
    result = derive_object_changes(spark, mapped, log, order=["lsn"], base=with_links)
    result.notified.show()

`log` has a row for each change: `table`, `op` (Debezium's r, c, u, d), `before` and `after` (texts by column), and the
columns of its order. `base` has tables before the log, by name; the table `tidings_watches`, in base, log or both, has
the watches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import InputError
from tidings.objects.cdc.change_detection import detect_changes
from tidings.objects.cdc.closure import (
    HIT_COLUMNS,
    compute_closure,
    filter_steps,
    find_hits,
    find_steps,
    limit_hits,
)
from tidings.objects.cdc.model_tables import WATCH_TABLE_NAME, ModelTables
from tidings.objects.cdc.state import (
    BaseTables,
    TemporalState,
    build_state,
    is_valid_at,
    mark_versions,
    number_changes,
)
from tidings.objects.model.class_model import ChangeKind, Model
from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.notices import ObjectChange, build_notices
from tidings.objects.propagation import (
    UNLIMITED,
    Change,
    Hit,
    HitKind,
    Limits,
    Object,
    PropagationResult,
    Step,
    Truncation,
)
from tidings.spark.worker_gc import freeze_memory

NOTICE_SCHEMA = (
    "change long, id string, subscriber string, object string, kind string,"
    " because array<struct<reason: string, object: string>>, changed string"
)


@dataclass(frozen=True)
class ChangeResults:
    """Consequences of the changes.

    `changes`: change, id, at, kind, class, family, key, attributes, before, after, association, other_family,
    other_key. `reached`: change, family, key. `hits`: change, subscriber_family, subscriber_key, family, key, how, by,
    forwards. `rejects`: rejected changes of the log: id, table, op, reason.
    """

    relations: ModelTables
    state: TemporalState
    limits: Limits
    changes: DataFrame
    reached: DataFrame
    unlimited_hits: DataFrame
    rejects: DataFrame

    @property
    def model(self) -> Model:
        return self.relations.view.model

    @property
    def hits(self) -> DataFrame:
        return self._limited_hits().distinct()

    def _limited_hits(self) -> DataFrame:
        return limit_hits(self.unlimited_hits, self.limits.subscribers)[0]

    @property
    def notified(self) -> DataFrame:
        """One row per change and subscriber, with all hits."""
        hits = F.array_sort(F.collect_set(F.struct(*HIT_COLUMNS[3:])))
        pairs = self._limited_hits().groupBy(*HIT_COLUMNS[:3]).agg(hits.alias("hits"))
        return self.changes.drop("pos", "transaction", "lower", "several", "moment").join(pairs, "change")

    @property
    def steps(self) -> DataFrame:
        """Steps between reached objects: change, family, key, association, forwards, to_family, to_key."""
        return filter_steps(self._steps_from_reached(), self.reached, "left_semi")

    def _steps_from_reached(self) -> DataFrame:
        return find_steps(self.reached, self.state.edges, self.relations)

    @property
    def truncations(self) -> DataFrame:
        """Limits that were reached: change, what, found."""
        exceeded = limit_hits(self.unlimited_hits, self.limits.subscribers)[1].select(
            "change", F.lit("told").alias("what"), "found"
        )
        if self.limits.steps is None:
            return exceeded
        beyond = filter_steps(self._steps_from_reached(), self.reached, "left_anti").groupBy("change").count()
        return exceeded.union(beyond.select("change", F.lit("steps"), "count"))

    def with_rejects(self, rejects: DataFrame) -> ChangeResults:
        """Add the rejects of the reader of the log."""
        return replace(self, rejects=rejects.union(self.rejects))

    def iter_changes(self, notified_only: bool = True) -> Iterator[ObjectChange]:
        """Yield changes in order, only those with subscribers or all, one partition at a time."""
        for row in self._build_rows(notified_only).orderBy("change").toLocalIterator(prefetchPartitions=True):
            yield build_object_change(row.asDict(recursive=True), self.limits)

    def labelled_changes(self) -> Iterator[tuple[ObjectChange, Mapping[Object, str]]]:
        """Yield changes with subscribers, each with the labels of its objects at that moment."""
        for row in self._with_labels().orderBy("change").toLocalIterator(prefetchPartitions=True):
            values = row.asDict(recursive=True)
            yield build_object_change(values, self.limits), build_labels(values)

    def notices(self, source: str) -> DataFrame:
        """Build notices in the tasks: change, id, subscriber, object, kind, because, changed."""
        return self._with_labels().mapInArrow(
            _build_notice_stage(source, self.model, self.limits), NOTICE_SCHEMA
        )

    def _with_labels(self) -> DataFrame:
        return self._build_rows(notified_only=True, labels=self._find_labels())

    def _build_rows(self, notified_only: bool, **additional: DataFrame) -> DataFrame:
        """Build one row per change, with lists of its consequences."""
        frames = {
            "hits": self._limited_hits(),
            "reached": self.reached,
            "steps": self.steps,
            "truncations": self.truncations,
            **additional,
        }
        rows = self.changes.join(_collect_lists(frames), "change")
        return rows.where(F.size("hits") > 0) if notified_only else rows

    def _find_labels(self) -> DataFrame:
        """Find the label of each mentioned object; its key if it has none."""
        subscribers = self._limited_hits().select(
            "change", _rename_column("subscriber_family", "family"), _rename_column("subscriber_key", "key")
        )
        linked = self.changes.where(F.col("other_key").isNotNull())
        mentioned = self.reached.select("change", "family", "key").union(subscribers)
        mentioned = mentioned.union(linked.select("change", "other_family", "other_key")).distinct()
        moments = mentioned.join(self.changes.select("change", "moment"), "change").alias("mentioned")
        conditions = ["mentioned.family = known.family", "mentioned.key = known.key"]
        labels = moments.join(
            self.state.labels.alias("known"), F.expr(" AND ".join(conditions)) & is_valid_at(), "left"
        )
        label = F.coalesce(F.max_by("label", "rank"), F.col("mentioned.key")).alias("label")
        return labels.groupBy("change", "mentioned.family", "mentioned.key").agg(label)


def _rename_column(column: str, name: str) -> Column:
    return F.col(column).alias(name)


def _collect_lists(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Collect rows of several tables into lists by change, in one shuffle; nulls are left out."""
    parts = [
        frame.select("change", F.struct(*_LIST_COLUMNS[name]).alias(name)) for name, frame in frames.items()
    ]
    rows = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)
    return rows.groupBy("change").agg(*(F.collect_list(name).alias(name) for name in frames))


_LIST_COLUMNS = {
    "hits": HIT_COLUMNS[1:],
    "reached": ("family", "key"),
    "steps": ("family", "key", "association", "forwards", "to_family", "to_key"),
    "truncations": ("what", "found"),
    "labels": ("family", "key", "label"),
}


def build_object_change(row: Mapping[str, Any], limits: Limits) -> ObjectChange:
    """Build the change of a row."""
    subject, other = Object(row["family"], row["key"]), row["other_key"]
    return ObjectChange(
        row["id"],
        row["at"],
        row["class"],
        Change(ChangeKind(row["kind"]), subject, frozenset(row["attributes"] or ())),
        _build_propagation(row, limits),
        _to_mapping(row["before"]),
        _to_mapping(row["after"]),
        row["association"],
        None if other is None else Object(row["other_family"], other),
    )


def build_labels(row: Mapping[str, Any]) -> Mapping[Object, str]:
    return {_build_object(each): each["label"] for each in row["labels"] or ()}


def _to_mapping(values: Any) -> Mapping[str, Any] | None:
    """Convert a map, which Arrow gives as a list of pairs."""
    return None if values is None else dict(values)


def _build_propagation(row: Mapping[str, Any], limits: Limits) -> PropagationResult:
    steps = (
        Step(_build_object(record), record["association"], record["forwards"], _build_object(record, "to_"))
        for record in row["steps"] or ()
    )
    hits = (
        Hit(
            _build_object(record, "subscriber_"),
            _build_object(record),
            HitKind(record["how"]),
            record["by"],
            record["forwards"],
        )
        for record in row["hits"] or ()
    )
    limit_of = {"steps": limits.steps, "told": limits.subscribers}
    truncations = (
        Truncation(record["what"], limit_of[record["what"]] or 0, record["found"])
        for record in row["truncations"] or ()
    )
    return PropagationResult(
        frozenset(map(_build_object, row["reached"])),
        frozenset(steps),
        frozenset(hits),
        frozenset(truncations),
    )


def _build_object(row: Mapping[str, Any], prefix: str = "") -> Object:
    return Object(row[f"{prefix}family"], row[f"{prefix}key"])


def _build_notice_stage(
    source: str, model: Model, limits: Limits
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Build the function for `mapInArrow` that turns changes with consequences into notices."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        freeze_memory()
        for batch in batches:
            rows = [
                notice
                for row in batch.to_pylist()
                for notice in _build_notice_rows(source, model, limits, row)
            ]
            yield pa.RecordBatch.from_pylist(rows, _SCHEMA)

    return run


def _build_notice_rows(
    source: str, model: Model, limits: Limits, row: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for notice in build_notices(source, model, build_object_change(row, limits), build_labels(row)):
        because = [{"reason": reason, "object": at} for reason, at in notice.because]
        values = {"change": row["change"], "id": notice.id, "subscriber": notice.subscriber}
        values |= {"object": notice.object, "kind": notice.kind}
        yield {**values, "because": because, "changed": json.dumps(notice.changed, ensure_ascii=False)}


_SCHEMA = pa.schema(
    [
        ("change", pa.int64()),
        *((name, pa.string()) for name in ("id", "subscriber", "object", "kind")),
        ("because", pa.list_(pa.struct([("reason", pa.string()), ("object", pa.string())]))),
        ("changed", pa.string()),
    ]
)


REQUIRED_COLUMNS = ("table", "op", "before", "after")


def derive_object_changes(
    session: SparkSession,
    mapped: MappedModel,
    log: DataFrame,
    order: Sequence[str],
    base: Mapping[str, DataFrame] | None = None,
    limits: Limits = UNLIMITED,
) -> ChangeResults:
    """Derive the consequences of each change of a log, which is ordered by the columns `order`."""
    relations = ModelTables.of(session, mapped)
    tables = BaseTables.of(relations, base or {})
    ordered = number_changes(_complete_log(log, order), relations)
    logged, permanent = tables.split(ordered)
    versions = mark_versions(ordered, logged)
    state = build_state(versions.rows, permanent, relations).cached()
    changes = detect_changes(versions.rows, state, relations)
    objects = compute_closure(changes, state.edges, relations, limits.steps)
    hits = find_hits(objects, state, relations)
    rejects = versions.rejects.union(_reject_unknown_watches(permanent, relations))
    return ChangeResults(relations, state, limits, changes, objects, hits, rejects)


def _complete_log(log: DataFrame, order: Sequence[str]) -> DataFrame:
    """Add missing columns; by default the id of a change is its position."""
    missing = [name for name in (*REQUIRED_COLUMNS, *order) if name not in log.columns]
    if missing or not order:
        message = "a column of the log is missing" if missing else "the log has no order"
        raise InputError(
            message, received=", ".join(missing or log.columns), accepted=", ".join(REQUIRED_COLUMNS)
        )
    defaults = {
        "id": F.concat_ws(",", *(F.col(name).cast("string") for name in order)),
        "transaction": F.lit(None).cast("string"),
        "at": F.lit(""),
    }
    columns = {
        name: F.col(name).cast("string") if name in log.columns else defaults[name] for name in defaults
    }
    place = F.struct(*order).alias("place")  # ids become texts, but may also be the order
    return log.select(*REQUIRED_COLUMNS, place, *(value.alias(name) for name, value in columns.items()))


def _reject_unknown_watches(permanent: Mapping[str, DataFrame], relations: ModelTables) -> DataFrame:
    """Reject watches of classes that the model does not have: they would never match."""
    (watch_table,) = (row for row in relations.rows["tables"] if row["table"] == WATCH_TABLE_NAME)
    if WATCH_TABLE_NAME not in permanent:
        return relations.session.createDataFrame([], REJECTS)
    watches = permanent[WATCH_TABLE_NAME]
    is_known = F.col("class").isin(watch_table["classes"]) & F.col("subscriber_class").isin(
        watch_table["subscribers"]
    )
    subscriber = F.concat_ws(":", "subscriber_class", "subscriber_key")
    reason = F.lit("the model has no such class, or no such class of subscribers")
    unknown = watches.where(~F.coalesce(is_known, F.lit(False)))
    return unknown.select(
        subscriber.alias("id"),
        F.lit(WATCH_TABLE_NAME).alias("table"),
        F.lit("r").alias("op"),
        reason.alias("reason"),
    )


REJECTS = "id string, table string, op string, reason string"
