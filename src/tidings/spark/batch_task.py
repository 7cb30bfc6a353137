"""What one task of the batch job does: read a chunk, decode it, match it, write its matches.

A task writes its own Parquet file under a name nobody else uses and reports it; the driver keeps the files of the
reports it gets and drops all others, so that a task that is repeated counts once. (Handing the matches to Spark's
writer instead costs several times as much: docs/decisions/0006-batch-output.md.)
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import lru_cache
from time import process_time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.errors import DecodeProblem, PublicationError
from tidings.matching.index import Index
from tidings.schema.files import load_text
from tidings.spark.chunks import Block, Chunk, Location, Unreadable, read
from tidings.spark.decoding import Decoder

MATCHES = pa.schema([("publication", pa.string()), ("subscription", pa.string())])
ROW_GROUP = 1 << 20
CODEC = "zstd"
REPORT = "report-"


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks have in common: where publications come from and matches go to, and what they are matched with.

    The schema is a text, as in a schema file.
    """

    publications: str
    results: str
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
    decode_seconds: float = 0.0
    match_seconds: float = 0.0
    write_seconds: float = 0.0


def stage(job: Job) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for `mapInArrow`: rows of a chunk's number and its JSON in, reports in JSON out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for row in batch.to_pylist():
                report = json.dumps(asdict(match_chunk(job, row["number"], Chunk.from_json(row["chunk"]))))
                yield pa.RecordBatch.from_pydict({"report": [report]})

    return run


def idle(batches: Iterable[Any]) -> Iterator[Any]:
    """A row for each task, and a worker that has this module and all it needs in memory afterwards."""
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"report": [""]})


def match_chunk(job: Job, number: int, chunk: Chunk) -> Report:
    """Match one chunk, write its files, and leave a copy of the report where the driver looks for progress."""
    source, results = Location(job.publications), Location(job.results)
    index, decoder = _opened(job.index, job.version, job.id_field, job.schema)
    report = Report(number, chunk.size)
    with Output(results, report) as output:
        for block in read(source.files, chunk):
            if isinstance(block, Unreadable):
                output.refuse_file(block)
            else:
                _match_block(index, decoder, block, output)
    with results.files.open_output_stream(f"{results.path}/{REPORT}{number}-{output.key}.json") as file:
        file.write(json.dumps(asdict(report)).encode())
    return report


@lru_cache(maxsize=2)
def _opened(folder: str, version: int, id_field: str, schema: str | None) -> tuple[Index, Decoder]:
    """The index and a decoder for its paths; kept, because a worker process runs many tasks of a job."""
    index = Index.open(folder, version)
    return index, Decoder(index.paths, load_text(schema) if schema else None, id_field)


def _match_block(index: Index, decoder: Decoder, block: Block, output: Output) -> None:
    start = process_time()
    decoded = decoder.decode(block.buffer, block.starts, block.ends)
    ids = _ids(decoded.ids, block)
    output.report.events += decoded.atoms.count
    output.report.decode_seconds += process_time() - start
    output.refuse(block, ids, decoded.rejects)
    start = process_time()
    for places, matches in decoded.match(index):
        matched_at = process_time()
        output.report.match_seconds += matched_at - start
        output.write([ids.take(pa.array(places)), matches.ids()])
        start = process_time()
        output.report.write_seconds += start - matched_at


def _ids(found: Any, block: Block) -> Any:
    """What publications are called: a file by its name, a line by its id or else by file and number."""
    if block.lines is None:
        return block.names()
    return found if found.null_count == 0 else found.fill_null(block.names())


class Output:
    """The files of one task: they begin to exist with the first row, and end with the context."""

    def __init__(self, results: Location, report: Report) -> None:
        self.report = report
        self.key = uuid.uuid4().hex[:12]
        self._results = results
        self._waiting: list[Any] = []
        self._rows = 0
        self._files = ExitStack()
        self._matches: pq.ParquetWriter | None = None
        self._rejects: Any = None

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *failure: object) -> None:
        start = process_time()
        if failure[0] is None:
            self._flush()
        self._files.close()
        self.report.write_seconds += process_time() - start

    def write(self, columns: list[Any]) -> None:
        """Add matches; they are written in groups of about a million, which readers like best."""
        self._waiting.append(pa.Table.from_arrays(columns, schema=MATCHES))
        self._rows += len(columns[0])
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

    def _flush(self) -> None:
        if self._rows:
            self._matches_writer().write_table(pa.concat_tables(self._waiting), row_group_size=ROW_GROUP)
            self.report.matches += self._rows
        self._waiting, self._rows = [], 0

    def _matches_writer(self) -> pq.ParquetWriter:
        if self._matches is None:
            self.report.matches_file = f"part-{self.report.chunk:05d}-{self.key}.{CODEC}.parquet"
            self._matches = self._files.enter_context(parquet_writer(self._open(self.report.matches_file)))
        return self._matches

    def _reject_file(self) -> Any:
        if self._rejects is None:
            self.report.rejects_file = f"rejects-{self.report.chunk:05d}-{self.key}.jsonl"
            self._rejects = self._open(self.report.rejects_file)
        return self._rejects

    def _open(self, name: str) -> Any:
        stream = self._results.files.open_output_stream(f"{self._results.path}/{name}")
        return self._files.enter_context(stream)


def parquet_writer(file: Any) -> pq.ParquetWriter:
    """A writer of matches. Subscriptions hardly repeat within a row group: dictionaries would only cost time."""
    return pq.ParquetWriter(
        file,
        MATCHES,
        compression=CODEC,
        use_dictionary=False,
        write_statistics=["publication"],
        store_schema=False,
    )
