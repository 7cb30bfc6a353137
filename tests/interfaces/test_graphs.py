"""Graphs on the command line: `taxonomy`, `subscribe --language gql`, `publish page.ttl`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.interfaces.calling import Tidings

TAXONOMY = """@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:Lab rdfs:subClassOf ex:Academia . ex:topss a ex:Lab . ex:author rdfs:subPropertyOf ex:creator ."""
CIRCLE = """@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:Academia rdfs:subClassOf ex:Lab ."""


def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def test_a_taxonomy_is_loaded_listed_and_forgotten(tidings: Tidings) -> None:
    done = tidings("taxonomy", "load", write("academia.ttl", TAXONOMY))
    assert done.stdout == "academia  2 classes, 1 instance, 2 properties\n"
    assert json.loads(tidings("taxonomy", "list", "--json").stdout) == {
        "name": "academia", "classes": 2, "instances": 1, "properties": 2,
    }  # fmt: skip
    assert tidings("taxonomy", "remove", "academia").stdout == "academia  forgotten\n"
    done = tidings("taxonomy", "remove", "academia")
    assert (done.exit_code, done.stderr) == (3, "academia  there is no such taxonomy\n")
    done = tidings("taxonomy", "remove", "academia", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (3, {"name": "academia", "removed": False})


def test_a_circle_is_refused_and_named(tidings: Tidings) -> None:
    """Each file is sound by itself; together they are not."""
    tidings("taxonomy", "load", write("academia.ttl", TAXONOMY))
    done = tidings("taxonomy", "load", write("circle.ttl", CIRCLE))
    assert done.exit_code == 2
    assert (
        "<http://example.org/Academia> → <http://example.org/Lab> → <http://example.org/Academia>"
        in done.output
    )
    assert tidings("taxonomy", "list").stdout.split()[0] == "academia"
    assert len(tidings("taxonomy", "list").stdout.splitlines()) == 1


def test_what_is_no_taxonomy(tidings: Tidings) -> None:
    assert "no idea what is in" in tidings("taxonomy", "load", write("a.csv", "")).output
    assert "no file" in tidings("taxonomy", "load", "nowhere.ttl").output
    assert tidings("taxonomy", "load", write("bad.ttl", "<a> <b>")).exit_code == 2


def test_subscribe_says_what_a_pattern_is_reached_through(tidings: Tidings) -> None:
    text = (
        'SELECT ?page WHERE (?page, dc:subject, ?s) (?page, dc:date, ?d) AND ?s contains "oak" AND ?d >= 2004'
    )
    done = tidings("subscribe", "--as", "cy", "--language", "gql", text)
    assert done.exit_code == 0, done.output
    assert "cy  gql  2 predicates" in done.stdout
    wrong = tidings("subscribe", "--as", "cy", "--language", "gql", "SELECT ?x WHERE (?x, nope:p, ?y)")
    assert wrong.exit_code == 2 and "nope" in wrong.output


def test_publish_takes_graphs_and_takes_several_apart(tidings: Tidings) -> None:
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
