"""JSON text to matches in a plain loop, without Spark: in this process, or on several cores at once.

    loop = Loop(index folder, text)
    loop.run()                        decode and match
    loop.run(folder)                  the same, and write the matches as the Spark job does

The text is in memory before the measurement starts, so no file is read. With several cores, each process gets a part of
the lines.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.events.json_batch_decoder import DecodedLines, decode_many, split_lines
from tidings.events.kernel_tables import PathTable
from tidings.matching.index.index import Index
from tidings.matching.index.matches import Matches
from tidings.matching.parquet import Dictionary
from tidings.spark.batch.output import SUBSCRIPTION, ChunkOutput, ChunkReport, SubscriptionColumn
from tidings.spark.sources.files import Location

BLOCK_BYTES = 2 << 20
"""Size of a block, as in the Spark job: it fits into the processor's cache."""

PARTS = ("decode", "match", "write")


class LoopResult(NamedTuple):
    """CPU seconds by part, and the number of matches."""

    seconds: dict[str, float]
    matches: int


class Loop:
    """An index, some lines of JSON, and the loop over them."""

    def __init__(self, index: Path, text: bytes) -> None:
        self._index = Index.open(index)
        self._table = PathTable(self._index.paths)
        self._ids = SubscriptionColumn(SUBSCRIPTION, Dictionary(self._index.ids))
        count = -(-len(text) // BLOCK_BYTES)
        self._blocks = [np.frombuffer(block, np.uint8) for block in shares(text, count)]

    def run(self, out: Path | None = None) -> LoopResult:
        """Decode and match; with a folder, write as well."""
        report = ChunkReport(0, 0)
        seconds, matches, last = dict.fromkeys(PARTS, 0.0), 0, time.process_time()

        def spent_on(part: str) -> None:
            nonlocal last
            now = time.process_time()
            seconds[part] += now - last
            last = now

        with ChunkOutput(Location.of(out or "."), report, self._ids) as output:
            for decoded in self._decode():
                spent_on("decode")
                found = self._index.match(decoded.atoms)
                matches += len(found)
                spent_on("match")
                if out is not None:
                    output.write(decoded.ids, found.publication, found.subscription)
                    spent_on("write")
        spent_on("write")
        return LoopResult(seconds, matches)

    def counts(self) -> npt.NDArray[np.int64]:
        """Count the subscriptions that each event matches."""
        blocks = [(self._index.match(decoded.atoms), decoded) for decoded in self._decode()]
        return np.concatenate([_counts(matches, decoded) for matches, decoded in blocks])

    def _decode(self) -> Iterator[DecodedLines]:
        for block in self._blocks:
            lines = split_lines(block)
            yield decode_many(block, lines.starts, lines.ends, self._table, "id")


def _counts(matches: Matches, decoded: DecodedLines) -> npt.NDArray[np.int64]:
    return np.bincount(matches.publication, minlength=decoded.atoms.count)


class LoopProcesses:
    """A loop in each of several processes, each over a part of the lines."""

    def __init__(self, ends: Sequence[Any]) -> None:
        self._ends = ends

    def run(self, out: Path | None = None) -> tuple[float, LoopResult]:
        """Run all loops at once; return the seconds until the last one ends, and their combined result."""
        began = time.perf_counter()
        for end in self._ends:
            end.send(out)
        results = [end.recv() for end in self._ends]
        seconds = time.perf_counter() - began
        parts = {part: sum(each.seconds[part] for each in results) for part in PARTS}
        return seconds, LoopResult(parts, sum(each.matches for each in results))


@contextmanager
def start_loops(processes: int, index: Path, text: bytes) -> Iterator[LoopProcesses]:
    """Start the processes and run each loop once, so that everything is loaded and compiled."""
    context = get_context("spawn")
    pipes = [context.Pipe() for _ in range(processes)]
    workers = [
        context.Process(target=_serve, args=(theirs, index, share), daemon=True)
        for (_, theirs), share in zip(pipes, shares(text, processes), strict=True)
    ]
    for worker in workers:
        worker.start()
    loops = LoopProcesses([ours for ours, _ in pipes])
    try:
        loops.run()
        yield loops
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def shares(text: bytes, count: int) -> list[bytes]:
    """Split the text at line ends into `count` parts of similar size."""
    cuts = [0, *(text.find(b"\n", at * len(text) // count) + 1 for at in range(1, count)), len(text)]
    return [text[start:end] for start, end in pairwise(cuts)]


def _serve(end: Any, index: Path, text: bytes) -> None:
    """Serve run commands from the pipe until the process is terminated."""
    pa.set_cpu_count(1)
    loop = Loop(index, text)
    while True:
        end.send(loop.run(end.recv()))
