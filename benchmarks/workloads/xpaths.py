"""Branching XPath subscriptions made from documents, as YFilter's generator makes them (section 5.2 of paper 003).

    /paper[author[first = "Dan" and last = "Chai"] and @id > 17 and .//@hash = "ff986e52"]/*/text() != "1-6"

A document gives paths and values. Two to ten predicates, seven on average, four of five of them equalities and at least
two; a step is `//` instead of `/` one time in ten, and `*` instead of its name one time in ten.

Half of the subscriptions take all predicates from one document, which they match. Of the others most take each from
another document; some take all from one, but ask one branch for what stands in several: every predicate holds there,
and only the branches tell that it is no match.
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
"""How many predicates a subscription has, and how likely each number is beside the others: seven on average."""

EQUALITIES = 0.76
"""How likely a predicate is one; with two at least in each subscription, four of five are."""
WILD = 0.1
"""How likely a step is `//`, and how likely `*`."""

TEXT = 0.1
"""How likely the text() of an element is asked for, where that is all there is in it."""

PATH = 0.4
"""How likely the last branch is not a predicate, but where the path leads to."""

OWN, CROSSED = 0.05, 0.05
"""How many match the document they are from; how many ask one branch for what stands in several.

In the paper every value is from some document, whichever: then hardly any subscription matches.
"""

CHUNK = 10_000
BITS = 6
"""Of a code: two for each step, and no leaf is more than three steps below its branch."""

AWAY = 100
"""How far at most the bound of an inequality is from the number it is made from."""

PATHS = 1 << 20
"""More than there are variants of steps: a linear path's number is put together from those of its parts."""


class Asked(NamedTuple):
    """One predicate: of which leaf, at which steps below its branch, what of the value."""

    choice: Choice
    inner: Variant
    condition: str


Branches = list[list[Asked]]


def xpaths(count: int, documents: Sequence[Sequence[Leaf]], seed: int) -> Texts:
    """So many subscriptions from the leaves of documents."""
    kept = Choices()
    draws = Draws([kept.of(leaves) for leaves in documents if len(leaves) >= MOST], seed)
    chunks, lengths, linear = list[pa.Array](), list[int](), list[Integers]()
    for first in range(0, count, CHUNK):
        made = [_written(*drawn, kept.root) for drawn in draws.of(min(CHUNK, count - first))]
        chunks.append(pa.array([text for text, _ in made], pa.string()))
        lengths += [len(numbers) for _, numbers in made]
        linear.append(np.array([number for _, numbers in made for number in numbers], np.int64))
    return Texts(tuple(chunks), starts_of(lengths), np.concatenate(linear))


class Draws:
    """Subscriptions by chance."""

    def __init__(self, documents: Sequence[Sequence[Choice]], seed: int) -> None:
        self._documents = documents
        self._random, self._rng = random.Random(seed), np.random.default_rng(seed)

    def of(self, count: int) -> Iterator[tuple[Branches, list[int], bool]]:
        """For each its branches, codes for the steps to them, and whether the path leads on to the last."""
        lengths = self._rng.choice(range(FEWEST, MOST + 1), count, p=np.divide(SHARES, sum(SHARES)))
        wild = self._rng.random((count, 2 * MOST + 1, BITS)) < WILD
        codes = (wild @ (1 << np.arange(BITS))).tolist()
        for length, mine in zip(lengths.tolist(), codes, strict=True):
            kind = self._random.random()
            chosen = self._from_one(length) if kind < OWN + CROSSED else self._from_many(length)
            asked = self._asked(chosen, mine)
            branches = _by_branch(asked) if kind < OWN else _by_tag(asked)
            yield branches, mine[MOST:], self._random.random() < PATH

    def _from_one(self, length: int) -> list[Choice]:
        """Half of them neighbours, so that some stand in one branch."""
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

    def _asked(self, chosen: Sequence[Choice], codes: Sequence[int]) -> list[Asked]:
        """At least two are equalities: what asks for one popular name, and for nothing else, is found everywhere."""
        chance = self._random.random
        equal = [chance() < EQUALITIES for _ in chosen]
        while sum(equal) < FEWEST:
            equal[int(chance() * len(equal))] = True
        asked = []
        for choice, code, same in zip(chosen, codes, equal, strict=False):
            ways = choice.inner_text if choice.inner_text and chance() < TEXT else choice.inner
            condition = f"= {choice.literal}" if same else self._inequality(choice)
            asked.append(Asked(choice, ways[code & (len(ways) - 1)], condition))
        return asked

    def _inequality(self, choice: Choice) -> str:
        """One that holds for the value it is made from; where no other value is drawn, an equality."""
        chance = self._random.random
        if choice.number is not None:
            away = 1 + int(chance() * AWAY)
            return f"< {choice.number + away}" if chance() < 0.5 else f"> {choice.number - away}"
        other = choice.alike[int(chance() * len(choice.alike))]
        return f"!= {other}" if other != choice.literal else f"= {other}"


def _by_branch(asked: Sequence[Asked]) -> Branches:
    """What stands in one branch of a document is asked for in one."""
    branches: Branches = []
    for each in asked:
        last = branches[-1][0].choice if branches else None
        if last and last.tag and last.branch == each.choice.branch and each.choice.tag:
            branches[-1].append(each)
        else:
            branches.append([each])
    return branches


def _by_tag(asked: Sequence[Asked]) -> Branches:
    """What stands in branches of one name is asked for in one, as long as its steps are not there yet."""
    branches: Branches = []
    for each in asked:
        tag, inner = each.choice.tag, each.choice.inner
        for branch in branches:
            if tag and branch[0].choice.tag == tag and all(a.choice.inner is not inner for a in branch):
                branch.append(each)
                break
        else:
            branches.append([each])
    return branches


def _written(
    branches: Branches, codes: Sequence[int], leads_on: bool, root: Sequence[Variant]
) -> tuple[str, list[int]]:
    """The text, and the numbers of its linear paths."""
    top, predicates, numbers = root[codes[-1] & 3], list[str](), list[int]()
    for branch, code in zip(branches, codes, strict=False):
        ways = branch[0].choice.to_branch
        to_branch = ways[code & 3] if ways else NO_STEPS
        numbers += [(top.number * PATHS + to_branch.number) * PATHS + each.inner.number for each in branch]
        predicates.append(_branch(branch, to_branch))
    end = _leading_on(predicates.pop()) if leads_on else ""
    return top.after + (f"[{' and '.join(predicates)}]" if predicates else "") + end, numbers


def _branch(branch: Sequence[Asked], to_branch: Variant) -> str:
    """A branch as a predicate."""
    if to_branch is NO_STEPS:
        return f"{branch[0].inner.first} {branch[0].condition}"
    if len(branch) == 1:
        return f"{to_branch.first}{branch[0].inner.after} {branch[0].condition}"
    return f"{to_branch.first}[{' and '.join([f'{each.inner.first} {each.condition}' for each in branch])}]"


def _leading_on(predicate: str) -> str:
    """A predicate as the end of the path it was to stand at: `.//url` and `url` become `//url` and `/url`."""
    return predicate[1:] if predicate.startswith(".//") else f"/{predicate}"
