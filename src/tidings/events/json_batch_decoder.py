"""Batch decoder for JSON events: bytes to atoms, without a Python object per event.

    table = PathTable(["symbol", "price"])
    lines = split_lines(buffer)
    decoded = decode_many(buffer, lines.starts, lines.ends, table, "id")

A kernel decodes the common cases and declines the rest, which the specification,
`tidings.events.json_decoder`, decodes. The result is therefore that of the specification for every document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.atoms import AtomKind, Atoms, Event
from tidings.errors import DecodeProblem, PublicationError
from tidings.events.json_decoder import audience_of, event_of, publication_id
from tidings.events.kernel_tables import Conformity, PathTable
from tidings.matching.array_functions import read_only, starts_of
from tidings.matching.kernels.bytes import find_lines, gather
from tidings.matching.kernels.decode import conformity as conform
from tidings.matching.kernels.decode import json_objects as kernel
from tidings.parsers.strict_json import parse

__all__ = ["DecodedLines", "Lines", "PathTable", "decode_many", "documents_of", "split_lines"]

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]


class Lines(NamedTuple):
    """Start, end and number (from one) of each line of a buffer, and how many line breaks it has."""

    starts: Integers
    ends: Integers
    numbers: Integers
    breaks: int


@dataclass(frozen=True, slots=True)
class DecodedLines:
    """The result for each document of a batch, in order.

    `atoms.count` is the number of documents. A refused document has no atoms, a False in `ok`, and an entry
    in `rejects` with its index and the reason. `ids` are strings, null where `publication_id` finds none. A
    document's atoms are in text order, so the values of one path need not be adjacent. `declined` counts the
    documents that the kernel left to the specification: slower, with the same result.
    """

    atoms: Atoms
    ids: pa.Array[Any]
    ok: npt.NDArray[np.bool_]
    rejects: list[tuple[int, PublicationError]]
    declined: int = 0


def split_lines(buffer: Bytes) -> Lines:
    """Split a buffer into its non-blank lines; they end with \\n or \\r\\n, the last one also with the buffer."""
    text = read_only(buffer)
    return Lines(*find_lines(text, text[: len(text) // 8 * 8].view(np.uint64)))


def documents_of(array: pa.Array[Any]) -> tuple[Bytes, Integers, Integers]:
    """Return buffer, starts and ends of an Arrow array of texts or bytes, without a copy; null is an empty document."""
    wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    width = np.dtype(np.int64 if wide else np.int32)
    _, offsets, data = array.buffers()
    if len(array) == 0 or offsets is None:
        return np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)
    begin = array.offset * width.itemsize
    bounds = np.frombuffer(memoryview(offsets), width, len(array) + 1, begin).astype(np.int64)
    text = np.frombuffer(b"" if data is None else memoryview(data), np.uint8)
    if array.null_count == 0:
        return text, bounds[:-1], bounds[1:]
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return text, bounds[:-1], np.where(valid, bounds[1:], bounds[:-1])


def decode_many(
    buffer: Bytes,
    starts: Integers,
    ends: Integers,
    paths: PathTable,
    id_field: str | None = None,
    conformity: Conformity | None = None,
    labels: bool = True,
) -> DecodedLines:
    """Decode the atoms at the wanted paths, and the ids, of the documents `buffer[starts[i]:ends[i]]`.

    With a `conformity`, which must have the same paths, documents that are inconsistent with its schema are
    refused. Without `labels`, documents with an audience label are refused.
    """
    documents = kernel.Documents(read_only(buffer), read_only(starts), read_only(ends))
    out = _run(documents, paths, id_field)
    atoms = Atoms(paths.paths, out.starts, *_trim_output(out), documents.text)
    if conformity is not None:
        atoms = _decline_inconsistent(atoms, out, conformity)
    if out.declined.any():
        slow = _by_definition(documents, np.flatnonzero(out.declined), id_field, conformity, labels)
        return _with_declined(documents, out, atoms, slow)
    ids = _ids(documents.text, out.id_start, out.id_length)
    return DecodedLines(atoms, ids, ~out.declined, [])


def _run(documents: kernel.Documents, paths: PathTable, id_field: str | None) -> kernel.Out:
    """Run the kernel over all documents, doubling the room for atoms whenever it is too small."""
    count = len(documents.starts)
    size = int((documents.ends - documents.starts).sum())
    out = _new_out(count, min(count * len(paths.paths), size // 2) + 64)
    table, first = paths.with_id(id_field), 0
    work = _new_work(len(table.parent))
    while (first := kernel.decode(documents, table, work, out, first)) < count:
        columns = _columns(len(out.path))
        out = kernel.Out(*out[:5], *(np.concatenate(pair) for pair in zip(out[5:], columns, strict=True)))
    return out


def _decline_inconsistent(atoms: Atoms, out: kernel.Out, conformity: Conformity) -> Atoms:
    """Decline the documents that may be inconsistent, and drop their atoms."""
    doubles = atoms.payload.view(np.float64)
    seen = conform.Atoms(
        atoms.starts, atoms.path, atoms.kind, atoms.payload, doubles, atoms.length, atoms.text
    )
    conform.decline_nonconforming(seen, out.others, conformity.rules, conformity.work(), out.declined)
    counts = np.diff(atoms.starts)
    if not counts[out.declined].any():
        return atoms
    mask = np.repeat(~out.declined, counts)
    starts = starts_of(np.where(out.declined, 0, counts))
    path, kind, payload = atoms.path[mask], atoms.kind[mask], atoms.payload[mask]
    return Atoms(atoms.paths, starts, path, kind, payload, atoms.length[mask], atoms.text)


def _new_out(count: int, room: int) -> kernel.Out:
    starts, id_start = np.zeros(count + 1, np.int64), np.zeros(count, np.int64)
    declined, others = np.zeros((2, count), np.bool_)
    return kernel.Out(starts, id_start, np.zeros(count, np.int32), declined, others, *_columns(room))


def _columns(room: int) -> tuple[Any, Any, Any, Any]:
    """Allocate path, kind, payload and length for a number of atoms."""
    path, kind = np.empty(room, np.int32), np.empty(room, np.uint8)
    return path, kind, np.empty(room, np.int64), np.empty(room, np.int32)


def _trim_output(out: kernel.Out) -> tuple[Any, Any, Any, Any]:
    size = out.starts[-1]
    return out.path[:size], out.kind[:size], out.payload[:size], out.length[:size]


def _new_work(nodes: int) -> kernel.Work:
    around, path_lengths, first_keys, objects = np.empty((4, kernel.MOST_DEPTH), np.int64)
    return kernel.Work(
        node=around,
        path_length=path_lengths,
        is_array=np.empty(kernel.MOST_DEPTH, np.bool_),
        first_key=first_keys,
        object=objects,
        keys=np.empty(kernel.MOST_KEYS, np.uint64),
        met=np.full(nodes, -1, np.int64),
        objects=np.zeros(1, np.int64),
        follower=np.full(nodes, kernel.ROOT, np.int64),
    )


def _ids(text: Bytes, starts: Integers, lengths: npt.NDArray[np.int32]) -> pa.Array[Any]:
    offsets, data = gather(text, starts, lengths)
    valid = np.packbits(lengths >= 0, bitorder="little")
    buffers = [pa.py_buffer(each.data) for each in (valid, offsets.astype(np.int32), data)]
    return pa.Array.from_buffers(pa.string(), len(lengths), [*buffers])


def _with_declined(
    documents: kernel.Documents,
    out: kernel.Out,
    atoms: Atoms,
    slow: _Slow,
) -> DecodedLines:
    """Insert the atoms and ids of the declined documents at their places."""
    where = np.flatnonzero(out.declined)
    added = Atoms.of(slow.events, atoms.paths)
    names = [(name or "").encode() for name in slow.ids]
    text = _append_texts(documents.text, added.text, np.frombuffer(b"".join(names), np.uint8))
    sizes = np.array([len(name) for name in names], np.int64)
    out.id_start[where] = len(documents.text) + len(added.text) + np.cumsum(sizes) - sizes
    out.id_length[where] = np.where([name is None for name in slow.ids], -1, sizes)
    ids = _ids(text, out.id_start, out.id_length)
    ok = np.ones(len(out.declined), np.bool_)
    ok[[i for i, _ in slow.rejects]] = False
    return DecodedLines(_splice_atoms(atoms, where, added, text), ids, ok, slow.rejects, len(where))


class _Slow(NamedTuple):
    """Results of the specification for declined documents: an event and an id each, an empty event if refused."""

    events: list[Event]
    ids: list[str | None]
    rejects: list[tuple[int, PublicationError]]


def _by_definition(
    documents: kernel.Documents,
    where: Integers,
    id_field: str | None,
    conformity: Conformity | None,
    labels: bool,
) -> _Slow:
    slow = _Slow([], [], [])
    for i in where.tolist():
        body = documents.text[documents.starts[i] : documents.ends[i]].tobytes()
        event: Event = {}
        name = None
        try:
            content = parse(body)
            event = event_of(content)
            if not labels:
                _refuse_label(event)
            name = None if id_field is None else publication_id(content, id_field)
            if conformity is not None:
                event = event_of(content, conformity.schema, conformity.id_field)
        except PublicationError as problem:
            event = {}
            slow.rejects.append((i, problem))
        slow.events.append(event)
        slow.ids.append(name)
    return slow


def _refuse_label(event: Event) -> None:
    if (label := audience_of(event)) is not None:
        hint = "publish it into the journal: tidings publish"
        raise DecodeProblem(
            "audience labels are only supported in the journal", received=repr(label), hint=hint
        )


def _append_texts(text: Bytes, *parts: Bytes) -> Bytes:
    return np.concatenate([text, *parts]) if any(len(part) for part in parts) else text


def _splice_atoms(atoms: Atoms, where: Integers, added: Atoms, text: Bytes) -> Atoms:
    """Merge the atoms of the documents `where`, which have none yet, in document order."""
    counts, added_counts = np.diff(atoms.starts), np.diff(added.starts)
    counts[where] = added_counts
    positions = np.repeat(atoms.starts[where], added_counts)
    payload = added.payload + np.where(added.kind == AtomKind.STRING, len(atoms.text), 0)
    return Atoms(
        atoms.paths,
        starts_of(counts),
        np.insert(atoms.path, positions, added.path),
        np.insert(atoms.kind, positions, added.kind),
        np.insert(atoms.payload, positions, payload),
        np.insert(atoms.length, positions, added.length),
        text,
    )
