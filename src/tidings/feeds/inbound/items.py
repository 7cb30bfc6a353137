"""Items of a feed as publications: new, edited and rejected ones.

The id of a publication is derived from the URL of the feed, the id of the item and its content, so the same item is
always the same publication. An edited item has an edge `dcterms:replaces` to `urn:tidings:publication:` with the id of
the earlier publication.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from tidings.errors import DecodeProblem
from tidings.feeds.sql.polled_feeds import PolledFeed
from tidings.feeds.sql.polled_items import ItemOutcome, SeenItem
from tidings.graphs.model import Edge, Graph, iri
from tidings.graphs.rdf.multipart import N_TRIPLES, n_triples
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.graphs.syndication.feed_parser import Item, RefusedItem
from tidings.model import Publication
from tidings.operations import traces
from tidings.store.dead_letters import DeadLetter

REPLACES = "http://purl.org/dc/terms/replaces"
PUBLICATION = "urn:tidings:publication:"

ItemsByKey = Mapping[str, Item | RefusedItem]
"""Items by their keys."""


def index_items(items: Iterable[Item | RefusedItem]) -> ItemsByKey:
    """Index items by key. Of several with one id the first counts, which is the newest in most feeds.

    If all counted, each poll would see them edit each other.
    """
    made: dict[str, Item | RefusedItem] = {}
    for item in items:
        made.setdefault(_digest(item.id), item)
    return made


def plan_items(feed: PolledFeed, items: ItemsByKey, seen: Mapping[str, SeenItem]) -> Sequence[ItemOutcome]:
    """Plan the publications of items that are new or have changed."""
    return [
        _plan_item(feed, key, item, seen.get(key))
        for key, item in items.items()
        if key not in seen or seen[key].hash != item.hash
    ]


def _plan_item(feed: PolledFeed, key: str, item: Item | RefusedItem, seen: SeenItem | None) -> ItemOutcome:
    """Plan the publication of an item.

    A feed that is added again has a new number, so an item edited back to an earlier content is published again.
    """
    id = publication_id(feed.url, item)
    if isinstance(item, RefusedItem):
        return _refuse_item(key, item, id, item.problem, None)
    previous = seen.publication if seen else None
    body = n_triples(_with_earlier(item.graph, previous) if previous else item.graph)
    try:
        decode(body, N_TRIPLES)
    except DecodeProblem as problem:
        return _refuse_item(key, item, id, problem, body)
    again_id = publication_id(feed.url, item, f"{feed.number} {previous}")
    trace = traces.current_traceparent()
    again = Publication(again_id, N_TRIPLES, body, traceparent=trace) if previous else None
    return ItemOutcome(key, item.hash, Publication(id, N_TRIPLES, body, traceparent=trace), again)


def _refuse_item(
    key: str, item: Item | RefusedItem, id: str, problem: DecodeProblem, body: bytes | None
) -> ItemOutcome:
    letter = DeadLetter(id, str(problem), problem.facts() | {"item": item.id}, body=body)
    return ItemOutcome(key, item.hash, None, letter=letter)


def _with_earlier(graph: Graph, previous: str) -> Graph:
    node = graph.edges[0].subject
    return Graph((*graph.edges, Edge(node, iri(REPLACES), iri(PUBLICATION + previous))))


def publication_id(url: str, item: Item | RefusedItem, previous: str = "") -> str:
    """Derive the id of a publication; `before` is the publication after which an item has its earlier content again."""
    return "p-" + _digest(url, item.id, item.hash, previous)


def _digest(*texts: str) -> str:
    named = "".join(f"{len(text)}:{text}" for text in texts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(named, digest_size=10).hexdigest()
