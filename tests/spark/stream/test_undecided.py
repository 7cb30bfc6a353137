"""Pairs that the kernel leaves undecided (decision 0017): streams and batch jobs find those that match, and no others.

The limit is the real one. A crowd in which everybody knows everybody has more paths than the kernel goes along, and it
does so in the order in which the pattern was compiled. The definition begins where there are fewest possibilities, and
needs a few steps.
"""

from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.spark.stream.test_graphs import batch
from tests.support.processes.streams import running, told
from tidings.graphs.atoms import AtomReader
from tidings.graphs.explanation import matches
from tidings.graphs.patterns import pattern_parser
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.graphs.taxonomy import Taxonomy
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.index.index import Index
from tidings.model import Publication, Subscription
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

TURTLE = "text/turtle"
CROWD = 30


def knows(*pairs: tuple[Any, Any]) -> str:
    return "".join(f"<urn:{one}> <urn:knows> <urn:{other}> .\n" for one, other in pairs)


CHAIN = "".join(f"(?{one}, <urn:knows>, ?{other}) " for one, other in zip("abcd", "bcde", strict=True))
PATH = f"SELECT ?a ?e WHERE {CHAIN}(?e, <urn:plays>, ?z)"
"""Somebody knows somebody who knows ... who plays something."""

AMONG_THEMSELVES = knows(*permutations(range(CROWD), 2))
GRAPHS = {
    "stranger": AMONG_THEMSELVES + "<urn:stranger> <urn:plays> <urn:chess> .",
    "outside": AMONG_THEMSELVES
    + knows(("u", "v"), ("v", "w"), ("w", "x"), ("x", "y"))
    + "<urn:y> <urn:plays> <urn:go> .",
    "plain": knows(*zip("abcd", "bcde", strict=True)) + "<urn:e> <urn:plays> <urn:chess> .",
}
"""The one who plays is known to nobody; is known, but not from the crowd; and a graph without a crowd."""

CLIQUE = "SELECT * WHERE " + " ".join(f"(?{a}, <urn:met>, ?{b})" for a, b in combinations("abcdefg", 2))
GROUPS = knows(*((a, b) for a, b in permutations(range(48), 2) if a % 6 != b % 6)).replace("knows", "met")
"""Seven who met each other, and six groups of eight who met all of the other groups: they have no such seven."""


def test_index_lists_undecided_pairs_apart_from_matches(tmp_path: Path) -> None:
    """Otherwise the tests below would show nothing."""
    index = Index.create(tmp_path / "index")
    index.add(compile_many([Subscription("path", "ana", "gql", PATH)]))
    graphs = [decode(GRAPHS[name].encode(), TURTLE) for name in ("stranger", "outside")]
    [(_, found)] = index.match_parts(AtomReader(index.graph_paths, Taxonomy()).atoms(graphs))
    assert found.publication.tolist() == []
    assert list(found.undecided.pairs()) == list(found.candidates.pairs()) == [(0, "path"), (1, "path")]
    assert found.undecided.subscription.tolist() == [0, 0]
    assert [matches(pattern_parser.parse(PATH), graph) for graph in graphs] == [False, True]


def test_matches_keep_undecided_pairs_when_they_are_filtered_moved_and_removed(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index")
    for id in ("first", "second", "third"):
        index.add(compile_many([Subscription(id, "ana", "gql", PATH)]))
    index.remove(["second"])
    graphs = [decode(GRAPHS[name].encode(), TURTLE) for name in ("stranger", "plain", "outside")]
    found = index.match(AtomReader(index.graph_paths, Taxonomy()).atoms(graphs))
    both = {"first", "third"}
    assert set(found.pairs()) == {(1, id) for id in both}
    assert set(found.undecided.pairs()) == {(place, id) for place in (0, 2) for id in both}
    assert set(found.candidates.pairs()) == {(place, id) for place in range(3) for id in both}
    assert index.ids.take(found.candidates.subscription).equals(found.candidates.ids())
    kept = found.select(np.array([False, True, True])).shift(5)
    assert (set(kept.publication.tolist()), set(kept.undecided.publication.tolist())) == ({6}, {7})


def test_batch_task_writes_undecided_pairs_that_match_and_rejects_the_rest(tmp_path: Path) -> None:
    files = {f"{name}.ttl": body for name, body in GRAPHS.items()} | {"groups.ttl": GROUPS}
    clique = Subscription("clique", "bo", "gql", CLIQUE)
    rows, rejects, events = batch(tmp_path, files, Subscription("chain", "ana", "gql", PATH), clique)
    assert rows == [("outside.ttl", "chain"), ("plain.ttl", "chain")]
    assert events == len(files)
    [reject] = rejects
    assert (reject["what"], reject["id"], reject["file"]) == ("publication", "groups.ttl", "groups.ttl")
    assert reject["subscription"] == "clique"
    assert reject["reason"].startswith(
        "whether this subscription matches could not be decided (subscription clique); received more than"
    )
    assert reject["facts"]["error"] == "BudgetExceeded"


@pytest.mark.spark
def test_stream_notifies_undecided_pairs_that_match(session: Any, tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "store.db")
    with open_store(url) as store:
        store.subscriptions.add(Subscription("chain", "ana", "gql", PATH))
        store.journal.append([Publication(name, TURTLE, body.encode()) for name, body in GRAPHS.items()])
        with running(session, tmp_path, url) as stream:
            stream.until(lambda: len(told(store, "ana")["ana"]) == 2)
        assert [row[1] for row in told(store, "ana")["ana"]] == ["outside", "plain"], (
            "and not of the stranger"
        )
        found = store.notifications.read("ana")[0]
        assert found.bindings["results"]["bindings"] == [
            {"a": {"type": "uri", "value": "urn:u"}, "e": {"type": "uri", "value": "urn:y"}}
        ]
        assert [reason.value for reason in found.because][-1] == "urn:go"
        assert store.dead_letters.read() == []
