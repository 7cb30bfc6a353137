"""The three plans: from the values of documents to candidates, which have everything but the branch check behind them.

    share, share-bucket       states (event, chain) x values of the event x Query_Predicate on (pre_id, path, value)
       ^                        |
       +--- chains go on <------+----> final: candidates

    unroll                    values x Predicate_Unroll on (path 1, value 1)
                                -> x values on (event, path 2) -> ... -> x values on (event, path k)
                                -> final: candidates; what is left over goes on in chains

Chains are followed twice, first along equalities, then along everything else (section 3.3): equalities leave little.
A candidate is (event_id, sub_id, branches): for each predicate, in the order of the chain, the nodes that satisfy it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.relational.checkpointed import CheckpointedTables
from tidings.relational.tables import ROOT, Layout, Plan

# What a batch of documents asks the subscription tables: its values at linear paths.
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


def probes_of(
    events: DataFrame, result: DataFrame, path_match: DataFrame, kept: CheckpointedTables
) -> Probes:
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


CANDIDATE = ("event_id", "sub_id", "branches")
STATE = ("event_id", "chain_id", "branches")
SENT = 500_000
"""Rows of documents that every executor is sent: some hundred megabytes."""

BRANCHES = "array<array<struct<tagpath_id: bigint, idpath: string>>>"


@dataclass(frozen=True, slots=True)
class Predicates:
    """The tables that a plan joins with: chains, of which some may be there twice (`repeats`), and unrolled rows."""

    layout: Layout
    chained: DataFrame
    unrolled: DataFrame
    repeats: bool = True


def candidates(predicates: Predicates, probes: Probes, kept: CheckpointedTables) -> DataFrame:
    """The candidates of a batch, by the plan that the tables are laid out for."""
    return _PLANS[predicates.layout.plan](predicates, probes, kept)


def share(predicates: Predicates, probes: Probes, kept: CheckpointedTables) -> DataFrame:
    """Chains from the root on. With buckets it is the same: only the chains are others."""
    return follow(predicates, probes, _roots(probes.events), probes.count, kept)


def unroll(predicates: Predicates, probes: Probes, kept: CheckpointedTables) -> DataFrame:
    """A row of k predicates at once, and chains for what is beyond them."""
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
    """Chains from these states to their ends: along equalities as far as they go, then along the rest."""
    chained, repeats = predicates.chained, predicates.repeats
    first = _Stage(chained.filter("op = '='"), repeats, probes, _equal_step, kept).run(states, count)
    others = _Stage(chained.filter("op != '='"), repeats, probes, _other_step, kept)
    second = others.run(_union(first.reached), first.count)
    return _union([*first.ends, *second.ends])


@dataclass(frozen=True, slots=True)
class _Reached:
    """Candidates, and the states that were come to on the way, the first ones included, and how many these are."""

    ends: list[DataFrame]
    reached: list[DataFrame]
    count: int


@dataclass(frozen=True, slots=True)
class _Stage:
    """Follows chains along one sort of predicates, one predicate each time, until none goes on."""

    predicates: DataFrame
    repeats: bool
    probes: Probes
    step: Callable[[DataFrame, int, DataFrame, Probes], DataFrame]
    kept: CheckpointedTables

    def run(self, states: DataFrame, count: int) -> _Reached:
        ends, reached, counts = [], [states], [count]
        while True:
            taken = self.kept(self.step(reached[-1], counts[-1], self.predicates, self.probes))
            ends.append(_ended(taken))
            unfinished = taken.filter("not final").select(*STATE)
            count = unfinished.count()
            if not count:
                return _Reached(ends, reached, sum(counts))
            # Files that were added one after the other may repeat a predicate that subscriptions share.
            reached.append(
                unfinished.dropDuplicates(["event_id", "chain_id"]) if self.repeats else unfinished
            )
            counts.append(count)


def _ended(taken: DataFrame) -> DataFrame:
    return taken.filter("final").select("event_id", F.col("chain_id").alias("sub_id"), "branches")


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
    """So many states with the values of their events, of which each has some."""
    sent = _sent(values, events * each)
    return _sent(states.withColumnRenamed("chain_id", "pre_id").join(sent, "event_id"), count * each)


def _sent(frame: DataFrame, rows: float) -> DataFrame:
    """Documents are sent to the subscriptions, not the other way round, unless they are very many.

    Spark cannot know: it takes a join's result to be as large as both sides multiplied.
    """
    return F.broadcast(frame) if rows <= SENT else frame


def _keyed(predicates: DataFrame, value: str, number: str) -> DataFrame:
    """Predicates with the keys of `probes.equal`: what is equal, and whether as numbers."""
    key = F.coalesce(F.col(number).cast("string"), F.col(value))
    return predicates.withColumn(value, key).withColumn("numeric", F.col(number).isNotNull())


def _looked_up(unrolled: DataFrame, probes: Probes) -> DataFrame:
    """Rows of Predicate_Unroll whose first predicate holds: by its value if it is an equality, else by its path."""
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
    """Of rows found so far those whose predicate n holds, too. Rows with fewer predicates go through."""
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
    """A quick look at a range before its nodes are looked at one by one."""
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
"""What XPath 1.0 says of a node's value. What is no number is null here, and in no order with any number."""


def _filtered(op: str, value: str, number: str) -> str:
    """The nodes that pass a test, in SQL."""
    tests = {name: test.format(value=value, number=number) for name, test in _TESTS.items()}
    tests |= {f"not {name}": f"NOT coalesce({test}, false)" for name, test in tests.items()}
    cases = " ".join(f"WHEN '{name}' THEN {test}" for name, test in tests.items())
    return f"filter(nodes, n -> CASE {op} {cases} END)"


def _first(nodes: str) -> Column:
    """The branches of a candidate with one predicate, whose nodes these are."""
    return F.array(F.expr(_BARE.format(nodes))).alias("branches")


def _longer(nodes: str) -> Column:
    """The branches of a candidate with one predicate more."""
    return F.concat("branches", F.array(F.expr(_BARE.format(nodes)))).alias("branches")


_BARE = "transform({}, n -> named_struct('tagpath_id', n.tagpath_id, 'idpath', n.idpath))"


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)
