"""Polling a local site: new items are published once, edits again, and failures block no other feed."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import feedparser
import pytest

from tests.feeds.conftest import Clock
from tests.support.servers.site import Request, Response, Site, a_site, rss
from tidings.errors import InputError, TidingsError
from tidings.feeds.inbound.feed_client import FetchPolicy
from tidings.feeds.inbound.items import PUBLICATION, REPLACES
from tidings.feeds.inbound.poller import APART, Poller, PollResult
from tidings.feeds.sql.polled_feeds import PolledFeed
from tidings.feeds.sql.polled_items import ItemCounts
from tidings.graphs.model import Graph
from tidings.graphs.patterns import pattern_parser
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.graphs.reference_matcher import matches
from tidings.operations.egress_policy import EgressPolicy, FetchProblem
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

TITLE = "http://purl.org/rss/1.0/title"


def poll(poller: Poller) -> list[PollResult]:
    return list(poller.poll_due())


def feed(store: Store) -> PolledFeed:
    [only_feed] = store.polled_feeds.load()
    return only_feed


def due_in(store: Store, clock: Clock) -> timedelta:
    next_poll = feed(store).next_poll
    assert next_poll is not None
    return datetime.fromisoformat(next_poll) - clock.now


def graphs(store: Store) -> list[Graph]:
    return [decode(one.body, one.media_type) for one in store.journal.read(0)]


def titles(store: Store) -> list[str]:
    """Return the titles of the published items, without that of their feed."""
    return [
        edge.object.text
        for graph in graphs(store)
        for edge in graph.edges
        if edge.property.text == TITLE and edge.subject == graph.edges[0].subject
    ]


def test_add_feed_polls_it_immediately(poller: Poller, site: Site, store: Store, clock: Clock) -> None:
    site.pages["/rss.xml"] = Response(200, rss("a", "b", ttl=30))
    polled = poller.add(site.url())
    assert polled.counts == ItemCounts(items=2, new=2, edited=0, refused=0)
    kept = feed(store)
    assert polled.feed == kept
    assert (kept.title, kept.site, kept.ttl, kept.failures, kept.problem) == (
        *("News", "http://example.org/"),
        *(30, 0, None),
    )
    assert timedelta(minutes=30) <= due_in(store, clock) <= timedelta(minutes=33)
    assert titles(store) == ["a", "b"]
    assert poll(poller) == [], "it is not due"


def test_poll_publishes_same_titles_as_feedparser(poller: Poller, site: Site, store: Store) -> None:
    body = rss("Tom &amp; Jerry", "Spike")
    site.pages["/rss.xml"] = Response(200, body)
    poller.add(site.url())
    assert titles(store) == [entry.title for entry in feedparser.parse(body).entries]


def test_poll_unchanged_feed_sends_conditional_request(
    poller: Poller, site: Site, store: Store, clock: Clock
) -> None:
    modified = "Fri, 01 May 2026 10:00:00 GMT"

    def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == '"1"':
            return Response(304)
        return Response(200, rss("a"), {"ETag": '"1"', "Last-Modified": modified})

    site.pages["/rss.xml"] = answer
    poller.add(site.url())
    clock.move(hours=2)
    [again] = poll(poller)
    assert (again.counts, again.problem) == (None, None)
    assert site.requests[1].headers["if-modified-since"] == modified
    assert due_in(store, clock) >= timedelta(hours=1)
    assert (feed(store).etag, titles(store)) == ('"1"', ["a"])


@pytest.mark.parametrize("answer", [None, Response(304), Response(500)])
def test_poll_skip_hours_postpone_next_poll(
    poller: Poller, site: Site, store: Store, clock: Clock, answer: Response | None
) -> None:
    """Also after an answer without skip hours, and after a failure. The clock is at noon."""
    skips = "".join(f"<hour>{hour}</hour>" for hour in range(6, 23))
    site.pages["/rss.xml"] = Response(200, rss("a", more=f"<skipHours>{skips}</skipHours>"))
    poller.add(site.url())
    if answer is not None:
        site.pages["/rss.xml"] = answer
        clock.move(minutes=2)
        poller.make_due([feed(store)])  # a ping takes precedence
        assert len(poll(poller)) == 1
    at_night = clock.now.replace(hour=23, minute=0)
    assert at_night <= clock.now + due_in(store, clock) <= at_night + timedelta(minutes=10)
    site.pages["/rss.xml"] = Response(200, rss("a"))
    clock.move(days=1)
    poll(poller)
    assert due_in(store, clock) <= timedelta(minutes=66), "the feed has no skip hours any more"


def test_poll_known_item_is_not_published_again(
    poller: Poller, site: Site, store: Store, clock: Clock
) -> None:
    site.pages["/rss.xml"] = Response(200, rss("a"))
    poller.add(site.url())
    site.pages["/rss.xml"] = Response(200, rss("a", "b"))
    clock.move(hours=2)
    [again] = poll(poller)
    assert again.counts == ItemCounts(items=2, new=1, edited=0, refused=0)
    assert titles(store) == ["a", "b"]


def test_poll_edited_item_is_published_with_replaced_id(
    poller: Poller, site: Site, store: Store, clock: Clock
) -> None:
    for title in ("a", "edited", "a"):  # an earlier title is an edit, too
        site.pages["/rss.xml"] = Response(200, rss(title))
        if title == "a" and not site.requests:
            poller.add(site.url())
        else:
            [polled] = poll(poller)
            assert polled.counts == ItemCounts(items=1, new=0, edited=1, refused=0)
        clock.move(hours=2)
    assert titles(store) == ["a", "edited", "a"]
    ids = [one.id for one in store.journal.read(0)]
    assert len(set(ids)) == 3
    assert [replaced(graph) for graph in graphs(store)] == [[], [ids[0]], [ids[1]]]


def replaced(graph: Graph) -> list[str]:
    return [
        edge.object.text.removeprefix(PUBLICATION) for edge in graph.edges if edge.property.text == REPLACES
    ]


def test_poll_items_and_edits_match_graph_patterns(
    poller: Poller, site: Site, store: Store, clock: Clock
) -> None:
    for title in ("about cats", "about cats and dogs"):
        site.pages["/rss.xml"] = Response(200, rss(title))
        poller.add(site.url())
        clock.move(hours=2)
    about = pattern_parser.parse("SELECT ?item WHERE (?item, rss:title, ?title) AND ?title contains 'cats'")
    edits = pattern_parser.parse("SELECT ?item WHERE (?item, dcterms:replaces, ?before)")
    assert [matches(about, graph) for graph in graphs(store)] == [True, True]
    assert [matches(edits, graph) for graph in graphs(store)] == [False, True]


def test_poll_changed_date_is_no_edit(poller: Poller, site: Site, store: Store, clock: Clock) -> None:
    for day in (1, 2):
        dated = rss("a").replace(b"</item>", f"<pubDate>0{day} May 2026 10:00 GMT</pubDate></item>".encode())
        site.pages["/rss.xml"] = Response(200, dated)
        poller.add(site.url())
        clock.move(hours=2)
    assert titles(store) == ["a"]


def test_poll_duplicate_id_uses_first_item(poller: Poller, site: Site, store: Store, clock: Clock) -> None:
    site.pages["/rss.xml"] = Response(200, rss("a", "b").replace(b"item-1", b"item-0"))
    for _ in range(2):
        poller.add(site.url())
        clock.move(hours=2)
    assert titles(store) == ["a"]


def test_add_feed_again_after_removal_publishes_only_new_items(
    poller: Poller, site: Site, store: Store
) -> None:
    site.pages["/rss.xml"] = Response(200, rss("a"))
    poller.add(site.url())
    store.polled_feeds.remove(site.url())
    site.pages["/rss.xml"] = Response(200, rss("a", "b"))
    assert poller.add(site.url()).counts == ItemCounts(items=2, new=1, edited=0, refused=0)


def test_add_feed_unreadable_url_is_rejected(poller: Poller, site: Site, store: Store) -> None:
    site.pages["/page.html"] = Response(200, b"<!DOCTYPE html><html></html>", {"Content-Type": "text/html"})
    with pytest.raises(InputError, match="not a feed"):
        poller.add(site.url("/page.html"))
    with pytest.raises(FetchProblem, match=r"the feed is not available .*status 404"):
        poller.add(site.url("/nothing"))
    with pytest.raises(InputError, match="not a web address"):
        poller.add("news")
    assert store.polled_feeds.load() == ()


def test_add_feed_html_page_hint_lists_linked_feeds(poller: Poller, site: Site, store: Store) -> None:
    site.pages["/"] = Response(
        200,
        b"<!DOCTYPE html><html><head><link rel=stylesheet href=/style.css type=text/css>"
        b"<LINK REL='alternate' TYPE='application/rss+xml' href='/rss.xml?a=1&amp;b=2'>"
        b'<link href="http://[" rel="alternate" type="application/atom+xml">'
        b'<link rel="alternate home" type="application/feed+json" title="x" href="/feed.json">',
    )
    with pytest.raises(InputError) as caught:
        poller.add(site.url("/"))
    hint = f"the page links to {site.url('/rss.xml?a=1&b=2')} and {site.url('/feed.json')}"
    assert (caught.value.what, caught.value.hint) == ("not a feed", hint)
    assert store.polled_feeds.load() == ()


def test_poll_broken_feed_backs_off_and_blocks_no_other(
    poller: Poller, site: Site, store: Store, clock: Clock
) -> None:
    site.pages |= {"/rss.xml": Response(200, rss("a")), "/other": Response(200, rss("b", prefix="other"))}
    poller.add(site.url())
    poller.add(site.url("/other"))
    site.pages["/rss.xml"] = Response(200, b"<rss><channel>")
    site.pages["/other"] = Response(200, rss("b", "c", prefix="other"))
    waits = []
    for _ in range(4):
        clock.move(days=2)
        outcome = {polled.url: polled for polled in poll(poller)}
        broken, other = outcome[site.url()], outcome[site.url("/other")]
        assert broken.problem is not None and broken.feed is not None and broken.feed.problem is not None
        assert broken.feed.problem.startswith("not well-formed XML") and other.problem is None
        waits.append(datetime.fromisoformat(broken.feed.next_poll or "") - clock.now)
    assert broken.feed.failures == 4
    assert waits[3] > 2 * waits[0]
    assert titles(store) == ["a", "b", "c"]
    site.pages["/rss.xml"] = Response(200, rss("a"))
    clock.move(days=2)
    mended = next(polled for polled in poll(poller) if polled.url == site.url())
    assert mended.feed is not None and (mended.feed.failures, mended.feed.problem) == (0, None)


def test_poll_unexpected_error_in_one_feed_blocks_no_other(store: Store, site: Site, clock: Clock) -> None:
    def resolve(host: str, port: int) -> list[str]:
        if broken and host == "broken.example":
            raise ZeroDivisionError
        return ["127.0.0.1"]

    broken = False
    urls = [site.url(host=host) for host in ("broken.example", "fine.example")]
    site.pages["/rss.xml"] = Response(200, rss("a"))
    with Poller(store, clock=clock, network=EgressPolicy(resolve)) as poller:
        for url in urls:
            poller.add(url)
        broken = True
        clock.move(hours=2)
        outcome = {polled.url: polled.problem for polled in poll(poller)}
    assert outcome[urls[1]] is None
    assert "received ZeroDivisionError" in str(outcome[urls[0]])


@pytest.mark.parametrize("status", [429, 503])
def test_poll_retry_after_postpones_next_poll(
    poller: Poller, site: Site, store: Store, clock: Clock, status: int
) -> None:
    site.pages["/rss.xml"] = Response(200, rss("a"))
    poller.add(site.url())
    site.pages["/rss.xml"] = Response(status, headers={"Retry-After": "90000"})
    clock.move(hours=2)
    [polled] = poll(poller)
    assert polled.problem is not None and f"status {status}" in str(polled.problem)
    assert due_in(store, clock) >= timedelta(seconds=90_000)


def test_poll_status_410_stops_polling_until_added_again(
    poller: Poller, site: Site, store: Store, clock: Clock
) -> None:
    site.pages["/rss.xml"] = Response(200, rss("a"))
    poller.add(site.url())
    site.pages["/rss.xml"] = Response(410)
    clock.move(hours=2)
    [polled] = poll(poller)
    assert "gone" in str(polled.problem)
    clock.move(days=400)
    assert poll(poller) == []
    poller.make_due(store.polled_feeds.load())
    assert poll(poller) == [], "a ping does not resume it"
    assert len(site.requests) == 2
    site.pages["/rss.xml"] = Response(200, rss("a"))
    assert poller.add(site.url()).problem is None, "its owner resumes it"


def test_poll_permanent_redirect_changes_url(poller: Poller, site: Site, store: Store, clock: Clock) -> None:
    site.pages["/rss.xml"] = Response(200, rss("a"))
    poller.add(site.url())
    site.pages |= {"/rss.xml": Response(301, headers={"Location": "/new.xml"}), "/new.xml": Response(503)}
    clock.move(hours=2)
    poll(poller)
    assert feed(store).url == site.url(), "no move to a URL without a feed"
    site.pages["/new.xml"] = Response(200, rss("a", "b"))
    clock.move(hours=2)
    [polled] = poll(poller)
    assert feed(store).url == site.url("/new.xml")
    assert polled.counts == ItemCounts(items=2, new=1, edited=0, refused=0), "its items are known"


def test_add_feed_redirecting_to_known_feed_is_merged(poller: Poller, site: Site, store: Store) -> None:
    site.pages |= {
        "/rss.xml": Response(200, rss("a")),
        "/old": Response(301, headers={"Location": "/rss.xml"}),
    }
    poller.add(site.url())
    assert poller.add(site.url("/old")).feed is None
    assert (feed(store).url, titles(store)) == (site.url(), ["a"])


def test_poll_temporary_redirect_keeps_url(poller: Poller, site: Site, store: Store) -> None:
    site.pages |= {
        "/rss.xml": Response(302, headers={"Location": "/today"}),
        "/today": Response(200, rss("a")),
    }
    poller.add(site.url())
    assert feed(store).url == site.url()


def test_poll_private_feed_moved_to_public_host_may_not_redirect_back(store: Store, clock: Clock) -> None:
    """The owner entered the private host, but not the public one."""
    network = EgressPolicy(is_inside=lambda address: address != "127.0.0.2")
    with (
        a_site() as private,
        a_site("127.0.0.2") as public,
        Poller(store, clock=clock, network=network) as poller,
    ):
        private.pages["/rss.xml"] = Response(301, headers={"Location": public.url()})
        public.pages["/rss.xml"] = Response(200, rss("a"))
        poller.add(private.url())
        assert (feed(store).url, feed(store).in_private_network) == (public.url(), False)
        public.pages["/rss.xml"] = Response(302, headers={"Location": private.url("/secret")})
        clock.move(days=1)
        [polled] = poll(poller)
        assert "private network" in str(polled.problem)
        assert len(private.requests) == 1


def test_poll_unusable_items_are_dead_letters_and_others_are_published(
    poller: Poller, site: Site, store: Store
) -> None:
    large = rss("a", "x" * 1_000_001, "c")
    site.pages["/rss.xml"] = Response(200, large.replace(b"http://example.org/item/2", b"http://[c"))
    assert poller.add(site.url()).counts == ItemCounts(items=3, new=1, edited=0, refused=2)
    letters = store.dead_letters.read(0, 10)
    assert {letter.source for letter in letters} == {site.url()}
    assert sorted(str(letter.facts["item"]) for letter in letters) == ["item-1", "item-2"]
    assert titles(store) == ["a"]


def test_poll_two_pollers_of_one_store_send_one_request(site: Site, tmp_path: Path, clock: Clock) -> None:
    """The second poller finds the feed claimed while the first waits for the answer."""
    url = sqlite_url(tmp_path / "both.db")
    requested, released = Event(), Event()

    def slow(request: Request) -> Response:
        requested.set()
        released.wait(60)
        return Response(200, rss("a", "b"))

    with open_store(url) as store, open_store(url) as same:
        with Poller(store, clock=clock) as first, Poller(same, clock=clock) as second:
            site.pages["/rss.xml"] = Response(200, rss("a"))
            first.add(site.url())
            site.pages["/rss.xml"] = slow
            clock.move(hours=2)
            thread = Thread(target=lambda: poll(first))
            thread.start()
            assert requested.wait(60)
            assert poll(second) == []
            released.set()
            thread.join()
        assert len(site.requests) == 2
        assert titles(same) == ["a", "b"]


def test_hasten_polls_feed_at_minimum_distance(
    poller: Poller, site: Site, store: Store, clock: Clock
) -> None:
    site.pages["/rss.xml"] = Response(200, rss("a"))
    poller.add(site.url())
    poller.make_due(store.polled_feeds.load())
    assert poll(poller) == [], "the last poll is too recent"
    assert due_in(store, clock) == APART
    clock.move(seconds=APART.total_seconds())
    assert len(poll(poller)) == 1


def test_poll_due_clock_set_back_by_day_polls_once(
    poller: Poller, site: Site, store: Store, clock: Clock
) -> None:
    site.pages["/rss.xml"] = Response(200, rss("a"))
    poller.add(site.url())
    clock.move(seconds=-24 * 60 * 60)
    assert len(poll(poller)) == 1
    assert poll(poller) == [] and due_in(store, clock) > timedelta(0)


def test_follow_polls_due_feeds_until_stopped(poller: Poller, site: Site, store: Store, clock: Clock) -> None:
    site.pages["/rss.xml"] = Response(200, rss("a"))
    poller.add(site.url())
    results: list[PollResult] = []
    thread = Thread(target=poller.follow, args=(results.append,))
    thread.start()
    clock.move(hours=2)
    poller.make_due([])  # wakes the poller
    site.wait_for(2)
    poller.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert [polled.url for polled in results] == [site.url()]


def test_stop_does_not_wait_for_hanging_server(
    poller: Poller, site: Site, store: Store, clock: Clock
) -> None:
    answered = Event()

    def silent(request: Request) -> Response:
        answered.wait(60)
        return Response()

    site.pages["/rss.xml"] = Response(200, rss("a"))
    poller.add(site.url())
    site.pages["/rss.xml"] = silent
    clock.move(hours=2)
    thread = Thread(target=poller.follow, args=(lambda polled: None,))
    thread.start()
    site.wait_for(2)
    poller.stop()
    thread.join(50)
    assert not thread.is_alive() and not answered.is_set()
    answered.set()
    assert (feed(store).failures, feed(store).problem) == (0, None), "this is no failure of the feed"


def test_poll_response_above_size_limit_is_problem_of_feed(store: Store, site: Site, clock: Clock) -> None:
    site.pages["/rss.xml"] = Response(200, rss("a"))
    with Poller(store, FetchPolicy(size=10_000), clock=clock) as poller:
        poller.add(site.url())
        site.pages["/rss.xml"] = Response(200, rss(*("long" * 100 for _ in range(100))))
        clock.move(hours=2)
        [polled] = poll(poller)
    assert isinstance(polled.problem, TidingsError)
    assert "too large" in (feed(store).problem or "")
