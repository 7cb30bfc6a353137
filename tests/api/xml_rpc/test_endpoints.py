"""Pings and the service of the paper over XML-RPC, with Python's own client on a real server."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8 as MARK
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit
from xmlrpc.client import Fault, ServerProxy, dumps, loads

import feedparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.processes.leaving_client import left_halfway
from tests.support.servers.application import served as running
from tests.support.servers.http_server import served
from tests.support.servers.rpc_router import router_for
from tests.support.servers.site import Response, Site, a_site, rss
from tidings.api.xml_rpc import service_methods
from tidings.feeds.outbound.addresses import create_feed_urls
from tidings.model import Reason
from tidings.service.authorization import Access
from tidings.service.tidings import Tidings
from tidings.store.encoding import MatchRow

DC = "http://purl.org/dc/elements/1.1/"
GQL = "SELECT ?x WHERE (?x, rss:title, ?t) AND ?t contains 'cats'"

PLACES = create_feed_urls("http://127.0.0.1:1")


@pytest.fixture
def tidings(tmp_path: Path) -> Iterator[Tidings]:
    with Tidings(tmp_path) as opened:
        yield opened


@pytest.fixture
def site() -> Iterator[Site]:
    with a_site() as made:
        made.pages["/rss.xml"] = Response(200, rss("a"))
        yield made


@pytest.fixture
def url(tidings: Tidings) -> Iterator[str]:
    with served(router_for(tidings, PLACES)) as address:
        yield address


@pytest.fixture
def rpc(url: str) -> ServerProxy:
    return ServerProxy(f"{url}/RPC2")


def read_before(tidings: Tidings, url: str, site: str = "http://example.org/") -> None:
    """A feed that is read here, and that was read last hours ago."""
    long_ago = datetime.now(UTC) - timedelta(hours=3)
    feed = tidings.store.polled_feeds.add(url, long_ago, inside=True)
    later = (datetime.now(UTC) + timedelta(hours=3)).isoformat().replace("+00:00", "Z")
    tidings.store.polled_feeds.record(feed, {"site": site, "polled": feed.added, "next_poll": later})


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("ping", ("Blog", "http://example.org/")),
        ("ping", ("Blog", "https://example.org", "http://example.org/changes")),
        ("extendedPing", ("WordPress", "http://nowhere.example/", "FEED")),
        ("extendedPing", ("Drupal", "http://nowhere.example/", "http://nowhere.example/", "FEED", "tag")),
    ],
)
def test_a_ping_is_followed_by_a_poll(
    tidings: Tidings, rpc: ServerProxy, site: Site, method: str, parameters: tuple[str, ...]
) -> None:
    read_before(tidings, site.url())
    words = [site.url() if word == "FEED" else word for word in parameters]
    answer = getattr(rpc.weblogUpdates, method)(*words)
    assert answer == {"flerror": False, "message": "Thanks for the ping."}
    assert [request.path for request in site.wait_for(1)] == ["/rss.xml"]


@pytest.mark.parametrize(("path", "status"), [("/RPC2", 400), ("/websub/word", 410)])
def test_incomplete_body_is_refused(tidings: Tidings, path: str, status: int) -> None:
    """An unknown callback is refused before its body is read."""
    assert left_halfway(router_for(tidings, PLACES), path, "text/xml") == status


def test_a_ping_never_adds_a_feed(tidings: Tidings, rpc: ServerProxy, site: Site) -> None:
    answer = rpc.weblogUpdates.extendedPing("Spam", site.url("/"), site.url("/"), site.url())
    assert answer["flerror"] is True
    assert (tidings.store.polled_feeds.load(), site.requests) == ((), [])


def test_a_ping_for_a_feed_that_is_gone(tidings: Tidings, rpc: ServerProxy, site: Site) -> None:
    read_before(tidings, site.url())
    tidings.store.polled_feeds.record(tidings.store.polled_feeds.load()[0], {"next_poll": None})
    assert rpc.weblogUpdates.ping("Blog", "http://example.org/")["flerror"] is True
    assert tidings.store.polled_feeds.next_due() is None


@pytest.mark.parametrize("parameters", [(), ("Blog",), ("Blog", 7), ("Blog", {"a": "b"}), ("x",) * 7])
def test_pings_that_are_none(rpc: ServerProxy, parameters: tuple[object, ...]) -> None:
    with pytest.raises(Fault, match="a ping has a name"):
        rpc.weblogUpdates.ping(*parameters)


def test_too_many_pings_from_one_address(tidings: Tidings) -> None:
    moment = datetime.now(UTC)
    with served(router_for(tidings, PLACES, clock=lambda: moment)) as address:
        update = ServerProxy(f"{address}/RPC2").weblogUpdates
        answers = [str(update.ping("Blog", "http://example.org/")["message"]) for _ in range(31)]
    assert [message.startswith("Too many pings") for message in answers] == [False] * 30 + [True]


def test_publish_takes_the_items_of_a_feed_once(tidings: Tidings, rpc: ServerProxy) -> None:
    text = rss("a", "b").decode()
    first = rpc.tidings.publish(text)
    assert (len(first["published"]), first["subscribed"], first["refused"]) == (2, [], [])
    assert rpc.tidings.publish(text)["published"] == first["published"]
    assert [one.id for one in tidings.store.journal.read(0)] == first["published"]


def test_xml_rpc_subscribe_returns_warnings(rpc: ServerProxy) -> None:
    unknown = "SELECT ?x WHERE (?x, dc:subject, ?s) AND ?s < <urn:C>"
    [warning] = rpc.tidings.subscribe("ann", unknown)["warnings"]
    assert warning["what"].startswith("no loaded taxonomy has the class <urn:C>")
    assert rpc.tidings.subscribe("ann", GQL)["warnings"] == []


def test_subscribe_list_and_unsubscribe(rpc: ServerProxy) -> None:
    made = rpc.tidings.subscribe("ann", GQL)
    assert rpc.tidings.list("ann") == [
        {"id": made["id"], "subscriber": "ann", "language": "gql", "text": GQL}
    ]
    assert rpc.tidings.list("bo") == []
    assert rpc.tidings.unsubscribe("bo", made["id"]) is False, "only one's own"
    assert rpc.tidings.unsubscribe("ann", made["id"]) is True
    assert rpc.tidings.list("ann") == []
    with pytest.raises(Fault, match="column"):
        rpc.tidings.subscribe("ann", "SELECT ?x WHERE (?x")


def test_a_subscription_may_arrive_as_an_item(rpc: ServerProxy) -> None:
    """Figure 12 of the paper: GQL in the title, the query in the description."""
    query = GQL.replace("contains 'cats'", "&lt;= ex:Cats").replace(
        "SELECT", "PREFIX ex: &lt;urn:&gt; SELECT"
    )
    text = (
        '<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>t</title>'
        f"<item><title>GQL for cats</title><description>{query}</description>"
        "<dc:creator>ann</dc:creator><guid>1</guid></item>"
        f"<item><title>GQL</title><description>{query}</description><guid>2</guid></item>"
        "<item><title>GQL</title><description>nonsense</description><dc:creator>bo</dc:creator></item>"
        "<item><title>GQLite is out</title><link>http://example.org/3</link></item></channel></rss>"
    )
    done = rpc.tidings.publish(text)
    assert (len(done["subscribed"]), len(done["published"]), len(done["refused"])) == (1, 1, 2)
    assert "without an author" in done["refused"][0]["reason"]
    [made] = rpc.tidings.list("ann")
    assert (made["id"], made["text"][:20]) == (done["subscribed"][0], "PREFIX ex: <urn:> SE")
    assert rpc.tidings.publish(text)["subscribed"] == done["subscribed"], "the same again is the same"
    assert len(rpc.tidings.list("ann")) == 1


def subscription_item(query: str, guid: str = "<guid>1</guid>", author: str = "ann", feed: str = "t") -> str:
    return (
        f'<rss version="2.0" xmlns:dc="{DC}"><channel><title>{feed}</title><item><title>GQL</title>{guid}'
        f"<description>{query}</description><dc:creator>{author}</dc:creator></item></channel></rss>"
    )


@pytest.mark.parametrize("guid", ["<guid>1</guid>", "<link>http://example.org/1</link>"])
def test_publish_edited_subscription_item_replaces_the_subscription(rpc: ServerProxy, guid: str) -> None:
    first = rpc.tidings.publish(subscription_item(GQL, guid))
    edited = rpc.tidings.publish(subscription_item(GQL.replace("cats", "dogs"), guid))
    assert edited == first and first["refused"] == []
    [kept] = rpc.tidings.list("ann")
    assert (kept["id"], kept["text"]) == (first["subscribed"][0], GQL.replace("cats", "dogs"))


def test_publish_edited_subscription_item_that_is_wrong_keeps_the_subscription(rpc: ServerProxy) -> None:
    rpc.tidings.publish(subscription_item(GQL))
    [refused] = rpc.tidings.publish(subscription_item("SELECT ?x WHERE"))["refused"]
    assert "column" in refused["reason"]
    assert [one["text"] for one in rpc.tidings.list("ann")] == [GQL]


def test_publish_edited_subscription_item_that_is_paused_stays_paused(
    tidings: Tidings, rpc: ServerProxy
) -> None:
    [id] = rpc.tidings.publish(subscription_item(GQL))["subscribed"]
    tidings.subscribing().pause(id)
    rpc.tidings.publish(subscription_item(GQL.replace("cats", "dogs")))
    kept = tidings.subscribing().find(id)
    assert kept.paused and "dogs" in kept.subscription.text


def test_publish_subscription_items_of_several_feeds_are_apart(rpc: ServerProxy) -> None:
    rpc.tidings.publish(subscription_item(GQL, feed="one"))
    rpc.tidings.publish(subscription_item(GQL.replace("cats", "dogs"), feed="two"))
    assert len(rpc.tidings.list("ann")) == 2


def test_publish_subscription_item_with_another_author_is_refused(rpc: ServerProxy) -> None:
    rpc.tidings.publish(subscription_item(GQL))
    [refused] = rpc.tidings.publish(subscription_item(GQL, author="bo"))["refused"]
    assert "already a subscription of ann" in refused["reason"]
    assert rpc.tidings.list("bo") == [] and len(rpc.tidings.list("ann")) == 1


def test_publish_two_subscription_items_with_one_guid_takes_the_first(rpc: ServerProxy) -> None:
    first, second = subscription_item(GQL), subscription_item(GQL.replace("cats", "dogs"))
    inner = second[second.index("<item>") : second.index("</channel>")]
    done = rpc.tidings.publish(first.replace("</channel>", f"{inner}</channel>"))
    assert "same guid or link" in done["refused"][0]["reason"]
    assert [one["text"] for one in rpc.tidings.list("ann")] == [GQL]


def test_publications_and_subscriptions_are_rss_1_feeds(rpc: ServerProxy) -> None:
    """As in figures 12 and 13 of the paper, with the members of the list named the old way."""
    text = f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
        xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
      <channel rdf:about="http://site.example/news.rss"><title>News</title><link>http://site.example/</link>
        <items><rdf:Seq><rdf:li resource="http://site.example/1"/><rdf:li resource="http://site.example/q"/>
        </rdf:Seq></items></channel>
      <item rdf:about="http://site.example/1"><title>Of cats</title><link>http://site.example/1</link></item>
      <item rdf:about="http://site.example/q"><title>GQL</title><link>http://site.example/q</link>
        <description>{GQL}</description><dc:creator>ann</dc:creator></item></rdf:RDF>"""
    done = rpc.tidings.publish(text)
    assert (len(done["published"]), done["refused"]) == (1, [])
    assert [one["text"] for one in rpc.tidings.list("ann")] == [GQL]
    assert rpc.tidings.publish(text) == done


def test_notifications_come_as_structs_and_as_a_feed(tidings: Tidings, rpc: ServerProxy) -> None:
    [publication] = rpc.tidings.publish(rss("cats").decode())["published"]
    subscription = rpc.tidings.subscribe("ann", GQL)["id"]
    tell(tidings, subscription, publication)
    told = rpc.tidings.notifications("ann", 0)
    [one] = told["notifications"]
    assert (one["sequence"], one["subscription"], one["publication"]) == (1, subscription, publication)
    assert told["last"] == 1
    [entry] = feedparser.parse(told["feed"]).entries
    assert (entry.title, entry.link) == ("cats", "http://example.org/item/0")
    assert rpc.tidings.notifications("ann", 1)["notifications"] == []
    assert rpc.tidings.notifications("ann")["last"] == 1
    with pytest.raises(Fault, match="call tidings"):
        rpc.tidings.notifications("ann", "0")


@pytest.mark.parametrize("public_url", [None, "https://tidings.example.org/below"])
def test_notifications_feed_links_where_the_service_is_reached(
    tmp_path: Path, public_url: str | None
) -> None:
    with running(tmp_path, public_url=public_url) as at:
        service = ServerProxy(f"{at.url.replace('//', f'//x:{at.token}@')}/RPC2").tidings
        text = service.notifications("ann", 0)["feed"]
        reached = public_url or at.url
        assert feedparser.parse(text).feed.link == f"{reached}/"
        own = {
            found for found in re.findall(r'https?://[^"<\s]+', text) if "8080" in found or reached in found
        }
        assert own >= {f"{reached}/", f"{reached}/RPC2"} and all(one.startswith(reached) for one in own)


def tell(tidings: Tidings, subscription: str, publication: str) -> None:
    """What the stream does when the two match."""
    reason = Reason("?t contains 'cats'", "cats", "")
    found = MatchRow(publication, subscription, "ann", (reason,))
    tidings.store.notifications.commit_batch("test", 1, [found])


def test_a_token_opens_the_service_and_without_it_is_closed(tidings: Tidings, site: Site) -> None:
    read_before(tidings, site.url())
    with served(router_for(tidings, PLACES, token="secret")) as url:
        anybody, friend = ServerProxy(f"{url}/RPC2"), ServerProxy(f"{url.replace('//', '//x:secret@')}/RPC2")
        assert friend.tidings.list("ann") == []
        with pytest.raises(Fault, match="needs the token"):
            anybody.tidings.list("ann")
        stranger = ServerProxy(f"{url.replace('//', '//x:guess@')}/RPC2")
        with pytest.raises(Fault, match="needs the token"):
            stranger.tidings.list("ann")
        assert anybody.weblogUpdates.ping("Blog", "http://example.org/")["flerror"] is False


def test_a_public_service_needs_a_token(tidings: Tidings) -> None:
    """Behind a proxy everybody seems to be this machine."""
    with served(router_for(tidings, PLACES, "https://tidings.example.org")) as url, pytest.raises(Fault):
        ServerProxy(f"{url}/RPC2").tidings.list("ann")


def call(url: str, body: bytes, **headers: str) -> tuple[int, bytes]:
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port)
    named = {"Content-Type": "text/xml"} | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", "/RPC2", body, named)
    answer = connection.getresponse()
    read = answer.status, answer.read()
    connection.close()
    return read


def test_caller_behind_a_proxy_is_not_trusted(url: str) -> None:
    body = dumps(("ann",), "tidings.list").encode()
    assert b"needs the token" not in call(url, body)[1]
    assert b"needs the token" in call(url, body, X_Forwarded_For="203.0.113.7")[1]
    assert b"needs the token" in call(url, body, Host="evil.example")[1]
    assert call(url, body, Content_Type="text/plain")[0] == 415, "what a page in a browser may send"


def test_a_call_is_not_larger_than_it_needs_to_be(url: str) -> None:
    body = dumps(("Blog", "x" * 70_000), "weblogUpdates.ping").encode()
    assert call(url, body, Host="evil.example")[0] == 413
    assert call(url, body)[0] == 200


BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    b"<methodCall><methodName>&b;</methodName></methodCall>"
)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (BOMB, "document type declaration"),
        (b"<methodCall>", "not well-formed"),
        (b"<methodCall/>", "not an XML-RPC call"),
        (b"<methodResponse><params/></methodResponse>", "the call names no method"),
        (b"<x/>", "not an XML-RPC call"),
        (b"", "Document is empty"),
        (b"hello", "not"),
        (b"<methodCall><methodName>nonsense</methodName></methodCall>", "no method 'nonsense'"),
        (
            b"<methodCall><methodName>a</methodName>" + b"<value>" * 50 + b"</value>" * 50 + b"</methodCall>",
            "deep",
        ),
    ],
)
def test_calls_that_are_none(url: str, body: bytes, said: str) -> None:
    status, answer = call(url, body)
    assert status == 200
    assert b"<fault>" in answer and said in answer.decode(), answer.decode()


@pytest.mark.parametrize("marks", [b"", MARK, 2 * MARK, 3 * MARK])
def test_a_call_that_names_a_file_is_refused_whether_the_file_is_there_or_not(
    url: str, marks: bytes, tmp_path: Path
) -> None:
    """The pipe is never written to: whoever opened it would wait for ever."""
    os.mkfifo(tmp_path / "there")
    answers = set()
    for name in ("there", "nowhere"):
        head = b'<!DOCTYPE x SYSTEM "%s">' % bytes(tmp_path / name)
        answers.add(call(url, marks + head + b'<methodCall x="&y;"><methodName>a</methodName></methodCall>'))
    [(status, answer)] = answers
    assert status == 200 and b"<fault>" in answer


VALUES = st.recursive(
    st.text() | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_xml_rpc_response_of_any_value_parses(value: object) -> None:
    [read], _ = loads(service_methods.render_response(value))
    assert isinstance(read, type(value)) or value is None or isinstance(value, int | bytes)


NAMES = [
    "methodName",
    "params",
    "param",
    "value",
    "int",
    "i4",
    "i8",
    "boolean",
    "double",
    "string",
    "dateTime.iso8601",
    "base64",
    "array",
    "data",
    "struct",
    "member",
    "name",
    "nil",
    "bigdecimal",
    "fault",
    "methodCall",
    "methodResponse",
    "other",
]
TREES = st.recursive(
    st.sampled_from(["", "x", "1", "-1.5", "9" * 5_000, "1e999", "20260501T12:00:00", "ÿ"]),
    lambda inner: st.builds(
        lambda name, within: f"<{name}>{''.join(within)}</{name}>",
        st.sampled_from(NAMES),
        st.lists(inner, max_size=3),
    ),
    max_leaves=12,
)


@given(st.lists(TREES, max_size=4), st.sampled_from(["methodCall", "methodResponse"]))
def test_xml_rpc_body_of_any_bytes_is_a_call_or_a_fault(within: list[str], root: str) -> None:
    text = f"<{root}>{''.join(within)}</{root}>"
    try:
        method, _ = service_methods.parse_call(text.encode(), "text/xml")
    except Fault as fault:
        assert b"<fault>" in service_methods.render_fault(fault)
    else:
        assert isinstance(method, str)


def test_an_old_encoding_is_read(url: str) -> None:
    body = dumps(("Blög", "http://example.org/"), "weblogUpdates.ping", encoding="iso-8859-1")
    assert b"No feed of this site" in call(url, body.encode("iso-8859-1"))[1]


def proxy(url: str, secret: str) -> ServerProxy:
    return ServerProxy(f"{url.replace('://', f'://any:{secret}@')}/RPC2")


def test_xml_rpc_tokens_allow_methods_of_their_scope(tidings: Tidings) -> None:
    access = Access(tidings.store)
    shop, ana = access.make("shop", ["publish"]), access.make("phone", ["subscribe"], "ana")
    root = access.make("root", ["administer"])
    with served(
        router_for(tidings, PLACES, "http://127.0.0.1:1")
    ) as url:  # public: this machine alone is nobody
        with pytest.raises(Fault, match="needs the token"):
            ServerProxy(f"{url}/RPC2").tidings.list("ana")
        assert proxy(url, root.secret).tidings.subscribe("bo", GQL)["subscriber"] == "bo"
        mine = proxy(url, ana.secret)
        assert mine.tidings.subscribe("ana", GQL)["subscriber"] == "ana"
        assert len(mine.tidings.list("ana")) == 1
        for call in (mine.tidings.list, mine.tidings.notifications, proxy(url, shop.secret).tidings.list):
            with pytest.raises(Fault, match="scope subscribe, for the subscriber named first; yours has"):
                call("bo")
        feed = rss("GQL for bo").decode()
        done = proxy(url, shop.secret).tidings.publish(rss("b").decode())
        assert len(done["published"]) == 1
        done = proxy(url, shop.secret).tidings.publish(feed)
        assert "may only publish" in done["refused"][0]["reason"]
        with pytest.raises(Fault, match="scope publish; yours has subscribe, for ana"):
            mine.tidings.publish(feed)


def test_subscriptions_have_the_limit_of_the_api(
    tidings: Tidings, rpc: ServerProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDINGS_API_LIMITS", "subscriptions=1")
    rpc.tidings.subscribe("ana", GQL)
    with pytest.raises(Fault, match="1 for each subscriber"):
        rpc.tidings.subscribe("ana", GQL)
