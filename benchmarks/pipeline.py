"""The whole job on Spark: JSON text in, matches as Parquet out, on two cores; and the same in a plain loop.

The rows show the time of each part:

    decode, plain loop                 one core: split and decode lines; the text is in memory already
    match, plain loop                  one core
    write, plain loop                  one core: the same Parquet files as the Spark job writes
    decode + match, plain loop         the first two together
    decode + match, 2 processes        the plain loop on as many cores as Spark has, each process with its part
    decode + match + write, 2 processes
    scan, Spark's tasks                CPU time of all tasks: read the file, split lines, open the index
    decode, match, write, Spark's tasks
    Spark job, local[2]                everything, also in wall-clock time: planning, tasks, moving the files into place
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.harness import Bench, Disagreement
from benchmarks.plain_loop import PARTS, Loop, LoopProcesses, LoopResult, start_loops
from benchmarks.rows import Row
from benchmarks.scale import Scale
from benchmarks.workloads import Workload, stock
from tidings.matching.index.index import Index
from tidings.spark.batch.job import BatchRequest, BatchSummary, run_batch_job
from tidings.spark.session import open_session

CORES = 2
JOB = "stock, JSON to matches"
SPARK = f"Spark job, local[{CORES}]"
DECODE_MATCH = f"decode + match, {CORES} processes"
WITH_WRITE = f"decode + match + write, {CORES} processes"


def run(bench: Bench, scale: Scale) -> None:
    workload = stock(scale.stock, scale.job_events, name=JOB)
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        files = Files.write(workload, Path(folder))
        one_core(bench, workload, files)
        all_cores(bench, workload, files)


class Files(NamedTuple):
    """Input files of the loop and the job, and their output folder."""

    subscriptions: Path
    publications: Path
    index: Path
    out: Path

    @classmethod
    def write(cls, workload: Workload, folder: Path) -> Files:
        files = cls(*(folder / name for name in ("subscriptions.jsonl", "events.jsonl", "index", "out")))
        with files.subscriptions.open("w") as file:
            for row, text in enumerate(workload.subscriptions.texts()):
                line = {"id": f"s{row}", "subscriber": "somebody", "language": "predicates", "text": text}
                file.write(json.dumps(line) + "\n")
        files.publications.write_bytes(workload.events.json_lines())
        Index.create(files.index).add(workload.subscriptions.compiled())
        files.out.mkdir()
        return files


def one_core(bench: Bench, workload: Workload, files: Files) -> None:
    """Measure decoding, matching and writing in this process, and compare the matches with other engines."""
    loop = Loop(files.index, files.publications.read_bytes())
    bench.agree(JOB, len(workload.subscriptions), "plain loop", loop.counts())
    runs = [loop.run(files.out) for _ in range(bench.runs)]
    seconds, matches = _medians(runs), runs[0].matches
    seconds["decode + match"] = seconds["decode"] + seconds["match"]
    for name, part_seconds in seconds.items():
        bench.keep(build_row(workload, f"{name}, plain loop", part_seconds, matches))


def all_cores(bench: Bench, workload: Workload, files: Files) -> None:
    """Measure the plain loop, without and with writing, and the Spark job in turns: other load affects all.

    The first turn starts the workers and does not count.
    """
    text = files.publications.read_bytes()
    with start_loops(CORES, files.index, text) as loops, _job(files) as job:
        turns = [_turn(loops, job, files) for _ in range(bench.runs + 1)][1:]
    for turn in turns:
        _check(turn)
    _keep_processes(bench, workload, turns)
    _keep_job(bench, workload, turns)


class Turn(NamedTuple):
    """Results of one turn: the plain loop on all cores without and with writing (wall-clock seconds), the Spark job."""

    without: tuple[float, LoopResult]
    with_write: tuple[float, LoopResult]
    job: BatchSummary


class Job:
    """The Spark job. Each run writes to another folder."""

    def __init__(self, files: Files) -> None:
        self._files, self._runs = files, 0
        self._session = open_session(master=f"local[{CORES}]")

    def run(self) -> BatchSummary:
        self._runs += 1
        out = self._files.out / f"matches-{self._runs}.parquet"
        return run_batch_job(
            self._session, BatchRequest(self._files.subscriptions, self._files.publications, out)
        )

    def stop(self) -> None:
        self._session.stop()


@contextmanager
def _job(files: Files) -> Iterator[Job]:
    job = Job(files)
    try:
        yield job
    finally:
        job.stop()


def _turn(loops: LoopProcesses, job: Job, files: Files) -> Turn:
    return Turn(loops.run(), loops.run(files.out), job.run())


def _check(turn: Turn) -> None:
    counts = {turn.without[1].matches, turn.with_write[1].matches, turn.job.matches}
    if len(counts) > 1:
        raise Disagreement(f"the Spark job and the plain loop found different matches: {counts}")


def _keep_processes(bench: Bench, workload: Workload, turns: list[Turn]) -> None:
    for name, runs in (
        (DECODE_MATCH, [turn.without for turn in turns]),
        (WITH_WRITE, [turn.with_write for turn in turns]),
    ):
        results = [each for _, each in runs]
        row = build_row(workload, name, sum(_medians(results).values()), results[0].matches)
        rate = len(workload.events) / median(seconds for seconds, _ in runs)
        bench.keep(replace(row, events_per_second=rate))


def _keep_job(bench: Bench, workload: Workload, turns: list[Turn]) -> None:
    jobs = [turn.job for turn in turns]
    parts = {part: median(job.task_seconds[part] for job in jobs) for part in jobs[0].task_seconds}
    for part, seconds in parts.items():
        bench.keep(build_row(workload, f"{part}, Spark's tasks", seconds, jobs[0].matches))
    bench.keep(
        replace(
            build_row(workload, SPARK, sum(parts.values()), jobs[0].matches),
            build_seconds=median(job.built.seconds for job in jobs),
            bytes_per_subscription=jobs[0].built.bytes_each,
            events_per_second=median(job.events_a_second for job in jobs),
            note=f"{_relative_speed(turns, 0)} of {DECODE_MATCH}; {_relative_speed(turns, 1)} of {WITH_WRITE}",
        )
    )


def _relative_speed(turns: list[Turn], which: int) -> str:
    """Return the speed of the job as a share of the plain loop's, from medians as in the rows and the goal."""
    plain = median(turn[which][0] for turn in turns)
    return f"{plain / median(turn.job.match_seconds for turn in turns):.0%}"


def _medians(runs: list[LoopResult]) -> dict[str, float]:
    return {part: median(each.seconds[part] for each in runs) for part in PARTS}


def build_row(workload: Workload, engine: str, seconds: float, matches: int) -> Row:
    count, seconds = len(workload.events), max(seconds, 1e-9)
    return Row(
        workload.name,
        len(workload.subscriptions),
        engine,
        events_per_cpu_second=count / seconds,
        build_seconds=None,
        bytes_per_subscription=None,
        matches_per_event=matches / count,
        seconds_per_event=seconds / count,
    )
