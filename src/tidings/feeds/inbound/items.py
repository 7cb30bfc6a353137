"""The items of a feed as publications: what is new, what was edited, and what cannot be used.

A publication's id is made of the feed's address, the item's id and its content, so that the same item is the same
publication, whoever finds it and however often. An edited item says so: an edge `dcterms:replaces` leads from it to
`urn:tidings:publication:` and the id of what was published before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from tidings.errors import DecodeProblem
from tidings.feeds.sql.polled_feeds import PolledFeed
from tidings.feeds.sql.polled_items import ItemOutcome, SeenItem
from tidings.graphs.feed_formats.feed_parser import Item, RefusedItem
from tidings.graphs.model import Edge, Graph, iri
from tidings.graphs.rdf.multipart import N_TRIPLES, n_triples
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.model import Publication
from tidings.store.dead_letters import DeadLetter

REPLACES = "http://purl.org/dc/terms/replaces"
PUBLICATION = "urn:tidings:publication:"

ItemsByKey = Mapping[str, Item | RefusedItem]
"""Items by their keys."""


def index_items(items: Iterable[Item | RefusedItem]) -> ItemsByKey:
    """The items of a feed by their keys. Of several with one id the first counts, which is the newest in most feeds:
    if both did, they would edit each other at each poll.
    """
    made: dict[str, Item | RefusedItem] = {}
    for item in items:
        made.setdefault(_digest(item.id), item)
    return made


def plan_items(feed: PolledFeed, items: ItemsByKey, seen: Mapping[str, SeenItem]) -> Sequence[ItemOutcome]:
    """What becomes of those items that were not seen before as they are now."""
    return [
        _taking(feed, key, item, seen.get(key))
        for key, item in items.items()
        if key not in seen or seen[key].hash != item.hash
    ]


def _taking(feed: PolledFeed, key: str, item: Item | RefusedItem, seen: SeenItem | None) -> ItemOutcome:
    """A feed that is added anew has another number: what is edited back there is told, also if it was so before."""
    id = publication_id(feed.url, item)
    if isinstance(item, RefusedItem):
        return _refused(key, item, id, item.problem, None)
    before = seen.publication if seen else None
    body = n_triples(_with_earlier(item.graph, before) if before else item.graph)
    try:
        decode(body, N_TRIPLES)
    except DecodeProblem as problem:
        return _refused(key, item, id, problem, body)
    again_id = publication_id(feed.url, item, f"{feed.number} {before}")
    again = Publication(again_id, N_TRIPLES, body) if before else None
    return ItemOutcome(key, item.hash, Publication(id, N_TRIPLES, body), again)


def _refused(
    key: str, item: Item | RefusedItem, id: str, problem: DecodeProblem, body: bytes | None
) -> ItemOutcome:
    letter = DeadLetter(id, str(problem), problem.facts() | {"item": item.id}, body=body)
    return ItemOutcome(key, item.hash, None, letter=letter)


def _with_earlier(graph: Graph, before: str) -> Graph:
    node = graph.edges[0].subject
    return Graph((*graph.edges, Edge(node, iri(REPLACES), iri(PUBLICATION + before))))


def publication_id(url: str, item: Item | RefusedItem, before: str = "") -> str:
    """The id of an item's publication; with `before`, of one that says again what it said before that one."""
    return "p-" + _digest(url, item.id, item.hash, before)


def _digest(*texts: str) -> str:
    named = "".join(f"{len(text)}:{text}" for text in texts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(named, digest_size=10).hexdigest()
