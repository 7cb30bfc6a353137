"""Examples of subscriptions in the console, the help and the docs: each matches something of the sample
publications.
"""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tidings.cli.subscriptions import subscribe as subscribe_command
from tidings.language_hints import list_guides
from tidings.metadata.provider.provider import Provider
from tidings.service.preview import PreviewBounds, preview_subscription
from tidings.service.tidings import Tidings

EXAMPLES = ROOT / "examples"
ANTIQUE = '{"event_type": "antiques", "price": 1000, "quantity": 7, "period": "XVI"}'
TABLE = '{"event_type": "furniture", "price": 150, "quantity": 1, "furniture_category": "table"}'
CLOCK = """{"title": "cuckoo clock", "price": 15, "period": "XVI", "reserve": 5, "material": "oak",
"furniture_category": "table", "sold": {"at": "2024-06-01"}}"""
DOCUMENT = """<quotes><stock exchange="NYSE"><symbol>YHOO</symbol><price>60</price><name>Motor Works</name></stock>
<ref><sector>tech</sector></ref></quotes>"""
FEED = b"""<rss version="2.0"><channel><title>News</title><link>http://example.org/</link><description/>
<item><guid>http://example.org/1</guid><title>Spark repairs clocks</title><category>clocks</category>
<pubDate>Mon, 06 May 2024 10:00:00 GMT</pubDate></item></channel></rss>"""
GRAPH = """@prefix ex: <http://example.org/> . @prefix dc: <http://purl.org/dc/elements/1.1/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
ex:page dc:subject ex:topss ; dc:title "an oak table" ; dc:date "2004-05-01"^^xsd:date ."""
SERVERS = """@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix e: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
e:Server a rdfs:Class . e:memory a rdf:Property ; rdfs:domain e:Server ; rdfs:range xsd:integer .
"""
SERVER = b"@prefix e: <http://example.org/> . <#one> a e:Server ; e:memory 92 ."
SCHEMA = """
domains: {furniture: {concepts: {dining room: [chair, table]}}}
attributes: {furniture_category: furniture, price: numeric, period: string, title: string, reserve: numeric,
             material: string, sold.at: instant}
"""


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tidings]:
    """A home with the schemas that the console's examples are written for."""
    with Tidings(tmp_path_factory.mktemp("furnished")) as home:
        home.extend_schema((EXAMPLES / "furniture.yaml").read_text())
        home.load_taxonomy("academia", (EXAMPLES / "academia.ttl").read_bytes(), "text/turtle")
        for event in (ANTIQUE, TABLE):
            home.publish(event)
        _publish_others(home)
        provider, metadata = Provider(home.store), EXAMPLES / "metadata"
        provider.load_schema((metadata / "schema.ttl").read_bytes(), "text/turtle")
        body = (metadata / "host.rdf").read_bytes()
        provider.register("http://example.org/doc.rdf", body, "application/rdf+xml")
        yield home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tidings]:
    """A home for the examples of the command line."""
    with Tidings(tmp_path_factory.mktemp("home")) as home:
        home.extend_schema(SCHEMA)
        home.publish(CLOCK)
        _publish_others(home)
        provider = Provider(home.store)
        provider.load_schema(SERVERS.encode(), "text/turtle")
        provider.register("http://example.org/servers.ttl", SERVER, "text/turtle")
        yield home


def _publish_others(home: Tidings) -> None:
    home.publish(DOCUMENT, media_type="application/xml")
    assert len([*home.publish_parts(FEED, "application/rss+xml")]) == 1
    home.publish(GRAPH, media_type="text/turtle")


def count_matches(home: Tidings, language: str, text: str) -> int:
    if language == "rules":
        home.subscribe(text, text, "rules")
        return len(home.notifications(text))
    bounds = PreviewBounds(last=100, size=10**6, seconds=60)
    schema, tables = home.schema_now().checked_against, home.preview_tables
    previewed = preview_subscription(home.store, tables, home.subscribing(), schema, language, text, bounds)
    assert not previewed.warnings
    return len(previewed.matches)


CONSOLE = [(language.name, example.text) for language in list_guides() for example in language.examples]


@pytest.mark.parametrize(("language", "text"), CONSOLE)
def test_console_examples_match_sample_publications(furnished: Tidings, language: str, text: str) -> None:
    assert count_matches(furnished, language, text) >= 1


@pytest.mark.parametrize("text", [text for language, text in CONSOLE if language == "gql"][:3])
def test_console_first_gql_examples_match_feed_item(tmp_path: Path, text: str) -> None:
    with Tidings(tmp_path) as home:
        assert len([*home.publish_parts(FEED, "application/rss+xml")]) == 1
        assert count_matches(home, "gql", text) == 1


HELP = inspect.getdoc(subscribe_command) or ""
COMMANDS = [
    shlex.split(line.replace("\\[", "[")) for line in re.findall(r"tidings subscribe (--as .*)", HELP)
]


def text_of(words: list[str]) -> str:
    """Return the argument that belongs to no option."""
    options = {at for at, word in enumerate(words) if word.startswith("--")}
    [text] = [word for at, word in enumerate(words) if not options & {at, at - 1}]
    return text


@pytest.mark.parametrize("words", COMMANDS, ids=text_of)
def test_command_line_examples_match_sample_publications(home: Tidings, words: list[str]) -> None:
    language = words[words.index("--language") + 1] if "--language" in words else "predicates"
    assert count_matches(home, language, text_of(words)) >= 1


def test_gql_page_first_texts_match_sample_publications(furnished: Tidings) -> None:
    page = (ROOT / "docs" / "gql.md").read_text(encoding="utf-8").partition("On the command line")[0]
    texts = re.findall(r"(?:^    .*\n)+", page, re.MULTILINE)
    assert [count_matches(furnished, "gql", text) for text in texts] == [1, 1]
