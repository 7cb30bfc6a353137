"""A batch of subscriptions as columns: what is refused before compiling, and what comes out of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.core.language_hints import hint_to_name
from tidings.errors import SubscriptionError
from tidings.events.schema.domains import Domain
from tidings.events.schema.event_schema import EventSchema
from tidings.matching.compiler.blocks import join_irregular, merge, to_irregular
from tidings.matching.compiler.language import Language
from tidings.matching.compiler.plan import ClauseBlock, Compiled, IrregularClauses, Twigs
from tidings.matching.compiler.twig_writer import TwigWriter
from tidings.model import Reject

Strings: TypeAlias = "Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any]"
COLUMNS = ("id", "subscriber", "language", "text")


@dataclass(slots=True)
class Batch:
    """Subscriptions column by column, as a table and as lists, and the problems of some of them by row."""

    table: pa.Table
    ids: list[str]
    languages: list[str]
    texts: list[str]
    problems: dict[int, SubscriptionError] = field(default_factory=dict)

    @classmethod
    def of(cls, *columns: Strings) -> Batch:
        problems: dict[int, SubscriptionError] = {}
        lists = [
            each.to_pylist() if isinstance(each, pa.Array | pa.ChunkedArray) else list(each)
            for each in columns
        ]
        arrays = [_strings(name, column, problems) for name, column in zip(COLUMNS, lists, strict=True)]
        batch = cls(pa.table(arrays, COLUMNS), lists[0], lists[2], lists[3], problems)
        batch._refuse_repeated()
        return batch

    def __len__(self) -> int:
        return len(self.ids)

    def _refuse_repeated(self) -> None:
        if len(set(self.ids)) == len(self.ids):
            return
        first: dict[str, int] = {}
        for row, id in enumerate(self.ids):
            if first.setdefault(id, row) != row:
                problem = SubscriptionError(f"the id {id!r} is already that of an earlier subscription")
                self.problems.setdefault(row, problem)

    def by_language(self) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
        """The rows of each language, without those that have a problem already."""
        sound = np.ones(len(self), np.bool_)
        sound[list(self.problems)] = False
        for language in sorted(set(self.languages)):
            rows = np.flatnonzero(sound & _equal(self.languages, language))
            if len(rows):
                yield language, rows


def _strings(name: str, column: list[Any], problems: dict[int, SubscriptionError]) -> pa.Array[Any]:
    """A column as Arrow has it. Nulls, other values and halves of characters are shown in ASCII, and refused."""
    try:
        array = pa.array(column, pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        array = None  # which rows it was is found below
    if array is not None and not array.null_count:
        return array
    for row, value in enumerate(column):
        if not _is_readable(value):
            column[row] = ascii(value)
            problem = SubscriptionError(f"the {name} is not a string of characters", received=column[row])
            problems.setdefault(row, problem)
    return pa.array(column, pa.string())


def _is_readable(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _equal(column: Sequence[str], word: str) -> npt.NDArray[np.bool_]:
    if column.count(word) == len(column):
        return np.ones(len(column), np.bool_)
    return np.array([each == word for each in column], np.bool_)


def compile_batch(
    batch: Batch, languages: Mapping[str, Language], schema: EventSchema | None, limit: int
) -> Compiled:
    """Compile the subscriptions of a batch, each in its language."""
    blocks: list[ClauseBlock] = []
    irregular: list[IrregularClauses] = []
    twigs = TwigWriter()
    domains: dict[str, Domain] = {}
    for name, rows in batch.by_language():
        if name not in languages:
            batch.problems.update({int(row): _unknown_language(name, languages) for row in rows})
            continue
        chosen = batch.texts if len(rows) == len(batch) else [batch.texts[row] for row in rows]
        done = languages[name].compile_rows(chosen, schema, limit, twigs)
        batch.problems.update({int(rows[row]): problem for row, problem in done.problems.items()})
        blocks += [replace(each, rows=rows[each.rows].astype(np.int32)) for each in done.blocks]
        irregular.append(replace(done.irregular, rows=rows[done.irregular.rows].astype(np.int32)))
        domains |= done.domains
    return _finish(batch, merge(blocks), irregular, twigs.finish(), domains)


def _unknown_language(name: str, languages: Mapping[str, Language]) -> SubscriptionError:
    accepted, hint = ", ".join(sorted(languages)), hint_to_name(name, languages)
    return SubscriptionError("unknown language", received=repr(name), accepted=accepted, hint=hint)


def _finish(
    batch: Batch,
    blocks: Sequence[ClauseBlock],
    irregular: Sequence[IrregularClauses],
    twigs: Twigs,
    domains: Mapping[str, Domain],
) -> Compiled:
    """Only accepted subscriptions keep a row; clauses are numbered accordingly."""
    accepted = np.ones(len(batch), np.bool_)
    accepted[list(batch.problems)] = False
    table = batch.table
    if batch.problems:
        numbers = (np.cumsum(accepted) - 1).astype(np.int32)
        blocks = [replace(each, rows=numbers[each.rows]) for each in blocks]
        irregular = [replace(each, rows=numbers[each.rows]) for each in irregular]
        table = table.filter(pa.array(accepted))
    rejects = tuple(_reject(batch.ids[row], batch.problems[row]) for row in sorted(batch.problems))
    kept, loosened = to_irregular(blocks)
    together = join_irregular([*irregular, loosened])
    return Compiled(table, tuple(kept), tuple(domains.values()), rejects, together, twigs)


def _reject(id: str, problem: SubscriptionError) -> Reject:
    return Reject("subscription", id, problem.message(), problem.facts())
