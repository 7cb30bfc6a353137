"""Whom changes of rows concern, by what a model says: for a whole log at once.

    with_links = {"attends": spark.read.parquet("attends"), "used_in": spark.read.parquet("used_in")}
    result = object_changes(spark, placed, log, base=with_links)
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
from tidings.objects.definition import UNLIMITED, Limits
from tidings.objects.placing import Placed
from tidings.spark.objects.base import Base
from tidings.spark.objects.closure import reached
from tidings.spark.objects.happened import happened
from tidings.spark.objects.hits import hits
from tidings.spark.objects.log import marks, numbered
from tidings.spark.objects.relations import WATCHES, Relations
from tidings.spark.objects.results import Followed
from tidings.spark.objects.state import state_of

NEEDED = ("table", "op", "before", "after")


def object_changes(
    session: SparkSession,
    placed: Placed,
    log: DataFrame,
    order: Sequence[str],
    base: Mapping[str, DataFrame] | None = None,
    limits: Limits = UNLIMITED,
) -> Followed:
    """What follows from each change of a log, which is ordered by the columns `order`."""
    relations = Relations.of(session, placed)
    known = Base.of(relations, base or {})
    ordered = numbered(_whole(log, order), relations)
    moving, staying = known.split(ordered)
    marked = marks(ordered, moving)
    state = state_of(marked.rows, staying, relations).kept()
    changes = happened(marked.rows, state, relations)
    objects = reached(changes, state.edges, relations, limits.steps)
    found = hits(objects, state, relations)
    rejects = marked.rejects.union(_watches_of_nothing(staying, relations))
    return Followed(relations, state, limits, changes, objects, found, rejects)


def _whole(log: DataFrame, order: Sequence[str]) -> DataFrame:
    """With all columns: a change that has no `id` is called as it is ordered."""
    missing = [name for name in (*NEEDED, *order) if name not in log.columns]
    if missing or not order:
        what = "a column of the log is missing" if missing else "by what is the log ordered?"
        raise InputError(what, received=", ".join(missing or log.columns), accepted=", ".join(NEEDED))
    unsaid = {
        "id": F.concat_ws(",", *(F.col(name).cast("string") for name in order)),
        "transaction": F.lit(None).cast("string"),
        "at": F.lit(""),
    }
    said = {name: F.col(name).cast("string") if name in log.columns else unsaid[name] for name in unsaid}
    place = F.struct(*order).alias("place")  # ids are texts from here on, and may be what is ordered by
    return log.select(*NEEDED, place, *(value.alias(name) for name, value in said.items()))


def _watches_of_nothing(staying: Mapping[str, DataFrame], relations: Relations) -> DataFrame:
    """Watches of classes that the model does not have would never be heard of again."""
    (known,) = (row for row in relations.rows["tables"] if row["table"] == WATCHES)
    if WATCHES not in staying:
        return relations.session.createDataFrame([], REJECTS)
    watches = staying[WATCHES]
    good = F.col("class").isin(known["classes"]) & F.col("subscriber_class").isin(known["subscribers"])
    who = F.concat_ws(":", "subscriber_class", "subscriber_key")
    why = F.lit("the model has no such class, or no such class of subscribers")
    bad = watches.where(~F.coalesce(good, F.lit(False)))
    return bad.select(
        who.alias("id"), F.lit(WATCHES).alias("table"), F.lit("r").alias("op"), why.alias("reason")
    )


REJECTS = "id string, table string, op string, reason string"
