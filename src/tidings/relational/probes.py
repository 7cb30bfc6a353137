"""What a batch of documents asks the subscription tables: its values at linear paths.

    sax_parse_result   event 12, tag path 315, 1.16.17.18.19, "v3"
          x path_match (315, 102)
    equal              event 12, linear path 102, "v3" -> the nodes with this value
    any                event 12, linear path 102       -> all its nodes with their values

The nodes of one value are one row. The paper has a row for each, and one candidate for each way to choose a node for
every branch; here a candidate has all nodes of each branch, however many ways there are.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.relational.kept import Kept


@dataclass(frozen=True, slots=True)
class Probes:
    """The documents (`events`: event_id), their values by path and value, and by path; and how many a document has."""

    events: DataFrame
    equal: DataFrame
    any: DataFrame
    count: int
    equal_each: float
    any_each: float


def sax_parse_result(parsed: DataFrame, tagpath_map: DataFrame) -> DataFrame:
    """What was parsed, with tag paths by their id (figure 3.7)."""
    known = F.broadcast(tagpath_map.select("tagpath", "tagpath_id"))
    return parsed.join(known, "tagpath").select("event_id", "tagpath_id", "idpath", "value", "number")


def probes_of(events: DataFrame, result: DataFrame, path_match: DataFrame, kept: Kept) -> Probes:
    """The probes of documents whose rows are `result`."""
    found = result.join(F.broadcast(path_match), "tagpath_id")
    equal, any, count = kept(_equal(found)), kept(_any(found)), events.count()
    each = [frame.count() / max(count, 1) for frame in (equal, any)]
    return Probes(events, equal, any, count, *each)


def _equal(found: DataFrame) -> DataFrame:
    """A value is a string, and perhaps a number, too: `5.0` is equal to "5.0" and to 5."""
    node = F.struct("tagpath_id", "idpath").alias("node")
    as_text = found.select("event_id", "linearpath_id", "value", F.lit(False).alias("numeric"), node)
    numbers = found.filter("number is not null")
    as_number = numbers.select(
        "event_id",
        "linearpath_id",
        F.col("number").cast("string").alias("value"),
        F.lit(True).alias("numeric"),
        node,
    )
    keys = ["event_id", "linearpath_id", "value", "numeric"]
    return as_text.unionAll(as_number).groupBy(keys).agg(F.collect_list("node").alias("nodes"))


def _any(found: DataFrame) -> DataFrame:
    node = F.struct("tagpath_id", "idpath", "value", "number")
    return found.groupBy("event_id", "linearpath_id").agg(
        F.collect_list(node).alias("nodes"), F.min("number").alias("low"), F.max("number").alias("high")
    )
