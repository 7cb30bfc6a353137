"""Clauses on disk: what a segment was made from, kept beside it, so that segments are merged without their texts.

Blocks stand one after the other. What their operands hold goes into one stream for each sort of thing (numbers,
strings, instants, booleans, lengths of lists), in the order in which the blocks' tests ask for it: a million blocks of
one row cost no more files or arrays than one block of a million rows. Loose tests follow as blocks of one test each,
whose rows are numbers of loose clauses.
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

from tidings.atoms import Aspect, Column, PublicationKind
from tidings.events.schema.domains import Domain, DomainKind
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
from tidings.matching.index.arrays import map_arrays, starts_of, write_arrays
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
    """Write the clauses of compiled subscriptions, and the domains they speak of."""
    streams: Streams = {name: [] for name in _STREAMS}
    tests: dict[TestShape, int] = {}
    loose = [ClauseBlock((t.shape,), (t.operands,), t.clauses) for t in compiled.loose.tests]
    blocks = (*compiled.blocks, *loose)
    _shapes(blocks, streams, tests)
    for block in blocks:
        streams["row"].append(block.rows)
        for operands in block.operands:
            _stream(operands, streams)
    streams["loose_row"].append(compiled.loose.rows)
    _stream_twigs(compiled, streams)
    arrays = {name: _joined(streams[name], dtype) for name, dtype in _STREAMS.items()}
    if not arrays["rest"].any():  # nearly always: numbers are the doubles they look like
        arrays["rest"] = np.empty(0, np.int64)
    head = {
        "tests": [_plain(test) for test in tests],
        "domains": [asdict(each) for each in compiled.domains],
        "blocks": len(compiled.blocks),
        "names": compiled.twigs.names,
    }
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    write_arrays(folder / FILE, arrays)


def _stream_twigs(compiled: Compiled, streams: Streams) -> None:
    """The twigs, and which clause has which; nothing if all clauses are about events."""
    twigs = compiled.twigs
    if not len(twigs):
        return
    streams["twig"] += [*map(twigs_of, compiled.blocks), twigs_of(compiled.loose)]
    offsets, data = _string_buffers(twigs.strings)
    streams["twig_start"].append(twigs.starts)
    streams["twig_word"].append(twigs.words)
    streams["twig_exact"].append(twigs.exact)
    streams["twig_string_length"].append(np.diff(offsets))
    streams["twig_string"].append(data[offsets[0] : offsets[-1]])


def _shapes(blocks: Sequence[ClauseBlock], streams: Streams, tests: dict[TestShape, int]) -> None:
    """How many clauses and which tests each block has. `tests` numbers those that differ."""
    seen: dict[int, int] = {}  # by identity, for blocks share them: hashing one takes as long as all the rest
    for block in blocks:
        for test in block.shape:
            if id(test) not in seen:
                seen[id(test)] = tests.setdefault(test, len(tests))
    streams["block_rows"].append(np.array([len(block.rows) for block in blocks]))
    streams["block_tests"].append(np.array([len(block.shape) for block in blocks]))
    streams["test"].append(np.array([seen[id(test)] for block in blocks for test in block.shape]))


def _stream(operands: Operands, streams: Streams) -> None:
    """Put operands at the end of the streams."""
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


def _joined(arrays: Sequence[Array], dtype: Any) -> Array:
    return np.concatenate([*arrays, np.empty(0, dtype)]).astype(dtype, copy=False)


def _plain(test: TestShape) -> list[Any]:
    column = test.column
    return [
        *(column.path, column.aspect, column.domain, column.of),
        *(test.relation, test.kind, test.negated),
    ]


@dataclass(frozen=True, slots=True)
class StoredClauses:
    """What a segment was made from: its clauses as they were compiled."""

    blocks: list[ClauseBlock]
    loose: IrregularClauses
    twigs: Twigs
    domains: list[Domain]


def read_clauses(folder: Path) -> StoredClauses:
    """The clauses of a segment."""
    arrays = map_arrays(folder / FILE)
    head = json.loads(arrays["head"].tobytes())
    tests = [_test(*plain) for plain in head["tests"]]
    domains = [Domain(**each | {"kind": DomainKind(each["kind"])}) for each in head["domains"]]
    reader = _Reader(arrays)
    found = list(reader.blocks(tests))
    blocks, rest = found[: head["blocks"]], found[head["blocks"] :]
    loose = tuple(IrregularTest(b.shape[0], b.operands[0], b.rows) for b in rest)
    if not len(arrays["twig"]):
        return StoredClauses(blocks, IrregularClauses(arrays["loose_row"], loose), Twigs(), domains)
    blocks = [replace(block, twigs=reader.take("twig", len(block.rows))) for block in blocks]
    own = IrregularClauses(arrays["loose_row"], loose, reader.take("twig", len(arrays["loose_row"])))
    return StoredClauses(blocks, own, reader.twigs(tuple(head["names"])), domains)


def _test(
    path: str, aspect: int, domain: str, of: int, relation: int, kind: int | None, negated: bool
) -> TestShape:
    column = Column(path, Aspect(aspect), domain, PublicationKind(of))
    return TestShape(column, Relation(relation), None if kind is None else Kind(kind), negated)


class _Reader:
    """Reads each stream from its beginning to its end."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        rest = arrays["rest"] if len(arrays["rest"]) else np.zeros(len(arrays["nearest"]), np.int64)
        self._arrays: dict[str, Array] = arrays | {"rest": rest}
        self._at: dict[str, int] = defaultdict(int)

    def blocks(self, tests: Sequence[TestShape]) -> Iterator[ClauseBlock]:
        rows, widths = self._arrays["block_rows"].tolist(), self._arrays["block_tests"].tolist()
        for count, width in zip(rows, widths, strict=True):
            held = self.take("row", count)
            shape = tuple(tests[number] for number in self.take("test", width).tolist())
            yield ClauseBlock(shape, tuple(self._operands(test, count) for test in shape), held)

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
        """The next so many of a stream."""
        at = self._at[name]
        self._at[name] = at + count
        return self._arrays[name][at : at + count]


def _strings(lengths: Array, data: Array) -> pa.Array[Any]:
    offsets = starts_of(lengths).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)
