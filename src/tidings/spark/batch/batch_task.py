"""Task of the batch job: reads a chunk, decodes it, matches it, writes its matches.

A task writes its own Parquet file under a unique name and reports it. The driver keeps the files of the reports it gets
and drops all others, so that a repeated task counts once. (Spark's own writer costs many times as much:
docs/decisions/0006-batch-output.md.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.errors import BudgetExceeded, DecodeProblem, PublicationError
from tidings.events.schema.files import load_text
from tidings.graphs.taxonomy_files import read_taxonomy
from tidings.kinds import Part, find_kind, register, registered_addresses
from tidings.matching.index.index import Index
from tidings.matching.index.matches import Matches
from tidings.matching.parquet import Dictionary
from tidings.reference_data.enrichment import Enrichment, Snapshot
from tidings.spark.batch.output import SUBSCRIPTION, ChunkOutput, ChunkReport, Numbers, SubscriptionColumn
from tidings.spark.decoder import Decoder, match_decoded
from tidings.spark.sources.blocks import BLOCK_BYTES, Block, UnreadableFile, build_block, read_blocks
from tidings.spark.sources.chunks import Chunk, ChunkList
from tidings.spark.sources.files import Location
from tidings.spark.worker_gc import freeze_memory


@dataclass(frozen=True, slots=True)
class MultipartFailure:
    """A file that cannot be split, and why."""

    file: str
    problem: PublicationError


def split_multipart(block: Block) -> Iterator[Block | MultipartFailure]:
    """Split files that hold several publications; other blocks stay as they are.

    Only the task that reads a file knows its content, so files are split here. Their publications are named by file and
    number: `days.trig:1`, `days.trig:2`.
    """
    kind = find_kind(block.media_type)
    if kind is None or not kind.may_split(block.media_type):
        yield block
        return
    gathered: list[tuple[str, Part]] = []
    for place, name in enumerate(block.files):
        body = block.body(place)
        try:
            parts = kind.split(body, block.media_type)
        except PublicationError as problem:
            yield MultipartFailure(name, problem)
            continue
        if parts is None:
            gathered.append((name, Part(block.media_type, body)))
        else:
            gathered += [(f"{name}:{number}", part) for number, part in enumerate(parts, start=1)]
        if sum(len(part.body) for _, part in gathered) >= BLOCK_BYTES:
            yield from _build_blocks(gathered)
            gathered = []
    yield from _build_blocks(gathered)


def _build_blocks(gathered: Sequence[tuple[str, Part]]) -> Iterator[Block]:
    """Build a block for each run of named publications of one media type."""
    for media_type, run in groupby(gathered, key=lambda named: named[1].media_type):
        names, parts = zip(*run, strict=True)
        yield build_block([part.body for part in parts], list(names), media_type)


REPORT_PREFIX = "report-"


@dataclass(frozen=True, slots=True)
class BatchTaskJob:
    """Parameters that all tasks share: publications, results, index, decoding.

    The schema is the text of a schema file.
    """

    publications: str
    results: str
    chunks: ChunkList
    index: str
    version: int
    id_field: str
    schema: str | None
    references: tuple[Snapshot, ...] = ()
    taxonomy: str | None = None
    kinds: tuple[str, ...] = field(default_factory=registered_addresses)


class CpuClock:
    """Adds the CPU time since the last call to one of the timed steps."""

    def __init__(self, report: ChunkReport) -> None:
        self._seconds = report.seconds
        self._last = process_time()

    def spent_on(self, part: str) -> None:
        now = process_time()
        self._seconds[part] += now - self._last
        self._last = now


@dataclass(frozen=True, slots=True)
class WorkerState:
    """Objects that a worker keeps between tasks."""

    index: Index
    decoder: Decoder
    subscriptions: SubscriptionColumn


def build_batch_stage(job: BatchTaskJob) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Build the function for `mapInArrow`: numbers of chunks in, JSON reports out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        freeze_memory()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                report = json.dumps(asdict(match_chunk(job, number, job.chunks.read(number))))
                yield pa.RecordBatch.from_pydict({"report": [report]})

    return run


def load_worker(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield a row for each task; the worker has imported this module afterwards."""
    freeze_memory()
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"report": [""]})


def match_chunk(job: BatchTaskJob, number: int, chunk: Chunk) -> ChunkReport:
    """Match one chunk, write its files and, for the driver's progress, a copy of the report."""
    source, results = Location(job.publications), Location(job.results)
    report = ChunkReport(number, chunk.size)
    clock = CpuClock(report)
    register(*job.kinds)
    state = _open_worker_state(job.index, job.version, job.id_field, job.schema, job.references, job.taxonomy)
    with ChunkOutput(results, report, state.subscriptions) as output:
        for block in read_blocks(source.files, chunk):
            clock.spent_on("scan")
            if isinstance(block, UnreadableFile):
                output.refuse_file(block.file, DecodeProblem(block.reason))
            else:
                _match_parts(state, block, output, clock)
    clock.spent_on("write")
    with results.files.open_output_stream(
        f"{results.path}/{REPORT_PREFIX}{number}-{output.key}.json"
    ) as file:
        file.write(json.dumps(asdict(report)).encode())
    return report


@lru_cache(maxsize=2)
def _open_worker_state(
    folder: str,
    version: int,
    id_field: str,
    schema: str | None,
    references: tuple[Snapshot, ...],
    taxonomy: str | None,
) -> WorkerState:
    """Open index and decoder once: a worker process runs many tasks of a job."""
    index = Index.open(folder, version)
    checked = load_text(schema) if schema else None
    decoder = Decoder.for_index(
        index, checked, id_field, Enrichment(references), partial(read_taxonomy, taxonomy)
    )
    return WorkerState(index, decoder, SubscriptionColumn(SUBSCRIPTION, Dictionary(index.ids)))


def _match_parts(state: WorkerState, block: Block, output: ChunkOutput, clock: CpuClock) -> None:
    for part in split_multipart(block):
        clock.spent_on("decode")
        if isinstance(part, MultipartFailure):
            output.report.events += 1
            output.refuse_file(part.file, part.problem)
        else:
            _match_block(state, part, output, clock)


def _match_block(state: WorkerState, block: Block, output: ChunkOutput, clock: CpuClock) -> None:
    decoded = state.decoder.decode(block.media_type, block.buffer, block.starts, block.ends)
    ids = _fill_ids(decoded.ids, block)
    output.report.events += decoded.atoms.count
    output.refuse(block, ids, decoded.problems)
    clock.spent_on("decode")
    for matches in match_decoded(decoded, block.media_type, state.index):
        places, subscriptions = _decide(state, block, ids, matches.undecided, output)
        clock.spent_on("match")
        output.write(ids, matches.publication, matches.subscription)
        output.write(ids, places, subscriptions)
        clock.spent_on("write")
    clock.spent_on("match")


def _decide(
    state: WorkerState, block: Block, ids: Any, undecided: Matches, output: ChunkOutput
) -> tuple[Numbers, Numbers]:
    """Decide pairs by the definition; return those that match.

    The definition searches in another order than the kernel. A pair that stays undecided is rejected with the reason.
    """
    rows = zip(undecided.publication, undecided.subscription, undecided.table().to_pylist(), strict=True)
    matched = []
    reader = state.decoder.reader(block.media_type)
    for place, pairs in groupby(sorted(rows, key=itemgetter(0, 1)), itemgetter(0)):
        evaluator = reader.read(block.body(place), block.media_type)
        for _, number, row in pairs:
            try:
                if evaluator.matches(row["language"], row["text"]):
                    matched.append((place, number))
            except BudgetExceeded as problem:
                output.refuse_pair(block, ids, place, row["id"], problem)
    places, subscriptions = np.array(matched, np.int32).reshape(-1, 2).T
    return places, subscriptions


def _fill_ids(ids: Any, block: Block) -> Any:
    """Return the ids: of a file its name, of a line its id or else file and number."""
    if block.lines is None:
        return block.names()
    return ids if ids.null_count == 0 else ids.fill_null(block.names())
