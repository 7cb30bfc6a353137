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

from tidings.relational import lookup
from tidings.relational.lookup import Counted, PathValues
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
BRANCHES = "array<array<struct<tagpath_id: bigint, idpath: string>>>"


@dataclass(frozen=True, slots=True)
class Predicates:
    """The tables that a plan joins with, and their sizes: chains, which may repeat predicates, and unrolled rows."""

    layout: Layout
    chained: DataFrame
    unrolled: DataFrame
    chained_rows: int
    unrolled_rows: int
    repeats: bool = True

    @property
    def are_large(self) -> bool:
        """Whether a look-up should not read whole tables."""
        return max(self.chained_rows, self.unrolled_rows) >= lookup.PRUNED_FROM


def candidates(predicates: Predicates, probes: Probes, kept: CheckpointedTables) -> DataFrame:
    """Find the candidates of a batch by the plan of the layout."""
    return _PLANS[predicates.layout.plan](predicates, probes, kept)


def share(predicates: Predicates, probes: Probes, kept: CheckpointedTables) -> DataFrame:
    """Follow chains from the root; buckets only change the chains."""
    values, begun = _values(predicates, probes), Counted(probes.count, frozenset({ROOT}))
    return follow(predicates, probes, _roots(probes.events), begun, values, kept)


def _values(predicates: Predicates, probes: Probes) -> PathValues | None:
    rows = probes.count * probes.equal_each
    return lookup.collect_values(probes.equal, rows) if predicates.are_large else None


def unroll(predicates: Predicates, probes: Probes, kept: CheckpointedTables) -> DataFrame:
    """Check rows of k predicates at once, and follow chains for further predicates."""
    values = _values(predicates, probes)
    found = reduce(
        lambda found, n: _checked(found, probes, n),
        range(2, predicates.layout.unroll + 1),
        _looked_up(predicates, probes, values),
    )
    found = kept(found.select("event_id", "sub_id", "final", "branches"))
    ready = found.filter("final").select(*CANDIDATE)
    left = found.filter("not final").select("event_id", F.col("sub_id").alias("chain_id"), "branches")
    begun = lookup.count_keys(left, "chain_id", predicates.are_large)
    if not begun.rows:
        return ready
    return ready.unionByName(follow(predicates, probes, left, begun, values, kept))


_PLANS: dict[Plan, Callable[[Predicates, Probes, CheckpointedTables], DataFrame]] = {
    Plan.SHARE: share,
    Plan.SHARE_BUCKET: share,
    Plan.UNROLL: unroll,
}


def _roots(events: DataFrame) -> DataFrame:
    none = F.array().cast(BRANCHES).alias("branches")
    return events.select("event_id", F.lit(bytearray(ROOT)).alias("chain_id"), none)


def follow(
    predicates: Predicates,
    probes: Probes,
    states: DataFrame,
    begun: Counted,
    values: PathValues | None,
    kept: CheckpointedTables,
) -> DataFrame:
    """Follow chains from states to their ends: along equalities first, then along the others."""
    equal = predicates.chained.filter("op = '='")
    equal = lookup.filter_values(equal, "linearpath_id", "value", values)
    first = _Stage(predicates, equal, probes, _equal_step, kept).run(states, begun)
    other = lookup.filter_paths(predicates.chained.filter("op != '='"), "linearpath_id", values)
    others = _Stage(predicates, other, probes, _other_step, kept)
    second = others.run(_union(first.reached), first.counted)
    return _union([*first.ends, *second.ends])


@dataclass(frozen=True, slots=True)
class _Reached:
    """Candidates, all states on the way including the first ones, and their number and keys."""

    ends: list[DataFrame]
    reached: list[DataFrame]
    counted: Counted


@dataclass(frozen=True, slots=True)
class _Stage:
    """Follows chains along one sort of predicates (`sort`), one per round, until all have ended."""

    predicates: Predicates
    sort: DataFrame
    probes: Probes
    step: Callable[[DataFrame, int, DataFrame, int, Probes], DataFrame]
    kept: CheckpointedTables

    def run(self, states: DataFrame, begun: Counted) -> _Reached:
        ends, reached, counted = [], [states], [begun]
        size = self.predicates.chained_rows
        while True:
            asked = lookup.filter_keys(self.sort, "pre_id", counted[-1].keys if self.is_pruned else None)
            steps = self.kept(self.step(reached[-1], counted[-1].rows, asked, size, self.probes))
            ends.append(_ended(steps))
            unfinished = steps.filter("not final").select(*STATE)
            count = lookup.count_keys(unfinished, "chain_id", self.is_pruned)
            if not count.rows:
                return _Reached(ends, reached, lookup.unite_keys(counted))
            # Files of several additions may repeat a shared predicate.
            repeats = self.predicates.repeats
            reached.append(unfinished.dropDuplicates(["event_id", "chain_id"]) if repeats else unfinished)
            counted.append(count)

    @property
    def is_pruned(self) -> bool:
        return self.predicates.are_large


def _ended(steps: DataFrame) -> DataFrame:
    return steps.filter("final").select("event_id", F.col("chain_id").alias("sub_id"), "branches")


def _equal_step(states: DataFrame, count: int, asked: DataFrame, size: int, probes: Probes) -> DataFrame:
    met = _met(states, probes.equal, probes.count * probes.equal_each)
    keyed = _keyed(asked, "value", "number")
    met, keyed = lookup.choose_sides(met, count * probes.equal_each, keyed, size)
    found = met.join(keyed, ["pre_id", "linearpath_id", "value", "numeric"])
    return found.select("event_id", "chain_id", "final", _longer("nodes"))


def _other_step(states: DataFrame, count: int, asked: DataFrame, size: int, probes: Probes) -> DataFrame:
    met = _met(states, probes.any, probes.count * probes.any_each)
    met, asked = lookup.choose_sides(met, count * probes.any_each, asked, size)
    found = met.join(asked, ["pre_id", "linearpath_id"]).filter(_may_pass("op", "number"))
    held = _passed(found, "op", "value", "number")
    return held.select("event_id", "chain_id", "final", _longer("passed"))


def _met(states: DataFrame, values: DataFrame, rows: float) -> DataFrame:
    """Join states with the values of their events."""
    sent = lookup.broadcast_small(values, rows)
    return states.withColumnRenamed("chain_id", "pre_id").join(sent, "event_id")


def _keyed(predicates: DataFrame, value: str, number: str) -> DataFrame:
    """Add the keys of `probes.equal` to predicates: the value, and whether it is a number."""
    key = F.coalesce(F.col(number).cast("string"), F.col(value))
    return predicates.withColumn(value, key).withColumn("numeric", F.col(number).isNotNull())


def _looked_up(predicates: Predicates, probes: Probes, asked: PathValues | None) -> DataFrame:
    """Find the rows of Predicate_Unroll whose first predicate holds: an equality by value, others by path."""
    unrolled, size = predicates.unrolled, predicates.unrolled_rows
    rest = [name for name in unrolled.columns if name not in ("path1", "op1", "value1", "number1")]
    columns, first = ["event_id", *rest], {"linearpath_id": "path1", "value": "value1"}
    wanted = lookup.filter_values(unrolled.filter("op1 = '='"), "path1", "value1", asked)
    by_value = _keyed(wanted, "value1", "number1")
    equal_rows, any_rows = probes.count * probes.equal_each, probes.count * probes.any_each
    values = probes.equal.withColumnsRenamed(first)
    values, by_value = lookup.choose_sides(values, equal_rows, by_value, size)
    equal = by_value.join(values, ["path1", "value1", "numeric"])
    wanted = lookup.filter_paths(unrolled.filter("op1 != '='"), "path1", asked)
    paths, wanted = lookup.choose_sides(probes.any.withColumnsRenamed(first), any_rows, wanted, size)
    by_path = wanted.join(paths, "path1")
    others = _passed(by_path.filter(_may_pass("op1", "number1")), "op1", "value1", "number1")
    begun = equal.select(*columns, _first("nodes")), others.select(*columns, _first("passed"))
    return _union(begun)


def _checked(found: DataFrame, probes: Probes, n: int) -> DataFrame:
    """Keep rows whose predicate n holds, and rows with fewer predicates."""
    path, names = f"path{n}", (f"op{n}", f"value{n}", f"number{n}")
    values = probes.any.withColumnRenamed("linearpath_id", path).select("event_id", path, "nodes")
    met = found.join(
        lookup.broadcast_small(values, probes.count * probes.any_each), ["event_id", path], "left"
    )
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
