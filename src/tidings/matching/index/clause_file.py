"""Clause file: the compiled clauses of a segment, stored so that segments can be merged without compiling
again.

Blocks are stored one after the other. Their operands go into one stream per type (numbers, strings, instants,
booleans, lengths of lists), in the order of the tests: a million blocks of one row need no more files or
arrays than one block of a million rows. Irregular tests follow as blocks of one test each, whose rows are
numbers of irregular clauses.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.atoms import Aspect, AtomShape, Column
from tidings.events.schema.domains import Domain, DomainKind
from tidings.matching.array_functions import starts_of
from tidings.matching.compiler.blocks import twigs_of
from tidings.matching.compiler.plan import (
    ClauseBlock,
    Compiled,
    IrregularClauses,
    IrregularTest,
    Literals,
    Numbers,
    Operands,
    Relation,
    TestShape,
    Twigs,
)
from tidings.matching.index.arrays import map_arrays, write_arrays
from tidings.values import Kind

FILE = "clauses.bin"
Array = npt.NDArray[Any]
Streams = dict[str, list[Array]]
_STREAMS = {
    "nearest": np.float64,
    "rest": np.int64,
    "string_length": np.int32,
    "string": np.uint8,
    "micros": np.int64,
    "boolean": np.bool_,
    "list_length": np.int32,
    "row": np.int32,
    "block_rows": np.int64,
    "block_tests": np.int64,
    "test": np.int32,
    "loose_row": np.int32,
    "twig": np.int32,
    "twig_start": np.int64,
    "twig_word": np.uint32,
    "twig_exact": np.bool_,
    "twig_string_length": np.int32,
    "twig_string": np.uint8,
}


def write_clauses(folder: Path, compiled: Compiled) -> None:
    """Write the clauses of compiled subscriptions, and the domains they use."""
    streams: Streams = {name: [] for name in _STREAMS}
    tests: dict[TestShape, int] = {}
    irregular = [ClauseBlock((t.shape,), (t.operands,), t.clauses) for t in compiled.irregular.tests]
    blocks = (*compiled.blocks, *irregular)
    _write_shapes(blocks, streams, tests)
    for block in blocks:
        streams["row"].append(block.rows)
        for operands in block.operands:
            _write_operands(operands, streams)
    streams["loose_row"].append(compiled.irregular.rows)
    _write_twigs(compiled, streams)
    arrays = {name: _concatenate_arrays(streams[name], dtype) for name, dtype in _STREAMS.items()}
    if not arrays["rest"].any():  # nearly always: most numbers are exact doubles
        arrays["rest"] = np.empty(0, np.int64)
    head = {
        "tests": [_test_to_json(test) for test in tests],
        "domains": [asdict(domain) for domain in compiled.domains],
        "blocks": len(compiled.blocks),
        "names": compiled.twigs.names,
    }
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    write_arrays(folder / FILE, arrays)


def _write_twigs(compiled: Compiled, streams: Streams) -> None:
    """Write the twigs and the twig number of each clause; nothing if all clauses are about events."""
    twigs = compiled.twigs
    if not len(twigs):
        return
    streams["twig"] += [*map(twigs_of, compiled.blocks), twigs_of(compiled.irregular)]
    offsets, data = _string_buffers(twigs.strings)
    streams["twig_start"].append(twigs.starts)
    streams["twig_word"].append(twigs.words)
    streams["twig_exact"].append(twigs.exact)
    streams["twig_string_length"].append(np.diff(offsets))
    streams["twig_string"].append(data[offsets[0] : offsets[-1]])


def _write_shapes(blocks: Sequence[ClauseBlock], streams: Streams, tests: dict[TestShape, int]) -> None:
    """Write the number of clauses and the tests of each block. `tests` numbers the different tests."""
    seen: dict[
        int, int
    ] = {}  # by identity, as blocks share tests: hashing them would take as long as everything else
    for block in blocks:
        for test in block.shape:
            if id(test) not in seen:
                seen[id(test)] = tests.setdefault(test, len(tests))
    streams["block_rows"].append(np.array([len(block.rows) for block in blocks]))
    streams["block_tests"].append(np.array([len(block.shape) for block in blocks]))
    streams["test"].append(np.array([seen[id(test)] for block in blocks for test in block.shape]))


def _write_operands(operands: Operands, streams: Streams) -> None:
    """Append operands to the streams."""
    if operands.offsets is not None:
        streams["list_length"].append(np.diff(operands.offsets))
    for literals in (operands.values, operands.upper):
        if isinstance(literals, Numbers):
            streams["nearest"].append(literals.nearest)
            streams["rest"].append(literals.rest)
        elif isinstance(literals, pa.Array):
            offsets, data = _string_buffers(literals)
            streams["string_length"].append(np.diff(offsets))
            streams["string"].append(data[offsets[0] : offsets[-1]])
        elif literals is not None:
            streams["boolean" if literals.dtype == np.bool_ else "micros"].append(literals)


def _string_buffers(strings: pa.Array[Any]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    _, offsets, data = strings.buffers()
    if offsets is None:
        return np.zeros(1, np.int32), np.empty(0, np.uint8)
    places = np.frombuffer(offsets, np.int32)[strings.offset : strings.offset + len(strings) + 1]
    return places, np.frombuffer(data or b"", np.uint8)


def _concatenate_arrays(arrays: Sequence[Array], dtype: Any) -> Array:
    return np.concatenate([*arrays, np.empty(0, dtype)]).astype(dtype, copy=False)


def _test_to_json(test: TestShape) -> list[Any]:
    column = test.column
    return [
        *(column.path, column.aspect, column.domain, column.shape),
        *(test.relation, test.kind, test.negated),
    ]


@dataclass(frozen=True, slots=True)
class StoredClauses:
    """The compiled clauses of a segment."""

    blocks: list[ClauseBlock]
    irregular: IrregularClauses
    twigs: Twigs
    domains: list[Domain]


def read_clauses(folder: Path) -> StoredClauses:
    """Read the clauses of a segment."""
    arrays = map_arrays(folder / FILE)
    head = json.loads(arrays["head"].tobytes())
    tests = [_test_from_json(*fields) for fields in head["tests"]]
    domains = [Domain(**fields | {"kind": DomainKind(fields["kind"])}) for fields in head["domains"]]
    reader = _Reader(arrays)
    stored = list(reader.blocks(tests))
    blocks, irregular_blocks = stored[: head["blocks"]], stored[head["blocks"] :]
    rows = arrays["loose_row"]
    irregular = IrregularClauses(
        rows, tuple(IrregularTest(b.shape[0], b.operands[0], b.rows) for b in irregular_blocks)
    )
    if not len(arrays["twig"]):
        return StoredClauses(blocks, irregular, Twigs(), domains)
    blocks = [replace(block, twigs=reader.take("twig", len(block.rows))) for block in blocks]
    irregular = replace(irregular, twigs=reader.take("twig", len(rows)))
    return StoredClauses(blocks, irregular, reader.twigs(tuple(head["names"])), domains)


def _test_from_json(
    path: str, aspect: int, domain: str, of: int, relation: int, kind: int | None, negated: bool
) -> TestShape:
    column = Column(path, Aspect(aspect), domain, AtomShape(of))
    return TestShape(column, Relation(relation), None if kind is None else Kind(kind), negated)


class _Reader:
    """Reads each stream from start to end."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        remainder = arrays["rest"] if len(arrays["rest"]) else np.zeros(len(arrays["nearest"]), np.int64)
        self._arrays: dict[str, Array] = arrays | {"rest": remainder}
        self._at: dict[str, int] = defaultdict(int)

    def blocks(self, tests: Sequence[TestShape]) -> Iterator[ClauseBlock]:
        rows, widths = self._arrays["block_rows"].tolist(), self._arrays["block_tests"].tolist()
        for count, width in zip(rows, widths, strict=True):
            block_rows = self.take("row", count)
            shape = tuple(tests[number] for number in self.take("test", width).tolist())
            yield ClauseBlock(shape, tuple(self._operands(test, count) for test in shape), block_rows)

    def twigs(self, names: tuple[str, ...]) -> Twigs:
        arrays = self._arrays
        strings = _strings(arrays["twig_string_length"], arrays["twig_string"])
        return Twigs(arrays["twig_start"], arrays["twig_word"], arrays["twig_exact"], names, strings)

    def _operands(self, test: TestShape, rows: int) -> Operands:
        if test.kind is None:
            return Operands()
        if test.relation is Relation.IN:
            offsets = starts_of(self.take("list_length", rows))
            return Operands(self._literals(test.kind, int(offsets[-1])), offsets=offsets)
        values = self._literals(test.kind, rows)
        return Operands(
            values, self._literals(test.kind, rows) if test.relation is Relation.BETWEEN else None
        )

    def _literals(self, kind: Kind, count: int) -> Literals:
        if kind is Kind.NUMBER:
            return Numbers(self.take("nearest", count), self.take("rest", count))
        if kind is Kind.STRING:
            lengths = self.take("string_length", count)
            return _strings(lengths, self.take("string", int(lengths.sum())))
        return self.take("micros" if kind is Kind.INSTANT else "boolean", count)

    def take(self, name: str, count: int) -> Array:
        """Return the next `count` items of a stream."""
        start = self._at[name]
        self._at[name] = start + count
        return self._arrays[name][start : start + count]


def _strings(lengths: Array, data: Array) -> pa.Array[Any]:
    offsets = starts_of(lengths).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)
