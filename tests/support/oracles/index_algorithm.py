"""The index with the interface of the algorithms: one subscription or event at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidings.atoms import Event
from tidings.matching.compiler.blocks import to_irregular
from tidings.matching.compiler.plan import (
    Clause,
    ClauseBlock,
    Compiled,
    Literals,
    Numbers,
    Operands,
    Plan,
    Relation,
    Test,
)
from tidings.matching.index.index import Index
from tidings.values import Kind, split_number


class Indexed:
    """An index in which each addition is a separate segment, so that matching uses many segments."""

    def __init__(self) -> None:
        self._index = Index.create()

    def add(self, id: str, plan: Plan) -> None:
        self._index.add(compiled_of({id: plan}))

    def remove(self, id: str) -> bool:
        return self._index.remove([id]) == 1

    def match(self, event: Event) -> set[str]:
        ids: list[str] = self._index.match([event]).ids().to_pylist()
        assert len(ids) == len(set(ids)), "a subscription matched twice"
        return set(ids)

    def size(self) -> int:
        return self._index.nbytes

    def __len__(self) -> int:
        return self._index.size


def compiled_of(plans: Mapping[str, Plan]) -> Compiled:
    """Convert plans to the input of an index: clauses of one shape together, with operands as columns."""
    grouped: dict[tuple[object, ...], list[tuple[int, Clause]]] = {}
    for row, plan in enumerate(plans.values()):
        for clause in plan.clauses:
            grouped.setdefault(tuple(test.shape for test in clause), []).append((row, clause))
    domains = {domain.name: domain for plan in plans.values() for domain in plan.domains}
    ids = list(plans)
    table = pa.table(
        {"id": ids, "subscriber": ids, "language": ["predicates"] * len(ids), "text": [""] * len(ids)}
    )
    return Compiled(table, tuple(map(_block, grouped.values())), tuple(domains.values()), ())


def loosened(compiled: Compiled) -> Compiled:
    """Convert blocks of clauses to irregular clauses, as for texts of rare shapes."""
    blocks, irregular = to_irregular(compiled.blocks)
    return replace(compiled, blocks=tuple(blocks), irregular=irregular)


def _block(members: Sequence[tuple[int, Clause]]) -> ClauseBlock:
    shape = tuple(test.shape for test in members[0][1])
    columns = [[clause[position] for _, clause in members] for position in range(len(shape))]
    rows = np.array([row for row, _ in members], np.int32)
    return ClauseBlock(shape, tuple(map(_operands, columns)), rows)


def _operands(tests: Sequence[Test]) -> Operands:
    relation, kind = tests[0].shape.relation, tests[0].shape.kind
    operands = [test.operand for test in tests]
    if kind is None:
        return Operands()
    if relation is Relation.BETWEEN:
        lows, highs = zip(*operands, strict=True)
        return Operands(_literals(kind, lows), _literals(kind, highs))
    if relation is Relation.IN:
        offsets = np.cumsum([0, *map(len, operands)], dtype=np.int64)
        return Operands(
            _literals(kind, [literal for listed in operands for literal in listed]), offsets=offsets
        )
    return Operands(_literals(kind, operands))


def _literals(kind: Kind, literals: Sequence[object]) -> Literals:
    if kind is Kind.STRING:
        return pa.array([str(each).encode() for each in literals], pa.binary())
    if kind is Kind.BOOLEAN:
        return np.array(literals, np.bool_)
    if kind is Kind.INSTANT:
        return np.array([each.micros for each in literals], np.int64)  # type: ignore[attr-defined]
    nearest, rest = zip(*map(split_number, literals), strict=True)  # type: ignore[arg-type]
    return Numbers(np.array(nearest, np.float64), np.array(rest, np.int64))
