"""What was wanted and what was measured, goal by goal, from the rows of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from benchmarks import documents, metadata, objects_table, paper003, pipeline, service, stock
from benchmarks.document_engines import DocumentIndex, Parsing
from benchmarks.objects_settings import TRIGGERS
from benchmarks.rows import Row, duration
from benchmarks.workloads import anthology
from benchmarks.workloads.metadata import Rules, Type
from benchmarks.workloads.stock_documents import MANY

GOAL_SIZE = 1_000_000
FRACTIONS = {"stock": 1 / 2, "equalities": 1 / 3, "intervals": 1 / 2}
"""How much of the limit is wanted."""


class Goal(NamedTuple):
    """One goal. `more` says that more is better; `shown` writes both figures."""

    what: str
    wanted: float
    measured: float
    shown: Callable[[float], str]
    more: bool = True

    @property
    def verdict(self) -> str:
        ratio = self.measured / self.wanted if self.more else self.wanted / self.measured
        return "met" if ratio >= 1 else f"missed: {ratio:.0%} of it"


def goals(rows: Sequence[Row]) -> str:
    """A line for each goal that the rows say something about."""
    lines = ["| goal | wanted | measured | |", "|---|---:|---:|---|"]
    for goal in _all(rows):
        bound = "at least" if goal.more else "at most"
        wanted, measured = goal.shown(goal.wanted), goal.shown(goal.measured)
        lines.append(f"| {goal.what} | {bound} {wanted} | {measured} | {goal.verdict} |")
    return "\n".join(lines)


def _all(rows: Sequence[Row]) -> Iterator[Goal]:
    yield from _of_the_limit(rows)
    yield from _ahead_of_peers(rows)
    yield from _stock(rows)
    yield from _job(rows)
    yield from _latency(rows)
    yield from _stock_documents(rows)
    yield from _anthology(rows)
    yield from _graphs(rows)
    yield from _metadata(rows)
    yield from _objects(rows)
    yield from _service(rows)


SERVICE_MEDIAN = 1.0


def _service(rows: Sequence[Row]) -> Iterator[Goal]:
    for row in rows:
        if row.workload.startswith(service.ON_ITS_WAY) and row.role == "ours" and row.p50_seconds:
            what = f"{row.workload} at {row.subscriptions:,} subscriptions: half of them within"
            yield Goal(what, SERVICE_MEDIAN, row.p50_seconds, duration, more=False)


OBJECTS_AHEAD, OBJECTS_GROWTH = 10.0, 1.5
OBJECTS_LARGEST = 3_200
"""Persons of the largest setting of the paper's experiments; what is larger is ours."""


def _objects(rows: Sequence[Row]) -> Iterator[Goal]:
    """The goal is one for whole updates, as the paper times them; what telling adds to them is told beside it."""
    measured = objects_table.lines(rows)
    for place in metadata.PLACES:
        mine = [line for line in measured if line.setting.place == place]
        for line in _largest_settings(mine):
            what = f"{line.setting.workload}: triggers beside the aspect"
            for of, ratio in (("whole updates", line.whole()), ("what telling adds", line.added())):
                if ratio is not None:
                    yield Goal(f"{what}, {of}", OBJECTS_AHEAD, ratio, _times)
        yield from _same_audience(mine)


def _same_audience(lines: Sequence[objects_table.Line]) -> Iterator[Goal]:
    same = [line for line in lines if line.setting.objects is None and TRIGGERS in line.seconds]
    if len(same) > 1:
        few, many = same[0], same[-1]
        told = f"triggers, an update that tells {many.told:.0f}"
        what = f"objects, {many.setting.place}, {told}: P = {many.setting.persons:,} beside {few.setting.persons:,}"
        yield Goal(what, OBJECTS_GROWTH, many.seconds[TRIGGERS] / few.seconds[TRIGGERS], _times, more=False)


def _largest_settings(lines: Sequence[objects_table.Line]) -> Iterator[objects_table.Line]:
    """The last lines of the paper's tables: most who watch, and most of everything."""
    paper = [line for line in lines if line.setting.objects and line.setting.persons <= OBJECTS_LARGEST]
    for last in (lambda each: each.setting.objects, lambda each: each.setting.persons):
        most = max(map(last, paper), default=0)
        if len(set(map(last, paper))) > 1:
            yield next(line for line in paper if last(line) == most)


METADATA_RATE, METADATA_GROWTH = 2_000.0, 1.5
METADATA_RULES, METADATA_FEW, METADATA_BATCH = 100_000, 1_000, 1_000


def _metadata(rows: Sequence[Row]) -> Iterator[Goal]:
    for kind in (Type.OID, Type.PATH, Type.JOIN):
        workload = metadata.batches_of(Rules(kind, METADATA_RULES), METADATA_BATCH)
        for place in metadata.PLACES:
            mine = {row.subscriptions: row for row in rows if (row.workload, row.engine) == (workload, place)}
            many, few = mine.get(METADATA_RULES), mine.get(METADATA_FEW)
            what = f"{workload}, {place}, {METADATA_RULES:,} rules"
            if many and many.events_per_second:
                yield Goal(f"{what}: documents a second", METADATA_RATE, many.events_per_second, _count)
            if many and few and many.seconds_per_event and few.seconds_per_event:
                grown = many.seconds_per_event / few.seconds_per_event
                yield Goal(f"{what}: beside {METADATA_FEW:,}", METADATA_GROWTH, grown, _times, more=False)
    for place in metadata.PLACES:
        yield from _metadata_updates([row for row in rows if row.engine == place], place)


def _metadata_updates(rows: Sequence[Row], place: str) -> Iterator[Goal]:
    """The most resources that were stored beside the fewest."""
    found = [(metadata.resources_of(row.workload), row.seconds_per_event) for row in rows]
    stored = sorted((resources, seconds) for resources, seconds in found if resources and seconds)
    if len(stored) > 1:
        (few, less), (many, more) = stored[0], stored[-1]
        what = f"metadata, one update, {place}: {many:,} beside {few:,} resources"
        yield Goal(what, METADATA_GROWTH, more / less, _times, more=False)


GRAPH_PEERS = {"g-topss": 10.0, "pyoxigraph, each query in turn": 1_000.0}
"""How many times faster than these the index should be."""


def _graphs(rows: Sequence[Row]) -> Iterator[Goal]:
    for name, wanted in GRAPH_PEERS.items():
        peers = [
            row for row in rows if (row.workload, row.engine) == ("graphs", name) and row.seconds_per_event
        ]
        for peer in sorted(peers, key=lambda row: row.subscriptions)[-1:]:
            same = [
                row for row in rows if (row.workload, row.subscriptions) == ("graphs", peer.subscriptions)
            ]
            ours = _one(same, "graphs", "index")
            if ours and ours.seconds_per_event and peer.seconds_per_event:
                what = f"graphs, {peer.subscriptions:,} subscriptions: times {name}"
                yield Goal(what, wanted, peer.seconds_per_event / ours.seconds_per_event, _times)


def _of_the_limit(rows: Sequence[Row]) -> Iterator[Goal]:
    for name, wanted in FRACTIONS.items():
        row = _largest(rows, name)
        if row and row.fraction_of_limit is not None:
            what = f"{name}, {row.subscriptions:,} subscriptions: fraction of the limit"
            yield Goal(what, wanted, row.fraction_of_limit, _fraction)


def _ahead_of_peers(rows: Sequence[Row]) -> Iterator[Goal]:
    for name in FRACTIONS:
        row = _largest([row for row in rows if row.ratio_to_best_peer is not None], name)
        if row and row.ratio_to_best_peer is not None:
            what = f"{name}, {row.subscriptions:,} subscriptions: times the best peer"
            yield Goal(what, 1.0, row.ratio_to_best_peer, _times)


def _stock(rows: Sequence[Row]) -> Iterator[Goal]:
    index = _one(rows, stock.ALL, "index")
    if index and index.bytes_per_subscription:
        size = index.bytes_per_subscription * index.subscriptions / 1e6
        yield Goal(f"memory of {index.subscriptions:,} subscriptions", 150, size, _megabytes, more=False)
        for name in (stock.FEWER_SYMBOLS, stock.WIDER_RANGES):
            tenth = _one(rows, name, "index")
            if tenth and tenth.seconds_per_event and index.seconds_per_event:
                matches = f"{tenth.matches_per_event:.0f} and {index.matches_per_event:.0f} matches an event"
                what = f"time an event at ten times the subscriptions ({name}; {matches})"
                yield Goal(what, 1.5, index.seconds_per_event / tenth.seconds_per_event, _times, more=False)
    text = _one(rows, stock.TEXTS, "index, from text")
    if text and text.build_seconds:
        rate = text.subscriptions / text.build_seconds
        yield Goal("subscriptions loaded a second, from text", 100_000, rate, _count)


def _job(rows: Sequence[Row]) -> Iterator[Goal]:
    job, plain = (_one(rows, pipeline.JOB, name) for name in (pipeline.SPARK, pipeline.DECODE_MATCH))
    if job and job.events_per_second:
        what = f"Spark job on {pipeline.CORES} cores, events a second"
        yield Goal(what, 220_000, job.events_per_second, _count)
        if plain and plain.events_per_second:
            what = f"the same, as a share of {pipeline.DECODE_MATCH} in a plain loop"
            yield Goal(what, 0.8, job.events_per_second / plain.events_per_second, _fraction)


def _latency(rows: Sequence[Row]) -> Iterator[Goal]:
    row = next((row for row in rows if row.workload.startswith("latency") and row.role == "ours"), None)
    if row and row.p50_seconds and row.p99_seconds:
        at = f"one event at {row.subscriptions:,} subscriptions"
        yield Goal(f"{at}: half of the calls take", 20e-6, row.p50_seconds, duration, more=False)
        yield Goal(f"{at}: 99 of 100 calls take", 100e-6, row.p99_seconds, duration, more=False)


def _stock_documents(rows: Sequence[Row]) -> Iterator[Goal]:
    lines = [line for line in paper003.lines(rows) if DocumentIndex.name in line.seconds]
    for line in lines:
        if line.subscriptions == GOAL_SIZE:
            notifications = f"{line.share * paper003.MESSAGES:,.0f} notifications"
            what = f"{paper003.MESSAGES:,} stock documents at {GOAL_SIZE:,} subscriptions, {notifications}"
            yield Goal(what, 1.0, line.seconds[DocumentIndex.name], duration, more=False)
    same = {line.subscriptions: line.seconds[DocumentIndex.name] for line in lines if line.share == MANY}
    if {GOAL_SIZE // 10, GOAL_SIZE} <= same.keys():
        what = (
            f"the same at {GOAL_SIZE:,} beside {GOAL_SIZE // 10:,} subscriptions, with ten times the matches"
        )
        yield Goal(what, 1.3, same[GOAL_SIZE] / same[GOAL_SIZE // 10], _times, more=False)


def _anthology(rows: Sequence[Row]) -> Iterator[Goal]:
    mine = [row for row in rows if row.workload == anthology.NAME and row.seconds_per_event]
    most = max((row.subscriptions for row in mine), default=0)
    seconds = {row.engine: row.seconds_per_event or 0.0 for row in mine if row.subscriptions == most}
    if {documents.MATCH, Parsing.name} <= seconds.keys():
        what = f"matching real documents at {most:,} subscriptions, beside parsing them"
        yield Goal(what, 3.0, seconds[documents.MATCH] / seconds[Parsing.name], _times, more=False)


def _largest(rows: Iterable[Row], workload: str) -> Row | None:
    """Our row at the size the goals are set for, or at the largest below it."""
    mine = [r for r in rows if (r.workload, r.engine) == (workload, "index") and r.subscriptions <= GOAL_SIZE]
    return max(mine, key=lambda row: row.subscriptions, default=None)


def _one(rows: Iterable[Row], workload: str, engine: str) -> Row | None:
    return next((row for row in rows if (row.workload, row.engine) == (workload, engine)), None)


def _fraction(value: float) -> str:
    return f"{value:.2f}"


def _times(value: float) -> str:
    return f"{value:.2f} x"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _megabytes(value: float) -> str:
    return f"{value:,.0f} MB"
