"""Pairs that the kernel leaves undecided (decision 0017): streams and batch jobs find exactly those that match.

The tests use the real limit. A complete graph has more paths than the kernel visits in the order in which the pattern
was compiled. The specification starts where there are fewest possibilities, and needs few steps.
"""

from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.spark.stream.test_graphs import run_batch_task
from tests.support.processes.streams import read_notifications, running
from tidings.graphs.atoms import AtomReader
from tidings.graphs.patterns import pattern_parser
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.graphs.reference_matcher import matches
from tidings.graphs.taxonomy import Taxonomy
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.index.index import Index
from tidings.model import Publication, Subscription
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

TURTLE = "text/turtle"
CROWD = 30


def knows(*pairs: tuple[Any, Any]) -> str:
    return "".join(f"<urn:{subject}> <urn:knows> <urn:{object_}> .\n" for subject, object_ in pairs)


CHAIN = "".join(f"(?{a}, <urn:knows>, ?{b}) " for a, b in zip("abcd", "bcde", strict=True))
PATH = f"SELECT ?a ?e WHERE {CHAIN}(?e, <urn:plays>, ?z)"
"""A chain of people who know each other, whose last one plays something."""

COMPLETE_GRAPH = knows(*permutations(range(CROWD), 2))
GRAPHS = {
    "stranger": COMPLETE_GRAPH + "<urn:stranger> <urn:plays> <urn:chess> .",
    "outside": COMPLETE_GRAPH
    + knows(("u", "v"), ("v", "w"), ("w", "x"), ("x", "y"))
    + "<urn:y> <urn:plays> <urn:go> .",
    "plain": knows(*zip("abcd", "bcde", strict=True)) + "<urn:e> <urn:plays> <urn:chess> .",
}
"""The player is unknown; the player is known outside of the crowd; a graph without a crowd."""

CLIQUE = "SELECT * WHERE " + " ".join(f"(?{a}, <urn:met>, ?{b})" for a, b in combinations("abcdefg", 2))
GROUPS = knows(*((a, b) for a, b in permutations(range(48), 2) if a % 6 != b % 6)).replace("knows", "met")
"""A clique of seven, and six groups of eight in which each person met all other groups: they have no such clique."""


def test_index_match_undecided_pairs_are_separate_from_matches(tmp_path: Path) -> None:
    """The tests below depend on this."""
    index = Index.create(tmp_path / "index")
    index.add(compile_many([Subscription("path", "ana", "gql", PATH)]))
    graphs = [decode(GRAPHS[name].encode(), TURTLE) for name in ("stranger", "outside")]
    [(_, matches_found)] = index.match_parts(AtomReader(index.graph_paths, Taxonomy()).atoms(graphs))
    assert matches_found.publication.tolist() == []
    assert (
        list(matches_found.undecided.pairs())
        == list(matches_found.candidates.pairs())
        == [(0, "path"), (1, "path")]
    )
    assert matches_found.undecided.subscription.tolist() == [0, 0]
    assert [matches(pattern_parser.parse(PATH), graph) for graph in graphs] == [False, True]


def test_matches_select_and_shift_keep_undecided_pairs(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index")
    for id in ("first", "second", "third"):
        index.add(compile_many([Subscription(id, "ana", "gql", PATH)]))
    index.remove(["second"])
    graphs = [decode(GRAPHS[name].encode(), TURTLE) for name in ("stranger", "plain", "outside")]
    matches_found = index.match(AtomReader(index.graph_paths, Taxonomy()).atoms(graphs))
    both = {"first", "third"}
    assert set(matches_found.pairs()) == {(1, id) for id in both}
    assert set(matches_found.undecided.pairs()) == {(place, id) for place in (0, 2) for id in both}
    assert set(matches_found.candidates.pairs()) == {(place, id) for place in range(3) for id in both}
    assert index.ids.take(matches_found.candidates.subscription).equals(matches_found.candidates.ids())
    selected = matches_found.select(np.array([False, True, True])).shift(5)
    assert (set(selected.publication.tolist()), set(selected.undecided.publication.tolist())) == ({6}, {7})


def test_batch_task_undecided_pairs_that_match_are_written_and_others_rejected(tmp_path: Path) -> None:
    files = {f"{name}.ttl": body for name, body in GRAPHS.items()} | {"groups.ttl": GROUPS}
    clique = Subscription("clique", "bo", "gql", CLIQUE)
    rows, rejects, events = run_batch_task(tmp_path, files, Subscription("chain", "ana", "gql", PATH), clique)
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
            stream.until(lambda: len(read_notifications(store, "ana")["ana"]) == 2)
        assert [row[1] for row in read_notifications(store, "ana")["ana"]] == ["outside", "plain"], (
            "no notification of the stranger"
        )
        notification = store.notifications.read("ana")[0]
        assert notification.bindings["results"]["bindings"] == [
            {"a": {"type": "uri", "value": "urn:u"}, "e": {"type": "uri", "value": "urn:y"}}
        ]
        assert [reason.value for reason in notification.because][-1] == "urn:go"
        assert store.dead_letters.read() == []
