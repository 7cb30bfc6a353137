"""Feeds: all formats give items of one shape; common errors are tolerated, dangerous input is rejected."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime

import feedparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import DecodeProblem
from tidings.graphs.model import RDF, RDFS, TYPE, XSD, Edge, TermKind, iri, literal
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.graphs.rdf.rdf_errors import OVER, Limits
from tidings.graphs.syndication.feed import Feed
from tidings.graphs.syndication.feed_parser import Item, items_of
from tidings.graphs.syndication.item_graph import CONTENT, DC, DCTERMS, ENCLOSURE, RSS1, date_term, instant
from tidings.graphs.syndication.markup import MOST_OPEN, sanitised

RSS, ATOM, JSON = "application/rss+xml", "application/atom+xml", "application/feed+json"
URL = "http://example.org/feed"
MODULES = f'xmlns:dc="{DC}" xmlns:content="{CONTENT}" xmlns:atom="http://www.w3.org/2005/Atom"'


def rss(item: str, channel: str = "", head: str = MODULES) -> bytes:
    return f'<rss version="2.0" {head}><channel><title>T</title>{channel}<item>{item}</item></channel></rss>'.encode()


def atom(entry: str, feed: str = "", attributes: str = "") -> bytes:
    head = f'<feed xmlns="http://www.w3.org/2005/Atom" {attributes}><title>T</title>{feed}'
    return f"{head}<entry>{entry}</entry></feed>".encode()


def json_feed(**item: object) -> bytes:
    feed = {"version": "https://jsonfeed.org/version/1.1", "title": "T", "items": [item]}
    return json.dumps(feed).encode()


def parse_only_item(body: bytes, url: str | None = URL) -> Item:
    (item,) = items_of(body, "", url)[1]
    return item


def values(item: Item, name: str) -> list[str]:
    return [edge.object.text for edge in item.graph.edges if edge.property.text == name]


# --- Items of all formats --------------------------------------------------------------------------------------------

SAME_ITEM = {
    "RSS 1.0": f"""<rdf:RDF xmlns:rdf="{RDF}" xmlns="{RSS1}" xmlns:d="{DC}" xmlns:c="{CONTENT}" xmlns:t="{DCTERMS}"
          xmlns:enc="{ENCLOSURE}">
        <channel rdf:about="http://example.org/feed"><title>News</title><link>http://example.org/</link></channel>
        <item rdf:about="http://example.org/1"><title>Tom &amp; Jerry</title><link>http://example.org/1</link>
          <description>Short</description><c:encoded>&lt;p&gt;Long&lt;/p&gt;</c:encoded><d:date>2024-05-01T12:00+02:00</d:date>
          <d:creator>Ann</d:creator><d:subject>cats</d:subject><d:subject>mice</d:subject>
          <d:identifier>http://example.org/1</d:identifier><t:modified
            rdf:datatype="{XSD}dateTime">2024-05-02T00:00:00Z</t:modified>
          <enc:enclosure rdf:resource="http://example.org/1.mp3"/></item></rdf:RDF>""",
    "RSS 2.0": f"""<rss version="2.0" {MODULES}><channel><title>News</title><link>http://example.org/</link><item>
        <guid>http://example.org/1</guid><title>Tom &amp; Jerry</title><link>http://example.org/1</link>
        <description>Short</description><content:encoded><![CDATA[<p>Long</p>]]></content:encoded>
        <pubDate>Wed, 01 May 2024 12:00:00 +0200</pubDate><dc:creator>Ann</dc:creator>
        <atom:updated>2024-05-02T00:00:00Z</atom:updated>
        <category>cats</category><category>mice</category><enclosure url="1.mp3"/></item></channel></rss>""",
    "Atom": """<a:feed xmlns:a="http://www.w3.org/2005/Atom" xml:base="http://example.org/"><a:title>News</a:title>
        <a:link href="/"/><a:entry><a:id>http://example.org/1</a:id><a:title type="html">Tom &amp;amp; Jerry</a:title>
        <a:link href="1"/><a:summary>Short</a:summary><a:content type="html">&lt;p>Long&lt;/p></a:content>
        <a:published>2024-05-01T10:00:00Z</a:published><a:updated>2024-05-02T00:00:00Z</a:updated>
        <a:author><a:name>Ann</a:name></a:author><a:category term="cats"/><a:category term="mice"/>
        <a:link rel="enclosure" href="1.mp3"/></a:entry></a:feed>""",
    "JSON Feed": json.dumps(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "title": "News",
            "home_page_url": "http://example.org/",
            "authors": [{"name": "Ann"}],
            "items": [
                {
                    "id": "http://example.org/1",
                    "url": "/1",
                    "title": "Tom & Jerry",
                    "summary": "Short",
                    "content_html": "<p>Long</p>",
                    "date_published": "2024-05-01T10:00:00Z",
                    "date_modified": "2024-05-02T00:00:00Z",
                    "tags": ["cats", "mice"],
                    "attachments": [{"url": "1.mp3", "mime_type": "audio/mpeg"}],
                }
            ],
        }
    ),
}


def test_items_of_every_format_gives_same_graph() -> None:
    items = {name: parse_only_item(text.encode()) for name, text in SAME_ITEM.items()}
    graphs = {name: frozenset(item.graph.edges) for name, item in items.items()}
    for name, graph in graphs.items():
        assert graph == graphs["Atom"], name
    assert len({item.hash for item in items.values()}) == 1
    assert {item.published for item in items.values()} == {datetime(2024, 5, 1, 10, tzinfo=UTC)}


def test_items_of_item_graph_has_all_edges() -> None:
    node, feed = iri("http://example.org/1"), iri("http://example.org/feed")
    assert set(parse_only_item(SAME_ITEM["RSS 2.0"].encode()).graph.edges) == {
        Edge(node, iri(TYPE), iri(RSS1 + "item")),
        Edge(node, iri(RSS1 + "title"), literal("Tom & Jerry")),
        Edge(node, iri(RSS1 + "link"), literal("http://example.org/1")),
        Edge(node, iri(RSS1 + "description"), literal("Short")),
        Edge(node, iri(CONTENT + "encoded"), literal("<p>Long</p>")),
        Edge(node, iri(DC + "date"), literal("2024-05-01T10:00:00Z", XSD + "dateTime")),
        Edge(node, iri(DCTERMS + "modified"), literal("2024-05-02T00:00:00Z", XSD + "dateTime")),
        Edge(node, iri(DC + "creator"), literal("Ann")),
        Edge(node, iri(DC + "subject"), literal("cats")),
        Edge(node, iri(DC + "subject"), literal("mice")),
        Edge(node, iri(DC + "identifier"), literal("http://example.org/1")),
        Edge(node, iri(ENCLOSURE + "enclosure"), iri("http://example.org/1.mp3")),
        Edge(node, iri(DCTERMS + "isPartOf"), feed),
        Edge(feed, iri(TYPE), iri(RSS1 + "channel")),
        Edge(feed, iri(RSS1 + "title"), literal("News")),
        Edge(feed, iri(RSS1 + "link"), literal("http://example.org/")),
    }


FIGURE_13 = f"""<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="{RDF}" xmlns="{RSS1}">
  <channel rdf:about="http://www.xml.com/xml/news.rss">
    <title>XML.com</title><link>http://xml.com/pub</link><description>About XML.</description>
    <image rdf:resource="http://xml.com/universal/images/xml_tiny.gif"/>
    <items><rdf:Seq>
      <rdf:li resource="http://xml.com/pub/2000/08/09/xslt/xslt.html"/>
      <rdf:li resource="http://xml.com/pub/2000/08/09/rdfdb/index.html"/>
    </rdf:Seq></items>
  </channel>
  <image rdf:about="http://xml.com/universal/images/xml_tiny.gif">
    <title>XML.com</title><link>http://www.xml.com</link><url>http://xml.com/universal/images/xml_tiny.gif</url>
  </image>
  <item rdf:about="http://xml.com/pub/2000/08/09/xslt/xslt.html">
    <title>Processing Inclusions with XSLT</title><link>http://xml.com/pub/2000/08/09/xslt/xslt.html</link>
    <description> On inclusions. </description>
  </item>
  <item rdf:about="http://xml.com/pub/2000/08/09/rdfdb/index.html">
    <title>Putting RDF to Work</title><link>http://xml.com/pub/2000/08/09/rdfdb/index.html</link>
    <description> On databases. </description>
  </item>
</rdf:RDF>"""


def test_items_of_figure_13_has_two_items() -> None:
    """Read figure 13 as a graph with members of the sequence and as a feed; `resource` has no rdf:, as in the paper."""
    graph = decode(FIGURE_13.encode(), "application/rdf+xml")
    pages = {edge.object.text for edge in graph.edges if edge.property.text == RDFS + "member"}
    feed, items = items_of(FIGURE_13.encode(), RSS)
    assert pages == {item.id for item in items} and len(items) == 2
    assert (feed.title, feed.link) == ("XML.com", "http://xml.com/pub")
    assert [item.title for item in items] == ["Processing Inclusions with XSLT", "Putting RDF to Work"]
    assert values(items[0], DCTERMS + "isPartOf") == ["http://www.xml.com/xml/news.rss"]
    assert "On databases" not in str(items[0].graph)


def test_items_of_rss_1_item_includes_nested_nodes() -> None:
    inner = "<rdf:Description><e:name>Ann</e:name></rdf:Description>"
    items = "".join(f'<item rdf:about="urn:{i}"><e:by>{inner}</e:by></item>' for i in range(2))
    body = f'<rdf:RDF xmlns:rdf="{RDF}" xmlns="{RSS1}" xmlns:e="urn:e:">{items}</rdf:RDF>'.encode()
    first, second = items_of(body, RSS)[1]
    assert values(first, "urn:e:name") == values(second, "urn:e:name") == ["Ann"]
    labels = {term.text for edge in second.graph.edges for term in edge if term.kind is TermKind.BLANK}
    assert labels == {"b0", "channel"}


# --- Properties of feeds ---------------------------------------------------------------------------------------------


def test_items_of_rss_2_feed_has_properties() -> None:
    channel = """<link>http://example.org/</link><atom:link rel="self" href="http://example.org/real"/>
      <atom:link rel="hub" href="http://hub.example.org/"/><atom:link rel="hub" href="http://hub.example.net/"/>
      <ttl>90</ttl><language>de</language><description>D</description>
      <lastBuildDate>Wed, 01 May 2024 10:00:00 GMT</lastBuildDate>"""
    hubs, moment = (
        ("http://hub.example.org/", "http://hub.example.net/"),
        datetime(2024, 5, 1, 10, tzinfo=UTC),
    )
    expected = Feed("T", "http://example.org/", "D", "de", 90, hubs, "http://example.org/real", moment)
    assert items_of(rss("", channel), RSS)[0] == expected


@pytest.mark.parametrize(
    ("channel", "hours", "days"),
    [
        ("", set(), set()),
        ("<skipHours><hour>0</hour><hour> 23 </hour></skipHours>", {0, 23}, set()),
        (
            "<skipHours><hour>24</hour><hour>25</hour><hour>-1</hour><hour>²</hour></skipHours>",
            {0},
            set(),
        ),
        ("<skipDays><day>Monday</day><day>sunday</day><day>Someday</day><day/></skipDays>", set(), {0, 6}),
        ("<skipDays>Monday</skipDays><skipHours/>", set(), set()),
        ("<hour>3</hour><day>Monday</day>", set(), set()),
    ],
)
def test_items_of_rss_2_feed_has_skip_hours_and_days(channel: str, hours: set[int], days: set[int]) -> None:
    feed = items_of(rss("", channel), RSS)[0]
    assert (feed.skip_hours, feed.skip_days) == (hours, days)


def test_items_of_atom_feed_has_properties() -> None:
    feed = '<link href="/"/><link rel="self" href="real"/><link rel="hub" href="http://hub.example.org/"/><updated>2024</updated>'
    parsed = items_of(atom("", feed, 'xml:lang="de"'), ATOM, URL)[0]
    assert (parsed.link, parsed.self_link) == ("http://example.org/", "http://example.org/real")
    assert (parsed.hubs, parsed.language, parsed.updated) == (
        ("http://hub.example.org/",),
        "de",
        datetime(2024, 1, 1, tzinfo=UTC),
    )


def test_items_of_json_feed_has_properties() -> None:
    body = {"version": "https://jsonfeed.org/version/1", "title": "T", "feed_url": URL, "items": []}
    feed, items = items_of(
        json.dumps(body | {"hubs": [{"type": "WebSub", "url": "http://h.org/"}]}).encode(), JSON
    )
    assert (feed.self_link, feed.hubs, items) == (URL, ("http://h.org/",), ())


@pytest.mark.parametrize(
    ("period", "frequency", "expected"), [("hourly", "4", 15), ("daily", "", 1440), ("x", "1", None)]
)
def test_items_of_syndication_module_gives_ttl(period: str, frequency: str, expected: int | None) -> None:
    head = 'xmlns:s="http://purl.org/rss/1.0/modules/syndication/"'
    channel = f"<s:updatePeriod>{period}</s:updatePeriod><s:updateFrequency>{frequency}</s:updateFrequency>"
    assert items_of(rss("", channel, head), RSS)[0].ttl == expected


@pytest.mark.parametrize("digits", [16, 4_301, 100_000])
def test_items_of_ttl_with_many_digits_is_large_number(digits: int) -> None:
    many = "9" * digits
    head = 'xmlns:s="http://purl.org/rss/1.0/modules/syndication/"'
    often = f"<s:updatePeriod>hourly</s:updatePeriod><s:updateFrequency>{many}</s:updateFrequency>"
    assert items_of(rss("", often, head), RSS)[0].ttl == 1
    assert (items_of(rss("", f"<ttl>{many}</ttl>", ""), RSS)[0].ttl or 0) > 10**14
    assert items_of(rss("", f"<ttl>-{many}</ttl>", ""), RSS)[0].ttl is None


# --- Deviations of real feeds ----------------------------------------------------------------------------------------


def test_items_of_item_without_guid_has_id_of_link_or_content() -> None:
    assert parse_only_item(rss("<link>http://example.org/1</link>")).id == "http://example.org/1"
    assert parse_only_item(rss('<guid isPermaLink="false">7</guid><link>/1</link>')).id == "7"
    assert parse_only_item(rss("<title>x</title>")).id.startswith("sha256:")
    assert parse_only_item(rss("<title>x</title>")).id != parse_only_item(rss("<title>y</title>")).id


def test_items_of_permanent_guid_is_link() -> None:
    assert parse_only_item(rss("<guid>http://example.org/1</guid>")).link == "http://example.org/1"
    assert parse_only_item(rss('<guid isPermaLink="false">http://example.org/1</guid>')).link is None
    assert parse_only_item(rss("<guid>1234</guid>")).link is None


def test_items_of_missing_or_invalid_date_is_not_published_date() -> None:
    assert parse_only_item(rss("<title>x</title>")).published is None
    item = parse_only_item(rss("<pubDate>next Tuesday</pubDate>"))
    assert item.published is None
    assert Edge(item.graph.edges[0].subject, iri(DC + "date"), literal("next Tuesday")) in item.graph.edges


DATES = {
    "Wed, 01 May 2024 12:00:00 +0200": "2024-05-01T10:00:00Z",
    "01 May 24 10:00 EST": "2024-05-01T15:00:00Z",
    " Wed, 1 May 2024 10:00:00 GMT ": "2024-05-01T10:00:00Z",
    "2024-05-01T10:00:00.5Z": "2024-05-01T10:00:00.500000Z",
    "2024-05-01T10:00": "2024-05-01T10:00:00Z",
    "2024-05-01": "2024-05-01T00:00:00Z",
    "2024-05": "2024-05-01T00:00:00Z",
    "2024": "2024-01-01T00:00:00Z",
}


@pytest.mark.parametrize(("text", "expected"), DATES.items())
def test_date_term_accepted_formats_give_instant(text: str, expected: str) -> None:
    assert date_term(text) == literal(expected, XSD + "dateTime")


@given(st.text(max_size=30) | st.from_regex(r"\w{3}, \d+ \w{3} \d+ \d\d:\d\d [+-]\d{4}", fullmatch=True))
def test_instant_any_text_is_instant_or_none(text: str) -> None:
    parsed = instant(text)
    assert parsed is None or parsed.tzinfo is UTC


def test_items_of_relative_links_are_resolved() -> None:
    assert parse_only_item(rss("<link>/a?b=1&amp;c</link>")).link == "http://example.org/a?b=1&c"
    assert parse_only_item(rss("<link>a</link>"), url=None).link == "a"
    assert (
        parse_only_item(rss("<link>a</link>", head='xml:base="http://example.net/x/"')).link
        == "http://example.net/x/a"
    )
    entry = '<link xml:base="y/" href="z"/>'
    assert (
        parse_only_item(atom(entry, attributes='xml:base="http://example.net/x/"')).link
        == "http://example.net/x/y/z"
    )
    assert parse_only_item(rss("<link>http://[</link>")).link == "http://["


def test_items_of_relative_xml_base_is_applied_once() -> None:
    entry = '<link xml:base="y/" href="z"/>'
    assert parse_only_item(atom(entry, attributes='xml:base="x/"'), url="http://example.org/feed").link == (
        "http://example.org/x/y/z"
    )
    item = rss("<link>a</link>", head='xml:base="x/"')
    assert parse_only_item(item, url="http://example.org/feed").link == "http://example.org/x/a"


def test_items_of_links_keep_empty_query_and_fragment() -> None:
    assert parse_only_item(rss("<link>a?#</link>")).link == "http://example.org/a?#"
    assert parse_only_item(rss("<link>ht\ntp://example.org/a\t b</link>")).link == "http://example.org/a b"


def test_items_of_invalid_iris_are_escaped() -> None:
    node = parse_only_item(rss("<link>http://example.org/a b{c}</link>")).graph.edges[0].subject
    assert node == iri("http://example.org/a%20b%7Bc%7D")


def test_items_of_html_entities_without_dtd_are_replaced() -> None:
    title = "<title>a&nbsp;b &eacute; AT&T x&unknown; &amp;nbsp; &lt;</title>"
    item = parse_only_item(rss(f"{title}<description><![CDATA[&nbsp;]]></description>"))
    assert item.title == "a\xa0b é AT&T x&unknown; &nbsp; <"
    assert values(item, RSS1 + "description") == ["&nbsp;"]


def test_items_of_links_with_bare_ampersands_are_kept() -> None:
    assert (
        parse_only_item(rss("<link>http://example.org/?a=1&b=2&copy=3</link>")).link
        == "http://example.org/?a=1&b=2&copy=3"
    )


def test_items_of_atom_xhtml_is_serialised_as_html() -> None:
    div = '<h:div xmlns:h="http://www.w3.org/1999/xhtml">a &lt; <h:b>b</h:b><h:br/>c</h:div>'
    item = parse_only_item(atom(f'<content type="xhtml">{div}</content><title type="xhtml">{div}</title>'))
    assert values(item, CONTENT + "encoded") == ["a &lt; <b>b</b><br>c"]
    assert item.title == "a < bc"


def test_items_of_text_content_is_escaped() -> None:
    assert values(parse_only_item(atom("<content>a &lt;b> c</content>")), CONTENT + "encoded") == [
        "a &lt;b&gt; c"
    ]
    item = parse_only_item(json_feed(id=7, content_text="a <b> c"))
    assert (item.id, values(item, CONTENT + "encoded")) == ("7", ["a &lt;b&gt; c"])


def test_items_of_external_or_binary_content_is_absent() -> None:
    for attributes in ('src="http://example.org/x"', 'type="image/png"'):
        assert values(parse_only_item(atom(f"<content {attributes}>x</content>")), CONTENT + "encoded") == []


def test_items_of_unescaped_markup_is_text() -> None:
    assert values(parse_only_item(rss("<description>a <b>b</b> c</description>")), RSS1 + "description") == [
        "a <b>b</b> c"
    ]


MARKED_UP = f"""<rdf:RDF xmlns:rdf="{RDF}" xmlns="{RSS1}" xmlns:c="{CONTENT}" xmlns:dc="{DC}" xmlns:f="urn:f:">
    <channel rdf:about="{URL}"><title>The <i>news</i></title><items><rdf:Seq/></items></channel>
    <item rdf:about="http://example.org/1"><title>T</title><description>a <b>b</b> c<br/></description>
    <c:encoded><p xmlns="http://www.w3.org/1999/xhtml">d</p></c:encoded><dc:subject>x <b>y</b></dc:subject>
    <dc:creator><f:Person f:name="Ann"/></dc:creator></item></rdf:RDF>"""


def test_items_of_rss_1_unescaped_markup_is_text() -> None:
    feed, (item,) = items_of(MARKED_UP.encode(), RSS)
    assert feed.title == "The <i>news</i>"
    assert values(item, RSS1 + "description") == ["a <b>b</b> c<br>"]
    assert values(item, CONTENT + "encoded") == ["<p>d</p>"]
    assert values(item, DC + "subject") == ["x <b>y</b>"]
    assert values(item, "urn:f:name") == ["Ann"]  # a node remains a node


def test_items_of_xml_declaration_in_text_is_text() -> None:
    inner = "<description><![CDATA[<?xml version='1.0'?><a/>]]></description>"
    assert values(parse_only_item(rss(inner)), RSS1 + "description") == ["<?xml version='1.0'?><a/>"]


def test_items_of_prefixes_are_resolved_to_namespaces() -> None:
    head = f'xmlns:x="{DC}" xmlns:dc="urn:other"'
    item = parse_only_item(rss("<x:creator>Ann</x:creator><dc:creator>Bo</dc:creator>", head=head))
    assert values(item, DC + "creator") == ["Ann"]


def test_items_of_atom_entry_inherits_author_of_feed() -> None:
    feed = "<author><name>Ann</name></author>"
    assert values(parse_only_item(atom("", feed)), DC + "creator") == ["Ann"]
    assert values(parse_only_item(atom("<author><name>Bo</name></author>", feed)), DC + "creator") == ["Bo"]


def test_items_of_leading_blanks_and_declared_encodings_are_accepted() -> None:
    text = '\n <?xml version="1.0" encoding="iso-8859-1"?>' + rss("<title>é</title>").decode()
    assert parse_only_item(text.encode("latin-1")).title == "é"
    assert (
        parse_only_item(
            ('<?xml version="1.0" encoding="utf-16"?>' + rss("<title>é</title>").decode()).encode("utf-16")
        ).title
        == "é"
    )
    ((item,)) = items_of(rss("<title>é</title>").decode().encode("latin-1"), "text/xml; charset=ISO-8859-1")[
        1
    ]
    assert item.title == "é"
    assert FIGURE_13.encode() != (
        latin := FIGURE_13.replace('"1.0"', '"1.0" encoding="latin1"').replace("On d", "Ün d")
    ).encode("latin-1")
    assert "Ün d" in str(items_of(latin.encode("latin-1"), RSS)[1][1].graph)


def test_items_of_single_atom_entry_is_item() -> None:
    body = b'<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:1</id><title>x</title></entry>'
    assert parse_only_item(body).id == "urn:1"


# --- Hashes of items -------------------------------------------------------------------------------------------------

ITEM = "<guid>1</guid><title>x</title><category>a</category><category>b</category>"
SAME = {
    "another date": rss(ITEM + "<pubDate>Wed, 01 May 2024 10:00:00 GMT</pubDate>"),
    "another feed": rss(ITEM, "<lastBuildDate>now</lastBuildDate><title>U</title>"),
    "another order": rss("<category>b</category><category>a</category><title>x</title><guid>1</guid>"),
    "comments": rss(ITEM + '<s:comments xmlns:s="http://purl.org/rss/1.0/modules/slash/">5</s:comments>'),
}


@pytest.mark.parametrize("body", SAME.values(), ids=SAME)
def test_item_hash_unedited_item_is_same(body: bytes) -> None:
    assert parse_only_item(body).hash == parse_only_item(rss(ITEM)).hash


@pytest.mark.parametrize(
    "more", ["<link>/x</link>", "<description>d</description>", "<category>c</category>"]
)
def test_item_hash_edited_item_differs(more: str) -> None:
    assert parse_only_item(rss(ITEM + more)).hash != parse_only_item(rss(ITEM)).hash
    assert parse_only_item(rss(ITEM + more)).id == "1"


# --- Comparison with feedparser --------------------------------------------------------------------------------------

words = st.text(st.sampled_from("abcé&<'\"日;#x"), min_size=1, max_size=8)
addresses = st.sampled_from(["http://example.org/1", "/2?a=1&b=2", "http://example.net/é"])
moments = st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1)).map(
    lambda moment: moment.replace(microsecond=0)
)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def as_rss(title: str, link: str, subjects: list[str], creator: str, moment: datetime) -> bytes:
    tags = "".join(f"<category>{escaped(name)}</category>" for name in subjects)
    date = f"<pubDate>{moment:%d %b %Y %H:%M:%S} GMT</pubDate>"
    text = f"<title>{escaped(title)}</title><link>{escaped(link)}</link>"
    return rss(f"<guid>urn:1</guid>{text}{tags}<dc:creator>{escaped(creator)}</dc:creator>{date}")


def as_atom(title: str, link: str, subjects: list[str], creator: str, moment: datetime) -> bytes:
    tags = "".join(f'<category term="{escaped(name)}"/>' for name in subjects)
    author = f"<author><name>{escaped(creator)}</name></author>"
    text = f'<title>{escaped(title)}</title><link href="{escaped(link)}"/>'
    return atom(f"<id>urn:1</id>{text}{tags}{author}<published>{moment.isoformat()}Z</published>")


@pytest.mark.parametrize("write", [as_rss, as_atom])
@given(words, addresses, st.lists(words, max_size=3, unique=True), words, moments)
def test_items_of_generated_items_agree_with_feedparser(
    write: Callable[..., bytes], title: str, link: str, subjects: list[str], creator: str, moment: datetime
) -> None:
    body = write(title, link, subjects, creator, moment)
    headers = {"content-location": URL, "content-type": "application/xml"}
    entry = feedparser.parse(io.BytesIO(body), response_headers=headers, sanitize_html=False).entries[0]
    item = parse_only_item(body)
    assert (item.id, item.title, item.link) == (entry.id, entry.title, entry.link)
    assert values(item, DC + "subject") == [tag.term for tag in entry.get("tags", [])]
    assert values(item, DC + "creator") == [entry.author]
    assert item.published is not None and item.published.timetuple()[:6] == tuple(entry.published_parsed[:6])


# --- Rejected feeds --------------------------------------------------------------------------------------------------

LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
REJECTED = {
    "entities": (f'<!DOCTYPE rss [<!ENTITY l0 "x">{LAUGHS}]><rss>&l9;</rss>', "document type"),
    "a page": ("<html><body/></html>", "not a feed"),
    "an HTML page": ("<!DOCTYPE html><html><body><br></body></html>", "not a feed"),
    "RDF": (f'<rdf:RDF xmlns:rdf="{RDF}"/>', "not a feed"),
    "Atom 0.3": ('<feed xmlns="http://purl.org/atom/ns#"/>', "not a feed"),
    "not well-formed": ("<rss><channel>", "not well-formed"),
    "depth": ("<rss>" + "<a>" * 1_000_000, "nested too deeply"),
    "JSON": ('{"title": "x"}', "not a JSON Feed"),
    "a number for a title": (json_feed(id="1", title=5).decode(), "invalid JSON Feed"),
    "objects for tags": (json_feed(id="1", tags=[{}]).decode(), "invalid JSON Feed"),
    "not JSON": ("hello", "expected a value"),
    "nothing": ("", "empty"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "what"), REJECTED.values(), ids=REJECTED)
def test_items_of_invalid_feed_is_rejected(text: str, what: str) -> None:
    with pytest.raises(DecodeProblem) as problem:
        items_of(text.encode(), RSS)
    assert what in problem.value.what


def test_items_of_json_feed_error_has_path_of_value() -> None:
    with pytest.raises(DecodeProblem) as problem:
        items_of(json_feed(id="1", title=5), JSON)
    assert problem.value.where == "items[0].title"


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        (Limits(items=1), "items"),
        (Limits(term=30), "term"),
        (Limits(edges=3), "edges"),
        (Limits(publication=9), "publication"),
    ],
)
def test_items_of_beyond_limit_error_names_limit(limits: Limits, limit: str) -> None:
    body = rss(f"<title>{'x' * 31}</title></item><item>")
    with pytest.raises(DecodeProblem) as problem:
        items_of(body, RSS, limits=limits)
    assert problem.value.what == OVER[limit][0] and f"(the limit {limit})" in str(problem.value.accepted)


# --- Sanitised HTML --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<p onclick='x()'>a<script>alert(1)</script></p>", "<p>a</p>"),
        ('<a href="javascript:x()">a</a>', '<a rel="noopener noreferrer nofollow">a</a>'),
        ('<img src="data:text/html;base64,xx" onerror="x()">', "<img>"),
        ("<style>p{}</style><iframe src='http://x'></iframe><b>b", "<b>b</b>"),
        ("a < b & c", "a &lt; b &amp; c"),
        ('<p style="position:fixed">x</p>', "<p>x</p>"),
    ],
)
def test_sanitised_removes_dangerous_html(text: str, expected: str) -> None:
    assert sanitised(text) == expected


@pytest.mark.parametrize("tag", ["<div>", "<b></p>", "<dd><li>", "<rt>", "<B>", "<a href='http://e.org'><i>"])
def test_sanitised_too_many_open_elements_is_truncated(tag: str) -> None:
    """The running time of nh3 grows with the square of the number of open elements."""
    assert len(sanitised(tag * 20_000 + "end")) < 100 * MOST_OPEN
    assert sanitised(tag * 20 + "end").count("end") == 1


def test_sanitised_many_closed_elements_are_complete() -> None:
    text = (
        "<table><tbody>" + "<tr><td><b>x</b><br></td></tr>" * 2_000 + "</tbody></table><ul><li>end</li></ul>"
    )
    assert sanitised(text) == text


def test_items_of_html_in_graph_is_not_sanitised() -> None:
    assert values(
        parse_only_item(rss("<description>&lt;script>1&lt;/script></description>")), RSS1 + "description"
    ) == ["<script>1</script>"]


def dropped_parts(body: bytes) -> dict[str, int]:
    return dict(items_of(body, "", URL)[0].left_out)


def test_left_out_rss_names_extensions_and_category_domains() -> None:
    head = 'xmlns:g="urn:g" xmlns:georss="urn:georss" xmlns:a="http://www.w3.org/2005/Atom" ' + MODULES
    item = "<title>t</title><category domain='http://example.org/t'>c</category><category>d</category><g:price>5</g:price>"
    more = "<georss:point>1 2</georss:point><comments>x</comments><a:link rel='related' href='y'/>"
    assert dropped_parts(rss(f"{item}{more}<dc:creator>Ann</dc:creator>", head=head)) == {
        "category@domain": 1,
        "comments": 1,
        "g:price": 1,
        "georss:point": 1,
        "link rel=related": 1,
    }
    assert dropped_parts(rss("<title>t</title><guid>1</guid><enclosure url='u'/><pubDate>x</pubDate>")) == {}


def test_left_out_atom_names_extensions_and_category_schemes() -> None:
    entry = (
        "<id>urn:1</id><title>t</title><thr:in-reply-to ref='urn:0'/><category term='c' scheme='urn:s'/>"
        "<rights>r</rights><content src='x'/><link href='y'/><link rel='replies' href='z'/>"
    )
    assert dropped_parts(atom(entry, attributes='xmlns:thr="urn:thr"')) == {
        "category@scheme": 1,
        "content@src": 1,
        "link rel=replies": 1,
        "rights": 1,
        "thr:in-reply-to": 1,
    }


def test_left_out_json_feed_names_other_keys() -> None:
    assert dropped_parts(json_feed(id="1", title="t", _podcast={}, image="x")) == {"_podcast": 1, "image": 1}


def test_left_out_is_bounded() -> None:
    many = "".join(f"<g:{'n' * 100}{number}/>" for number in range(50))
    dropped = dropped_parts(rss(many, head='xmlns:g="urn:g"'))
    assert len(dropped) <= 20 and all(len(name) <= 60 for name in dropped)
