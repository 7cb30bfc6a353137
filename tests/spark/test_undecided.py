"""Pairs that the kernel gives up on (decision 0017): a stream that runs tells of those that hold, and of no others.

The limit is the real one. A crowd in which everybody knows everybody has more paths than the kernel goes along, and it
does so in the order in which the pattern was compiled. The definition begins where there are fewest possibilities, and
needs a few steps.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.spark.streams import running, told
from tidings.compiler.pipeline import compile_many
from tidings.languages import gql
from tidings.matching.graphs import matches
from tidings.matching.index import Index
from tidings.model import Publication, Subscription
from tidings.publications.graph_atoms import GraphReader
from tidings.publications.rdf import decode
from tidings.store import open_store, sqlite_url
from tidings.taxonomies import Taxonomy

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


def test_the_index_lists_what_its_kernel_cannot_decide(tmp_path: Path) -> None:
    """Otherwise the test below would show nothing."""
    index = Index.create(tmp_path / "index")
    index.add(compile_many([Subscription("path", "ana", "gql", PATH)]))
    graphs = [decode(GRAPHS[name].encode(), TURTLE) for name in ("stranger", "outside")]
    [(_, found)] = index.match_parts(GraphReader(index.graph_paths, Taxonomy()).atoms(graphs))
    assert found.publication.tolist() == [0, 1]
    assert [matches(gql.parse(PATH), graph) for graph in graphs] == [False, True]


@pytest.mark.spark
def test_a_stream_tells_of_those_that_hold(session: Any, tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "store.db")
    with open_store(url) as store:
        store.subscriptions.add(Subscription("path", "ana", "gql", PATH))
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
