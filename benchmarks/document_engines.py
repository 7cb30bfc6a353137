"""Engines for documents: parsing alone, our index from bytes to matches, and XPath evaluated one by one by lxml."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lxml import etree

from benchmarks.engine import Counts, Engine, ReadsOnly
from benchmarks.workloads.documents import Documents, Texts
from tidings.documents.tag_paths import TagPaths
from tidings.documents.xml_batch_decoder import DecodedDocuments, decode_documents
from tidings.matching.compiler.compilation import compile_columns
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index.index import Index

AT_ONCE = 500_000
"""Texts compiled at once: all of them as Python strings and trees would take too much room."""

Trees = list[etree._ElementTree]


class Parsing(ReadsOnly):
    """What nobody gets around who reads documents with lxml. A limit for those who do."""

    name = "parsing alone (lxml)"
    role = "limit"

    def give(self, events: Documents) -> None:
        self._bodies = events.bodies()

    def match(self) -> None:
        for body in self._bodies:
            etree.fromstring(body)


class Spent(NamedTuple):
    """CPU seconds of one run, part by part."""

    decode: float
    match: float


class DocumentIndex(Engine):
    """Bytes to matches, block by block; building is parsing texts, compiling and indexing them."""

    name = "index"
    role = "ours"

    def prepare(self, subscriptions: Texts) -> None:
        self._texts: Texts | None = subscriptions
        self._linear_paths = subscriptions.linear_paths

    def build(self) -> None:
        self.index, self._tags, first = Index.create(), TagPaths(), 0
        assert self._texts is not None
        for texts in self._texts.parts(AT_ONCE):
            self.index.add(compiled(texts, first))
            first += len(texts)
        self.index.compact()
        self._texts = None

    def give(self, events: Documents) -> None:
        self._blocks, self.events = list(events.blocks()), len(events)
        self.spent: list[Spent] = []

    def match(self) -> list[Counts]:
        """How many matches each document has, block by block. Rejects are an error: all documents are sound."""
        found, decoding, matching = list[Counts](), 0.0, 0.0
        for block in self._blocks:
            began = time.process_time()
            atoms = _decoded(block, self._tags).atoms
            between = time.process_time()
            matches = self.index.match(atoms)
            matching += time.process_time() - between
            decoding += between - began
            found.append(np.bincount(matches.publication, minlength=atoms.count))
        self.spent.append(Spent(decoding, matching))
        return found

    def counts(self, answer: list[Counts]) -> Counts:
        return np.concatenate(answer)

    def nbytes(self) -> int:
        return self.index.nbytes

    def linear_paths(self) -> int:
        return self._linear_paths

    def typical(self, last: int) -> Spent:
        """The medians of the last runs."""
        return Spent(*(median(part) for part in zip(*self.spent[-last:], strict=True)))

    def close(self) -> None:
        """Let the memory go: the next size needs it."""
        self.index = Index.create()


def compiled(texts: pa.ChunkedArray, first: int = 0) -> Compiled:
    """Texts compiled, with ids from `s<first>` on. One that is refused is an error: all are meant to be sound."""
    numbers = pc.cast(pa.array(np.arange(first, first + len(texts))), pa.string())
    ids = pc.binary_join_element_wise("s", numbers, "")
    done = compile_columns(ids, *(pa.repeat(word, len(texts)) for word in ("somebody", "xpath")), texts)
    if done.rejects:
        raise ValueError(f"{len(done.rejects)} texts are refused, the first: {done.rejects[0]}")
    return done


def _decoded(block: Documents, tags: TagPaths) -> DecodedDocuments:
    decoded = decode_documents(block.buffer, block.starts, block.ends, tags)
    if decoded.rejects:
        raise ValueError(f"{len(decoded.rejects)} documents are refused, the first: {decoded.rejects[0]}")
    return decoded


class EachXPath(Engine):
    """Every XPath of every document by `tree.xpath(text)`: read anew each time."""

    name = "lxml, each XPath in turn"

    def prepare(self, subscriptions: Texts) -> None:
        self._texts = [lower(text) for text in subscriptions]

    def build(self) -> None:
        return None

    def give(self, events: Documents) -> None:
        self._bodies = events.bodies()

    def match(self) -> list[int]:
        return [self._found(etree.fromstring(body).getroottree()) for body in self._bodies]

    def _found(self, tree: etree._ElementTree) -> int:
        return sum(1 for text in self._texts if tree.xpath(text))

    def counts(self, answer: list[int]) -> Counts:
        return np.array(answer, np.int64)


class CompiledXPaths(EachXPath):
    """The same with XPaths read beforehand."""

    name = "lxml, compiled XPaths in turn"

    def build(self) -> None:
        self._asked: list[Callable[[Any], Any]] = [etree.XPath(text) for text in self._texts]

    def _found(self, tree: etree._ElementTree) -> int:
        return sum(1 for asked in self._asked if asked(tree))


def lower(text: str) -> str:
    """As XPath 1.0 writes it: the paper's AND between paths is ours alone."""
    return text.replace(" AND ", " and ")


def by_lxml(texts: Iterable[str], documents: Documents) -> Counts:
    """How many subscriptions each document satisfies, for a few documents: each XPath is read once and let go."""
    trees = [etree.fromstring(body).getroottree() for body in documents.bodies()]
    counts = np.zeros(len(trees), np.int64)
    for text in texts:
        asked = etree.XPath(lower(text))
        counts += [bool(asked(tree)) for tree in trees]
    return counts
