"""Branching XPath subscriptions made from documents, as YFilter's generator makes them (section 5.2 of paper 003).

    /paper[author[first = "Dan" and last = "Chai"] and @id > 17 and .//@hash = "ff986e52"]/*/text() != "1-6"

A document gives paths and values. Two to ten predicates, seven on average, four of five of them equalities and at least
two; a step is `//` instead of `/` one time in ten, and `*` instead of its name one time in ten.

Half of the subscriptions take all predicates from one document, which they match. Most of the others take each
predicate from another document. Some take all from one document, but test in one branch what is in several: every
predicate holds there, and only the branches show that it does not match.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.workloads.documents import Texts
from benchmarks.workloads.leaves import NO_STEPS, Choice, Choices, Leaf, Variant
from benchmarks.workloads.runs import Integers, starts_of

FEWEST, MOST = 2, 10
SHARES = (0.4, 0.55, 0.7, 0.85, 1.0, 1.15, 1.3, 1.45, 1.6)
"""Relative probabilities of the numbers of predicates: seven on average."""

EQUALITIES = 0.76
"""Probability that a predicate is an equality; with at least two per subscription, four of five are."""
WILD = 0.1
"""Probability of `//` in a step, and of `*`."""

TEXT = 0.1
"""Probability of a test of text(), for elements that contain only text."""

PATH = 0.4
"""Probability that the last branch is the end of the path instead of a predicate."""

OWN, CROSSED = 0.05, 0.05
"""Shares of subscriptions that match their document, and that test in one branch what is in several.

In the paper every value is from a random document: then hardly any subscription matches.
"""

CHUNK = 10_000
BITS = 6
"""Bits of a code: two for each step, and no leaf is more than three steps below its branch."""

AWAY = 100
"""Maximum distance of the bound of an inequality from the number in the document."""

PATHS = 1 << 20
"""More than the number of step variants: a linear path's number is composed of those of its parts."""


class PathPredicate(NamedTuple):
    """A predicate: its leaf, the steps below its branch, the condition on the value."""

    choice: Choice
    inner: Variant
    condition: str


Branches = list[list[PathPredicate]]


def xpaths(count: int, documents: Sequence[Sequence[Leaf]], seed: int) -> Texts:
    """Generate `count` subscriptions from the leaves of documents."""
    choices = Choices()
    draws = Draws([choices.of(leaves) for leaves in documents if len(leaves) >= MOST], seed)
    chunks, lengths, linear = list[pa.Array](), list[int](), list[Integers]()
    for first in range(0, count, CHUNK):
        made = [_format(*drawn, choices.root) for drawn in draws.of(min(CHUNK, count - first))]
        chunks.append(pa.array([text for text, _ in made], pa.string()))
        lengths += [len(numbers) for _, numbers in made]
        linear.append(np.array([number for _, numbers in made for number in numbers], np.int64))
    return Texts(tuple(chunks), starts_of(lengths), np.concatenate(linear))


class Draws:
    """Random subscriptions."""

    def __init__(self, documents: Sequence[Sequence[Choice]], seed: int) -> None:
        self._documents = documents
        self._random, self._rng = random.Random(seed), np.random.default_rng(seed)

    def of(self, count: int) -> Iterator[tuple[Branches, list[int], bool]]:
        """Yield for each subscription its branches, codes of the steps to them, and whether the last ends the path."""
        lengths = self._rng.choice(range(FEWEST, MOST + 1), count, p=np.divide(SHARES, sum(SHARES)))
        wild = self._rng.random((count, 2 * MOST + 1, BITS)) < WILD
        codes = (wild @ (1 << np.arange(BITS))).tolist()
        for length, mine in zip(lengths.tolist(), codes, strict=True):
            kind = self._random.random()
            chosen = self._from_one(length) if kind < OWN + CROSSED else self._from_many(length)
            predicates = self._predicates(chosen, mine)
            branches = _by_branch(predicates) if kind < OWN else _by_tag(predicates)
            yield branches, mine[MOST:], self._random.random() < PATH

    def _from_one(self, length: int) -> list[Choice]:
        """Choose leaves of one document, half of them neighbours, so that some are in one branch."""
        chance, half = self._random.random, length // 2
        document = self._documents[int(chance() * len(self._documents))]
        start = int(chance() * (len(document) - half))
        places = set(range(start, start + half))
        while len(places) < length:
            places.add(int(chance() * len(document)))
        return [document[place] for place in sorted(places)]

    def _from_many(self, length: int) -> list[Choice]:
        chance, documents = self._random.random, self._documents
        chosen = [documents[int(chance() * len(documents))] for _ in range(length)]
        return [document[int(chance() * len(document))] for document in chosen]

    def _predicates(self, chosen: Sequence[Choice], codes: Sequence[int]) -> list[PathPredicate]:
        """Draw predicates with at least two equalities: a test of a single popular name would match everywhere."""
        chance = self._random.random
        equal = [chance() < EQUALITIES for _ in chosen]
        while sum(equal) < FEWEST:
            equal[int(chance() * len(equal))] = True
        predicates = []
        for choice, code, same in zip(chosen, codes, equal, strict=False):
            ways = choice.inner_text if choice.inner_text and chance() < TEXT else choice.inner
            condition = f"= {choice.literal}" if same else self._inequality(choice)
            predicates.append(PathPredicate(choice, ways[code & (len(ways) - 1)], condition))
        return predicates

    def _inequality(self, choice: Choice) -> str:
        """Return an inequality that holds for the leaf's value; an equality if no other value is drawn."""
        chance = self._random.random
        if choice.number is not None:
            away = 1 + int(chance() * AWAY)
            return f"< {choice.number + away}" if chance() < 0.5 else f"> {choice.number - away}"
        other = choice.alike[int(chance() * len(choice.alike))]
        return f"!= {other}" if other != choice.literal else f"= {other}"


def _by_branch(predicates: Sequence[PathPredicate]) -> Branches:
    """Group predicates by branch of the document."""
    branches: Branches = []
    for each in predicates:
        last = branches[-1][0].choice if branches else None
        if last and last.tag and last.branch == each.choice.branch and each.choice.tag:
            branches[-1].append(each)
        else:
            branches.append([each])
    return branches


def _by_tag(predicates: Sequence[PathPredicate]) -> Branches:
    """Group predicates by name of the branch, unless the branch has the same steps already."""
    branches: Branches = []
    for each in predicates:
        tag, inner = each.choice.tag, each.choice.inner
        for branch in branches:
            if tag and branch[0].choice.tag == tag and all(a.choice.inner is not inner for a in branch):
                branch.append(each)
                break
        else:
            branches.append([each])
    return branches


def _format(
    branches: Branches, codes: Sequence[int], ends_path: bool, root: Sequence[Variant]
) -> tuple[str, list[int]]:
    """Return the text, and the numbers of its linear paths."""
    top, predicates, numbers = root[codes[-1] & 3], list[str](), list[int]()
    for branch, code in zip(branches, codes, strict=False):
        ways = branch[0].choice.to_branch
        to_branch = ways[code & 3] if ways else NO_STEPS
        numbers += [(top.number * PATHS + to_branch.number) * PATHS + each.inner.number for each in branch]
        predicates.append(_branch(branch, to_branch))
    end = _as_path_end(predicates.pop()) if ends_path else ""
    return top.after + (f"[{' and '.join(predicates)}]" if predicates else "") + end, numbers


def _branch(branch: Sequence[PathPredicate], to_branch: Variant) -> str:
    """Format a branch as a predicate."""
    if to_branch is NO_STEPS:
        return f"{branch[0].inner.first} {branch[0].condition}"
    if len(branch) == 1:
        return f"{to_branch.first}{branch[0].inner.after} {branch[0].condition}"
    return f"{to_branch.first}[{' and '.join([f'{each.inner.first} {each.condition}' for each in branch])}]"


def _as_path_end(predicate: str) -> str:
    """Convert a predicate to the end of its path: `.//url` and `url` become `//url` and `/url`."""
    return predicate[1:] if predicate.startswith(".//") else f"/{predicate}"
