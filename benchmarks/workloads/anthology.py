"""Real documents: the papers of the ACL Anthology of two years, each an XML document.

The archive is looked for beside the checkout, as `../shared/data/acl-anthology-2020-2021.tar.gz`: collections as XML,
with papers in volumes. It is no part of the project; without it there is no such workload.
"""

from __future__ import annotations

import random
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from lxml import etree

from benchmarks.workloads.documents import Documents, DocumentWorkload
from benchmarks.workloads.leaves import Leaf
from benchmarks.workloads.xpaths import xpaths

NAME = "anthology"
ARCHIVE = Path(__file__).parents[3] / "shared" / "data" / "acl-anthology-2020-2021.tar.gz"
LONGEST = 100
"""Characters of a value that a subscription asks for."""


def anthology(subscriptions: int, archive: Path, seed: int = 7) -> DocumentWorkload:
    """All papers, and so many subscriptions whose values are taken from them."""
    papers = read(archive)
    texts = xpaths(subscriptions, [leaves(paper) for paper in papers], seed)
    return DocumentWorkload(NAME, texts, Documents.of(papers))


@cache
def read(archive: Path) -> tuple[bytes, ...]:
    """The papers as documents, in an order by chance: the first thousand are like all others."""
    found = list(_papers(archive))
    random.Random(1).shuffle(found)
    return tuple(found)


def _papers(archive: Path) -> Iterator[bytes]:
    with tarfile.open(archive) as files:
        for member in files:
            file = files.extractfile(member)
            if file is None:
                continue
            for paper in etree.parse(file).iter("paper"):
                yield etree.tostring(paper, encoding="utf-8", with_tail=False)


def leaves(paper: bytes) -> list[Leaf]:
    """What a subscription may ask of a paper: attributes, and elements with text of their own, if it is short."""
    root = etree.fromstring(paper)
    found = [Leaf(0, (root.tag, f"@{name}"), value) for name, value in root.items()]
    for branch, child in enumerate(root.iterchildren(etree.Element), 1):
        for element in child.iter(etree.Element):
            found += _of_element(branch, element)
    return [leaf for leaf in found if _is_fit(leaf.value)]


def _of_element(branch: int, element: etree._Element) -> Iterator[Leaf]:
    steps = tuple(each.tag for each in (*reversed([*element.iterancestors()]), element))
    if any(text and not text.isspace() for text in (element.text, *(each.tail for each in element))):
        yield Leaf(branch, steps, "".join(element.itertext()), plain=len(element) == 0)
    for name, value in element.items():
        yield Leaf(branch, (*steps, f"@{name}"), value)


def _is_fit(value: str) -> bool:
    return 0 < len(value) <= LONGEST and value.isprintable() and not ('"' in value and "'" in value)
