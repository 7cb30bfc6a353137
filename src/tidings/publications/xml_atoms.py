"""The nodes of documents as atoms, one by one: the definition of what the columns of a batch hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tidings.atoms import AtomKind, Atoms
from tidings.documents import Node, NodeKind, show_node


def atoms_of(documents: Iterable[Node | None]) -> Atoms:
    """All nodes of the documents, in their order; None is a document without atoms.

    The texts of a document stand one after another, so the value of an element is one span of them.
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
    """Each node with its tag path and the number of its parent, numbered in the order of the document."""
    path, number = f"{around}/{show_node(node.kind, node.name)}", count[0]
    count[0] += 1
    yield node, path, above
    for child in node.children:
        yield from _walk(child, path, number, count)
