"""What one task of the batch job does: read a chunk, decode it, match it, write its matches.

A task writes its own Parquet file under a name nobody else uses and reports it; the driver keeps the files of the
reports it gets and drops all others, so that a task that is repeated counts once. (Handing the matches to Spark's
writer instead costs many times as much: docs/decisions/0006-batch-output.md.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.errors import BudgetExceeded, DecodeProblem, PublicationError
from tidings.events.schema.files import load_text
from tidings.graphs import explanation
from tidings.graphs.atoms import GraphReader
from tidings.graphs.gql import gql_parser
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.rdf.media_types import JSON_LD
from tidings.graphs.rdf.multipart import N_TRIPLES, SEVERAL, parts_of
from tidings.graphs.taxonomy import Taxonomy
from tidings.graphs.taxonomy_files import read_taxonomy
from tidings.matching.index.index import Index
from tidings.matching.index.matches import Matches
from tidings.matching.parquet import Dictionary
from tidings.reference_data.enrichment import Enrichment, Snapshot
from tidings.spark.batch.output import ChunkOutput, ChunkReport, Numbers
from tidings.spark.decoder import Decoder
from tidings.spark.sources.blocks import BLOCK_BYTES, Block, UnreadableFile, build_block, read_blocks
from tidings.spark.sources.chunks import Chunk, ChunkList
from tidings.spark.sources.files import Location
from tidings.spark.worker_gc import freeze_memory

# Files of the batch job that hold several publications: the graphs of TriG, N-Quads and JSON-LD, the items of feeds.
#
# They are taken apart inside the task, because only who reads a file knows what is in it, and called by their file
# and a number: `days.trig:1`, `days.trig:2`.


@dataclass(frozen=True, slots=True)
class MultipartFailure:
    """A file that cannot be taken apart, and why."""

    file: str
    problem: PublicationError


def split_multipart(block: Block) -> Iterator[Block | MultipartFailure]:
    """The block itself, or what is in its files if they hold several, in blocks of some megabytes."""
    if block.media_type not in SEVERAL and block.media_type != JSON_LD:
        yield block
        return
    bodies: list[bytes] = []
    names: list[str] = []
    size = 0
    for place, name in enumerate(block.files):
        try:
            parts = list(parts_of(block.body(place), block.media_type))
        except PublicationError as problem:
            yield MultipartFailure(name, problem)
            continue
        bodies += parts
        names += _names(name, len(parts), block.media_type)
        size += sum(map(len, parts))
        if size >= BLOCK_BYTES:
            yield build_block(bodies, names, N_TRIPLES)
            bodies, names, size = [], [], 0
    if bodies:
        yield build_block(bodies, names, N_TRIPLES)


def _names(file: str, count: int, media_type: str) -> list[str]:
    """A JSON-LD file is one graph mostly, and is called as any other file is then."""
    if media_type == JSON_LD and count == 1:
        return [file]
    return [f"{file}:{number}" for number in range(1, count + 1)]


REPORT_PREFIX = "report-"


@dataclass(frozen=True, slots=True)
class BatchTaskJob:
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
    references: tuple[Snapshot, ...] = ()
    taxonomy: str | None = None


class CpuClock:
    """Writes down what the CPU time since the last look went into."""

    def __init__(self, report: ChunkReport) -> None:
        self._seconds = report.seconds
        self._last = process_time()

    def spent_on(self, part: str) -> None:
        now = process_time()
        self._seconds[part] += now - self._last
        self._last = now


@dataclass(frozen=True, slots=True)
class WorkerState:
    """What a worker keeps from task to task."""

    index: Index
    decoder: Decoder
    subscriptions: Dictionary
    taxonomy: Taxonomy


def build_batch_stage(job: BatchTaskJob) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for `mapInArrow`: numbers of chunks in, reports in JSON out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        freeze_memory()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                report = json.dumps(asdict(match_chunk(job, number, job.chunks.read(number))))
                yield pa.RecordBatch.from_pydict({"report": [report]})

    return run


def load_worker(batches: Iterable[Any]) -> Iterator[Any]:
    """A row for each task, and a worker that has this module and all it needs in memory afterwards."""
    freeze_memory()
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"report": [""]})


def match_chunk(job: BatchTaskJob, number: int, chunk: Chunk) -> ChunkReport:
    """Match one chunk, write its files, and leave a copy of the report where the driver looks for progress."""
    source, results = Location(job.publications), Location(job.results)
    report = ChunkReport(number, chunk.size)
    clock = CpuClock(report)
    opened = _opened(job.index, job.version, job.id_field, job.schema, job.references, job.taxonomy)
    with ChunkOutput(results, report, opened.subscriptions) as output:
        for block in read_blocks(source.files, chunk):
            clock.spent_on("scan")
            if isinstance(block, UnreadableFile):
                output.refuse_file(block.file, DecodeProblem(block.reason))
            else:
                _match_parts(opened, block, output, clock)
    clock.spent_on("write")
    with results.files.open_output_stream(
        f"{results.path}/{REPORT_PREFIX}{number}-{output.key}.json"
    ) as file:
        file.write(json.dumps(asdict(report)).encode())
    return report


@lru_cache(maxsize=2)
def _opened(
    folder: str,
    version: int,
    id_field: str,
    schema: str | None,
    references: tuple[Snapshot, ...],
    taxonomy: str | None,
) -> WorkerState:
    """Kept, because a worker process runs many tasks of a job."""
    index = Index.open(folder, version)
    checked = load_text(schema) if schema else None
    classes = read_taxonomy(taxonomy)
    reader = GraphReader(index.graph_paths, classes)
    decoder = Decoder(index.paths, checked, id_field, Enrichment(references), reader)
    return WorkerState(index, decoder, Dictionary(index.ids), classes)


def _match_parts(opened: WorkerState, block: Block, output: ChunkOutput, clock: CpuClock) -> None:
    for part in split_multipart(block):
        clock.spent_on("decode")
        if isinstance(part, MultipartFailure):
            output.report.events += 1
            output.refuse_file(part.file, part.problem)
        else:
            _match_block(opened, part, output, clock)


def _match_block(opened: WorkerState, block: Block, output: ChunkOutput, clock: CpuClock) -> None:
    decoded = opened.decoder.decode(block.media_type, block.buffer, block.starts, block.ends)
    ids = _ids(decoded.ids, block)
    output.report.events += decoded.atoms.count
    output.refuse(block, ids, decoded.problems)
    clock.spent_on("decode")
    for matches in decoded.match(opened.index):
        places, subscriptions = _decide(opened, block, ids, matches.undecided, output)
        clock.spent_on("match")
        output.write(ids, matches.publication, matches.subscription)
        output.write(ids, places, subscriptions)
        clock.spent_on("write")
    clock.spent_on("match")


def _decide(
    opened: WorkerState, block: Block, ids: Any, undecided: Matches, output: ChunkOutput
) -> tuple[Numbers, Numbers]:
    """Decide graph pairs by the definition, whose order of search differs from the kernel's; those that match.

    A pair that stays undecided is rejected with the reason.
    """
    rows = zip(undecided.publication, undecided.subscription, undecided.table().to_pylist(), strict=True)
    matched = []
    for place, pairs in groupby(sorted(rows, key=itemgetter(0, 1)), itemgetter(0)):
        explainer = explanation.Explainer(
            rdf_decoder.decode(block.body(place), block.media_type), opened.taxonomy
        )
        for _, number, row in pairs:
            try:
                if explainer.matches(_pattern(row["text"])):
                    matched.append((place, number))
            except BudgetExceeded as problem:
                output.refuse_pair(block, ids, place, row["id"], problem)
    places, subscriptions = np.array(matched, np.int32).reshape(-1, 2).T
    return places, subscriptions


_pattern = lru_cache(maxsize=1_000)(gql_parser.parse)


def _ids(found: Any, block: Block) -> Any:
    """What publications are called: a file by its name, a line by its id or else by file and number."""
    if block.lines is None:
        return block.names()
    return found if found.null_count == 0 else found.fill_null(block.names())
