"""The three plans: joins from the values of documents to candidates, which only the branch check remains for.

    share, share-bucket       states (event, chain) x values of the event x Query_Predicate on (pre_id, path, value)
       ^                        |
       +--- chains go on <------+----> final: candidates

    unroll                    values x Predicate_Unroll on (path 1, value 1)
                                -> x values on (event, path 2) -> ... -> x values on (event, path k)
                                -> final: candidates; further predicates are followed as chains

Chains are followed twice, first along equalities, then along everything else (section 3.3): equalities leave little.
A candidate is (event_id, sub_id, branches): for each predicate, in the order of the chain, the nodes that satisfy it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.relational.tables import ROOT, Layout, Plan

# Probes: the values of a batch of documents at linear paths, to look up in the subscription tables.
#
#     sax_parse_result   event 12, tag path 315, 1.16.17.18.19, "v3"
#           x path_match (315, 102)
#     equal              event 12, linear path 102, "v3" -> the nodes with this value
#     any                event 12, linear path 102       -> all its nodes with their values
#
# The nodes of one value are one row. The paper has a row for each, and one candidate for each way to choose a node
# for every branch; here a candidate has all nodes of each branch, however many ways there are.


@dataclass(frozen=True, slots=True)
class Probes:
    """Documents (`events`: event_id), their values by path and value and by path, and the mean numbers of both."""

    events: DataFrame
    equal: DataFrame
    any: DataFrame
    count: int
    equal_each: float
    any_each: float


def sax_parse_result(parsed: DataFrame, tagpath_map: DataFrame) -> DataFrame:
    """Replace the tag paths of parsed rows by their ids (figure 3.7)."""
    known = F.broadcast(tagpath_map.select("tagpath", "tagpath_id"))
    return parsed.join(known, "tagpath").select("event_id", "tagpath_id", "idpath", "value", "number")


def probes_of(
    events: DataFrame, result: DataFrame, path_match: DataFrame, kept: CheckpointedTables
) -> Probes:
    """Build the probes of documents from their rows."""
    found = result.join(F.broadcast(path_match), "tagpath_id")
    equal, any, count = kept(_equal(found)), kept(_any(found)), events.count()
    each = [frame.count() / max(count, 1) for frame in (equal, any)]
    return Probes(events, equal, any, count, *each)


def _equal(found: DataFrame) -> DataFrame:
    """Group nodes by value. A value may also be a number: `5.0` equals "5.0" and 5."""
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


CANDIDATE = ("event_id", "sub_id", "branches")
STATE = ("event_id", "chain_id", "branches")
SENT = 500_000
"""Maximum number of rows to broadcast: some hundred megabytes."""

BRANCHES = "array<array<struct<tagpath_id: bigint, idpath: string>>>"


@dataclass(frozen=True, slots=True)
class Predicates:
    """The tables that a plan joins with: chains, which may repeat predicates (`repeats`), and unrolled rows."""

    layout: Layout
    chained: DataFrame
    unrolled: DataFrame
    repeats: bool = True


def candidates(predicates: Predicates, probes: Probes, kept: CheckpointedTables) -> DataFrame:
    """Find the candidates of a batch by the plan of the layout."""
    return _PLANS[predicates.layout.plan](predicates, probes, kept)


def share(predicates: Predicates, probes: Probes, kept: CheckpointedTables) -> DataFrame:
    """Follow chains from the root; buckets only change the chains."""
    return follow(predicates, probes, _roots(probes.events), probes.count, kept)


def unroll(predicates: Predicates, probes: Probes, kept: CheckpointedTables) -> DataFrame:
    """Check rows of k predicates at once, and follow chains for further predicates."""
    found = reduce(
        lambda found, n: _checked(found, probes, n),
        range(2, predicates.layout.unroll + 1),
        _looked_up(predicates.unrolled, probes),
    )
    found = kept(found.select("event_id", "sub_id", "final", "branches"))
    ready = found.filter("final").select(*CANDIDATE)
    left = found.filter("not final").select("event_id", F.col("sub_id").alias("chain_id"), "branches")
    count = left.count()
    return ready.unionByName(follow(predicates, probes, left, count, kept)) if count else ready


_PLANS: dict[Plan, Callable[[Predicates, Probes, CheckpointedTables], DataFrame]] = {
    Plan.SHARE: share,
    Plan.SHARE_BUCKET: share,
    Plan.UNROLL: unroll,
}


def _roots(events: DataFrame) -> DataFrame:
    none = F.array().cast(BRANCHES).alias("branches")
    return events.select("event_id", F.lit(bytearray(ROOT)).alias("chain_id"), none)


def follow(
    predicates: Predicates, probes: Probes, states: DataFrame, count: int, kept: CheckpointedTables
) -> DataFrame:
    """Follow chains from states to their ends: along equalities first, then along the others."""
    chained, repeats = predicates.chained, predicates.repeats
    first = _Stage(chained.filter("op = '='"), repeats, probes, _equal_step, kept).run(states, count)
    others = _Stage(chained.filter("op != '='"), repeats, probes, _other_step, kept)
    second = others.run(_union(first.reached), first.count)
    return _union([*first.ends, *second.ends])


@dataclass(frozen=True, slots=True)
class _Reached:
    """Candidates, all states on the way including the first ones, and the number of states."""

    ends: list[DataFrame]
    reached: list[DataFrame]
    count: int


@dataclass(frozen=True, slots=True)
class _Stage:
    """Follows chains along one sort of predicates, one per round, until all have ended."""

    predicates: DataFrame
    repeats: bool
    probes: Probes
    step: Callable[[DataFrame, int, DataFrame, Probes], DataFrame]
    kept: CheckpointedTables

    def run(self, states: DataFrame, count: int) -> _Reached:
        ends, reached, counts = [], [states], [count]
        while True:
            steps = self.kept(self.step(reached[-1], counts[-1], self.predicates, self.probes))
            ends.append(_ended(steps))
            unfinished = steps.filter("not final").select(*STATE)
            count = unfinished.count()
            if not count:
                return _Reached(ends, reached, sum(counts))
            # Files of several additions may repeat a shared predicate.
            reached.append(
                unfinished.dropDuplicates(["event_id", "chain_id"]) if self.repeats else unfinished
            )
            counts.append(count)


def _ended(steps: DataFrame) -> DataFrame:
    return steps.filter("final").select("event_id", F.col("chain_id").alias("sub_id"), "branches")


def _equal_step(states: DataFrame, count: int, predicates: DataFrame, probes: Probes) -> DataFrame:
    asked = _keyed(predicates, "value", "number")
    met = _met(states, count, probes.equal, probes.count, probes.equal_each)
    found = met.join(asked, ["pre_id", "linearpath_id", "value", "numeric"])
    return found.select("event_id", "chain_id", "final", _longer("nodes"))


def _other_step(states: DataFrame, count: int, predicates: DataFrame, probes: Probes) -> DataFrame:
    met = _met(states, count, probes.any, probes.count, probes.any_each)
    found = met.join(predicates, ["pre_id", "linearpath_id"]).filter(_may_pass("op", "number"))
    held = _passed(found, "op", "value", "number")
    return held.select("event_id", "chain_id", "final", _longer("passed"))


def _met(states: DataFrame, count: int, values: DataFrame, events: int, each: float) -> DataFrame:
    """Join states with the values of their events."""
    sent = _sent(values, events * each)
    return _sent(states.withColumnRenamed("chain_id", "pre_id").join(sent, "event_id"), count * each)


def _sent(frame: DataFrame, rows: float) -> DataFrame:
    """Broadcast documents to the subscriptions, unless they are very many.

    Spark would not: it estimates a join's result as the product of both sides.
    """
    return F.broadcast(frame) if rows <= SENT else frame


def _keyed(predicates: DataFrame, value: str, number: str) -> DataFrame:
    """Add the keys of `probes.equal` to predicates: the value, and whether it is a number."""
    key = F.coalesce(F.col(number).cast("string"), F.col(value))
    return predicates.withColumn(value, key).withColumn("numeric", F.col(number).isNotNull())


def _looked_up(unrolled: DataFrame, probes: Probes) -> DataFrame:
    """Find the rows of Predicate_Unroll whose first predicate holds: an equality by value, others by path."""
    rest = [name for name in unrolled.columns if name not in ("path1", "op1", "value1", "number1")]
    columns, first = ["event_id", *rest], {"linearpath_id": "path1", "value": "value1"}
    by_value = _keyed(unrolled.filter("op1 = '='"), "value1", "number1")
    values = _sent(probes.equal.withColumnsRenamed(first), probes.count * probes.equal_each)
    equal = by_value.join(values, ["path1", "value1", "numeric"])
    paths = _sent(probes.any.withColumnsRenamed(first), probes.count * probes.any_each)
    by_path = unrolled.filter("op1 != '='").join(paths, "path1")
    others = _passed(by_path.filter(_may_pass("op1", "number1")), "op1", "value1", "number1")
    begun = equal.select(*columns, _first("nodes")), others.select(*columns, _first("passed"))
    return _union(begun)


def _checked(found: DataFrame, probes: Probes, n: int) -> DataFrame:
    """Keep rows whose predicate n holds, and rows with fewer predicates."""
    path, names = f"path{n}", (f"op{n}", f"value{n}", f"number{n}")
    values = probes.any.withColumnRenamed("linearpath_id", path).select("event_id", path, "nodes")
    met = found.join(_sent(values, probes.count * probes.any_each), ["event_id", path], "left")
    passed = met.withColumn("passed", F.when(F.col(path).isNotNull(), F.expr(_filtered(*names))))
    held = passed.filter(f"{path} is null or size(passed) > 0")
    longer = F.when(F.col(path).isNull(), F.col("branches")).otherwise(_longer("passed"))
    return held.withColumn("branches", longer).drop(path, *names, "nodes", "passed")


def _passed(found: DataFrame, op: str, value: str, number: str) -> DataFrame:
    return found.withColumn("passed", F.expr(_filtered(op, value, number))).filter("size(passed) > 0")


def _may_pass(op: str, number: str) -> Column:
    """Check a range against the bounds of all values, before the nodes are checked one by one."""
    return F.expr(
        f"CASE {op} WHEN '<' THEN low < {number} WHEN '<=' THEN low <= {number} "
        f"WHEN '>' THEN high > {number} WHEN '>=' THEN high >= {number} ELSE true END"
    )


_TESTS = {
    "=": "IF({number} IS NULL, n.value = {value}, n.number = {number})",
    "!=": "IF({number} IS NULL, n.value != {value}, n.number IS NULL OR n.number != {number})",
    "<": "n.number < {number}",
    "<=": "n.number <= {number}",
    ">": "n.number > {number}",
    ">=": "n.number >= {number}",
    "contains": "contains(n.value, {value})",
    "starts-with": "startswith(n.value, {value})",
    "exists": "true",
}
"""Comparisons of XPath 1.0. A value that is not a number is null here, and has no order with numbers."""


def _filtered(op: str, value: str, number: str) -> str:
    """Return the SQL expression for the nodes that pass a test."""
    tests = {name: test.format(value=value, number=number) for name, test in _TESTS.items()}
    tests |= {f"not {name}": f"NOT coalesce({test}, false)" for name, test in tests.items()}
    cases = " ".join(f"WHEN '{name}' THEN {test}" for name, test in tests.items())
    return f"filter(nodes, n -> CASE {op} {cases} END)"


def _first(nodes: str) -> Column:
    """Start the branches of a candidate with the nodes of its first predicate."""
    return F.array(F.expr(_BARE.format(nodes))).alias("branches")


def _longer(nodes: str) -> Column:
    """Append the nodes of a further predicate to the branches of a candidate."""
    return F.concat("branches", F.array(F.expr(_BARE.format(nodes)))).alias("branches")


_BARE = "transform({}, n -> named_struct('tagpath_id', n.tagpath_id, 'idpath', n.idpath))"


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


class CheckpointedTables:
    """Tables of a batch that are used more than once, computed on first use, in memory or on disk.

    Persisting them is not enough: Spark analyses and optimises the whole lineage of a persisted table again, in every
    further round of joins.
    """

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def __call__(self, frame: DataFrame) -> DataFrame:
        self._frames.append(frame.localCheckpoint(eager=False))
        return self._frames[-1]

    def release(self) -> None:
        """Drop the references; Spark then removes the tables."""
        self._frames.clear()


@contextmanager
def checkpointed_tables() -> Iterator[CheckpointedTables]:
    kept = CheckpointedTables()
    try:
        yield kept
    finally:
        kept.release()
