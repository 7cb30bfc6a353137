"""The whole job on Spark: JSON text in, matches as Parquet out, on two cores.

Beside it the same work in a plain loop in this process, part by part, so that it is visible where the time goes.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Bench, Disagreement, Row, median_of
from benchmarks.scale import Scale
from benchmarks.workloads import Workload, stock
from tidings.matching.index import Index
from tidings.publications.json_lines import DecodedLines, PathTable, decode_many, split_lines
from tidings.spark.batch import Request, Summary, match
from tidings.spark.session import open_session

CORES = 2
JOB = "stock, JSON to matches"


def run(bench: Bench, scale: Scale) -> None:
    workload = stock(scale.stock, scale.job_events, name=JOB)
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        files = _files(workload, Path(folder))
        matches = plain_loop(bench, workload, files.publications.read_bytes())
        spark_job(bench, workload, files, matches)


class Files(NamedTuple):
    subscriptions: Path
    publications: Path


def _files(workload: Workload, folder: Path) -> Files:
    files = Files(folder / "subscriptions.jsonl", folder / "events.jsonl")
    with files.subscriptions.open("w") as file:
        for row, text in enumerate(workload.subscriptions.texts()):
            line = {"id": f"s{row}", "subscriber": "somebody", "language": "predicates", "text": text}
            file.write(json.dumps(line) + "\n")
    files.publications.write_bytes(workload.events.json_lines())
    return files


def plain_loop(bench: Bench, workload: Workload, text: bytes) -> int:
    """Decode and match in this process, on one core; how many matches there are."""
    index, size = Index.create(), len(workload.subscriptions)
    index.add(workload.subscriptions.compiled())
    table, buffer = PathTable(list(index.paths)), np.frombuffer(text, np.uint8)

    def decode() -> DecodedLines:
        lines = split_lines(buffer)
        return decode_many(buffer, lines.starts, lines.ends, table, "id")

    decode_seconds, decoded = median_of(bench.runs, decode)
    match_seconds, found = median_of(bench.runs, lambda: index.match(decoded.atoms))
    bench.agree(JOB, size, "plain loop", np.bincount(found.publication, minlength=len(workload.events)))
    parts = {"decode only": decode_seconds, "match only": match_seconds}
    for name, seconds in {**parts, "decode + match, plain loop": decode_seconds + match_seconds}.items():
        bench.keep(_row(workload, name, len(workload.events) / seconds, len(found)))
    return len(found)


def spark_job(bench: Bench, workload: Workload, files: Files, matches: int) -> None:
    """`tidings match` on local[2], whole and part by part.

    Its CPU seconds are those of the tasks. How many events a second of wall-clock time go through is a column
    of its own: that is what somebody waits for.
    """
    summaries, count = _runs(files, bench.runs), len(workload.events)
    wrong = [each.matches for each in summaries if each.matches != matches]
    if wrong:
        raise Disagreement(f"the Spark job found {wrong[0]:,} matches, the plain loop {matches:,}")
    parts = {
        part: median(each.task_seconds[part] for each in summaries) for part in summaries[0].task_seconds
    }
    for part, seconds in parts.items():
        bench.keep(_row(workload, f"{part}, Spark's tasks", count / max(seconds, 1e-9), matches))
    job = _row(workload, f"Spark job, local[{CORES}]", count / max(sum(parts.values()), 1e-9), matches)
    bench.keep(
        replace(
            job,
            build_seconds=median(each.built.seconds for each in summaries),
            bytes_per_subscription=summaries[0].built.bytes_each,
            events_per_second=median(each.events_a_second for each in summaries),
        )
    )


def _runs(files: Files, runs: int) -> list[Summary]:
    """Several runs of the job. One more comes first and does not count: it starts the workers."""
    outs = [files.subscriptions.with_name(f"matches-{number}.parquet") for number in range(runs + 1)]
    session = open_session(master=f"local[{CORES}]")
    try:
        return [match(session, Request(files.subscriptions, files.publications, out)) for out in outs][1:]
    finally:
        session.stop()


def _row(workload: Workload, engine: str, rate: float, matches: int) -> Row:
    count = len(workload.events)
    return Row(
        workload.name,
        len(workload.subscriptions),
        engine,
        events_per_cpu_second=rate,
        build_seconds=None,
        bytes_per_subscription=None,
        matches_per_event=matches / count,
        seconds_per_event=1 / rate,
    )
