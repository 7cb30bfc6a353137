"""Task of the stream: decodes, matches and explains publications; writes rows for the sink (`match_output`).

An unusable publication, or a match whose explanation fails, becomes a dead letter and never fails the batch. Work that
exceeds its time or memory budget kills the worker and fails the task: the driver finds the cause (`isolation`) and
excludes it from the next attempt.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.errors import BudgetExceeded, DecodeProblem, PublicationError, SetupError, StoreError
from tidings.events.json_batch_decoder import documents_of
from tidings.events.schema.event_schema import EventSchema
from tidings.events.schema.files import load_text
from tidings.graphs.taxonomy_files import read_taxonomy
from tidings.kinds import Evaluator, Explanation, register, registered_addresses
from tidings.matching.index.index import Index
from tidings.matching.index.matches import Matches
from tidings.reference_data.enrichment import Enrichment, Snapshot
from tidings.spark.decoder import Decoder, match_decoded
from tidings.spark.stream.budget import DEFAULT_BUDGET, Budget, BudgetWatch, StepPhase
from tidings.spark.stream.isolation import NO_VERDICTS, Verdicts
from tidings.spark.stream.match_output import ROWS, MatchOutput, OutputTarget, ResultFiles
from tidings.spark.worker_gc import freeze_memory
from tidings.store.encoding import MatchRow, encode_mapping, encode_reasons

MAX_EXCERPT = 200
"""The number of characters of an exception that a dead letter shows."""
STEP_BYTES = 4 << 20
"""The maximum number of bytes decoded and matched in one step, unless a single publication is larger."""


@dataclass(frozen=True, slots=True)
class MatchJob:
    """Parameters that all tasks of a batch share: the index, the target for rows, and the folder for other results.

    Only in the journal (`is_journal`) positions are permanent and publications may have labels. A step has at most
    `together` publications. `is_part` means that the index has only some of the subscriptions: another task writes the
    dead letters that do not depend on them.
    """

    index: str
    version: int
    schema: str | None
    id_field: str
    results: str
    is_journal: bool
    references: tuple[Snapshot, ...] = ()
    taxonomy: str | None = None
    budget: Budget = DEFAULT_BUDGET
    verdicts: Verdicts = NO_VERDICTS
    together: int = ROWS
    is_part: bool = False
    target: OutputTarget = field(default_factory=ResultFiles)
    kinds: tuple[str, ...] = field(default_factory=registered_addresses)


def build_match_stage(job: MatchJob) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Build the function for `mapInArrow`: publications in, one JSON report out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        freeze_memory()
        _open(job)
        folder = Path(job.results)
        with (
            BudgetWatch(job.budget, folder) as watch,
            MatchOutput(job.target.open(folder), watch) as output,
        ):
            for batch in batches:
                for step in cut_steps(batch, job.together):
                    _match(job, step, output, watch)
        yield pa.RecordBatch.from_pydict({"report": [json.dumps(asdict(output.report))]})

    return run


@lru_cache(maxsize=2)
def _opened(
    index: str,
    version: int,
    schema: str | None,
    id_field: str,
    references: tuple[Snapshot, ...],
    taxonomy: str | None,
    labels: bool,
) -> tuple[Index, Decoder]:
    opened = Index.open(index, version)
    enrichment, taxonomies = Enrichment(references), partial(read_taxonomy, taxonomy)
    return opened, Decoder.for_index(opened, _schema(schema), id_field, enrichment, taxonomies, labels)


@lru_cache(maxsize=2)
def _schema(text: str | None) -> EventSchema | None:
    return load_text(text) if text else None


T = TypeVar("T")


def cut_steps(batch: Any, max_rows: int) -> Iterator[Any]:
    """Divide publications into steps so small that each takes a fraction of its budget."""
    begin, size = 0, 0
    for end, length in enumerate(pc.binary_length(batch["body"]).to_pylist()):
        size += length or 0
        if end > begin and (size > STEP_BYTES or end - begin >= max_rows):
            yield batch.slice(begin, end - begin)
            begin, size = end, length or 0
    if batch.num_rows:
        yield batch.slice(begin)


def _match(job: MatchJob, batch: Any, output: MatchOutput, watch: BudgetWatch) -> None:
    """Decode and match publications by media type; write the matches in the order of positions."""
    positions = batch["position"].to_pylist()
    output.count(positions)
    watch.step(StepPhase.DECODE, positions[0], positions[-1])
    parts = _parts(job, _without_refused(job, batch, positions, output))
    for part in parts if not job.is_part else ():
        part.bury(output)
    for position, name, row, why in heapq.merge(
        *(part.found(output, watch) for part in parts), key=itemgetter(0)
    ):
        bindings = None if why.bindings is None else encode_mapping(why.bindings)
        because = encode_reasons(why.because)
        output.add_match(MatchRow(name, row["id"], row["subscriber"], because, bindings, position=position))
    watch.rest()


def _without_refused(job: MatchJob, batch: Any, positions: Sequence[int], output: MatchOutput) -> Any:
    """Return the publications without a verdict; the others become dead letters unprocessed."""
    refused = job.verdicts.publications
    if refused.keys().isdisjoint(positions):
        return batch
    for i, position in enumerate(positions):
        if position in refused:
            name = batch["publication"][i].as_py() or batch["name"][i].as_py()
            permanent = position if job.is_journal else None
            output.add_dead_letter(name, refused[position], permanent, batch["body"][i].as_py())
    return batch.filter(pa.array([position not in refused for position in positions]))


def match_samples(job: MatchJob, batch: Any) -> None:
    """Process publications as a task does, and discard the results."""
    freeze_memory()
    with (
        TemporaryDirectory() as folder,
        BudgetWatch(Budget(seconds=0), Path(folder)) as watch,
        MatchOutput(ResultFiles().open(Path(folder)), watch) as output,
    ):
        for part in _parts(job, batch):
            for _ in part.found(output, watch):
                pass


def decode_samples(job: MatchJob, batch: Any) -> None:
    """Open the files of a task and decode publications, without matching them."""
    freeze_memory()
    _parts(job, batch)


def _parts(job: MatchJob, batch: Any) -> list[_Part]:
    types = batch["media_type"]
    return [_Part(job, batch.take(_where(types, name)), name) for name in types.unique().to_pylist()]


def _open(job: MatchJob) -> tuple[Index, Decoder]:
    register(*job.kinds)
    return _opened(
        job.index, job.version, job.schema, job.id_field, job.references, job.taxonomy, job.is_journal
    )


def _where(column: Any, value: str) -> Any:
    return pa.array(np.flatnonzero(pc.equal(column, value)))


class _Part:
    """The publications of one media type in a batch."""

    def __init__(self, job: MatchJob, batch: Any, media_type: str) -> None:
        self._job, self._batch, self._media_type = job, batch, media_type
        self._index, self._decoder = _open(job)
        self._decoded = self._decoder.decode(media_type, *documents_of(batch["body"]))
        ids = batch["publication"].fill_null(self._decoded.ids)
        self._names = ids.fill_null(batch["name"]).to_pylist()

    def bury(self, output: MatchOutput) -> None:
        """Write dead letters for unusable publications and for pairs with a verdict."""
        batch = self._batch
        for i, problem in self._decoded.problems:
            missing = _missing(batch["problem"][i], batch["name"][i])
            self._bury(output, i, missing or problem, None)
        for i, position in enumerate(batch["position"].to_pylist()):
            for subscription, exceeded in self._job.verdicts.pairs.get(position, {}).items():
                self._bury(output, i, exceeded, subscription)

    def _bury(self, output: MatchOutput, i: int, problem: PublicationError, subscription: str | None) -> None:
        batch = self._batch
        position = batch["position"][i].as_py() if self._job.is_journal else None
        output.add_dead_letter(self._names[i], problem, position, batch["body"][i].as_py(), subscription)

    def found(
        self, output: MatchOutput, watch: BudgetWatch
    ) -> Iterator[tuple[int, str, dict[str, str], Explanation]]:
        """Yield the position and name of a publication, a matching subscription and the explanation.

        They are in the order of positions. A match that cannot be explained becomes a dead letter.
        """
        for matches in self._matches(watch):
            places = matches.publication
            order = np.argsort(places, kind="stable")
            rows = matches.table().take(pa.array(order)).to_pylist()
            for place, found in groupby(zip(places[order].tolist(), rows, strict=True), itemgetter(0)):
                position, name = self._batch["position"][place].as_py(), self._names[place]
                known = self._job.verdicts.pairs.get(position, {})
                watch.step(StepPhase.DECODE, position, position)
                evaluator = self._attempt(output, place, None, partial(self._read, place))
                if evaluator is None:
                    continue
                for _, row in found:
                    if row["id"] in known or row["id"] in self._job.verdicts.suspended:
                        continue
                    watch.step(StepPhase.EXPLAIN, position, position, row["id"])
                    explain = partial(evaluator.explain, row["language"], row["text"])
                    why = self._attempt(output, place, row["id"], explain)
                    if why is not None:
                        yield position, name, row, why

    def _attempt(
        self, output: MatchOutput, place: int, subscription: str | None, do: Callable[[], T | None]
    ) -> T | None:
        """Return the result of `do`; if it fails, write a dead letter and return None."""
        try:
            return do()
        except ENVIRONMENT:
            raise
        except Exception as problem:  # noqa: BLE001 - any other error concerns this publication only
            self._bury(output, place, _explain_failure(problem, self._job.budget), subscription)
            return None

    def _matches(self, watch: BudgetWatch) -> Iterator[Matches]:
        """Yield the matches and the undecided pairs, which their explanation decides."""
        positions = self._batch["position"]
        parts = match_decoded(self._decoded, self._media_type, self._index) if len(positions) else iter(())
        while True:
            if len(positions):
                watch.step(StepPhase.MATCH, positions[0].as_py(), positions[-1].as_py())
            matches = next(parts, None)
            if matches is None:
                return
            yield matches.candidates

    def _read(self, place: int) -> Evaluator:
        body, added = self._batch["body"][place].as_py(), self._decoded.added.get(place, ())
        return self._decoder.reader(self._media_type).read(body, self._media_type, added)


ENVIRONMENT = (OSError, SetupError, StoreError)
"""Errors that do not depend on the publication."""


def _explain_failure(problem: Exception, budget: Budget) -> PublicationError:
    """Build the problem of a dead letter for a match whose explanation failed."""
    if isinstance(problem, BudgetExceeded):
        return problem
    if isinstance(problem, MemoryError):
        return BudgetExceeded(
            "explaining the match takes more memory than its budget",
            accepted=f"{budget.megabytes:,} megabytes",
            hint="raise the setting stream.step_memory to give it more memory",
        )
    return BudgetExceeded(
        "the match cannot be explained", received=f"{type(problem).__name__}: {problem}"[:MAX_EXCERPT]
    )


def _missing(problem: Any, name: Any) -> PublicationError | None:
    """Return the problem of a publication that its source could not read, or None."""
    return DecodeProblem(problem.as_py(), where=name.as_py()) if problem.is_valid else None
