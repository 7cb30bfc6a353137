"""Matching in SQL: `SELECT * FROM tidings_match(TABLE(events), 'alerts')`.

    register(spark, alerts=spark.table("subscriptions"))
    spark.sql("SELECT * FROM tidings_match(TABLE(events), 'alerts')")

The second argument is a registered name, or a location with published subscriptions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udtf

from tidings.core.suggest import did_you_mean
from tidings.errors import InputError
from tidings.spark.data_source.source import TidingsSource
from tidings.spark.dataframe.environment import MatchEnvironment, PublishedSubscriptions
from tidings.spark.dataframe.match import FORMATS, ID, VALUE
from tidings.spark.dataframe.match_stage import BODY, PROBLEM_TYPE, PUBLICATION, SPARK_TYPES, MatchStage
from tidings.spark.dataframe.subscription_set import Subscriptions, SubscriptionsLike

FUNCTION = "tidings_match"
FIELDS = ("subscription", "subscriber", "explanation")
RESULT = ", ".join(
    ("publication string", *(f"{name} {SPARK_TYPES[name]}" for name in FIELDS), f"problem {PROBLEM_TYPE}")
)


def register(session: SparkSession, /, **subscriptions: SubscriptionsLike) -> None:
    """Register the table function `tidings_match`, the sets of subscriptions that it knows, and the format `tidings`.

    Spark finds the format by itself where Tidings is installed; it is registered for sessions that do not.

    The function matches the JSON in a text or binary column `value` if the table has one, else the table's columns;
    a column `id` names publications. It gives a row per match with its explanation, and a row with a `problem` for
    each rejected publication. Registering again replaces all names.
    """
    environments = {
        name: Subscriptions.of(given).environment(session) for name, given in subscriptions.items()
    }
    session.udtf.register(FUNCTION, arrow_udtf(returnType=RESULT)(_match_function(environments)))
    session.dataSource.register(TidingsSource)


def _match_function(environments: Mapping[str, MatchEnvironment]) -> type:
    class TidingsMatch:
        """The function as Spark runs it: a batch of the table at a time."""

        def eval(self, table: pa.RecordBatch, name: pa.Array) -> Iterator[pa.Table]:
            environment = _find(environments, name[0].as_py())
            stage = MatchStage(environment, FORMATS["json"], ID, FIELDS)
            for rows in stage([_publications(table)]):
                yield pa.table(_flatten(rows))

    return TidingsMatch


def _find(environments: Mapping[str, MatchEnvironment], name: str) -> MatchEnvironment:
    if name in environments:
        return environments[name]
    if "/" in name and PublishedSubscriptions.is_at(name):
        return PublishedSubscriptions.open(name).environment()
    raise InputError(
        "unknown set of subscriptions",
        where=FUNCTION,
        received=repr(name),
        accepted=", ".join([*environments, "a location with published subscriptions"]),
        hint=did_you_mean(name, environments.keys()),
    )


def _publications(table: pa.RecordBatch) -> pa.RecordBatch:
    """Bring a batch of the table into the form that the match stage reads."""
    names = table.schema.names
    if VALUE in names and _is_text(table.schema.field(VALUE).type):
        bodies = table.column(VALUE)
    else:
        bodies = pa.array([_write_row(row) for row in table.to_pylist()], pa.string())
    ids = table.column(ID).cast(pa.string()) if ID in names else pa.nulls(table.num_rows, pa.string())
    return pa.RecordBatch.from_arrays([ids, bodies], names=[PUBLICATION, BODY])


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind))


def _write_row(row: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in row.items() if value is not None}, default=str)


def _flatten(rows: pa.RecordBatch) -> dict[str, Any]:
    """Turn rows with arrays of matches into a row per match; rows with a problem stay single."""
    matches = rows.column("matches")
    if matches.null_count:  # the stage puts problems into batches of their own
        empty = {name: pa.nulls(rows.num_rows, matches.type.value_type.field(name).type) for name in FIELDS}
        return {PUBLICATION: rows.column(PUBLICATION), **empty, "problem": rows.column("problem")}
    pairs, parents = matches.flatten(), pc.list_parent_indices(matches)
    return {
        PUBLICATION: rows.column(PUBLICATION).take(parents),
        **{name: pairs.field(name) for name in FIELDS},
        "problem": pa.nulls(len(pairs), rows.column("problem").type),
    }
