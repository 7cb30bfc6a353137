"""Performance goals, compared with the rows of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from benchmarks import dataframes, documents, metadata, objects_table, paper003, pipeline, service, stock
from benchmarks.document_engines import DocumentIndex, Parsing
from benchmarks.objects_settings import TRIGGERS
from benchmarks.rows import Row, duration
from benchmarks.workloads import anthology
from benchmarks.workloads.metadata import Rules, Type
from benchmarks.workloads.stock_documents import MANY

GOAL_SIZE = 1_000_000
FRACTIONS = {"stock": 1 / 2, "equalities": 1 / 3, "intervals": 1 / 2}
"""Required fractions of the limit."""


class Goal(NamedTuple):
    """A goal. With `more`, larger values are better; `shown` formats both figures."""

    label: str
    target: float
    measured: float
    shown: Callable[[float], str]
    more: bool = True

    @property
    def verdict(self) -> str:
        ratio = self.measured / self.target if self.more else self.target / self.measured
        return "met" if ratio >= 1 else f"missed: {ratio:.0%} of it"


def goals(rows: Sequence[Row]) -> str:
    """Format a table of the goals for which there are rows."""
    lines = ["| goal | wanted | measured | |", "|---|---:|---:|---|"]
    for goal in _all(rows):
        bound = "at least" if goal.more else "at most"
        target, measured = goal.shown(goal.target), goal.shown(goal.measured)
        lines.append(f"| {goal.label} | {bound} {target} | {measured} | {goal.verdict} |")
    return "\n".join(lines)


def _all(rows: Sequence[Row]) -> Iterator[Goal]:
    yield from _limit_fractions(rows)
    yield from _peer_ratios(rows)
    yield from _stock(rows)
    yield from _job(rows)
    yield from _dataframes(rows)
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
        if row.workload.startswith(service.PUBLISH_TO_RECEIPT) and row.role == "ours" and row.p50_seconds:
            label = f"{row.workload} at {row.subscriptions:,} subscriptions: half of them within"
            yield Goal(label, SERVICE_MEDIAN, row.p50_seconds, duration, more=False)


OBJECTS_AHEAD, OBJECTS_GROWTH = 10.0, 1.5
OBJECTS_LARGEST = 3_200
"""Persons in the largest of the paper's experiments; larger settings are our additions."""


def _objects(rows: Sequence[Row]) -> Iterator[Goal]:
    """Yield goals for whole updates, as the paper times them, and for the cost that notifying adds."""
    measured = objects_table.lines(rows)
    for place in metadata.PLACES:
        mine = [line for line in measured if line.setting.place == place]
        for line in _largest_settings(mine):
            label = f"{line.setting.workload}: triggers beside the aspect"
            for of, ratio in (("whole updates", line.whole()), ("what telling adds", line.added())):
                if ratio is not None:
                    yield Goal(f"{label}, {of}", OBJECTS_AHEAD, ratio, _times)
        yield from _same_audience(mine)


def _same_audience(lines: Sequence[objects_table.Line]) -> Iterator[Goal]:
    same = [line for line in lines if line.setting.objects is None and TRIGGERS in line.seconds]
    if len(same) > 1:
        few, many = same[0], same[-1]
        update = f"triggers, an update that tells {many.audience:.0f}"
        label = f"objects, {many.setting.place}, {update}: P = {many.setting.persons:,} beside {few.setting.persons:,}"
        yield Goal(label, OBJECTS_GROWTH, many.seconds[TRIGGERS] / few.seconds[TRIGGERS], _times, more=False)


def _largest_settings(lines: Sequence[objects_table.Line]) -> Iterator[objects_table.Line]:
    """Yield the last lines of the paper's two tables: most watchers, and most objects."""
    paper = [line for line in lines if line.setting.objects and line.setting.persons <= OBJECTS_LARGEST]
    for size in (lambda each: each.setting.objects, lambda each: each.setting.persons):
        most = max(map(size, paper), default=0)
        if len(set(map(size, paper))) > 1:
            yield next(line for line in paper if size(line) == most)


METADATA_RATE, METADATA_GROWTH = 2_000.0, 1.5
METADATA_RULES, METADATA_FEW, METADATA_BATCH = 100_000, 1_000, 1_000


def _metadata(rows: Sequence[Row]) -> Iterator[Goal]:
    for kind in (Type.OID, Type.PATH, Type.JOIN):
        workload = metadata.batches_of(Rules(kind, METADATA_RULES), METADATA_BATCH)
        for place in metadata.PLACES:
            mine = {row.subscriptions: row for row in rows if (row.workload, row.engine) == (workload, place)}
            many, few = mine.get(METADATA_RULES), mine.get(METADATA_FEW)
            label = f"{workload}, {place}, {METADATA_RULES:,} rules"
            if many and many.events_per_second:
                yield Goal(f"{label}: documents a second", METADATA_RATE, many.events_per_second, _count)
            if many and few and many.seconds_per_event and few.seconds_per_event:
                grown = many.seconds_per_event / few.seconds_per_event
                yield Goal(f"{label}: beside {METADATA_FEW:,}", METADATA_GROWTH, grown, _times, more=False)
    for place in metadata.PLACES:
        yield from _metadata_updates([row for row in rows if row.engine == place], place)


def _metadata_updates(rows: Sequence[Row], place: str) -> Iterator[Goal]:
    """Compare updates among the most stored resources with updates among the fewest."""
    times = [(metadata.resources_of(row.workload), row.seconds_per_event) for row in rows]
    stored = sorted((resources, seconds) for resources, seconds in times if resources and seconds)
    if len(stored) > 1:
        (few, less), (many, more) = stored[0], stored[-1]
        label = f"metadata, one update, {place}: {many:,} beside {few:,} resources"
        yield Goal(label, METADATA_GROWTH, more / less, _times, more=False)


GRAPH_PEERS = {"g-topss": 10.0, "pyoxigraph, each query in turn": 1_000.0}
"""Required speed of the index relative to these peers."""


def _graphs(rows: Sequence[Row]) -> Iterator[Goal]:
    for name, target in GRAPH_PEERS.items():
        peers = [
            row for row in rows if (row.workload, row.engine) == ("graphs", name) and row.seconds_per_event
        ]
        for peer in sorted(peers, key=lambda row: row.subscriptions)[-1:]:
            same = [
                row for row in rows if (row.workload, row.subscriptions) == ("graphs", peer.subscriptions)
            ]
            ours = _find_row(same, "graphs", "index")
            if ours and ours.seconds_per_event and peer.seconds_per_event:
                label = f"graphs, {peer.subscriptions:,} subscriptions: times {name}"
                yield Goal(label, target, peer.seconds_per_event / ours.seconds_per_event, _times)


def _limit_fractions(rows: Sequence[Row]) -> Iterator[Goal]:
    for name, target in FRACTIONS.items():
        row = _largest(rows, name)
        if row and row.fraction_of_limit is not None:
            label = f"{name}, {row.subscriptions:,} subscriptions: fraction of the limit"
            yield Goal(label, target, row.fraction_of_limit, _fraction)


def _peer_ratios(rows: Sequence[Row]) -> Iterator[Goal]:
    for name in FRACTIONS:
        row = _largest([row for row in rows if row.ratio_to_best_peer is not None], name)
        if row and row.ratio_to_best_peer is not None:
            label = f"{name}, {row.subscriptions:,} subscriptions: times the best peer"
            yield Goal(label, 1.0, row.ratio_to_best_peer, _times)


def _stock(rows: Sequence[Row]) -> Iterator[Goal]:
    index = _find_row(rows, stock.ALL, "index")
    if index and index.bytes_per_subscription:
        size = index.bytes_per_subscription * index.subscriptions / 1e6
        yield Goal(f"memory of {index.subscriptions:,} subscriptions", 150, size, _megabytes, more=False)
        for name in (stock.FEWER_SYMBOLS, stock.WIDER_RANGES):
            tenth = _find_row(rows, name, "index")
            if tenth and tenth.seconds_per_event and index.seconds_per_event:
                matches = f"{tenth.matches_per_event:.0f} and {index.matches_per_event:.0f} matches an event"
                label = f"time an event at ten times the subscriptions ({name}; {matches})"
                yield Goal(label, 1.5, index.seconds_per_event / tenth.seconds_per_event, _times, more=False)
    text = _find_row(rows, stock.TEXTS, "index, from text")
    if text and text.build_seconds:
        rate = text.subscriptions / text.build_seconds
        yield Goal("subscriptions loaded a second, from text", 100_000, rate, _count)


def _job(rows: Sequence[Row]) -> Iterator[Goal]:
    job, plain = (_find_row(rows, pipeline.JOB, name) for name in (pipeline.SPARK, pipeline.DECODE_MATCH))
    if job and job.events_per_second:
        label = f"Spark job on {pipeline.CORES} cores, events a second"
        yield Goal(label, 220_000, job.events_per_second, _count)
        if plain and plain.events_per_second:
            label = f"the same, as a share of {pipeline.DECODE_MATCH} in a plain loop"
            yield Goal(label, 0.8, job.events_per_second / plain.events_per_second, _fraction)


def _dataframes(rows: Sequence[Row]) -> Iterator[Goal]:
    job, written = (_find_row(rows, dataframes.NAME, name) for name in (dataframes.JOB, dataframes.WRITE))
    if job and written and job.events_per_second and written.events_per_second:
        label = "write_matches, as a share of the Spark job on files"
        yield Goal(label, 0.8, written.events_per_second / job.events_per_second, _fraction)


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
            label = f"{paper003.MESSAGES:,} stock documents at {GOAL_SIZE:,} subscriptions, {notifications}"
            yield Goal(label, 1.0, line.seconds[DocumentIndex.name], duration, more=False)
    same = {line.subscriptions: line.seconds[DocumentIndex.name] for line in lines if line.share == MANY}
    if {GOAL_SIZE // 10, GOAL_SIZE} <= same.keys():
        label = (
            f"the same at {GOAL_SIZE:,} beside {GOAL_SIZE // 10:,} subscriptions, with ten times the matches"
        )
        yield Goal(label, 1.3, same[GOAL_SIZE] / same[GOAL_SIZE // 10], _times, more=False)


def _anthology(rows: Sequence[Row]) -> Iterator[Goal]:
    mine = [row for row in rows if row.workload == anthology.NAME and row.seconds_per_event]
    most = max((row.subscriptions for row in mine), default=0)
    seconds = {row.engine: row.seconds_per_event or 0.0 for row in mine if row.subscriptions == most}
    if {documents.MATCH, Parsing.name} <= seconds.keys():
        label = f"matching real documents at {most:,} subscriptions, beside parsing them"
        yield Goal(label, 3.0, seconds[documents.MATCH] / seconds[Parsing.name], _times, more=False)


def _largest(rows: Iterable[Row], workload: str) -> Row | None:
    """Return the row of the index at the size of the goals, or at the largest size below."""
    mine = [r for r in rows if (r.workload, r.engine) == (workload, "index") and r.subscriptions <= GOAL_SIZE]
    return max(mine, key=lambda row: row.subscriptions, default=None)


def _find_row(rows: Iterable[Row], workload: str, engine: str) -> Row | None:
    return next((row for row in rows if (row.workload, row.engine) == (workload, engine)), None)


def _fraction(value: float) -> str:
    return f"{value:.2f}"


def _times(value: float) -> str:
    return f"{value:.2f} x"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _megabytes(value: float) -> str:
    return f"{value:,.0f} MB"
