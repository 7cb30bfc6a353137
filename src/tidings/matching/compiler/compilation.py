"""Compilation of subscriptions, each in its language, to the plans that an index is built from.

`describe_access` describes how the index will find the clauses of a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.atoms import AtomShape, Column
from tidings.core.arguments import accepts, wrong_type
from tidings.errors import SubscriptionError
from tidings.events.schema.domains import Domain
from tidings.events.schema.event_schema import EventSchema
from tidings.graphs.keys import ANY
from tidings.graphs.model import iri
from tidings.graphs.patterns.pattern_tree import show_term
from tidings.kinds import LANGUAGES
from tidings.language_hints import hint_to_name
from tidings.matching.compiler.blocks import join_irregular, merge, to_irregular
from tidings.matching.compiler.language import DEFAULT_LIMIT, Context, Language
from tidings.matching.compiler.plan import (
    ClauseBlock,
    Compiled,
    IrregularClauses,
    Plan,
    Relation,
    TestShape,
    Twigs,
    TwigWriter,
)
from tidings.model import Reject, Subscription

_MANY = "compile_many([Subscription('s1', 'ana', 'predicates', 'price < 3')])"


@accepts(text=str, schema=(EventSchema, NoneType), limit=int)
def compile_text(text: str, schema: EventSchema | None = None, limit: int = DEFAULT_LIMIT) -> Plan:
    """Compile one text of the predicate language."""
    return LANGUAGES["predicates"].compile(Context(text, schema, limit))


@accepts(_MANY, subscriptions=Iterable, schema=(EventSchema, NoneType), limit=int)
def compile_many(
    subscriptions: Iterable[Subscription], schema: EventSchema | None = None, limit: int = DEFAULT_LIMIT
) -> Compiled:
    """Compile many subscriptions; rejected ones are listed with their reasons."""
    rows = list(subscriptions)
    for row in rows:
        if not isinstance(row, Subscription):
            raise wrong_type("subscriptions", row, Subscription, _MANY)
    return compile_columns(
        [row.id for row in rows],
        [row.subscriber for row in rows],
        [row.language for row in rows],
        [row.text for row in rows],
        schema,
        limit,
    )


def compile_columns(
    ids: Strings,
    subscribers: Strings,
    languages: Strings,
    texts: Strings,
    schema: EventSchema | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Compiled:
    """Compile subscriptions given as four columns: lists of strings or Arrow arrays."""
    return compile_batch(Batch.of(ids, subscribers, languages, texts), LANGUAGES, schema, limit)


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
        batch._reject_repeated()
        return batch

    def __len__(self) -> int:
        return len(self.ids)

    def _reject_repeated(self) -> None:
        if len(set(self.ids)) == len(self.ids):
            return
        first: dict[str, int] = {}
        for row, id in enumerate(self.ids):
            if first.setdefault(id, row) != row:
                problem = SubscriptionError(f"the id {id!r} is used twice")
                self.problems.setdefault(row, problem)

    def by_language(self) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
        """Yield the rows of each language, without those that have a problem already."""
        sound = np.ones(len(self), np.bool_)
        sound[list(self.problems)] = False
        for language in sorted(set(self.languages)):
            rows = np.flatnonzero(sound & _equal(self.languages, language))
            if len(rows):
                yield language, rows


def _strings(name: str, column: list[Any], problems: dict[int, SubscriptionError]) -> pa.Array[Any]:
    """Return a column as an Arrow array. Nulls, other values and lone surrogates are shown in ASCII, and rejected."""
    try:
        array = pa.array(column, pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        array = None  # the rows are found below
    if array is not None and not array.null_count:
        return array
    for row, value in enumerate(column):
        if not _is_readable(value):
            column[row] = ascii(value)
            problem = SubscriptionError(f"the {name} is not a valid string", received=column[row])
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
    """Keep the rows of accepted subscriptions, and number their clauses accordingly."""
    accepted = np.ones(len(batch), np.bool_)
    accepted[list(batch.problems)] = False
    table = batch.table
    if batch.problems:
        numbers = (np.cumsum(accepted) - 1).astype(np.int32)
        blocks = [replace(each, rows=numbers[each.rows]) for each in blocks]
        irregular = [replace(each, rows=numbers[each.rows]) for each in irregular]
        table = table.filter(pa.array(accepted))
    rejects = tuple(_reject(batch.ids[row], batch.problems[row]) for row in sorted(batch.problems))
    large, small = to_irregular(blocks)
    irregular_clauses = join_irregular([*irregular, small])
    return Compiled(table, tuple(large), tuple(domains.values()), rejects, irregular_clauses, twigs)


def _reject(id: str, problem: SubscriptionError) -> Reject:
    return Reject("subscription", id, problem.message(), problem.facts())


_RANGES = (Relation.BETWEEN, Relation.LT, Relation.LE, Relation.GT, Relation.GE)


def describe_access(plan: Plan) -> str:
    """Name the path through which each clause of a plan is found, in the order of preference of the index.

    The index knows how selective each column is and may prefer another equality of the same clause.
    """
    paths = (_access_path([test.shape for test in clause]) for clause in plan.clauses)
    return ", ".join(dict.fromkeys(paths))


def _access_path(clause: Sequence[TestShape]) -> str:
    positive = [test for test in clause if not test.negated]
    equalities = [test.column for test in positive if test.relation in (Relation.EQ, Relation.IN)]
    if equalities:
        return _show_column(equalities[0])
    ranges = [test.column for test in positive if test.relation in _RANGES]
    present = [test.column for test in positive]  # `exists` and `!=` need the attribute to be present
    return _show_column(min(ranges or present)) if present else "every publication"


def _show_column(column: Column) -> str:
    """Return a path as users write it; for graphs, the property whose edges are tested."""
    if column.shape is not AtomShape.EDGES:
        return column.path
    property = column.path.partition(" ")[2]
    return "edges of all properties" if property == ANY else show_term(iri(property))
