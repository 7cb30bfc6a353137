"""Shape checks: keep the pairs whose twig or graph pattern matches, and replace clauses by subscriptions."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from tidings.atoms import Atoms, AtomShape
from tidings.documents.model import xpath_number
from tidings.graphs.pattern_words import COUNT_MASK, VARIABLES_SHIFT
from tidings.matching.index.path_columns import Names
from tidings.matching.kernels.decode.scalars import read_numbers
from tidings.matching.kernels.shapes import graph_patterns as graph_kernel
from tidings.matching.kernels.shapes import twig_arrays as kernel
from tidings.matching.kernels.shapes import twigs as twig_kernel

Doubles = npt.NDArray[np.float64]
Strings = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int32]
Pairs = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]
Documents = tuple[kernel.Nodes, kernel.Work]
Graphs = tuple[graph_kernel.Graphs, graph_kernel.Work]


def read_document_numbers(atoms: Atoms) -> Doubles:
    """Return each text of documents as a number, NaN if it is none; for other shapes, the payloads as doubles."""
    if atoms.shape is not AtomShape.TREE:
        return atoms.payload.view(np.float64)
    numbers, unsure = np.empty(len(atoms.path)), np.empty(len(atoms.path), np.int64)
    count = read_numbers(atoms.text, atoms.payload, atoms.length, numbers, unsure)
    for place in unsure[:count]:
        start = atoms.payload[place]
        numbers[place] = xpath_number(atoms.text[start : start + atoms.length[place]].tobytes().decode())
    return numbers


class ShapeChecker:
    """Checks pairs of publication and clause against the twigs of a segment, in place."""

    def __init__(self, twigs: kernel.Twigs) -> None:
        self._twigs = twigs

    def covers(self, shape: AtomShape) -> bool:
        """Whether some clause is about atoms of this shape."""
        return shape in self._shapes

    @cached_property
    def _shapes(self) -> frozenset[int]:
        return frozenset(np.unique(self._clause_shapes).tolist() if self.is_needed else [AtomShape.FLAT])

    @property
    def _clause_shapes(self) -> Numbers:
        """The shape of atoms that each clause is about."""
        return self._entries[:, kernel.SIZE_AND_SHAPE] & kernel.SHAPE_MASK

    @property
    def _sizes(self) -> Numbers:
        return self._entries[:, kernel.SIZE_AND_SHAPE] >> kernel.SIZE_SHIFT

    @property
    def _entries(self) -> Numbers:
        entries: Numbers = self._twigs.clause.reshape(-1, kernel.ENTRIES)
        return entries

    @property
    def is_needed(self) -> bool:
        return len(self._twigs.clause) > 0

    @cached_property
    def _repeated(self) -> int:
        return int(self._entries[:, kernel.SEVERAL].max(initial=-1)) + 1

    def prepare(self, atoms: Atoms, numbers: Doubles, strings: Strings, names: Names) -> Documents | Graphs:
        """Prepare the arrays that checking the pairs of a batch reads and writes."""
        if atoms.shape is AtomShape.EDGES:
            return self._graphs(atoms)
        return self._documents(atoms, numbers, strings, names)

    def check(self, prepared: Documents | Graphs, pairs: Pairs, shape: AtomShape) -> Pairs:
        """Return the pairs that match or are undecided, with subscriptions for clauses (see `graph_kernel.check`)."""
        publication, clause = pairs
        check = graph_kernel.check if shape is AtomShape.EDGES else twig_kernel.check
        passed = check(self._twigs, *prepared, publication, clause, len(clause), int(shape))
        return publication[:passed], clause[:passed]

    def _documents(self, atoms: Atoms, numbers: Doubles, strings: Strings, names: Names) -> Documents:
        nodes = kernel.Nodes(
            atoms.starts, atoms.path, atoms.parent, atoms.payload, atoms.length, atoms.text, *names,
            strings, numbers,
        )  # fmt: skip
        width = int(np.diff(atoms.starts).max(initial=0)) + 1 if atoms.shape is AtomShape.TREE else 1
        longest = self._longest
        work = kernel.Work(
            document=np.array([-1, 0, -1]),
            head=np.empty(len(self._twigs.space) + kernel.KINDS, np.int32),
            next=np.empty(width, np.int32),
            other=np.empty(width, np.int32),
            place=np.empty(longest, np.int64),
            state=np.empty(longest * width, np.int32),
            mark=np.empty(width, np.int32),
            tick=np.zeros(width, np.int64),
            seen=np.full(self._repeated, -1, np.int64),
            named=np.zeros(kernel.MOST_WORDS * kernel.KINDS * (len(self._twigs.space) + 1), np.uint64),
            above=np.empty(kernel.MOST_WORDS * (64 * kernel.MOST_WORDS + 1), np.uint64),
            held=np.empty(kernel.MOST_WORDS * longest, np.uint64),
        )
        return nodes, work

    @cached_property
    def _longest(self) -> int:
        """The most nodes of a twig, plus one: each node has two words."""
        lengths = self._sizes[self._clause_shapes == AtomShape.TREE]
        return int(lengths.max(initial=0)) // 2 + 1

    def _graphs(self, atoms: Atoms) -> Graphs:
        edges = atoms.edges
        assert edges is not None
        term_numbers = np.empty(len(edges.text), np.int32)
        graphs = graph_kernel.Graphs(*edges, atoms.text, term_numbers)
        graph_kernel.look_up_terms(self._twigs, graphs)
        most_edges, most_variables = self._largest
        work = graph_kernel.Work(
            graph=np.array([-1]),
            term=np.full(max(1, int(self._twigs.strings.count[0])), graph_kernel.NONE, np.int32),
            head=np.full(graph_kernel.PLACES * (len(edges.text) + 1), graph_kernel.NONE, np.int32),
            next=np.empty(graph_kernel.PLACES * (int(np.diff(edges.starts).max(initial=0)) + 1), np.int32),
            binding=np.empty(most_variables + 1, np.int32),
            at=np.empty(most_edges + 1, np.int64),
            fresh=np.empty(graph_kernel.PLACES * (most_edges + 1), np.int32),
            seen=np.full(self._repeated, -1, np.int64),
        )
        return graphs, work

    @cached_property
    def _largest(self) -> tuple[int, int]:
        """The most edges and the most variables of a pattern."""
        starts = self._entries[:, kernel.FIRST_WORD][
            (self._clause_shapes == AtomShape.EDGES) & (self._sizes > 0)
        ]
        sizes = self._twigs.word[starts + 1].astype(np.int64)
        return int((sizes & COUNT_MASK).max(initial=0)), int((sizes >> VARIABLES_SHIFT).max(initial=0))
