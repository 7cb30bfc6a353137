"""Whom changes of rows concern, by what a model says: for a whole log at once.

    with_links = {"attends": spark.read.parquet("attends"), "used_in": spark.read.parquet("used_in")}
    result = object_changes(spark, mapped, log, base=with_links)
    result.told.show()

`log` has a row for each change: `table`, `op` (Debezium's r, c, u, d), `before` and `after` (texts by column), and
columns by which it is ordered. `base` has tables as they were before the log began, by name; who watches what is the
table `tidings_watches`, in the base, in the log, or in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import InputError
from tidings.objects.cdc.change_detection import detect_changes
from tidings.objects.cdc.change_log import mark_versions, number_changes
from tidings.objects.cdc.closure import compute_closure, find_hits
from tidings.objects.cdc.model_tables import WATCH_TABLE_NAME, ModelTables
from tidings.objects.cdc.results import ChangeResults
from tidings.objects.cdc.state import BaseTables, build_state
from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.propagation import UNLIMITED, Limits

REQUIRED_COLUMNS = ("table", "op", "before", "after")


def derive_object_changes(
    session: SparkSession,
    mapped: MappedModel,
    log: DataFrame,
    order: Sequence[str],
    base: Mapping[str, DataFrame] | None = None,
    limits: Limits = UNLIMITED,
) -> ChangeResults:
    """What follows from each change of a log, which is ordered by the columns `order`."""
    relations = ModelTables.of(session, mapped)
    known = BaseTables.of(relations, base or {})
    ordered = number_changes(_whole(log, order), relations)
    moving, staying = known.split(ordered)
    marked = mark_versions(ordered, moving)
    state = build_state(marked.rows, staying, relations).kept()
    changes = detect_changes(marked.rows, state, relations)
    objects = compute_closure(changes, state.edges, relations, limits.steps)
    found = find_hits(objects, state, relations)
    rejects = marked.rejects.union(_watches_of_nothing(staying, relations))
    return ChangeResults(relations, state, limits, changes, objects, found, rejects)


def _whole(log: DataFrame, order: Sequence[str]) -> DataFrame:
    """With all columns: a change that has no `id` is called as it is ordered."""
    missing = [name for name in (*REQUIRED_COLUMNS, *order) if name not in log.columns]
    if missing or not order:
        what = "a column of the log is missing" if missing else "by what is the log ordered?"
        raise InputError(
            what, received=", ".join(missing or log.columns), accepted=", ".join(REQUIRED_COLUMNS)
        )
    unsaid = {
        "id": F.concat_ws(",", *(F.col(name).cast("string") for name in order)),
        "transaction": F.lit(None).cast("string"),
        "at": F.lit(""),
    }
    said = {name: F.col(name).cast("string") if name in log.columns else unsaid[name] for name in unsaid}
    place = F.struct(*order).alias("place")  # ids are texts from here on, and may be what is ordered by
    return log.select(*REQUIRED_COLUMNS, place, *(value.alias(name) for name, value in said.items()))


def _watches_of_nothing(staying: Mapping[str, DataFrame], relations: ModelTables) -> DataFrame:
    """Watches of classes that the model does not have would never be heard of again."""
    (known,) = (row for row in relations.rows["tables"] if row["table"] == WATCH_TABLE_NAME)
    if WATCH_TABLE_NAME not in staying:
        return relations.session.createDataFrame([], REJECTS)
    watches = staying[WATCH_TABLE_NAME]
    good = F.col("class").isin(known["classes"]) & F.col("subscriber_class").isin(known["subscribers"])
    who = F.concat_ws(":", "subscriber_class", "subscriber_key")
    why = F.lit("the model has no such class, or no such class of subscribers")
    bad = watches.where(~F.coalesce(good, F.lit(False)))
    return bad.select(
        who.alias("id"), F.lit(WATCH_TABLE_NAME).alias("table"), F.lit("r").alias("op"), why.alias("reason")
    )


REJECTS = "id string, table string, op string, reason string"
