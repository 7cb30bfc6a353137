"""Engines for documents: parsing alone, the index from bytes to matches, and lxml, one XPath at a time."""

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
"""Texts compiled at once: all of them as Python strings and trees would take too much memory."""

Trees = list[etree._ElementTree]


class Parsing(ReadsOnly):
    """Parsing with lxml, without matching: the limit for engines that use lxml."""

    name = "parsing alone (lxml)"
    role = "limit"

    def give(self, events: Documents) -> None:
        self._bodies = events.bodies()

    def match(self) -> None:
        for body in self._bodies:
            etree.fromstring(body)


class PartSeconds(NamedTuple):
    """CPU seconds of the parts of one run."""

    decode: float
    match: float


class DocumentIndex(Engine):
    """The index, from bytes to matches, block by block. Building parses, compiles and indexes texts."""

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
        self.spent: list[PartSeconds] = []

    def match(self) -> list[Counts]:
        """Count the matches of each document, block by block. Rejects are errors: all documents are valid."""
        counts, decoding, matching = list[Counts](), 0.0, 0.0
        for block in self._blocks:
            began = time.process_time()
            atoms = _decode(block, self._tags).atoms
            between = time.process_time()
            matches = self.index.match(atoms)
            matching += time.process_time() - between
            decoding += between - began
            counts.append(np.bincount(matches.publication, minlength=atoms.count))
        self.spent.append(PartSeconds(decoding, matching))
        return counts

    def counts(self, answer: list[Counts]) -> Counts:
        return np.concatenate(answer)

    def nbytes(self) -> int:
        return self.index.nbytes

    def linear_paths(self) -> int:
        return self._linear_paths

    def typical(self, last: int) -> PartSeconds:
        """Return the medians of the last runs."""
        return PartSeconds(*(median(part) for part in zip(*self.spent[-last:], strict=True)))

    def close(self) -> None:
        """Release the memory: the next size needs it."""
        self.index = Index.create()


def compiled(texts: pa.ChunkedArray, first: int = 0) -> Compiled:
    """Compile texts with ids from `s<first>` on. A rejected text is an error."""
    numbers = pc.cast(pa.array(np.arange(first, first + len(texts))), pa.string())
    ids = pc.binary_join_element_wise("s", numbers, "")
    done = compile_columns(ids, *(pa.repeat(word, len(texts)) for word in ("somebody", "xpath")), texts)
    if done.rejects:
        raise ValueError(f"{len(done.rejects)} texts are rejected, the first: {done.rejects[0]}")
    return done


def _decode(block: Documents, tags: TagPaths) -> DecodedDocuments:
    decoded = decode_documents(block.buffer, block.starts, block.ends, tags)
    if decoded.rejects:
        raise ValueError(f"{len(decoded.rejects)} documents are rejected, the first: {decoded.rejects[0]}")
    return decoded


class EachXPath(Engine):
    """Every XPath for every document by `tree.xpath(text)`, which parses the XPath each time."""

    name = "lxml, each XPath in turn"

    def prepare(self, subscriptions: Texts) -> None:
        self._texts = [lower(text) for text in subscriptions]

    def build(self) -> None:
        return None

    def give(self, events: Documents) -> None:
        self._bodies = events.bodies()

    def match(self) -> list[int]:
        return [self._count_matches(etree.fromstring(body).getroottree()) for body in self._bodies]

    def _count_matches(self, tree: etree._ElementTree) -> int:
        return sum(1 for text in self._texts if tree.xpath(text))

    def counts(self, answer: list[int]) -> Counts:
        return np.array(answer, np.int64)


class CompiledXPaths(EachXPath):
    """The same with compiled XPaths."""

    name = "lxml, compiled XPaths in turn"

    def build(self) -> None:
        self._xpaths: list[Callable[[Any], Any]] = [etree.XPath(text) for text in self._texts]

    def _count_matches(self, tree: etree._ElementTree) -> int:
        return sum(1 for xpath in self._xpaths if xpath(tree))


def lower(text: str) -> str:
    """Translate to XPath 1.0, which does not have the paper's AND between paths."""
    return text.replace(" AND ", " and ")


def by_lxml(texts: Iterable[str], documents: Documents) -> Counts:
    """Count the subscriptions that each of a few documents satisfies; one compiled XPath is in memory at a time."""
    trees = [etree.fromstring(body).getroottree() for body in documents.bodies()]
    counts = np.zeros(len(trees), np.int64)
    for text in texts:
        xpath = etree.XPath(lower(text))
        counts += [bool(xpath(tree)) for tree in trees]
    return counts
