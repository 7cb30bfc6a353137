"""The match stage: Arrow batches of publications in, one row per publication with matches out.

The stage is the function of a `mapInArrow`. It decodes, matches and, if wanted, explains. A row of its output has
either `matches`, an array, or a `problem`: Spark has no second output for rejected rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.errors import BudgetExceeded, DecodeProblem, PublicationError
from tidings.events.json_batch_decoder import documents_of
from tidings.kinds import DecodedPublications, Evaluator, Explanation, find_kind
from tidings.matching.index.index import Index
from tidings.matching.index.matches import Matches
from tidings.model import content_id
from tidings.spark.dataframe.environment import MatchEnvironment, explain_memory
from tidings.spark.decoder import Decoder, match_decoded
from tidings.spark.explanation_columns import (
    BINDINGS,
    BINDINGS_TYPE,
    EXPLANATION,
    EXPLANATION_TYPE,
    encode_bindings,
    encode_reasons,
)
from tidings.spark.worker_gc import freeze_memory

PUBLICATION, BODY, MEDIA_TYPE = "publication", "body", "media_type"
"""Columns of the stage's input; `media_type` only if publications have different ones."""

PROBLEM = pa.struct([("subscription", pa.string()), ("reason", pa.string()), ("facts", pa.string())])
SPARK_TYPES = {
    "number": "int",
    "subscription": "string",
    "subscriber": "string",
    "explanation": EXPLANATION_TYPE,
    "bindings": BINDINGS_TYPE,
}
NUMBERS = ("number",)
"""The field of a match that is only the number of a subscription, its place in `Index.ids`."""
COLUMN_OF = {"subscription": "id", "subscriber": "subscriber"}
PROBLEM_TYPE = "struct<subscription: string, reason: string, facts: string>"

Places = npt.NDArray[np.int64]


class Group(NamedTuple):
    """Publications of one media type in a batch: their bodies, and the row and part that each comes from."""

    media_type: str
    bodies: Any
    rows: Places
    parts: Sequence[int] | None = None


class Problem(NamedTuple):
    """A publication that was rejected, or one whose match with a subscription could not be decided or explained."""

    row: int
    publication: str
    error: PublicationError
    subscription: str | None = None


class Pairs(NamedTuple):
    """Matches in the order of publications.

    `places` are the publications with matches, as places in the group; the matches of `places[i]` start at `starts[i]`.
    """

    places: Places
    starts: Places
    subscriptions: Any
    explanations: Sequence[Explanation] | None = None


class NumberedPairs(NamedTuple):
    """Matches as numbers: of publications, as places in `names`, and of subscriptions, as places in `Index.ids`."""

    names: Any
    publications: npt.NDArray[np.int32]
    subscriptions: npt.NDArray[np.int32]


@dataclass(frozen=True)
class MatchStage:
    """Matches Arrow batches in a task. `fields` are those of a match, in order; `keep` are passed-through columns."""

    environment: MatchEnvironment
    media_type: str | None
    id_field: str
    fields: tuple[str, ...] = ("subscription", "subscriber")
    keep: tuple[str, ...] = ()
    fails: bool = False

    @property
    def is_numbered(self) -> bool:
        """Whether matches are numbers of subscriptions in the index instead of structs."""
        return self.fields == NUMBERS

    def output_schema(self, keep_types: Sequence[str]) -> str:
        """Return the schema of the output, in Spark's DDL; `keep_types` are the types of the kept columns."""
        pair = ", ".join(f"{name}: {SPARK_TYPES[name]}" for name in self.fields)
        matches = "array<int>" if self.is_numbered else f"array<struct<{pair}>>"
        kept = (f", {_quote(name)} {kind}" for name, kind in zip(self.keep, keep_types, strict=True))
        return f"publication string, matches {matches}, problem {PROBLEM_TYPE}" + "".join(kept)

    @property
    def matches_type(self) -> pa.DataType:
        """The Arrow type of the column `matches`."""
        pair = pa.struct([(name, _ARROW_TYPES[name]) for name in self.fields if not self.is_numbered])
        return pa.list_(pa.int32() if self.is_numbered else pair)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_memory()
        with explain_memory(self.environment):
            index, decoder = self.environment.open(self.id_field)
            for batch in batches:
                if batch.num_rows:
                    yield from BatchMatch(self, index, decoder, batch).run()


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class BatchMatch:
    """One Arrow batch of publications, matched with an index. `publications` counts those that were looked at."""

    def __init__(self, stage: MatchStage, index: Index, decoder: Decoder, batch: pa.RecordBatch) -> None:
        self._stage, self._index, self._decoder, self._batch = stage, index, decoder, batch
        self._problems: list[Problem] = []
        self.publications = 0

    def run(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows with matches, then those with problems."""
        for group in self._split(self._groups()):
            yield from self._match(group)
            yield from self._flush()
        yield from self._flush()

    def run_numbered(self) -> Iterator[NumberedPairs]:
        """Yield the matches as numbers, in any order. `take_problems` has the problems so far.

        Names are copied: a column of the batch would keep all of the batch in memory, with its bodies.
        """
        for group in self._split(self._groups()):
            decoded, names = self._decode(group)
            names = pa.concat_arrays([names, names[:0]])
            for matches in match_decoded(decoded, group.media_type, self._index):
                yield NumberedPairs(names, matches.publication, matches.subscription)
                if len(matches.undecided):
                    pairs = self._explain(group, decoded, names, matches.undecided)
                    places = np.repeat(pairs.places, np.diff(pairs.starts)).astype(np.int32)
                    yield NumberedPairs(names, places, pairs.subscriptions)

    def take_problems(self) -> list[Problem]:
        """Return the problems since the last call; raise the first one if the stage fails at problems."""
        problems, self._problems = self._problems, []
        if problems and self._stage.fails:
            raise _with_name(problems[0])
        return problems

    def _groups(self) -> Iterator[Group]:
        """Divide the batch by media type."""
        bodies = self._batch.column(BODY)
        if self._stage.media_type is not None:
            yield Group(self._stage.media_type, bodies, np.arange(len(bodies)))
            return
        types = self._batch.column(MEDIA_TYPE)
        for media_type in types.unique().to_pylist():
            rows = np.flatnonzero(np.asarray(types.to_pylist(), object) == media_type)
            yield Group(media_type or "", bodies.take(pa.array(rows)), rows)

    def _split(self, groups: Iterable[Group]) -> Iterator[Group]:
        """Divide bodies that hold several publications, such as feeds and TriG."""
        for group in groups:
            kind = find_kind(group.media_type)
            if kind is None or not kind.may_split(group.media_type):
                yield group
                continue
            parts: list[tuple[str, bytes, int, int]] = []
            for row, body in zip(group.rows.tolist(), group.bodies.to_pylist(), strict=True):
                content = _as_bytes(body)
                try:
                    divided = kind.split(content, group.media_type)
                except PublicationError as error:
                    self._problems.append(Problem(row, self._name(row, content), error))
                    self.publications += 1
                    continue
                if divided is None:
                    parts.append((group.media_type, content, row, 0))
                else:
                    parts += [(part.media_type, part.body, row, n) for n, part in enumerate(divided, start=1)]
            for media_type, some in groupby(sorted(parts, key=itemgetter(0)), itemgetter(0)):
                _, bodies, rows, numbers = zip(*some, strict=True)
                yield Group(media_type, pa.array(bodies, pa.binary()), np.array(rows, np.int64), numbers)

    def _decode(self, group: Group) -> tuple[DecodedPublications, Any]:
        """Decode a group and name its publications; reject those that cannot be decoded."""
        decoded = self._decoder.decode(group.media_type, *documents_of(group.bodies))
        names = self._names(group, decoded)
        self.publications += len(group.rows)
        for place, error in decoded.problems:
            self._reject(group, names, place, error)
        self._reject_nulls(group, names, decoded)
        return decoded, names

    def _match(self, group: Group) -> Iterator[pa.RecordBatch]:
        decoded, names = self._decode(group)
        for matches in match_decoded(decoded, group.media_type, self._index):
            pairs = self._pairs(group, decoded, names, matches)
            if len(pairs.places):
                yield self._rows(group, names, pairs)

    def _reject_nulls(self, group: Group, names: Any, decoded: DecodedPublications) -> None:
        """Reject a null body by name if its decoder takes an empty body for a publication."""
        if group.bodies.null_count:
            rejected = {place for place, _ in decoded.problems}
            for place in np.flatnonzero(group.bodies.is_null().to_numpy(zero_copy_only=False)).tolist():
                if place not in rejected:
                    self._reject(group, names, place, DecodeProblem("the body is null"))

    def _pairs(self, group: Group, decoded: DecodedPublications, names: Any, matches: Matches) -> Pairs:
        """Put matches in the order of publications, decide the undecided ones, and explain them if wanted."""
        explains = "explanation" in self._stage.fields or "bindings" in self._stage.fields
        if explains or len(matches.undecided):
            return self._explain(group, decoded, names, matches.candidates)
        order, starts = matched = matches.order(len(group.rows))
        places = matched.matched
        begins = np.append(starts[places], len(order))
        if self._stage.is_numbered:
            return Pairs(places, begins, matches.subscription[order])
        columns = [COLUMN_OF[name] for name in self._stage.fields]
        return Pairs(places, begins, matches.table(columns, order))

    def _explain(self, group: Group, decoded: DecodedPublications, names: Any, candidates: Matches) -> Pairs:
        """Explain each match. Pairs that do not match after all are dropped, and those beyond the budget rejected."""
        pairs = candidates.order(len(group.rows))
        table = candidates.table(order=pairs.order)
        kept: list[int] = []
        explanations: list[Explanation] = []
        rows = zip(pairs.publications.tolist(), table.to_pylist(), strict=True)
        for place, some in groupby(enumerate(rows), lambda entry: entry[1][0]):
            evaluator = self._read(group, decoded, names, place)
            for number, (_, row) in some if evaluator else ():
                assert evaluator is not None
                try:
                    explanation = evaluator.explain(row["language"], row["text"])
                except BudgetExceeded as error:
                    self._reject(group, names, place, error, row["id"])
                    continue
                if explanation is not None and explanation.because:
                    kept.append(number)
                    explanations.append(explanation)
        chosen = np.array(kept, np.int64)
        places, begins = np.unique(pairs.publications[chosen], return_index=True)
        begins = np.append(begins, len(chosen))
        if self._stage.is_numbered:
            return Pairs(places, begins, candidates.subscription[pairs.order[chosen]])
        return Pairs(places, begins, table.take(pa.array(chosen)), explanations)

    def _read(self, group: Group, decoded: DecodedPublications, names: Any, place: int) -> Evaluator | None:
        body = _as_bytes(group.bodies[place].as_py())
        try:
            reader = self._decoder.reader(group.media_type)
            return reader.read(body, group.media_type, decoded.added.get(place, ()))
        except PublicationError as error:
            self._reject(group, names, place, error)
            return None

    def _rows(self, group: Group, names: Any, pairs: Pairs) -> pa.RecordBatch:
        """Build one row per publication, with an array of its matches."""
        lists = pa.ListArray.from_arrays(pa.array(pairs.starts, pa.int32()), self._values(pairs))
        publications = names.take(pa.array(pairs.places))
        return self._assemble(publications, lists, pa.nulls(len(lists), PROBLEM), group.rows[pairs.places])

    def _values(self, pairs: Pairs) -> Any:
        if self._stage.is_numbered:
            return pa.array(pairs.subscriptions, pa.int32())
        columns = [self._field(name, pairs) for name in self._stage.fields]
        return pa.StructArray.from_arrays(columns, names=list(self._stage.fields))

    def _field(self, name: str, pairs: Pairs) -> Any:
        if name in COLUMN_OF:
            return pairs.subscriptions.column(COLUMN_OF[name]).combine_chunks().cast(pa.string())
        explanations = pairs.explanations or ()
        if name == "explanation":
            return pa.array([encode_reasons(each.because) for each in explanations], EXPLANATION)
        return pa.array([encode_bindings(each.bindings) for each in explanations], BINDINGS)

    def _flush(self) -> Iterator[pa.RecordBatch]:
        """Yield a row for each problem so far."""
        problems = self.take_problems()
        if not problems:
            return
        structs = pa.array([_encode_problem(problem) for problem in problems], PROBLEM)
        publications = pa.array([problem.publication for problem in problems], pa.string())
        rows = np.array([problem.row for problem in problems], np.int64)
        yield self._assemble(publications, None, structs, rows)

    def _assemble(self, publications: Any, lists: Any, problems: Any, rows: Places) -> pa.RecordBatch:
        matches = pa.nulls(len(publications), self._stage.matches_type) if lists is None else lists
        kept = [self._batch.column(name).take(pa.array(rows)) for name in self._stage.keep]
        names = ["publication", "matches", "problem", *self._stage.keep]
        return pa.RecordBatch.from_arrays([publications, matches, problems, *kept], names=names)

    def _reject(
        self, group: Group, names: Any, place: int, error: PublicationError, subscription: str | None = None
    ) -> None:
        row = int(group.rows[place])
        self._problems.append(Problem(row, names[place].as_py(), error, subscription))

    def _names(self, group: Group, decoded: DecodedPublications) -> Any:
        """Return the ids of publications: the id column, else the id inside, else a digest of the body."""
        given = self._batch.column(PUBLICATION)
        given = (
            given
            if len(group.rows) == len(given) and group.parts is None
            else given.take(pa.array(group.rows))
        )
        if group.parts is not None:
            return pa.array([self._part_name(group, place) for place in range(len(group.rows))], pa.string())
        names = given.fill_null(decoded.ids) if given.null_count else given
        if not names.null_count:
            return names
        missing = names.is_null().to_pylist()
        bodies = group.bodies
        return pa.array(
            [
                content_id(_as_bytes(bodies[place].as_py())) if is_missing else names[place].as_py()
                for place, is_missing in enumerate(missing)
            ],
            pa.string(),
        )

    def _part_name(self, group: Group, place: int) -> str:
        assert group.parts is not None
        row, part = int(group.rows[place]), group.parts[place]
        name = self._name(row, _as_bytes(self._batch.column(BODY)[row].as_py()))
        return f"{name}:{part}" if part else name

    def _name(self, row: int, body: bytes) -> str:
        return self._batch.column(PUBLICATION)[row].as_py() or content_id(body)


_ARROW_TYPES = {
    "subscription": pa.string(),
    "subscriber": pa.string(),
    "explanation": EXPLANATION,
    "bindings": BINDINGS,
}


def _as_bytes(body: str | bytes | None) -> bytes:
    if body is None:
        return b""
    return body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body


def _with_name(problem: Problem) -> PublicationError:
    """Return the error of a rejected publication, headed by the publication's id."""
    error = problem.error
    return type(error)(
        f"publication {problem.publication}: {error.what}",
        place=error.place,
        where=error.where,
        received=error.received,
        accepted=error.accepted,
        hint=error.hint,
    )


def _encode_problem(problem: Problem) -> tuple[str | None, str, str]:
    return problem.subscription, problem.error.headline(), json.dumps(problem.error.facts())
