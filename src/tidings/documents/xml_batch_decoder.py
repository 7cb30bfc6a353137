"""Batch decoder for XML documents: bytes to atoms, without a Python object per node.

    table = TagPaths()
    decoded = decode_documents(buffer, starts, ends, table)

A kernel splits the documents into nodes, and a parser checks that they are well-formed. The kernel declines unusual
documents, which the specification, `tidings.documents.xml_decoder`, decodes. The result is therefore that of the
specification for every document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.atoms import AtomKind, Atoms
from tidings.documents.model import Node, NodeKind, show_node
from tidings.documents.tag_paths import TagPaths, too_many_tag_paths
from tidings.documents.xml_decoder import DEFAULT, Limits, WellFormedness, beyond, decode_utf8
from tidings.errors import DecodeProblem, PublicationError
from tidings.matching.array_functions import read_only
from tidings.matching.kernels.decode import xml_documents as kernel
from tidings.matching.kernels.decode import xml_tags
from tidings.parsers.xml_bytes import convert_to_utf8, describe_place, reject_doctype

__all__ = ["DecodedDocuments", "TagPaths", "decode_documents"]


def atoms_of(documents: Iterable[Node | None]) -> Atoms:
    """Return all nodes of the documents as atoms, in document order; None is a document without atoms.

    This is the specification of a batch's columns. The texts of a document are adjacent, so the value of an element is
    one span of them.
    """
    ids: dict[str, int] = {}
    texts, values = bytearray(), bytearray()
    starts, path, payload, length, parent = [0], [], [], [], []
    in_values = []
    for document in documents:
        for node, tag_path, above in () if document is None else _walk(document, "", -1, [0]):
            value = node.value.encode()
            in_values.append(node.kind is NodeKind.ATTRIBUTE)
            where = values if node.kind is NodeKind.ATTRIBUTE else texts
            payload.append(len(where))
            if node.kind is not NodeKind.ELEMENT:
                where.extend(value)
            path.append(ids.setdefault(tag_path, len(ids)))
            length.append(len(value))
            parent.append(above)
        starts.append(len(path))
    return Atoms(
        tuple(ids),
        np.array(starts, np.int64),
        np.array(path, np.int32),
        np.full(len(path), AtomKind.STRING, np.uint8),
        np.array(payload, np.int64) + np.where(np.array(in_values, np.bool_), len(texts), 0),
        np.array(length, np.int32),
        np.frombuffer(bytes(texts + values), np.uint8),
        np.array(parent, np.int32),
    )


def _walk(node: Node, around: str, above: int, count: list[int]) -> Iterator[tuple[Node, str, int]]:
    """Yield each node with its tag path and the number of its parent, numbered in document order."""
    path, number = f"{around}/{show_node(node.kind, node.name)}", count[0]
    count[0] += 1
    yield node, path, above
    for child in node.children:
        yield from _walk(child, path, number, count)


Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Problems = dict[int, PublicationError]


@dataclass(frozen=True, slots=True)
class DecodedDocuments:
    """The atoms of a batch of documents, in order; `atoms.count` is the number of documents.

    A refused document has no atoms, and an entry in `rejects` with its index and the reason. `declined` counts the
    documents that the kernel left to the specification: slower, with the same result.
    """

    atoms: Atoms
    rejects: list[tuple[int, PublicationError]]
    declined: int = 0


def decode_documents(
    buffer: Bytes, starts: Integers, ends: Integers, table: TagPaths, limits: Limits = DEFAULT
) -> DecodedDocuments:
    """Decode the atoms of the documents `buffer[starts[i]:ends[i]]`."""
    table.begin()
    problems: Problems = {}
    documents = _convert_to_utf8(kernel.Documents(buffer, starts, ends), limits, problems)
    out = _run_kernel(documents, problems, table, limits)
    _check_documents(documents, out, limits, problems)
    declined = [i for i in np.flatnonzero(out.code == xml_tags.DECLINED).tolist() if i not in problems]
    atoms = _with_declined(documents, out, declined, limits, problems, table)
    return DecodedDocuments(atoms, sorted(problems.items()), len(declined))


def _convert_to_utf8(documents: kernel.Documents, limits: Limits, problems: Problems) -> kernel.Documents:
    """Convert the documents to UTF-8. Those that are too large or in an unknown encoding become problems."""
    text, starts, ends = (read_only(array) for array in documents)
    for i in np.flatnonzero(ends - starts > limits.document).tolist():
        problems[i] = beyond("document", limits, received=f"{ends[i] - starts[i]:,} bytes")
    foreign = np.zeros(len(starts), np.bool_)
    kernel.find_other_encodings(kernel.Documents(text, starts, ends), foreign)
    return _append_recoded(kernel.Documents(text, starts, ends), np.flatnonzero(foreign).tolist(), problems)


def _append_recoded(documents: kernel.Documents, foreign: list[int], problems: Problems) -> kernel.Documents:
    """Append documents that may be in another encoding in UTF-8 after the others."""
    if not foreign:
        return documents
    text, starts, ends = documents.text, documents.starts.copy(), documents.ends.copy()
    added, size = [text], len(text)
    for i in foreign:
        body = b""
        try:
            body = b"" if i in problems else convert_to_utf8(_body(documents, i))
        except DecodeProblem as problem:
            problems[i] = problem
        added.append(np.frombuffer(body, np.uint8))
        starts[i], ends[i] = size, size + len(body)
        size += len(body)
    return kernel.Documents(*map(read_only, (np.concatenate(added), starts, ends)))


def _body(documents: kernel.Documents, i: int) -> bytes:
    body: bytes = documents.text[documents.starts[i] : documents.ends[i]].tobytes()
    return body


def _run_kernel(
    documents: kernel.Documents, problems: Problems, table: TagPaths, limits: Limits
) -> kernel.Out:
    """Run the kernel over all documents, doubling the room whenever it is too small."""
    most = _most(limits)
    out, work, first = _new_out(documents), _new_work(limits), 0
    out.code[list(problems)] = xml_tags.REFUSED
    while (first := kernel.decode(documents, table.paths, table.spaces, most, work, out, first)) < len(
        documents.starts
    ):
        if out.used[kernel.WHY] == xml_tags.TABLES_FULL:
            table.grow()
        else:
            out = out._replace(**{name: _double_room(getattr(out, name)) for name in COLUMNS})
    return out


MOST_AT_ONCE = 1_000
"""An element with more attributes, or with more prefixes declared for it, is left to the specification."""

COLUMNS = ("path", "payload", "length", "parent")

LIMIT_OF = {
    xml_tags.DEPTH: "depth",
    xml_tags.NODES: "nodes",
    xml_tags.TEXT_BYTES: "text",
    xml_tags.NESTED_TEXT: "nested_text",
    xml_tags.ATTRIBUTES: "attributes",
    xml_tags.ATTRIBUTE_BYTES: "attribute_length",
    xml_tags.NAMESPACES: "namespaces",
    xml_tags.NAME_BYTES: "name_length",
    xml_tags.PATH_LENGTH: "path_length",
    xml_tags.TAG_PATHS: "tag_paths",
}
"""The limit that a document with such a code exceeds."""


def _most(limits: Limits) -> Integers:
    most = np.zeros(max(LIMIT_OF) + 1, np.int64)
    for code, name in LIMIT_OF.items():
        most[code] = getattr(limits, name)
    return most


def _new_out(documents: kernel.Documents) -> kernel.Out:
    count, size = len(documents.starts), int((documents.ends - documents.starts).sum())
    path, length, parent = np.empty((3, size // 8 + 64), np.int32)
    return kernel.Out(
        starts=np.zeros(count + 1, np.int64),
        code=np.zeros(count, np.int64),
        place=np.zeros(count, np.int64),
        path=path,
        payload=np.empty(len(path), np.int64),
        length=length,
        parent=parent,
        text=np.zeros(2 * size + 16, np.uint8),
        used=np.array([0, size + 8, 0], np.int64),
    )


def _new_work(limits: Limits) -> xml_tags.Work:
    elements = np.zeros((5, limits.depth), np.int64)
    prefixes = np.zeros((3, min(limits.namespaces, MOST_AT_ONCE)), np.int64)
    name_start, local, name_end, value_start, value_end = np.zeros(
        (5, min(limits.attributes, MOST_AT_ONCE)), np.int64
    )
    name_hash, odd = np.zeros(len(local), np.uint64), np.zeros(len(local), np.bool_)
    attributes = (name_start, local, name_end, name_hash, value_start, value_end, odd)
    return xml_tags.Work._make((*elements, *prefixes, *attributes))


def _double_room(column: Any) -> Any:
    return np.concatenate([column, np.empty_like(column)])


def _check_documents(
    documents: kernel.Documents, out: kernel.Out, limits: Limits, problems: Problems
) -> None:
    """Record a problem for each document that exceeds a limit, or that the parser refuses."""
    text = memoryview(documents.text)
    well_formedness = WellFormedness(bytes(text))
    starts, ends = documents.starts.tolist(), documents.ends.tolist()
    for i, code in enumerate(out.code.tolist()):
        if code == xml_tags.REFUSED:
            continue
        body = bytes(text[starts[i] : ends[i]])
        try:
            if code != xml_tags.GOOD:
                _refuse(code, body, int(out.place[i]), limits)
            well_formedness.refuse(body)
        except DecodeProblem as problem:
            problems[i] = problem


def _refuse(code: int, body: bytes, position: int, limits: Limits) -> None:
    """Raise the kernel's finding; a document may have been declined before a declaration in it was seen."""
    if code in LIMIT_OF:
        raise beyond(LIMIT_OF[code], limits, where=describe_place(body, position))
    if code == xml_tags.CROWDED:
        raise too_many_tag_paths()
    reject_doctype(body)


def _with_declined(
    documents: kernel.Documents,
    out: kernel.Out,
    declined: list[int],
    limits: Limits,
    problems: Problems,
    table: TagPaths,
) -> Atoms:
    """Return the atoms of all documents without problems; declined ones are decoded by the specification."""
    nodes: list[Node | None] = []
    for i in declined:
        nodes.append(None)
        try:
            nodes[-1] = _enter_tag_paths(decode_utf8(_body(documents, i), limits), table)
        except DecodeProblem as problem:
            problems[i] = problem
    atoms = _drop_documents(_atoms(out, table.names), list(problems))
    return _splice_atoms(atoms, np.array(declined), atoms_of(nodes), table) if any(nodes) else atoms


def _enter_tag_paths(document: Node, table: TagPaths) -> Node:
    """Add the tag paths of a document to the table."""
    for path in atoms_of([document]).paths:
        table.number(path)
    return document


def _atoms(out: kernel.Out, paths: tuple[str, ...]) -> Atoms:
    size = out.starts[-1]
    kind = np.full(size, AtomKind.STRING, np.uint8)
    path, payload, length, parent = (getattr(out, name)[:size] for name in COLUMNS)
    return Atoms(paths, out.starts, path, kind, payload, length, out.text[: out.used[kernel.VALUES]], parent)


def _drop_documents(atoms: Atoms, refused: list[int]) -> Atoms:
    """Drop the atoms of some documents."""
    counts = np.diff(atoms.starts)
    if not counts[refused].any():
        return atoms
    ok = np.ones(len(counts), np.bool_)
    ok[refused] = False
    mask = np.repeat(ok, counts)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.where(ok, counts, 0))])
    path, kind, payload = atoms.path[mask], atoms.kind[mask], atoms.payload[mask]
    return Atoms(atoms.paths, starts, path, kind, payload, atoms.length[mask], atoms.text, atoms.parent[mask])


def _splice_atoms(atoms: Atoms, where: Integers, added: Atoms, table: TagPaths) -> Atoms:
    """Merge the atoms of the documents `where`, which have none yet, in document order."""
    numbers = np.array([table.number(path) for path in added.paths], np.int32)
    counts, added_counts = np.diff(atoms.starts), np.diff(added.starts)
    counts[where] = added_counts
    positions = np.repeat(atoms.starts[where], added_counts)
    return Atoms(
        table.names,
        np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        np.insert(atoms.path, positions, numbers[added.path]),
        np.insert(atoms.kind, positions, added.kind),
        np.insert(atoms.payload, positions, added.payload + len(atoms.text)),
        np.insert(atoms.length, positions, added.length),
        np.concatenate([atoms.text, added.text]),
        np.insert(atoms.parent, positions, added.parent),
    )
