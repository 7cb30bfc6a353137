"""What one task of the batch job does: read a chunk, decode it, match it, write its matches.

A task writes its own Parquet file under a name nobody else uses and reports it; the driver keeps the files of the
reports it gets and drops all others, so that a task that is repeated counts once. (Handing the matches to Spark's
writer instead costs many times as much: docs/decisions/0006-batch-output.md.)
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.errors import DecodeProblem, PublicationError
from tidings.matching.index import Index
from tidings.matching.parquet import Column, Dictionary, ParquetFile, Part
from tidings.schema.files import load_text
from tidings.spark.blocks import Block, Unreadable, read
from tidings.spark.chunks import Chunk, ChunkList
from tidings.spark.decoding import Decoder
from tidings.spark.locations import Location
from tidings.spark.workers import settle

MATCHES = ("publication", "subscription")
"""The columns of the result."""

ROW_GROUP = 1 << 22
REPORT = "report-"
PARTS = ("scan", "decode", "match", "write")
"""What a task's time goes into: reading and cutting into lines; events; pairs; files."""

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks have in common: where publications come from and matches go to, and what they are matched with.

    The schema is a text, as in a schema file.
    """

    publications: str
    results: str
    chunks: ChunkList
    index: str
    version: int
    id_field: str
    schema: str | None


@dataclass(slots=True)
class Report:
    """What became of a chunk: counts, seconds of CPU by part, and the files with its matches and its rejects."""

    chunk: int
    bytes: int
    events: int = 0
    matches: int = 0
    rejects: int = 0
    matches_file: str = ""
    rejects_file: str = ""
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))


class Clock:
    """Writes down what the CPU time since the last look went into."""

    def __init__(self, report: Report) -> None:
        self._seconds = report.seconds
        self._last = process_time()

    def spent_on(self, part: str) -> None:
        now = process_time()
        self._seconds[part] += now - self._last
        self._last = now


@dataclass(frozen=True, slots=True)
class Opened:
    """What a worker keeps from task to task."""

    index: Index
    decoder: Decoder
    subscriptions: Dictionary


def stage(job: Job) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for `mapInArrow`: numbers of chunks in, reports in JSON out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        settle()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                report = json.dumps(asdict(match_chunk(job, number, job.chunks.read(number))))
                yield pa.RecordBatch.from_pydict({"report": [report]})

    return run


def idle(batches: Iterable[Any]) -> Iterator[Any]:
    """A row for each task, and a worker that has this module and all it needs in memory afterwards."""
    settle()
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"report": [""]})


def match_chunk(job: Job, number: int, chunk: Chunk) -> Report:
    """Match one chunk, write its files, and leave a copy of the report where the driver looks for progress."""
    source, results = Location(job.publications), Location(job.results)
    report = Report(number, chunk.size)
    clock = Clock(report)
    opened = _opened(job.index, job.version, job.id_field, job.schema)
    with Output(results, report, opened.subscriptions) as output:
        for block in read(source.files, chunk):
            clock.spent_on("scan")
            if isinstance(block, Unreadable):
                output.refuse_file(block)
            else:
                _match_block(opened, block, output, clock)
    clock.spent_on("write")
    with results.files.open_output_stream(f"{results.path}/{REPORT}{number}-{output.key}.json") as file:
        file.write(json.dumps(asdict(report)).encode())
    return report


@lru_cache(maxsize=2)
def _opened(folder: str, version: int, id_field: str, schema: str | None) -> Opened:
    """Kept, because a worker process runs many tasks of a job."""
    index = Index.open(folder, version)
    decoder = Decoder(index.paths, load_text(schema) if schema else None, id_field)
    return Opened(index, decoder, Dictionary(index.ids))


def _match_block(opened: Opened, block: Block, output: Output, clock: Clock) -> None:
    decoded = opened.decoder.decode(block.buffer, block.starts, block.ends)
    ids = _ids(decoded.ids, block)
    output.report.events += decoded.atoms.count
    output.refuse(block, ids, decoded.rejects)
    clock.spent_on("decode")
    for places, matches in decoded.match(opened.index):
        clock.spent_on("match")
        output.write(ids, places, matches.subscription)
        clock.spent_on("write")
    clock.spent_on("match")


def _ids(found: Any, block: Block) -> Any:
    """What publications are called: a file by its name, a line by its id or else by file and number."""
    if block.lines is None:
        return block.names()
    return found if found.null_count == 0 else found.fill_null(block.names())


class Output:
    """The files of one task: they begin to exist with the first row, and end with the context.

    Matches wait as numbers until there are enough for a row group: of their publications, block after block, and of
    their subscriptions.
    """

    def __init__(self, results: Location, report: Report, subscriptions: Dictionary) -> None:
        self.report = report
        self.key = uuid.uuid4().hex[:12]
        self._results = results
        self._subscriptions = subscriptions
        self._files = ExitStack()
        self._matches: ParquetFile | None = None
        self._rejects: Any = None
        self._begin_group()

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *failure: object) -> None:
        if failure[0] is None:
            self._flush()
            if self._matches is not None:
                self._matches.close()
        self._files.close()

    def write(self, ids: Any, publications: Numbers, subscriptions: Numbers) -> None:
        """Add pairs of publications, as places among the ids of their block, and subscriptions."""
        if not len(publications):
            return
        if not self._blocks or self._blocks[-1] is not ids:
            self._first += len(self._blocks[-1]) if self._blocks else 0
            self._blocks.append(ids)
        self._publications.append(Part(publications, self._first))
        self._found.append(Part(subscriptions))
        self._rows += len(publications)
        if self._rows >= ROW_GROUP:
            self._flush()

    def refuse(self, block: Block, ids: Any, rejects: Iterable[tuple[int, PublicationError]]) -> None:
        """Add the publications that could not be used, a line each."""
        for i, problem in rejects:
            self._reject(ids[i].as_py(), block.place(i), problem)

    def refuse_file(self, which: Unreadable) -> None:
        """Add a file that could not be read, or not to its end."""
        self._reject(which.file, {"file": which.file}, DecodeProblem(which.reason))

    def _reject(self, id: str, place: dict[str, object], problem: PublicationError) -> None:
        line = {"what": "publication", "id": id, **place, "reason": problem.headline()}
        self._reject_file().write(json.dumps({**line, "facts": problem.facts()}).encode() + b"\n")
        self.report.rejects += 1

    def _begin_group(self) -> None:
        self._blocks: list[Any] = []
        self._publications: list[Part] = []
        self._found: list[Part] = []
        self._first = self._rows = 0

    def _flush(self) -> None:
        if self._rows:
            publications = Dictionary(pa.concat_arrays(self._blocks), bounded=True)
            columns = Column(publications, self._publications), Column(self._subscriptions, self._found)
            self._matches_file().write(columns)
            self.report.matches += self._rows
        self._begin_group()

    def _matches_file(self) -> ParquetFile:
        if self._matches is None:
            self.report.matches_file = f"part-{self.report.chunk:05d}-{self.key}.parquet"
            self._matches = ParquetFile(self._open(self.report.matches_file), MATCHES)
        return self._matches

    def _reject_file(self) -> Any:
        if self._rejects is None:
            self.report.rejects_file = f"rejects-{self.report.chunk:05d}-{self.key}.jsonl"
            self._rejects = self._open(self.report.rejects_file)
        return self._rejects

    def _open(self, name: str) -> Any:
        stream = self._results.files.open_output_stream(f"{self._results.path}/{name}")
        return self._files.enter_context(stream)
