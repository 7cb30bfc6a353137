"""The branch check of a segment: of pairs with clauses, those that hold, with their subscriptions."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from tidings.atoms import Atoms
from tidings.kernels import twigs as kernel
from tidings.kernels.xpath_numbers import read_numbers
from tidings.matching.index.paths import Names
from tidings.xpath_numbers import xpath_number

Doubles = npt.NDArray[np.float64]
Pairs = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]


def numbers_of(atoms: Atoms) -> Doubles:
    """The number that each text of documents names, NaN for none; of events, the doubles among their payloads."""
    if not atoms.are_documents:
        return atoms.payload.view(np.float64)
    numbers, unsure = np.empty(len(atoms.path)), np.empty(len(atoms.path), np.int64)
    count = read_numbers(atoms.text, atoms.payload, atoms.length, numbers, unsure)
    for place in unsure[:count]:
        start = atoms.payload[place]
        numbers[place] = xpath_number(atoms.text[start : start + atoms.length[place]].tobytes().decode())
    return numbers


class Branches:
    """Checks pairs in place. What it needs beside the twigs, each batch brings."""

    def __init__(self, twigs: kernel.Twigs) -> None:
        self._twigs = twigs

    def about(self, documents: bool) -> bool:
        """Whether some clause is about documents, or about events."""
        return self._kinds[documents]

    @cached_property
    def _kinds(self) -> tuple[bool, bool]:
        document = self._twigs.document
        return not len(document) or not document.all(), bool(document.any())

    @property
    def is_needed(self) -> bool:
        return len(self._twigs.document) > 0

    @cached_property
    def _several(self) -> int:
        return int(self._twigs.several.max(initial=-1)) + 1

    @cached_property
    def _longest(self) -> int:
        """So many nodes a twig has at most: each has two words."""
        return int(np.diff(self._twigs.start).max(initial=0)) // 2 + 1

    def prepare(self, atoms: Atoms, numbers: Doubles, names: Names) -> tuple[kernel.Nodes, kernel.Work]:
        """What checking the pairs of a batch reads and writes."""
        documents = atoms.are_documents
        nodes = kernel.Nodes(
            atoms.starts, atoms.path, atoms.parent, atoms.payload, atoms.length, atoms.text, *names,
            np.full(len(atoms.parent), kernel.NOT_SOUGHT, np.int32), numbers,
        )  # fmt: skip
        width = int(np.diff(atoms.starts).max(initial=0)) + 1 if documents else 1
        work = kernel.Work(
            document=np.array([-1, 0]),
            head=np.empty(len(self._twigs.space) + kernel.KINDS, np.int32),
            next=np.empty(width, np.int32),
            other=np.empty(width, np.int32),
            place=np.empty(self._longest, np.int64),
            state=np.empty(self._longest * width, np.int32),
            mark=np.empty(width, np.int32),
            tick=np.zeros(width, np.int64),
            seen=np.full(self._several, -1, np.int64),
        )
        return nodes, work

    def check(self, prepared: tuple[kernel.Nodes, kernel.Work], pairs: Pairs, documents: bool) -> Pairs:
        """The pairs that hold, clauses replaced by their subscriptions."""
        publication, clause = pairs
        kept = kernel.check(self._twigs, *prepared, publication, clause, len(clause), documents)
        return publication[:kept], clause[:kept]
