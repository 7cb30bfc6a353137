"""Real documents: two years of papers of the ACL Anthology, each an XML document.

The archive is expected beside the checkout, as `../shared/data/acl-anthology-2020-2021.tar.gz`: collections as XML,
with papers in volumes. It is not part of the project; without it the workload is skipped.
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
"""Maximum length of a value in a subscription."""


def anthology(subscriptions: int, archive: Path, seed: int = 7) -> DocumentWorkload:
    """Return all papers, and subscriptions with values from them."""
    papers = read(archive)
    texts = xpaths(subscriptions, [leaves(paper) for paper in papers], seed)
    return DocumentWorkload(NAME, texts, Documents.of(papers))


@cache
def read(archive: Path) -> tuple[bytes, ...]:
    """Return the papers as documents in random order, so that the first thousand are typical."""
    papers = list(_papers(archive))
    random.Random(1).shuffle(papers)
    return tuple(papers)


def _papers(archive: Path) -> Iterator[bytes]:
    with tarfile.open(archive) as files:
        for member in files:
            file = files.extractfile(member)
            if file is None:
                continue
            for paper in etree.parse(file).iter("paper"):
                yield etree.tostring(paper, encoding="utf-8", with_tail=False)


def leaves(paper: bytes) -> list[Leaf]:
    """Return the values of a paper for subscriptions: attributes, and elements with short text of their own."""
    root = etree.fromstring(paper)
    candidates = [Leaf(0, (root.tag, f"@{name}"), value) for name, value in root.items()]
    for branch, child in enumerate(root.iterchildren(etree.Element), 1):
        for element in child.iter(etree.Element):
            candidates += _of_element(branch, element)
    return [leaf for leaf in candidates if _is_fit(leaf.value)]


def _of_element(branch: int, element: etree._Element) -> Iterator[Leaf]:
    steps = tuple(each.tag for each in (*reversed([*element.iterancestors()]), element))
    if any(text and not text.isspace() for text in (element.text, *(each.tail for each in element))):
        yield Leaf(branch, steps, "".join(element.itertext()), plain=len(element) == 0)
    for name, value in element.items():
        yield Leaf(branch, (*steps, f"@{name}"), value)


def _is_fit(value: str) -> bool:
    return 0 < len(value) <= LONGEST and value.isprintable() and not ('"' in value and "'" in value)
