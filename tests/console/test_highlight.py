"""Rendering of publications, detection of media types, and marking of errors."""

from __future__ import annotations

import pytest

from tidings.console.pages import LONGEST, highlight_place, highlight_publication
from tidings.console.publish import list_titles, sniff_media_type
from tidings.errors import Place
from tidings.ingest.submission import accepted_media_types
from tidings.model import Publication


def render(text: str, media_type: str = "application/json", *marked: str) -> str:
    return str(highlight_publication(Publication("p", media_type, text.encode()), marked))


def test_highlight_marks_matched_values() -> None:
    text = '{"seller": {"city": "Pa<ris"}, "tags": ["a", "b"], "n": 1, "none": null, "empty": {}}'
    assert render(text, "application/json", "/seller/city", "/tags").splitlines() == [
        "{",
        '  <span class="key">&#34;seller&#34;</span>: {',
        '    <span class="key">&#34;city&#34;</span>: <mark class="string">&#34;Pa&lt;ris&#34;</mark>',
        "  },",
        '  <span class="key">&#34;tags&#34;</span>: [',
        '    <mark class="string">&#34;a&#34;</mark>,',
        '    <mark class="string">&#34;b&#34;</mark>',
        "  ],",
        '  <span class="key">&#34;n&#34;</span>: <span class="number">1</span>,',
        '  <span class="key">&#34;none&#34;</span>: <span class="word">null</span>,',
        '  <span class="key">&#34;empty&#34;</span>: <span class="word">{}</span>',
        "}",
    ]
    assert "<mark" in render('{"specversion": "1.0", "data": {"n": 1}}', "application/cloudevents+json", "/n")


def test_highlight_shows_invalid_content_unchanged() -> None:
    assert render("{<") == "{&lt;"
    assert render("[" * 100_000).startswith("[[[")
    assert render('"' + "x" * LONGEST + '"').endswith("<em>… and so on</em>")
    assert str(highlight_publication(Publication("p", "application/json", b"\xff\x00"))) == "ff 00 …"


def test_highlight_indents_document_in_one_line() -> None:
    assert render("<a><b>1</b></a>", "application/xml") == "&lt;a&gt;\n  &lt;b&gt;1&lt;/b&gt;\n&lt;/a&gt;"
    for text in ("<a>\n <b/>\n</a>", "<a>", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'):
        assert render(text, "application/xml") == str(render(text, "text/plain"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"a": 1}', "application/json"),
        ('\ufeff {"a": 1}', "application/json"),
        ('{"a": 1}\n{"a": 2}\n', "application/jsonl"),
        ('{\n"a": 1}', "application/json"),
        ('{"specversion": "1.0"}', "application/cloudevents+json"),
        ('{"@context": {}}', "application/ld+json"),
        ('{"version": "https://jsonfeed.org/version/1.1"}', "application/feed+json"),
        ("<a/>", "application/xml"),
        ('<?xml version="1.0"?><rdf:RDF/>', "application/rdf+xml"),
        ('<rss version="2.0"/>', "application/rss+xml"),
        ('<feed xmlns="http://www.w3.org/2005/Atom"/>', "application/atom+xml"),
        ("@prefix a: <b:> .", "text/turtle"),
        ("<a:b> <a:c> <a:d> .", "text/turtle"),
        ("nonsense", "application/json"),
    ],
)
def test_sniff_media_type_recognises_all_kinds(text: str, kind: str) -> None:
    assert sniff_media_type(text) == kind and kind in list_titles()
    assert list_titles().keys() <= set(accepted_media_types())


def test_highlight_place_marks_error_and_shortens_text() -> None:
    assert str(highlight_place(Place("a < b", 1, 3))) == "a <mark>&lt;</mark> b"
    assert str(highlight_place(Place("one\ntwo", 2, 4, 1))) == "one\ntwo<mark> </mark>"
    long = "\n".join(["x"] * 50 + ["y" * 1_000] + ["z"] * 50)
    assert len(str(highlight_place(Place(long, 51, 500, 2)))) < 700
