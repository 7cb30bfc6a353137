"""Graphs on the command line: `taxonomy`, `subscribe --language gql` and `publish page.ttl`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes.command_line import Tidings
from tidings.service.tidings import Tidings as Service

TAXONOMY = """@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:Lab rdfs:subClassOf ex:Academia . ex:topss a ex:Lab . ex:author rdfs:subPropertyOf ex:creator ."""
CYCLE = """@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:Academia rdfs:subClassOf ex:Lab ."""


def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def test_taxonomy_load_list_and_remove(tidings: Tidings) -> None:
    result = tidings("taxonomy", "load", write("academia.ttl", TAXONOMY))
    assert result.stdout == "academia  2 classes, 1 instance, 2 properties\n"
    assert json.loads(tidings("taxonomy", "list", "--json").stdout) == {
        "name": "academia", "classes": 2, "instances": 1, "properties": 2,
    }  # fmt: skip
    assert tidings("taxonomy", "remove", "academia").stdout == "academia  removed\n"
    result = tidings("taxonomy", "remove", "academia")
    assert (result.exit_code, result.stderr) == (3, "academia  there is no such taxonomy\n")
    result = tidings("taxonomy", "remove", "academia", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (3, {"name": "academia", "removed": False})


SKOS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix ex: <http://example.org/> .
ex:oak a skos:Concept ; skos:broader ex:wood . ex:wood a skos:Concept ."""


def test_taxonomy_load_of_skos_prints_warning(tidings: Tidings) -> None:
    result = tidings("taxonomy", "load", write("woods.ttl", SKOS))
    assert (result.exit_code, result.stdout) == (0, "woods  1 class, 2 instances, 0 properties\n")
    assert result.stderr.startswith("warning: 1 statement with skos:broader or skos:narrower ignored; SKOS")
    payload = json.loads(tidings("taxonomy", "load", "woods.ttl", "--json").stdout)
    assert payload["warnings"][0]["what"] == "1 statement with skos:broader or skos:narrower ignored"


def test_taxonomy_load_without_classes_is_rejected(tidings: Tidings) -> None:
    result = tidings("taxonomy", "load", write("page.ttl", "<urn:a> <urn:b> 5 ."))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the file has no classes and no properties; received 1 edge: <urn:b> (1)" in result.stderr


def test_subscribe_file_prints_warnings_with_their_lines(tidings: Tidings) -> None:
    texts = ["SELECT ?x WHERE (?x, dc:title, ?t)", "SELECT ?x WHERE (?x, dc:subject, ?s) AND ?s < <urn:C>"]
    lines = [json.dumps({"text": text, "language": "gql", "subscriber": "cy"}) for text in texts]
    lines.append(json.dumps({"text": "/a and /b", "language": "xpath", "subscriber": "cy"}))
    result = tidings("subscribe", "--file", write("subs.jsonl", "\n".join(lines)))
    assert (result.exit_code, result.stdout) == (0, "3 subscriptions made\n")
    unknown, impossible = result.stderr.replace("\n", " ").split("warning: ")[1:]
    assert unknown.startswith("subs.jsonl, line 2: no loaded taxonomy has the class <urn:C>")
    assert impossible.startswith("subs.jsonl, line 3: no document can match")


def test_subscribe_file_json_outcomes_have_warnings(tidings: Tidings) -> None:
    texts = ["/a and /b", "//a"]
    lines = [json.dumps({"text": text, "language": "xpath", "subscriber": "cy"}) for text in texts]
    result = tidings("subscribe", "--file", write("subs.jsonl", "\n".join(lines)), "--json")
    first, second = map(json.loads, result.stdout.splitlines())
    assert first["warnings"][0]["what"].startswith("no document can match")
    assert first["new"] and second["new"] and "warnings" not in second
    assert result.stderr == ""


def test_taxonomy_load_cycle_is_rejected_and_named(tidings: Tidings) -> None:
    """Each file is valid by itself; together they have a cycle."""
    tidings("taxonomy", "load", write("academia.ttl", TAXONOMY))
    result = tidings("taxonomy", "load", write("cycle.ttl", CYCLE))
    assert result.exit_code == 2
    assert (
        "<http://example.org/Academia> → <http://example.org/Lab> → <http://example.org/Academia>"
        in result.output
    )
    assert tidings("taxonomy", "list").stdout.split()[0] == "academia"
    assert len(tidings("taxonomy", "list").stdout.splitlines()) == 1


def test_taxonomy_load_invalid_file_is_rejected(tidings: Tidings) -> None:
    assert "the media type of" in tidings("taxonomy", "load", write("a.csv", "")).output
    assert "no file" in tidings("taxonomy", "load", "nowhere.ttl").output
    assert tidings("taxonomy", "load", write("bad.ttl", "<a> <b>")).exit_code == 2


def test_subscribe_gql_prints_access_path(tidings: Tidings) -> None:
    text = (
        'SELECT ?page WHERE (?page, dc:subject, ?s) (?page, dc:date, ?d) AND ?s contains "oak" AND ?d >= 2004'
    )
    result = tidings("subscribe", "--as", "cy", "--language", "gql", text)
    assert result.exit_code == 0, result.output
    assert "cy  gql  2 predicates" in result.stdout
    wrong = tidings("subscribe", "--as", "cy", "--language", "gql", "SELECT ?x WHERE (?x, nope:p, ?y)")
    assert wrong.exit_code == 2 and "nope" in wrong.output


@pytest.mark.parametrize("name", ["page.ttl", "days.trig"])
def test_publish_empty_graph_file_is_rejected(tidings: Tidings, name: str) -> None:
    result = tidings("publish", write(name, "\n"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "refused: the body is empty; accepted: a graph, such as <urn:a> <urn:b> 5 .\n"


def test_publish_file_with_several_graphs_publishes_each(tidings: Tidings) -> None:
    assert "position 1" in tidings("publish", write("page.ttl", "<urn:a> <urn:b> 5 .")).stdout
    several = write("days.trig", "<urn:monday> { <urn:a> <urn:b> 1 } <urn:tuesday> { <urn:a> <urn:b> 2 }")
    assert [line.split()[-1] for line in tidings("publish", several).stdout.splitlines()] == ["2", "3"]
    named = tidings("publish", several, "--id", "days").stdout.splitlines()
    assert [line.split()[0] for line in named] == ["days-1", "days-2"]
    feed = write(
        "news.rss",
        '<rss version="2.0"><channel><title>News</title><link>http://example.org/</link><description/>'
        "<item><guid>http://example.org/1</guid><title>One</title></item>"
        "<item><guid>http://example.org/2</guid><title>Two</title></item></channel></rss>",
    )
    assert len(tidings("publish", feed).stdout.splitlines()) == 2
    assert tidings("publish", write("bad.ttl", "<urn:a> <urn:b> .")).exit_code == 2


PAGES = {
    "page.ttl": "<#me> <urn:p> <other> .",
    "page.jsonld": '{"@id": "#me", "urn:p": {"@id": "other"}}',
    "page.rdf": '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:">'
    '<r:Description r:about="#me"><u:p r:resource="other"/></r:Description></r:RDF>',
    "page.trig": "<g> { <#me> <urn:p> <other> }",
}


def published_bodies(tidings: Tidings) -> list[bytes]:
    with Service(".tidings") as service:
        return [each.body for each in service.store.journal.read(0)]


@pytest.mark.parametrize("name", PAGES)
def test_publish_base_resolves_relative_iris(tidings: Tidings, name: str) -> None:
    """The journal contains no relative IRIs: the stream does not know the base."""
    refused = tidings("publish", write(name, PAGES[name]))
    assert refused.exit_code == 2 and "--base" in refused.stderr
    assert tidings("publish", name, "--base", "http://example.org/page", "--id", "p").exit_code == 0
    assert published_bodies(tidings) == [
        b"<http://example.org/page#me> <urn:p> <http://example.org/other> .\n",
    ]
    again = tidings("publish", name, "--base", "http://example.org/page", "--id", "p")
    assert again.exit_code == 0 and "published before" in again.stdout
    assert tidings("publish", name, "--base", "http://example.org/x/", "--id", "p").exit_code == 2, "others"


def test_publish_base_resolves_links_of_feed(tidings: Tidings) -> None:
    feed = '<rss version="2.0"><channel><title>News</title><item><link>/1</link></item></channel></rss>'
    tidings("publish", write("news.rss", feed), "--base", "http://example.org/feed")
    assert published_bodies(tidings)[0].startswith(b"<http://example.org/1> ")


@pytest.mark.parametrize("name", [*PAGES, "news.rss"])
@pytest.mark.parametrize("base", ["", "page", "//example.org", "http://[", "http://a b/"])
def test_publish_invalid_base_is_rejected(tidings: Tidings, name: str, base: str) -> None:
    feed = '<rss version="2.0"><channel><title>News</title><item><link>/1</link></item></channel></rss>'
    result = tidings("publish", write(name, PAGES.get(name, feed)), "--base", base)
    assert result.exit_code == 2
    assert "invalid base" in result.stderr and f"received '{base}'" in result.stderr


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('{"price": 1}', "this media type has no base; received application/json"),
        ("<lot/>", "this media type has no base; received application/xml"),
        ("-", "--base is for graphs and feeds"),
        ("lots.jsonl", "--base is for graphs and feeds"),
    ],
)
def test_publish_base_for_other_media_types_is_rejected(tidings: Tidings, source: str, message: str) -> None:
    result = tidings("publish", source, "--base", "http://example.org/", given="{}")
    assert result.exit_code == 2 and message in result.stderr
    assert published_bodies(tidings) == []


def test_publish_json_ld_with_several_graphs_publishes_each(tidings: Tidings) -> None:
    one = '{"@id": "urn:%s", "@graph": [{"@id": "urn:x", "urn:p": "%s"}]}'
    write("one.jsonld", one % ("a", "a"))
    assert tidings("publish", "one.jsonld", "--id", "one").stdout.split()[0] == "one"
    write("two.jsonld", f"[{one % ('a', 'a')}, {one % ('b', 'b')}]")
    named = tidings("publish", "two.jsonld", "--id", "two").stdout.splitlines()
    assert [line.split()[0] for line in named] == ["two-1", "two-2"]
