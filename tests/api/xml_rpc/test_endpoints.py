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

FEED_URLS = create_feed_urls("http://127.0.0.1:1")


@pytest.fixture
def tidings(tmp_path: Path) -> Iterator[Tidings]:
    with Tidings(tmp_path) as opened:
        yield opened


@pytest.fixture
def site() -> Iterator[Site]:
    with a_site() as opened:
        opened.pages["/rss.xml"] = Response(200, rss("a"))
        yield opened


@pytest.fixture
def url(tidings: Tidings) -> Iterator[str]:
    with served(router_for(tidings, FEED_URLS)) as address:
        yield address


@pytest.fixture
def rpc(url: str) -> ServerProxy:
    return ServerProxy(f"{url}/RPC2")


def add_polled_feed(tidings: Tidings, url: str, site: str = "http://example.org/") -> None:
    """Add a feed that was last polled hours ago."""
    long_ago = datetime.now(UTC) - timedelta(hours=3)
    feed = tidings.store.polled_feeds.add(url, long_ago, in_private_network=True)
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
def test_ping_triggers_poll(
    tidings: Tidings, rpc: ServerProxy, site: Site, method: str, parameters: tuple[str, ...]
) -> None:
    add_polled_feed(tidings, site.url())
    words = [site.url() if word == "FEED" else word for word in parameters]
    answer = getattr(rpc.weblogUpdates, method)(*words)
    assert answer == {"flerror": False, "message": "Thanks for the ping."}
    assert [request.path for request in site.wait_for(1)] == ["/rss.xml"]


@pytest.mark.parametrize(("path", "status"), [("/RPC2", 400), ("/websub/word", 410)])
def test_xml_rpc_incomplete_body_is_rejected(tidings: Tidings, path: str, status: int) -> None:
    """An unknown callback is rejected before its body is read."""
    assert left_halfway(router_for(tidings, FEED_URLS), path, "text/xml") == status


def test_ping_for_unknown_feed_adds_none(tidings: Tidings, rpc: ServerProxy, site: Site) -> None:
    answer = rpc.weblogUpdates.extendedPing("Spam", site.url("/"), site.url("/"), site.url())
    assert answer["flerror"] is True
    assert (tidings.store.polled_feeds.load(), site.requests) == ((), [])


def test_ping_for_ended_feed_reports_error(tidings: Tidings, rpc: ServerProxy, site: Site) -> None:
    add_polled_feed(tidings, site.url())
    tidings.store.polled_feeds.record(tidings.store.polled_feeds.load()[0], {"next_poll": None})
    assert rpc.weblogUpdates.ping("Blog", "http://example.org/")["flerror"] is True
    assert tidings.store.polled_feeds.next_due() is None


@pytest.mark.parametrize("parameters", [(), ("Blog",), ("Blog", 7), ("Blog", {"a": "b"}), ("x",) * 7])
def test_ping_invalid_parameters_are_fault(rpc: ServerProxy, parameters: tuple[object, ...]) -> None:
    with pytest.raises(Fault, match="a ping has a name"):
        rpc.weblogUpdates.ping(*parameters)


def test_ping_over_rate_is_rejected(tidings: Tidings) -> None:
    moment = datetime.now(UTC)
    with served(router_for(tidings, FEED_URLS, clock=lambda: moment)) as address:
        update = ServerProxy(f"{address}/RPC2").weblogUpdates
        answers = [str(update.ping("Blog", "http://example.org/")["message"]) for _ in range(31)]
    assert [message.startswith("Too many pings") for message in answers] == [False] * 30 + [True]


def test_xml_rpc_publish_is_idempotent_per_item(tidings: Tidings, rpc: ServerProxy) -> None:
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


def test_xml_rpc_subscribe_list_and_unsubscribe(rpc: ServerProxy) -> None:
    created = rpc.tidings.subscribe("ann", GQL)
    assert rpc.tidings.list("ann") == [
        {"id": created["id"], "subscriber": "ann", "language": "gql", "text": GQL}
    ]
    assert rpc.tidings.list("bo") == []
    assert rpc.tidings.unsubscribe("bo", created["id"]) is False, "only one's own"
    assert rpc.tidings.unsubscribe("ann", created["id"]) is True
    assert rpc.tidings.list("ann") == []
    with pytest.raises(Fault, match="column"):
        rpc.tidings.subscribe("ann", "SELECT ?x WHERE (?x")


def test_xml_rpc_publish_accepts_subscriptions_as_items(rpc: ServerProxy) -> None:
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
    outcome = rpc.tidings.publish(text)
    assert (len(outcome["subscribed"]), len(outcome["published"]), len(outcome["refused"])) == (1, 1, 2)
    assert "without an author" in outcome["refused"][0]["reason"]
    [subscription] = rpc.tidings.list("ann")
    assert (subscription["id"], subscription["text"][:20]) == (
        outcome["subscribed"][0],
        "PREFIX ex: <urn:> SE",
    )
    assert rpc.tidings.publish(text)["subscribed"] == outcome["subscribed"], "the same again is the same"
    assert len(rpc.tidings.list("ann")) == 1


def subscription_item(query: str, guid: str = "<guid>1</guid>", author: str = "ann", feed: str = "t") -> str:
    return (
        f'<rss version="2.0" xmlns:dc="{DC}"><channel><title>{feed}</title><item><title>GQL</title>{guid}'
        f"<description>{query}</description><dc:creator>{author}</dc:creator></item></channel></rss>"
    )


@pytest.mark.parametrize("guid", ["<guid>1</guid>", "<link>http://example.org/1</link>"])
def test_publish_edited_subscription_item_replaces_subscription(rpc: ServerProxy, guid: str) -> None:
    first = rpc.tidings.publish(subscription_item(GQL, guid))
    edited = rpc.tidings.publish(subscription_item(GQL.replace("cats", "dogs"), guid))
    assert edited == first and first["refused"] == []
    [subscription] = rpc.tidings.list("ann")
    assert (subscription["id"], subscription["text"]) == (first["subscribed"][0], GQL.replace("cats", "dogs"))


def test_publish_invalid_edited_subscription_item_keeps_subscription(rpc: ServerProxy) -> None:
    rpc.tidings.publish(subscription_item(GQL))
    [refused] = rpc.tidings.publish(subscription_item("SELECT ?x WHERE"))["refused"]
    assert "column" in refused["reason"]
    assert [one["text"] for one in rpc.tidings.list("ann")] == [GQL]


def test_publish_edited_item_of_paused_subscription_stays_paused(tidings: Tidings, rpc: ServerProxy) -> None:
    [id] = rpc.tidings.publish(subscription_item(GQL))["subscribed"]
    tidings.subscribing().pause(id)
    rpc.tidings.publish(subscription_item(GQL.replace("cats", "dogs")))
    subscription = tidings.subscribing().find(id)
    assert subscription.paused and "dogs" in subscription.subscription.text


def test_publish_subscription_items_of_several_feeds_are_independent(rpc: ServerProxy) -> None:
    rpc.tidings.publish(subscription_item(GQL, feed="one"))
    rpc.tidings.publish(subscription_item(GQL.replace("cats", "dogs"), feed="two"))
    assert len(rpc.tidings.list("ann")) == 2


def test_publish_subscription_item_with_other_author_is_rejected(rpc: ServerProxy) -> None:
    rpc.tidings.publish(subscription_item(GQL))
    [refused] = rpc.tidings.publish(subscription_item(GQL, author="bo"))["refused"]
    assert "already a subscription of ann" in refused["reason"]
    assert rpc.tidings.list("bo") == [] and len(rpc.tidings.list("ann")) == 1


def test_publish_two_subscription_items_with_one_guid_accepts_first(rpc: ServerProxy) -> None:
    first, second = subscription_item(GQL), subscription_item(GQL.replace("cats", "dogs"))
    inner = second[second.index("<item>") : second.index("</channel>")]
    outcome = rpc.tidings.publish(first.replace("</channel>", f"{inner}</channel>"))
    assert "same guid or link" in outcome["refused"][0]["reason"]
    assert [one["text"] for one in rpc.tidings.list("ann")] == [GQL]


def test_xml_rpc_publish_accepts_rss_1_feeds(rpc: ServerProxy) -> None:
    """As in figures 12 and 13 of the paper, with the list members in the old notation."""
    text = f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
        xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
      <channel rdf:about="http://site.example/news.rss"><title>News</title><link>http://site.example/</link>
        <items><rdf:Seq><rdf:li resource="http://site.example/1"/><rdf:li resource="http://site.example/q"/>
        </rdf:Seq></items></channel>
      <item rdf:about="http://site.example/1"><title>Of cats</title><link>http://site.example/1</link></item>
      <item rdf:about="http://site.example/q"><title>GQL</title><link>http://site.example/q</link>
        <description>{GQL}</description><dc:creator>ann</dc:creator></item></rdf:RDF>"""
    outcome = rpc.tidings.publish(text)
    assert (len(outcome["published"]), outcome["refused"]) == (1, [])
    assert [one["text"] for one in rpc.tidings.list("ann")] == [GQL]
    assert rpc.tidings.publish(text) == outcome


def test_xml_rpc_notifications_are_structs_and_feed(tidings: Tidings, rpc: ServerProxy) -> None:
    [publication] = rpc.tidings.publish(rss("cats").decode())["published"]
    subscription = rpc.tidings.subscribe("ann", GQL)["id"]
    notify(tidings, subscription, publication)
    answer = rpc.tidings.notifications("ann", 0)
    [notification] = answer["notifications"]
    assert (notification["sequence"], notification["subscription"], notification["publication"]) == (
        1,
        subscription,
        publication,
    )
    assert answer["last"] == 1
    [entry] = feedparser.parse(answer["feed"]).entries
    assert (entry.title, entry.link) == ("cats", "http://example.org/item/0")
    assert rpc.tidings.notifications("ann", 1)["notifications"] == []
    assert rpc.tidings.notifications("ann")["last"] == 1
    with pytest.raises(Fault, match="call tidings"):
        rpc.tidings.notifications("ann", "0")


@pytest.mark.parametrize("public_url", [None, "https://tidings.example.org/below"])
def test_xml_rpc_notifications_feed_links_to_public_url(tmp_path: Path, public_url: str | None) -> None:
    with running(tmp_path, public_url=public_url) as at:
        service = ServerProxy(f"{at.url.replace('//', f'//x:{at.token}@')}/RPC2").tidings
        text = service.notifications("ann", 0)["feed"]
        reached = public_url or at.url
        assert feedparser.parse(text).feed.link == f"{reached}/"
        links = {
            found for found in re.findall(r'https?://[^"<\s]+', text) if "8080" in found or reached in found
        }
        assert links >= {f"{reached}/", f"{reached}/RPC2"} and all(one.startswith(reached) for one in links)


def notify(tidings: Tidings, subscription: str, publication: str) -> None:
    """Store a notification, as the stream does for a match."""
    reason = Reason("?t contains 'cats'", "cats", "")
    match = MatchRow(publication, subscription, "ann", (reason,))
    tidings.store.notifications.commit_batch("test", 1, [match])


def test_xml_rpc_without_service_token_allows_pings_only(tidings: Tidings, site: Site) -> None:
    add_polled_feed(tidings, site.url())
    with served(router_for(tidings, FEED_URLS, token="secret")) as url:
        anonymous, authenticated = (
            ServerProxy(f"{url}/RPC2"),
            ServerProxy(f"{url.replace('//', '//x:secret@')}/RPC2"),
        )
        assert authenticated.tidings.list("ann") == []
        with pytest.raises(Fault, match="needs the token"):
            anonymous.tidings.list("ann")
        wrong = ServerProxy(f"{url.replace('//', '//x:guess@')}/RPC2")
        with pytest.raises(Fault, match="needs the token"):
            wrong.tidings.list("ann")
        assert anonymous.weblogUpdates.ping("Blog", "http://example.org/")["flerror"] is False


def test_xml_rpc_on_public_url_requires_token(tidings: Tidings) -> None:
    """Behind a proxy all requests seem to come from this machine."""
    with served(router_for(tidings, FEED_URLS, "https://tidings.example.org")) as url, pytest.raises(Fault):
        ServerProxy(f"{url}/RPC2").tidings.list("ann")


def call(url: str, body: bytes, **headers: str) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port)
    all_headers = {"Content-Type": "text/xml"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    connection.request("POST", "/RPC2", body, all_headers)
    answer = connection.getresponse()
    result = answer.status, answer.read()
    connection.close()
    return result


def test_xml_rpc_request_through_proxy_is_not_trusted(url: str) -> None:
    body = dumps(("ann",), "tidings.list").encode()
    assert b"needs the token" not in call(url, body)[1]
    assert b"needs the token" in call(url, body, X_Forwarded_For="203.0.113.7")[1]
    assert b"needs the token" in call(url, body, Host="evil.example")[1]
    assert call(url, body, Content_Type="text/plain")[0] == 415, "what a page in a browser may send"


def test_xml_rpc_untrusted_call_over_size_limit_answers_413(url: str) -> None:
    body = dumps(("Blog", "x" * 70_000), "weblogUpdates.ping").encode()
    assert call(url, body, Host="evil.example")[0] == 413
    assert call(url, body)[0] == 200


BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    b"<methodCall><methodName>&b;</methodName></methodCall>"
)


@pytest.mark.parametrize(
    ("body", "message"),
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
def test_xml_rpc_invalid_call_is_fault(url: str, body: bytes, message: str) -> None:
    status, answer = call(url, body)
    assert status == 200
    assert b"<fault>" in answer and message in answer.decode(), answer.decode()


@pytest.mark.parametrize("marks", [b"", MARK, 2 * MARK, 3 * MARK])
def test_xml_rpc_call_with_external_entity_opens_no_file(url: str, marks: bytes, tmp_path: Path) -> None:
    """The pipe is never written to: opening it would block. The fault is the same for an absent file."""
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
    [parsed], _ = loads(service_methods.render_response(value))
    assert isinstance(parsed, type(value)) or value is None or isinstance(value, int | bytes)


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
def test_xml_rpc_body_of_any_tree_is_call_or_fault(within: list[str], root: str) -> None:
    text = f"<{root}>{''.join(within)}</{root}>"
    try:
        method, _ = service_methods.parse_call(text.encode(), "text/xml")
    except Fault as fault:
        assert b"<fault>" in service_methods.render_fault(fault)
    else:
        assert isinstance(method, str)


def test_xml_rpc_call_in_latin_1_is_accepted(url: str) -> None:
    body = dumps(("Blög", "http://example.org/"), "weblogUpdates.ping", encoding="iso-8859-1")
    assert b"No feed of this site" in call(url, body.encode("iso-8859-1"))[1]


def proxy(url: str, secret: str) -> ServerProxy:
    return ServerProxy(f"{url.replace('://', f'://any:{secret}@')}/RPC2")


def test_xml_rpc_tokens_allow_methods_of_their_scope(tidings: Tidings) -> None:
    access = Access(tidings.store)
    shop, ana = access.make("shop", ["publish"]), access.make("phone", ["subscribe"], "ana")
    root = access.make("root", ["administer"])
    with served(
        router_for(tidings, FEED_URLS, "http://127.0.0.1:1")
    ) as url:  # public: requests of this machine are not trusted
        with pytest.raises(Fault, match="needs the token"):
            ServerProxy(f"{url}/RPC2").tidings.list("ana")
        assert proxy(url, root.secret).tidings.subscribe("bo", GQL)["subscriber"] == "bo"
        own = proxy(url, ana.secret)
        assert own.tidings.subscribe("ana", GQL)["subscriber"] == "ana"
        assert len(own.tidings.list("ana")) == 1
        for call in (own.tidings.list, own.tidings.notifications, proxy(url, shop.secret).tidings.list):
            with pytest.raises(Fault, match="scope subscribe, for the subscriber named first; yours has"):
                call("bo")
        feed = rss("GQL for bo").decode()
        outcome = proxy(url, shop.secret).tidings.publish(rss("b").decode())
        assert len(outcome["published"]) == 1
        outcome = proxy(url, shop.secret).tidings.publish(feed)
        assert "may only publish" in outcome["refused"][0]["reason"]
        with pytest.raises(Fault, match="scope publish; yours has subscribe, for ana"):
            own.tidings.publish(feed)


def test_xml_rpc_subscribe_over_api_limit_is_fault(
    tidings: Tidings, rpc: ServerProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDINGS_API_LIMITS", "subscriptions=1")
    rpc.tidings.subscribe("ana", GQL)
    with pytest.raises(Fault, match="1 for each subscriber"):
        rpc.tidings.subscribe("ana", GQL)
